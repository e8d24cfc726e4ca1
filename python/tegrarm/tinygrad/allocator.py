"""Memory of the device TEGRA. The CPU and the GPU share it, so that no copy goes through another buffer."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

from tinygrad import device as tinygrad_device
from tinygrad.device import BufferSpec

from .. import _ffi
from ..calls import call, made
from . import copies
from .releases import HAS_STORAGE, SYNCHRONIZES_FIRST

if TYPE_CHECKING:
    from .device import TegraDevice

PAGE = 4096
# Until 0.14 a class of its own keeps freed buffers for later. After it every allocator does.
Keeping: Any = tinygrad_device.Allocator if HAS_STORAGE else tinygrad_device.LRUAllocator


class TegraBuffer:
    """Memory, or a part of it: the value that tinygrad calls the opaque value of a ``Buffer``."""

    __slots__ = ("__weakref__", "dev", "handle", "offset", "owner", "pointer", "size", "va")

    def __init__(self, dev: TegraDevice, handle: ctypes.c_void_p, offset: int, pointer: int, va: int, size: int, owner: bool):
        self.dev, self.handle, self.owner = dev, handle, owner
        self.offset, self.size = offset, size  # in the memory for which the handle stands
        self.pointer, self.va = pointer, va  # the address for the CPU, and the one for the GPU

    def part(self, offset: int, size: int) -> TegraBuffer:
        """``size`` bytes from ``offset``. The part does not keep the memory alive, because tinygrad's views keep their base."""
        return TegraBuffer(self.dev, self.handle, self.offset + offset, self.pointer + offset, self.va + offset, size, False)

    def bytes(self) -> memoryview:
        """The memory as the CPU sees it."""
        return memoryview((ctypes.c_uint8 * self.size).from_address(self.pointer)).cast("B")


