"""Small kernels from CUDA C on the C runtime, for measurements and for stages without tinygrad. The NVRTC wheel compiles them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from tegrarm import _ffi, rm
from tegrarm import compile as compiler
from tegrarm.calls import launch_config

FOREVER = (1 << 64) - 1


def compiled(source: str) -> bytes:
    """Machine code for sm_87. Raises Refused with the compiler's log, or if there is no NVRTC."""
    return compiler.compiled(source.encode(), "pool.cu")


class Kernels:
    """A device of this process with one loaded module, as a context manager."""

    def __init__(self, image: bytes, index: int = 0):
        self.lib, self.device, self.module = _ffi.lib(), ctypes.c_void_p(), ctypes.c_void_p()
        self._check("tegrarm_device_open", index, ctypes.byref(self.device))
        self._check("tegrarm_module_load", self.device, image, len(image), ctypes.byref(self.module))
        self.kernels: dict[str, ctypes.c_void_p] = {}

    def _check(self, call: str, *arguments: object) -> None:
        rm.check(call, getattr(self.lib, call)(*arguments))

    def buffer(self, size: int) -> tuple[ctypes.c_void_p, int, np.ndarray]:
        """The handle, the GPU's address, and the same bytes as an array, because the CPU and the GPU share the memory."""
        handle, pointer, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self._check("tegrarm_buffer_alloc", self.device, size, 0, ctypes.byref(handle))
        self._check("tegrarm_buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        view = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (size,))
        return handle, address.value, view

    def release(self, handle: ctypes.c_void_p) -> None:
        """Frees a buffer."""
        self._check("tegrarm_buffer_free", handle)

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[ctypes._SimpleCData]) -> int:
        """Starts a kernel. Returns the fence that passes when the kernel has ended."""
        if name not in self.kernels:
            found = ctypes.c_void_p()
            self._check("tegrarm_module_kernel", self.module, name.encode(), ctypes.byref(found))
            self.kernels[name] = found
        fence = ctypes.c_uint64()
        config = launch_config((blocks, 1, 1), (threads, 1, 1))
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[ctypes.addressof(a) for a in arguments])
        self._check("tegrarm_launch", None, self.kernels[name], ctypes.byref(config), pointers, len(arguments), ctypes.byref(fence))
        return fence.value

    def wait(self, fence: int, seconds: float | None = None) -> None:
        """Waits until a kernel has ended. Raises RmError with the fault's sentence if the device has stopped."""
        self._check("tegrarm_wait", self.device, fence, FOREVER if seconds is None else int(seconds * 1e9))

    def close(self) -> None:
        """Closes the device."""
        if self.device:
            device, self.device = self.device, ctypes.c_void_p()
            self.lib.tegrarm_device_close(device)

    def __enter__(self) -> Kernels:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
