"""The buffer protocol for a class that is written in Python.

Python has it (``__buffer__``) from 3.12 on, and JetPack's Python is older. ``PyType_FromSpec`` makes a base class with the slot of
that protocol in every version. A class that inherits from :class:`Exporter` says what it exports with ``_exported``.

The slot cannot be a callback of ctypes: ctypes prints an exception of a callback and goes on with a result that nobody has set, and an
interrupt may come at any instruction. The slot is therefore a function of Python itself, ``PySequence_DelSlice``. Its arguments are an
object and two numbers, it calls ``object.__delitem__(slice(address of the view, flags))``, and it passes every exception on.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ._checked import array
from .dtypes import DType

FORMAT, SHAPE, STRIDES = 0x4, 0x8, 0x10  # flags for the fields that the caller needs (PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES)
BASE_TYPE = 1 << 10  # Py_TPFLAGS_BASETYPE
GET_BUFFER = 1  # Py_bf_getbuffer
FLAGS = (1 << 32) - 1  # C passes them as an int
LOWEST = 1 << 16  # no process has memory below


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
        self.shape = array(ctypes.c_ssize_t, shape, "the shape", least=1)
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


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


# These objects must never be freed, because the class contains pointers to them.
_SLOTS = (_Slot * 2)(_Slot(GET_BUFFER, ctypes.cast(ctypes.pythonapi.PySequence_DelSlice, ctypes.c_void_p)))
_SPEC = _Spec(b"tegrarm.exporter.Exporter", 0, 0, BASE_TYPE, _SLOTS)

if TYPE_CHECKING:
    class _Base:
        """A base class with the slot of the buffer protocol."""

        def __buffer__(self, flags: int, /) -> memoryview:
            """The memory to export."""
            raise BufferError
else:
    _from_spec = ctypes.pythonapi.PyType_FromSpec
    _from_spec.restype, _from_spec.argtypes = ctypes.py_object, [ctypes.c_void_p]
    _Base = _from_spec(ctypes.addressof(_SPEC))


class Exporter(_Base):
    """A base class with the buffer protocol. Subclasses define ``_exported``."""

    #: What interrupted the last request. numpy drops every exception and asks for ``__array_interface__`` instead.
    _interrupt: BaseException | None = None

    def _exported(self) -> Exported:
        raise BufferError(f"{type(self).__name__} exports nothing")

    def __delitem__(self, key: Any) -> None:
        """Answers a request for the memory. The address of a view is larger than its flags, so that no statement looks like one."""
        if not isinstance(key, slice) or not _is_request(key):
            raise TypeError("items of an array cannot be deleted")
        view = _Buffer.from_address(key.start)
        view.obj = None
        try:
            self._interrupt = None
            self._exported().fill(view, key.stop & FLAGS)
        except Exception:
            raise
        except BaseException as error:
            self._interrupt = error
            raise


def _is_request(key: slice) -> bool:
    """Whether a slice is the address of a view and its flags. In a statement, it would be an empty range that begins behind its end."""
    address, flags = key.start, key.stop
    known = isinstance(address, int) and isinstance(flags, int) and key.step is None
    return known and address > LOWEST and address % ctypes.alignment(_Buffer) == 0 and 0 <= flags & FLAGS < 1 << 12 < address
