"""DLPack: shares arrays with other libraries without a copy, in both directions. It knows DLPack 1.0 and the older structures."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from ._checked import array
from .dtypes import DType, of_dlpack

CPU, CUDA_HOST, CUDA_MANAGED = 1, 3, 13  # DLDeviceType: kinds whose addresses the processor can use
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
VERSION = (1, 0)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]


NAMES: dict[type[_Managed] | type[_Versioned], bytes] = {_Managed: b"dltensor", _Versioned: b"dltensor_versioned"}
USED = {_Managed: b"used_dltensor", _Versioned: b"used_dltensor_versioned"}

_api = ctypes.pythonapi
_api.PyCapsule_New.restype, _api.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# Capsules are passed by address, because a capsule that is being deallocated must not become an object again.
_api.PyCapsule_IsValid.restype, _api.PyCapsule_IsValid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_SetName.restype, _api.PyCapsule_SetName.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]

#: What other libraries use, by the address of the structure: the structure, its arrays of numbers, and the owner of the memory.
_given: dict[int, tuple[Any, ...]] = {}


@_Deleter
def _returned(address: int) -> None:
    """Another library does not need the memory any more."""
    _given.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _capsule_ends(capsule: int) -> None:
    """A capsule is deallocated. If no library has taken its contents, it still has its first name."""
    for name in NAMES.values():
        if _api.PyCapsule_IsValid(capsule, name):
            _given.pop(_api.PyCapsule_GetPointer(capsule, name), None)


def export(owner: object, pointer: int, shape: tuple[int, ...], dtype: DType, versioned: bool) -> Any:
    """Makes a capsule of memory of ``owner``. The capsule keeps the owner alive. The processor and the GPU share the memory."""
    managed = _Versioned() if versioned else _Managed()
    numbers = array(ctypes.c_int64, shape, "the shape", least=1)
    managed.deleter = ctypes.cast(_returned, ctypes.c_void_p)
    if isinstance(managed, _Versioned):
        managed.major, managed.minor = VERSION
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = pointer, CPU, 0, len(shape)
    tensor.code, tensor.bits, tensor.lanes = dtype.code, 8 * dtype.itemsize, 1
    tensor.shape, tensor.strides = numbers, _strides(shape)
    _given[ctypes.addressof(managed)] = (managed, numbers, tensor.strides, owner)
    return _api.PyCapsule_New(ctypes.addressof(managed), NAMES[type(managed)], ctypes.cast(_capsule_ends, ctypes.c_void_p))


def _strides(shape: tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
    strides, step = (ctypes.c_int64 * max(len(shape), 1))(), 1
    for axis in reversed(range(len(shape))):
        strides[axis], step = step, step * shape[axis]
    return strides


class Imported:
    """Memory of another library. It is given back when this object is closed or deallocated."""

    _managed: _Managed | _Versioned | None = None

    def __init__(self, producer: Any):
        kind, _ = producer.__dlpack_device__()
        if kind not in (CPU, CUDA_HOST, CUDA_MANAGED):
            raise BufferError(f"the array is in memory of DLPack's device kind {int(kind)}, which the processor cannot address: "
                              "copy it to the processor's memory first")
        try:
            capsule = producer.__dlpack__(max_version=VERSION)
        except TypeError:  # a library from before DLPack 1.0
            capsule = producer.__dlpack__()
        self._take(capsule)

    def _take(self, capsule: Any) -> None:
        for kind, name in NAMES.items():
            if _api.PyCapsule_IsValid(id(capsule), name):
                managed = kind.from_address(_api.PyCapsule_GetPointer(id(capsule), name))
                self._managed = managed
                _api.PyCapsule_SetName(id(capsule), USED[kind])
                break
        else:
            raise BufferError("__dlpack__ returned something that is not a capsule of DLPack, or a capsule that was used before")
        tensor = managed.tensor
        self.shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.nbytes = math.prod(self.shape) * tensor.bits * tensor.lanes // 8
        try:
            self.dtype = of_dlpack(tensor.code, tensor.bits, tensor.lanes)
            self._check(tensor)
        except BufferError:
            self.close()
            raise

    def _check(self, tensor: _Tensor) -> None:
        if isinstance(self._managed, _Versioned) and self._managed.flags & READ_ONLY:
            raise BufferError("the array is read-only, and the GPU could write to it: make a copy with Device.array")
        if tensor.strides:
            wanted = _strides(self.shape)
            if any(tensor.strides[axis] != wanted[axis] for axis in range(tensor.ndim) if self.shape[axis] != 1):
                raise BufferError("the items of the array do not follow each other in memory: make a contiguous copy first")

    def close(self) -> None:
        """Gives the memory back."""
        managed, self._managed = self._managed, None
        if managed is not None and managed.deleter:
            _Deleter(managed.deleter)(ctypes.addressof(managed))

    def __del__(self) -> None:
        self.close()
