"""Memory of a device: a buffer of the library, and everybody who still needs it.

An array that is closed lets go of its memory. The memory itself goes when the last view of it is gone, and the device's handle when
the last memory is gone, so that a view never points at nothing.
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
    """Ends something of this process, and lets go of what it needed. A forked child has nothing of its parent's."""
    if os.getpid() == pid:
        getattr(_ffi.lib(), f"tegrarm_{name}")(handle)


class Handle:
    """A handle of the library that is ended when nobody has it any more, or by ``close``."""

    def __init__(self, handle: ctypes.c_void_p, end: str, *needs: object):
        """``end`` names the call that ends it; without a name, it ends with what it belongs to. ``needs`` stay until then."""
        self.value, self.open = handle, True
        self._finish = weakref.finalize(self, _end, end, handle, os.getpid(), needs) if end else None
        if self._finish is not None:
            self._finish.atexit = False  # the kernel takes back what a process has at its end

    def close(self) -> None:
        """Ends it. Safe to call again."""
        if self._finish is not None:
            self.open = False
            self._finish()


class Memory:
    """A buffer: where the processor and the GPU see it."""

    def __init__(self, gpu: Handle, handle: ctypes.c_void_p, source: Any = None):
        # `source` is what has the pages, if they are somebody else's.
        self.handle = Handle(handle, "buffer_free", gpu, source)
        pointer, address = ctypes.c_void_p(), ctypes.c_uint64()
        call("buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        self.pointer, self.address = pointer.value or 0, address.value

    @classmethod
    def new(cls, gpu: Handle, size: int, flags: int) -> Memory:
        """Fresh memory, all zero. No memory at all is a byte."""
        return cls(gpu, made("buffer_alloc", gpu.value, max(size, 1), flags))

    @classmethod
    def of_dmabuf(cls, gpu: Handle, descriptor: int, flags: int) -> Memory:
        """Memory that somebody else allocated. The descriptor stays the caller's."""
        return cls(gpu, made("buffer_import", gpu.value, descriptor, flags))

    @classmethod
    def of_pages(cls, gpu: Handle, pointer: int, size: int, source: Any) -> tuple[Memory, int]:
        """The whole pages around memory of this process, and where in them it begins."""
        offset = pointer % PAGE
        handle = made("buffer_import_pages", gpu.value, pointer - offset, max(size, 1) + offset, _ffi.TEGRARM_BUFFER_CACHED)
        return cls(gpu, handle, source), offset

    def export(self) -> tuple[int, int]:
        """A new descriptor of the memory, as a dmabuf, and where in it the buffer starts."""
        descriptor, offset = ctypes.c_int(), ctypes.c_uint64()
        call("buffer_export", self.handle.value, ctypes.byref(descriptor), ctypes.byref(offset))
        return descriptor.value, offset.value
