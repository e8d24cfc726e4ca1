"""Desktop NVIDIA Resource Manager calls on Jetson, and a runtime for its GPU, from Python.

:class:`Device` is the runtime: arrays, kernels and queues. ``import tegrarm.tinygrad`` and ``import tegrarm.triton`` let tinygrad
and Triton use the GPU. :class:`Client` makes RM calls one by one.
"""

from ._ffi import TEGRARM_VERSION as __version__
from ._ffi import LibraryNotFound, last_error, lib, status_name, version
from .array import Array
from .compile import CompileError
from .device import Device
from .kernels import Kernel, Module
from .queues import Event, Fence, Queue, Timer
from .rm import Client, RmError, RmNoMemory, RmTimeout, device_count, device_profile, measured_profile

__all__ = [
    "Array", "Client", "CompileError", "Device", "Event", "Fence", "Kernel", "LibraryNotFound", "Module", "Queue", "RmError",
    "RmNoMemory", "RmTimeout", "Timer", "device_count", "device_profile", "last_error", "lib", "measured_profile", "status_name",
    "version", "__version__",
]
