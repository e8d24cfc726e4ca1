"""The buffer protocol for a class that is written in Python.

Python has it (``__buffer__``) from 3.12 on, and JetPack's Python is older. ``PyType_FromSpec`` makes a base class with the slot of
that protocol in every version. A class that inherits from :class:`Exporter` says what it exports with ``_exported``.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

from .dtypes import DType

FORMAT, SHAPE, STRIDES = 0x4, 0x8, 0x10  # flags for the fields that the caller needs (PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES)
BASE_TYPE = 1 << 10  # Py_TPFLAGS_BASETYPE
GET_BUFFER = 1  # Py_bf_getbuffer


class _Buffer(ctypes.Structure):
    """``Py_buffer``."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


class Exported:
    """What one user of the protocol keeps alive: the memory, and the texts and numbers that describe it."""

    def __init__(self, owner: object, pointer: int, shape: tuple[int, ...], dtype: DType):
        self.owner, self.pointer, self.itemsize = owner, pointer, dtype.itemsize
        self.format = ctypes.create_string_buffer((dtype.format or "B").encode())
        self.shape = (ctypes.c_ssize_t * max(len(shape), 1))(*shape)
        self.strides = (ctypes.c_ssize_t * max(len(shape), 1))()
        self.ndim, self.nbytes = len(shape), dtype.itemsize
        for axis in reversed(range(len(shape))):
            self.strides[axis] = self.nbytes
            self.nbytes *= shape[axis]

    def fill(self, view: _Buffer, flags: int) -> None:
        """Describes the memory to a caller. The caller's view then keeps this object alive."""
        view.buf, view.len, view.itemsize, view.readonly, view.ndim = self.pointer, self.nbytes, self.itemsize, 0, self.ndim
        view.format = ctypes.addressof(self.format) if flags & FORMAT else None
        view.shape = ctypes.addressof(self.shape) if flags & SHAPE else None
        view.strides = ctypes.addressof(self.strides) if flags & STRIDES else None
        view.suboffsets = view.internal = None
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        view.obj = id(self)


def _get(exporter: object, address: int, flags: int) -> int:
    """The function that Python calls. It must not raise an exception: after an error it returns -1, and Python raises SystemError."""
    view = _Buffer.from_address(address)
    view.obj = None
    try:
        exporter._exported().fill(view, flags)  # type: ignore[attr-defined]
    except Exception as error:
        _why(error)
        return -1
    return 0


def _why(error: Exception) -> None:
    """Prints the reason. Python's SystemError does not contain it."""
    print(f"tegrarm: the memory cannot be given out: {error}", file=sys.stderr)


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


# These objects must never be freed, because the class contains pointers to them.
_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(_get)
_SLOTS = (_Slot * 2)(_Slot(GET_BUFFER, ctypes.cast(_FUNCTION, ctypes.c_void_p)))
_SPEC = _Spec(b"tegrarm.exporter.Exporter", 0, 0, BASE_TYPE, _SLOTS)

if TYPE_CHECKING:
    class Exporter:
        """A base class with the buffer protocol."""

        def __buffer__(self, flags: int, /) -> memoryview:
            """The memory to export. Subclasses define this."""
            raise BufferError
else:
    _from_spec = ctypes.pythonapi.PyType_FromSpec
    _from_spec.restype, _from_spec.argtypes = ctypes.py_object, [ctypes.c_void_p]
    Exporter = _from_spec(ctypes.addressof(_SPEC))
