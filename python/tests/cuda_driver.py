"""CUDA's driver interface for tests: our libcuda in this process, arrays of numpy in and out, a small kernel or two."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import cuda
import numpy
from conftest import ROOT

LIBRARY = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/cuda/libcuda.so.1"
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
SOURCE = r"""
extern "C" __global__ void add(float *a, float value, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += value; }
extern "C" __global__ void scale(float *a, float value, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= value; }
"""


class Failed(Exception):
    """A function returned an error."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name}: {code}")
        self.code = code


@functools.cache
def library() -> ctypes.CDLL:
    """The library, after cuInit."""
    made = ctypes.CDLL(str(LIBRARY))
    assert made.cuInit(0) == 0
    return made


def call(name: str, *arguments: Any) -> None:
    """Calls a function. A number is a pointer, a size or a handle; smaller numbers need their type of ctypes. An array is its address."""
    addresses = [a.ctypes.data if isinstance(a, numpy.ndarray) else a for a in arguments]
    code = getattr(library(), name)(*[ctypes.c_uint64(a) if type(a) is int else a for a in addresses])
    if code:
        raise Failed(name, code)


def code(name: str, *arguments: Any) -> int:
    """The result of a call."""
    try:
        call(name, *arguments)
    except Failed as failed:
        return failed.code
    return 0


def out(name: str, *arguments: Any, kind: type = ctypes.c_uint64, last: bool = False) -> int:
    """What a function writes to its first argument, or to its last one."""
    made = kind()
    place = ctypes.byref(made)
    call(name, *((*arguments, place) if last else (place, *arguments)))
    return made.value or 0


def array(data: numpy.ndarray) -> int:
    """Memory of the device with the bytes of an array."""
    address = out("cuMemAlloc_v2", data.nbytes)
    call("cuMemcpyHtoD_v2", address, data, data.nbytes)
    return address


def read(address: int, like: numpy.ndarray) -> numpy.ndarray:
    """An array with the bytes of memory of the device."""
    result = numpy.empty_like(like)
    call("cuMemcpyDtoH_v2", result, address, result.nbytes)
    return result


def values(*arguments: Any) -> ctypes.Array[ctypes.c_void_p]:
    """The array of the addresses of a kernel's parameters. An int is an address; other values have their type of ctypes."""
    kept = [ctypes.c_uint64(a) if type(a) is int else ctypes.c_float(a) if type(a) is float else a for a in arguments]
    made = (ctypes.c_void_p * len(kept))(*[ctypes.addressof(a) for a in kept])
    made.kept = kept  # type: ignore[attr-defined]
    return made


def launch(kernel: int, grid: int, block: int, stream: int, *arguments: Any, shared: int = 0, name: str = "cuLaunchKernel") -> None:
    """Launches a kernel of one dimension."""
    sizes = [ctypes.c_uint(n) for n in (grid, 1, 1, block, 1, 1, shared)]
    call(name, kernel, *sizes, stream, values(*arguments), *([] if "Cooperative" in name else [None]))


def module(source: str = SOURCE) -> int:
    """A module of a source of CUDA."""
    return out("cuModuleLoadData", cuda.compiled(source))


def function(loaded: int, name: str) -> int:
    """A kernel of a module."""
    return out("cuModuleGetFunction", loaded, name.encode())


@contextlib.contextmanager
def context() -> Iterator[int]:
    """A context of its own."""
    library()
    made = out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0))
    try:
        yield made
    finally:
        call("cuCtxDestroy_v2", made)
