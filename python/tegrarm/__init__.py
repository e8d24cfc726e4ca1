"""Desktop NVIDIA Resource Manager calls on Jetson, from Python.

``import tegrarm.tinygrad`` gives tinygrad its TEGRA interface; :class:`Client` is the way to make RM calls by hand.
"""

from ._ffi import LibraryNotFound, last_error, lib, status_name, version
from .rm import Client, RmError, RmNoMemory, device_count, device_profile, measured_profile

__all__ = [
    "Client", "LibraryNotFound", "RmError", "RmNoMemory",
    "device_count", "device_profile", "last_error", "lib", "measured_profile", "status_name", "version",
]
