"""Desktop NVIDIA Resource Manager calls on Jetson, and a runtime for its GPU, from Python.

:class:`Device` is the runtime: arrays, kernels and queues. ``import tegrarm.tinygrad`` and ``import tegrarm.triton`` let tinygrad
and Triton use the GPU. :class:`Client` makes RM calls one by one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._ffi import TEGRARM_VERSION as __version__
from ._ffi import LibraryNotFound, last_error, lib, status_name, version
from .rm import Client, RmError, RmNoMemory, RmTimeout, device_count, device_profile, measured_profile

# The runtime, by module. It is half of what there is to import, and commands like `tegrarm doctor` have no use for it: a name's module is
# imported when somebody asks for the name.
RUNTIME = {"array": ("Array",), "compile": ("CompileError",), "device": ("Device",), "kernels": ("Kernel", "Module"),
           "queues": ("Event", "Fence", "Queue", "Timer")}
WHERE = {name: module for module, names in RUNTIME.items() for name in names}

__all__ = [
    "Array", "Client", "CompileError", "Device", "Event", "Fence", "Kernel", "LibraryNotFound", "Module", "Queue", "RmError",
    "RmNoMemory", "RmTimeout", "Timer", "device_count", "device_profile", "last_error", "lib", "measured_profile", "status_name",
    "version", "__version__",
]

if TYPE_CHECKING:
    from .array import Array
    from .compile import CompileError
    from .device import Device
    from .kernels import Kernel, Module
    from .queues import Event, Fence, Queue, Timer
else:
    def __getattr__(name: str) -> object:
        if name in WHERE:
            value = globals()[name] = getattr(importlib.import_module(f".{WHERE[name]}", __name__), name)
            return value
        if name in RUNTIME:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
