"""Small kernels from CUDA C on the C runtime, for measuring and for stages without tinygrad. Needs the NVRTC wheel to compile."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from tegrarm import _ffi, rm

FOREVER = (1 << 64) - 1


def _nvrtc() -> ctypes.CDLL:
    if path := os.environ.get("NVRTC_PATH"):
        return ctypes.CDLL(path)
    with contextlib.suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
        for place in (spec.submodule_search_locations or []) if spec else []:
            for library in sorted(pathlib.Path(place).glob("lib/libnvrtc.so.*")):
                return ctypes.CDLL(str(library))
    raise OSError("there is no NVRTC here: pip install nvidia-cuda-nvrtc-cu12, or set NVRTC_PATH to libnvrtc.so")


def compiled(source: str) -> bytes:
    """Machine code for sm_87. Raises ValueError with the compiler's log."""
    library, program, size = _nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    if library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"pool.cu", 0, None, None):
        raise ValueError("NVRTC did not take the source")
    failed = library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_87"))
    what = "ProgramLog" if failed else "CUBIN"
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise ValueError(text.value.decode())
    return text.raw


class Kernels:
    """A device of this process with one loaded module. A context manager."""

    def __init__(self, image: bytes, index: int = 0):
        self.lib, self.device, self.module = _ffi.lib(), ctypes.c_void_p(), ctypes.c_void_p()
        self._check("tegrarm_device_open", index, ctypes.byref(self.device))
        self._check("tegrarm_module_load", self.device, image, len(image), ctypes.byref(self.module))
        self.kernels: dict[str, ctypes.c_void_p] = {}

    def _check(self, call: str, *arguments: object) -> None:
        rm.check(call, getattr(self.lib, call)(*arguments))

    def buffer(self, size: int) -> tuple[ctypes.c_void_p, int, np.ndarray]:
        """A handle, the GPU's address, and the same bytes as an array: CPU and GPU share the memory."""
        handle, pointer, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self._check("tegrarm_buffer_alloc", self.device, size, 0, ctypes.byref(handle))
        self._check("tegrarm_buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        view = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (size,))
        return handle, address.value, view

    def release(self, handle: ctypes.c_void_p) -> None:
        """Gives a buffer back."""
        self._check("tegrarm_buffer_free", handle)

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[ctypes._SimpleCData]) -> int:
        """Starts a kernel; returns the fence that says when it is done."""
        if name not in self.kernels:
            found = ctypes.c_void_p()
            self._check("tegrarm_module_kernel", self.module, name.encode(), ctypes.byref(found))
            self.kernels[name] = found
        grid, block, fence = (ctypes.c_uint32 * 3)(blocks, 1, 1), (ctypes.c_uint32 * 3)(threads, 1, 1), ctypes.c_uint64()
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[ctypes.addressof(a) for a in arguments])
        self._check("tegrarm_launch", self.kernels[name], grid, block, 0, pointers, len(arguments), ctypes.byref(fence))
        return fence.value

    def wait(self, fence: int, seconds: float | None = None) -> None:
        """Until a kernel is done; raises RmError with the fault's sentence if the device stopped."""
        self._check("tegrarm_wait", self.device, fence, FOREVER if seconds is None else int(seconds * 1e9))

    def close(self) -> None:
        """Gives the device back."""
        if self.device:
            device, self.device = self.device, ctypes.c_void_p()
            self.lib.tegrarm_device_close(device)

    def __enter__(self) -> Kernels:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
