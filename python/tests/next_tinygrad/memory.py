"""Buffers and allocators: ``put_in()`` puts them into the installed tinygrad, before anything else of it is loaded."""

from __future__ import annotations

import mmap
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from tinygrad import device as published
from tinygrad.helpers import mv_address
from tinygrad.runtime.support.hcq import MMIOInterface

Device = published.Device


@dataclass(frozen=True)
class BufferStorage:
    """An address for the device, what belongs to it, and the processor's view."""

    buf: Any
    meta: Any = None
    host: Any = None
    maps: dict = field(default_factory=dict)


class Buffer:
    """Memory of one device, or a part of other memory."""

    def __init__(self, device: str, size: int, dtype: Any, options: Any = None, base: Buffer | None = None, offset: int = 0):
        self.device, self.size, self.dtype, self.offset, self._base = Device.canonicalize(device), size, dtype, offset, base
        self.options, self._storage = options or published.BufferSpec(), None

    base = property(lambda self: self._base or self)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    allocator = property(lambda self: HOST if self.device == "CPU" else Device[self.device].allocator)
    _buf = property(lambda self: self.get_storage().buf)
    host = property(lambda self: self.get_storage().host)
    meta = property(lambda self: self.get_storage().meta)

    def ensure_allocated(self) -> Buffer:
        if self._storage is None:
            if self._base is None:
                storage = self.allocator.alloc(self.nbytes, self.options)
            else:
                whole = self._base.get_storage()
                storage = replace(whole, buf=self.allocator._offset(whole.buf, self.nbytes, self.offset), maps={})
            view = storage.host and storage.host.view(self.offset, self.nbytes, fmt="B")
            self._storage = replace(storage, host=view)
        return self

    def get_storage(self, device: str | None = None) -> BufferStorage:
        own = self.ensure_allocated()._storage
        if device is None or Device.canonicalize(device) == self.device:
            return own
        other = Device[device]
        if other not in own.maps:
            part = self._base and other.allocator._offset(self._base.get_buf(device), self.nbytes, self.offset)
            own.maps[other] = BufferStorage(part) if self._base else other.allocator.map(self)
        return own.maps[other]

    def get_buf(self, device: str) -> Any:
        return self.get_storage(device).buf

    def view(self, size: int, dtype: Any, offset: int) -> Buffer:
        return Buffer(self.device, size, dtype, base=self.base, offset=self.offset + offset)

    def ref(self, by: int) -> Buffer:
        """Counts nothing: the published operands count those who use a buffer, and later ones do not."""
        return self

    def deallocate(self) -> None:
        if self._base is None:
            self.allocator.free(self._storage, self.nbytes, self.options)
        self._storage = None


class Allocator:
    """Keeps what is freed for the next buffer of the same size."""

    lru = True

    def __init__(self, dev: Any, supports_copy_from_disk: bool = True, supports_transfer: bool = True):
        self.dev, self.cache = dev, defaultdict(list)

    def alloc(self, size: int, options: Any = None) -> BufferStorage:
        kept = self.cache[(size, options)]
        return kept.pop() if kept else self._alloc(size, options)

    def free(self, storage: BufferStorage, size: int, options: Any = None) -> None:
        if self.lru and not options.nolru and options.external_ptr is None:
            self.cache[(size, options)].append(storage)
        else:
            self.do_free(storage, options)

    def free_cache(self) -> None:
        for (_, options), storages in self.cache.items():
            for storage in storages:
                self.do_free(storage, options)
            storages.clear()

    def do_free(self, storage: BufferStorage, options: Any) -> None:
        for dev, mapping in storage.maps.items():
            dev.synchronize()
            dev.allocator._unmap(mapping)
        if options.external_ptr is None:
            self._free(storage, options)

    def map(self, buf: Buffer) -> BufferStorage:
        return self._map(buf.ensure_allocated())


class HostAllocator(Allocator):
    """The processor's memory, which Python's mmap makes."""

    def _alloc(self, size: int, options: Any) -> BufferStorage:
        memory = mmap.mmap(-1, size, access=mmap.ACCESS_WRITE)
        address = mv_address(memory)
        return BufferStorage(address, memory, MMIOInterface(address, size, fmt="B"))

    def _free(self, storage: BufferStorage, options: Any) -> None:
        pass

    def _offset(self, buf: int, size: int, offset: int) -> int:
        return buf + offset


HOST = HostAllocator(None)


class Compiled(published.Compiled):
    """A device. Its programs are made by a class that gets the device and the program."""

    def __init__(self, device, allocator, renderers, runtime, arch=None):
        self.device, self.allocator, self.runtime_t = device, allocator, runtime
        self.renderers, self.arch, self.cached_renderer, self.pending = renderers, arch, {}, {}

    def runtime(self, obj: Any) -> Any:
        return self.runtime_t(self, obj)


def copy(dest: Buffer, src: Buffer) -> None:
    """A copy between two buffers that the processor sees."""
    for buffer in (dest, src):
        if buffer.device != "CPU":
            Device[buffer.device].synchronize()
    dest.host[:] = src.host[:]


def put_in() -> None:
    """Replaces the classes, and takes away what the next release does not have."""
    for stand_in in (BufferStorage, Buffer, Allocator, Compiled):
        setattr(published, stand_in.__name__, stand_in)
    published.MMIOInterface = MMIOInterface
    del published.LRUAllocator
    from tinygrad.engine import jit, realize
    del jit.GraphRunner, realize.graph_cache