class Allocating(Keeping):
    """Makes buffers of the device, and buffers of memory that others own."""

    def __init__(self, dev: TegraDevice):
        super().__init__(dev, supports_copy_from_disk=False)
        self.made: dict[int, TegraBuffer] = {}  # the allocated buffers by their addresses

    def new(self, size: int, options: BufferSpec) -> TegraBuffer:
        """Memory, or that of others by its address."""
        if options.external_ptr is not None:
            return self._external(options.external_ptr, size)
        # `host`, `cpu_access` and `zero` need no work: the CPU sees every buffer, and a new buffer is cleared.
        cache = _ffi.TEGRARM_BUFFER_WRITE_COMBINED if options.uncached else _ffi.TEGRARM_BUFFER_CACHED
        buffer = self._buffer(made("buffer_alloc", self.dev.handle, size, cache), 0, size)
        self.made[buffer.pointer] = buffer
        return buffer

    def end(self, buffer: TegraBuffer) -> None:
        """Frees a buffer. A part of one belongs to the whole."""
        if not buffer.owner:
            return
        self.made.pop(buffer.pointer, None)
        if self.dev.is_ours():
            self.dev.settle()
            call("buffer_free", buffer.handle)

    def _buffer(self, handle: ctypes.c_void_p, offset: int, size: int) -> TegraBuffer:
        pointer, address = ctypes.c_void_p(), ctypes.c_uint64()
        call("buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        return TegraBuffer(self.dev, handle, offset, (pointer.value or 0) + offset, address.value + offset, size, True)

    def _external(self, address: int, size: int) -> TegraBuffer:
        """Memory that others own, by the CPU's address. It is a part of one of our buffers, or pages of this process."""
        for buffer in self.made.values():
            if buffer.pointer <= address and address + size <= buffer.pointer + buffer.size:
                return buffer.part(address - buffer.pointer, size)
        return self.pages(address, size)

    def pages(self, address: int, size: int) -> TegraBuffer:
        """Gives whole pages to the GPU. The buffer begins at the address that was asked for."""
        offset = address % PAGE
        handle = made("buffer_import_pages", self.dev.handle, address - offset, size + offset, _ffi.TEGRARM_BUFFER_CACHED)
        return self._buffer(handle, offset, size)

    def of_another(self, buf: TegraBuffer) -> TegraBuffer:
        """Memory of another device of the library."""
        descriptor, offset = ctypes.c_int(), ctypes.c_uint64()
        call("buffer_export", buf.handle, ctypes.byref(descriptor), ctypes.byref(offset))
        try:
            handle = made("buffer_import", self.dev.handle, descriptor, _ffi.TEGRARM_BUFFER_CACHED)
        finally:
            _ffi.lib().rm_close(descriptor)
        return self._buffer(handle, offset.value + buf.offset, buf.size)


class OpaqueAllocator(Allocating):
    """For tinygrad 0.13 and 0.14, where the opaque value of a buffer is a TegraBuffer."""

    def _alloc(self, size: int, options: BufferSpec) -> TegraBuffer:
        return self.new(size, options)

    def _free(self, opaque: TegraBuffer, options: BufferSpec) -> None:
        self.end(opaque)

    def _offset(self, buf: TegraBuffer, size: int, offset: int) -> TegraBuffer:
        return buf.part(offset, size)

    # *** memory of other devices, without a copy ***

    def _map(self, buf: Any) -> TegraBuffer:
        if isinstance(buf, TegraBuffer):
            return self.of_another(buf) if buf.dev is not self.dev else buf.part(0, buf.size)
        if isinstance(buf, memoryview):
            return self.pages(ctypes.addressof(ctypes.c_uint8.from_buffer(buf)), buf.nbytes)
        if isinstance(getattr(buf, "va_addr", None), int):  # a buffer of tinygrad's CPU device has an address of this process
            return self.pages(buf.va_addr, buf.size)
        raise RuntimeError(f"{self.dev.device} cannot see a buffer of {type(buf).__name__}: it has no address in this process")

    def _unmap(self, mb: TegraBuffer) -> None:
        self.end(mb)

    # *** copies ***

    def _as_buffer(self, src: TegraBuffer) -> memoryview:
        if not SYNCHRONIZES_FIRST:
            self.dev.synchronize()
        return src.bytes()

    def _copyin(self, dest: TegraBuffer, src: memoryview) -> None:
        self.dev.synchronize()  # a running kernel may still read dest
        with copies.into(self.dev.device):
            dest.bytes()[:src.nbytes] = src.cast("B")

    def _copyout(self, dest: memoryview, src: TegraBuffer) -> None:
        self.dev.synchronize()  # a running kernel may still write src
        with copies.out_of(self.dev.device):
            dest.cast("B")[:] = src.bytes()[:dest.nbytes]

    def _transfer(self, dest: TegraBuffer, src: TegraBuffer, sz: int, src_dev: TegraDevice, dest_dev: TegraDevice) -> None:
        if src_dev is dest_dev:
            self.dev.settle()
            call("copy", None, dest.handle, dest.offset, src.handle, src.offset, sz, None)
            return
        src_dev.synchronize()
        dest_dev.allocator._copyin(dest, src.bytes()[:sz])


class StorageAllocator(Allocating):
    """For a tinygrad whose buffers are ``BufferStorage``: the GPU's address, the TegraBuffer, and the CPU's view of it. tinygrad makes all
    copies through the views.
    """

    def _storage(self, buffer: TegraBuffer) -> Any:
        view = tinygrad_device.MMIOInterface(buffer.pointer, buffer.size, fmt="B")
        return tinygrad_device.BufferStorage(buffer.va, buffer, view)

    def _alloc(self, size: int, options: BufferSpec) -> Any:
        buffer = self.new(size, options)
        if options.external_ptr is not None and buffer.owner:
            buffer.owner = False  # tinygrad does not free it
            weakref.finalize(buffer, _end_pages, self.dev, buffer.handle).atexit = False
        return self._storage(buffer)

    def _free(self, storage: Any, options: BufferSpec) -> None:
        self.end(storage.meta)

    def _offset(self, buf: int, size: int, offset: int) -> int:
        return buf + offset

    def _map(self, buf: Any) -> Any:
        storage = buf.get_storage()
        if isinstance(storage.meta, TegraBuffer):
            return self._storage(self.of_another(storage.meta))
        if storage.host is None:
            raise RuntimeError(f"{self.dev.device} cannot see a buffer of {buf.device}: it has no address in this process")
        return self._storage(self.pages(storage.host.addr, buf.nbytes))

    def _unmap(self, mb: Any) -> None:
        self.end(mb.meta)


def _end_pages(dev: TegraDevice, handle: ctypes.c_void_p) -> None:
    if dev.is_ours():
        dev.settle()
        call("buffer_free", handle)


TegraAllocator = StorageAllocator if HAS_STORAGE else OpaqueAllocator
