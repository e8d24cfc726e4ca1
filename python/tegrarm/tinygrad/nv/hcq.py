"""What the interface TEGRA needs of tinygrad 0.12 to 0.14 besides, whose NV device is made of ``HCQBuffer`` and of queues that are written
when they are submitted. A buffer has one address there, which is the CPU's and that of every device.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any

from tinygrad.helpers import to_mv
from tinygrad.runtime import ops_nv
from tinygrad.runtime.ops_nv import NVAllocator, NVComputeQueue
from tinygrad.runtime.support.hcq import FileIOInterface, HCQBuffer, HCQSignal, MMIOInterface

from ... import _ffi
from .. import copies
from .protection import Fixed

if TYPE_CHECKING:
    from . import TEGRAIface

REACH = 1 << 40  # GPU addresses have 40 bits
LOOK_NS = 1_000_000  # how long the library waits for a signal before tinygrad looks at its own clock
# Values of mmap and mremap that are the same on every Linux on which tinygrad runs.
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE = 2, 0x20, 0x4000, 0x100000
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2


class TegraComputeQueue(NVComputeQueue):
    """A compute queue that releases signals from the pushbuffer."""

    def signal(self, signal, value=0):
        """Does what tinygrad's method does, but never through the launch descriptor."""
        # The memory of a QMD is written again for the next launch of a graph, and on Tegra the CPU may do so before the GPU has read it. A
        # release in the QMD could then have the value of the next launch. Each submit has its own words in the pushbuffer.
        self.active_qmd = None
        return super().signal(signal, value)


class TegraSignal(getattr(ops_nv, "NVSignal", HCQSignal)):  # type: ignore[misc]  # 0.12 has no signals of its own for NVIDIA's GPUs
    """A signal whose waits do not keep a GPU from its work that this computer's processors do."""

    _wanted = 0

    def wait(self, value: int, *timeout: int | None, **named: int | None) -> None:
        """As tinygrad's, which reads the signal in a loop and calls :meth:`_sleep` in between. Its timeout is passed on as it was given."""
        self._wanted = value
        super().wait(value, *timeout, **named)

    def _sleep(self, time_spent_since_last_sleep_ms: int) -> bool | None:
        # A board's GPU is watched as closely as by tinygrad's loop: for a millisecond the library reads in a loop, too.
        word = ctypes.cast(self.base_buf.cpu_view().addr, ctypes.POINTER(ctypes.c_uint64))
        _ffi.lib().tegrarm_wait_value(word, self._wanted, LOOK_NS)
        return super()._sleep(time_spent_since_last_sleep_ms)


class TegraAllocator(NVAllocator):
    """Copies are plain copies of memory. The CPU and the GPU share the memory, so that a staging buffer would only add a second copy."""

    def __init__(self, dev: Any):
        super().__init__(dev, batch_cnt=0, supports_copy_from_disk=False)

    def map(self, buf: HCQBuffer) -> None:
        """Maps another device's buffer for this GPU. tinygrad 0.12 and 0.13 call this."""
        super().map(buf)
        self._within_reach(buf)

    def _map(self, buf: HCQBuffer) -> HCQBuffer | None:
        """Maps another device's buffer for this GPU. tinygrad 0.14 calls this, and in older releases it is a part of :meth:`map`."""
        mapped = super()._map(buf)
        self._within_reach(buf)
        return mapped

    def _within_reach(self, buf: HCQBuffer) -> None:
        """Names the pages of a buffer by the address that the GPU can reach. Views of the buffer are passed separately."""
        mapped = buf.mappings.get(self.dev)
        if mapped is not None and buf.va_addr + buf.size > REACH:
            buf.va_addr += mapped.meta.moved

    def _bytes(self, buf: HCQBuffer) -> memoryview:
        return to_mv(buf.cpu_view().addr, buf.size)

    def _as_buffer(self, src: HCQBuffer) -> memoryview:
        self.dev.synchronize()
        return self._bytes(src)

    def _copyin(self, dest: HCQBuffer, src: memoryview) -> None:
        self.dev.synchronize()  # a running kernel may still read dest
        with copies.into(self.dev.device):
            self._bytes(dest)[:src.nbytes] = src.cast("B")

    def _copyout(self, dest: memoryview, src: HCQBuffer) -> None:
        self.dev.synchronize()  # a running kernel may still write src
        with copies.out_of(self.dev.device):
            dest.cast("B")[:] = self._bytes(src)[:dest.nbytes]


class Pages:
    """The ``meta`` of a buffer of the process: its RM object, and the GPU's address minus the CPU's."""

    def __init__(self, handle: int, moved: int):
        self.hMemory, self.moved = handle, moved


def _remap() -> ctypes._CFuncPtr:
    """The function ``mremap``. If it is told that an old mapping has no pages, it maps the shared pages a second time."""
    call = ctypes.CDLL(None, use_errno=True).mremap
    call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    return call


def _show_again(address: int, at: int, size: int) -> None:
    """Maps the shared pages at ``address`` to ``at`` as well, which must be free."""
    reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    FileIOInterface.anon_mmap(at, size, 0, reserved, 0)
    if _remap()(address, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == ctypes.c_void_p(-1).value:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        FileIOInterface.munmap(at, size)
        what = f"the {size:#x} bytes at {address:#x} are no shared memory, and the GPU does not reach that high"
        raise RuntimeError(f"{what}: {error}") from error


def mapped_pages(iface: TEGRAIface, buffer: HCQBuffer, address: int, size: int) -> HCQBuffer:
    """Completes the mapping of pages of the process. tinygrad writes one address for all devices into copies, so that the process gets to
    see the pages at the GPU's address too.
    """
    moved = buffer.va_addr - address
    if moved:
        try:
            _show_again(address, buffer.va_addr, size)
        except (RuntimeError, OSError):
            iface.forget_pages(buffer.va_addr, size, buffer.meta.hMemory)
            raise
    buffer.meta, buffer.view = Pages(buffer.meta.hMemory, moved), MMIOInterface(address, size, fmt="B")
    # tinygrad does not always unmap what it has mapped, so that the mapping ends with the buffer.
    buffer.meta.release = weakref.finalize(buffer, _release, iface, buffer.va_addr, size, buffer.meta.hMemory, bool(moved))
    buffer.meta.release.atexit = False
    return buffer


def _release(iface: TEGRAIface, va: int, size: int, handle: int, is_alias: bool) -> None:
    iface.forget_pages(va, size, handle)
    if is_alias:
        FileIOInterface.munmap(va, size)


def install(tegra: type) -> None:
    """Gives devices of this class the allocator that copies by itself, and signals that wait in the library."""
    tegra.signal_t = Fixed(lambda dev: TegraSignal)  # type: ignore[attr-defined]
    ops_nv.NVAllocator = lambda dev: (TegraAllocator if isinstance(dev, tegra) else NVAllocator)(dev)
