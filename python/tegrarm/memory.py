"""Memory of a device: buffers of the library, which are freed when nothing uses them any more.

An array that is closed releases its memory. The memory is freed when the last view of it is gone. The device's handle is closed when
the last memory is freed. So a view always points at memory that exists.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

from . import _ffi
from .calls import call, made

PAGE = 4096


def _end(name: str, handle: ctypes.c_void_p, pid: int, _needs: tuple[object, ...]) -> None:
    """Ends a handle of this process, and releases what it needed. In a forked child it does nothing: the handles are the parent's."""
    if os.getpid() == pid:
        getattr(_ffi.lib(), f"tegrarm_{name}")(handle)


class Handle:
    """A handle of the library. It is ended by ``close``, or when no object refers to it any more."""

    def __init__(self, handle: ctypes.c_void_p, end: str, *needs: object):
        """``end`` is the call that ends the handle; it is empty if the handle ends with its parent. ``needs`` are kept alive until then."""
        self.value, self.open = handle, True
        self._finish = weakref.finalize(self, _end, end, handle, os.getpid(), needs) if end else None
        if self._finish is not None:
            self._finish.atexit = False  # when a process ends, the kernel frees everything that it has

    def close(self) -> None:
        """Ends the handle. A second call does nothing."""
        if self._finish is not None:
            self.open = False
            self._finish()


class Memory:
    """A buffer of the library, with its address for the CPU and its address for the GPU."""

    def __init__(self, gpu: Handle, handle: ctypes.c_void_p, source: Any = None):
        # `source` is the object that owns the pages, if the buffer does not own them.
        self.handle, self.source = Handle(handle, "buffer_free", gpu, source), source
        pointer, address = ctypes.c_void_p(), ctypes.c_uint64()
        call("buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        self.pointer, self.address = pointer.value or 0, address.value

    @classmethod
    def new(cls, gpu: Handle, size: int, flags: int) -> Memory:
        """Allocates memory, which is zero. A size of 0 becomes one byte, because the library has no empty buffers."""
        return cls(gpu, made("buffer_alloc", gpu.value, max(size, 1), flags))

    @classmethod
    def of_dmabuf(cls, gpu: Handle, descriptor: int, flags: int) -> Memory:
        """Memory that another driver or process allocated. The caller keeps the descriptor."""
        return cls(gpu, made("buffer_import", gpu.value, descriptor, flags))

    @classmethod
    def of_pages(cls, gpu: Handle, pointer: int, size: int, source: Any) -> tuple[Memory, int]:
        """The whole pages around memory of this process, and the offset of the memory in them."""
        offset = pointer % PAGE
        handle = made("buffer_import_pages", gpu.value, pointer - offset, max(size, 1) + offset, _ffi.TEGRARM_BUFFER_CACHED)
        return cls(gpu, handle, source), offset

    def part(self, gpu: Handle, offset: int, size: int) -> Memory:
        """A part of the memory. It is an error if the part is not inside."""
        return Memory(gpu, made("buffer_part", self.handle.value, offset, max(size, 1)))

    def export(self) -> tuple[int, int]:
        """A new dmabuf descriptor of the memory, and the offset at which the buffer starts in it."""
        descriptor, offset = ctypes.c_int(), ctypes.c_uint64()
        call("buffer_export", self.handle.value, ctypes.byref(descriptor), ctypes.byref(offset))
        return descriptor.value, offset.value
