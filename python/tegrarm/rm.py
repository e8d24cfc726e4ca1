"""A thin layer over the object door. Handles stay integers, and a bad status becomes an exception."""

from __future__ import annotations

import ctypes
import os

from . import _ffi, plainly
from ._checked import number

NV_OK = 0
NV_ERR_CARD_NOT_PRESENT = 0x5
NV_ERR_NO_MEMORY = 0x51
NV_ERR_TIMEOUT = 0x65
NV01_ROOT_CLIENT = 0x41


class RmError(RuntimeError):
    """An RM call whose answer was not NV_OK.

    ``status`` is the number, ``name`` its NV_ERR_ name, and ``detail`` the library's sentence about it.
    """

    def __init__(self, call: str, status: int):
        self.call, self.status = call, status
        self.name, self.detail = _ffi.status_name(status), _ffi.last_error()
        # The library's sentence begins with the status. If there is no sentence, the status is shown alone.
        said = self.detail if self.name in self.detail else f"{self.name} ({status:#x})" + (f": {self.detail}" if self.detail else "")
        super().__init__(f"{call}: {said}")


class RmNoMemory(RmError, MemoryError):
    """NV_ERR_NO_MEMORY. A frontend that gets this status drops its caches and tries again."""


class RmTimeout(RmError, TimeoutError):
    """NV_ERR_TIMEOUT: a wait took longer than its limit. The work that it waited for continues."""


EXCEPTIONS: dict[int, type[RmError]] = {NV_ERR_NO_MEMORY: RmNoMemory, NV_ERR_TIMEOUT: RmTimeout}


def check(call: str, status: int) -> None:
    """Raises the exception for ``status``, except for NV_OK."""
    if status == NV_ERR_CARD_NOT_PRESENT:
        plainly.promise()
    if status != NV_OK:
        raise EXCEPTIONS.get(status, RmError)(call, status)


def _pointer(params) -> tuple[ctypes.c_void_p | None, int]:
    return (None, 0) if params is None else (ctypes.cast(ctypes.byref(params), ctypes.c_void_p), ctypes.sizeof(params))


def device_count() -> int:
    """The number of GPUs of the selected backend. Raises RmError with the reason if there is no backend."""
    count = ctypes.c_uint32()
    check("tegrarm_device_count", _ffi.lib().tegrarm_device_count(ctypes.byref(count)))
    return count.value


def device_profile(index: int = 0) -> _ffi.DeviceProfile:
    """The properties of GPU ``index``."""
    profile = _ffi.DeviceProfile(size=ctypes.sizeof(_ffi.DeviceProfile))
    check("tegrarm_device_profile", _ffi.lib().tegrarm_device_profile(index, ctypes.byref(profile)))
    return profile


def measured_profile(index: int = 0) -> _ffi.DeviceProfile:
    """The same profile, with rates, bandwidths and launch latency measured by short kernels. It takes some tenths of a second."""
    device, profile = ctypes.c_void_p(), _ffi.DeviceProfile(size=ctypes.sizeof(_ffi.DeviceProfile))
    check("tegrarm_device_open", _ffi.lib().tegrarm_device_open(index, ctypes.byref(device)))
    try:
        check("tegrarm_device_measure", _ffi.lib().tegrarm_device_measure(device, ctypes.byref(profile)))
    finally:
        _ffi.lib().tegrarm_device_close(device)
    return profile


def driver_report() -> str:
    """A description of the kernel's interface for a report. It also works with a kernel that the library does not know."""
    needed = ctypes.c_size_t()
    check("tegrarm_driver_report", _ffi.lib().tegrarm_driver_report(None, 0, ctypes.byref(needed)))
    text = ctypes.create_string_buffer(needed.value)
    check("tegrarm_driver_report", _ffi.lib().tegrarm_driver_report(text, len(text), ctypes.byref(needed)))
    return text.value.decode()


class Client:
    """An RM client. Closing it (or leaving its ``with`` block) frees every object below it.

    A client belongs to the process that made it. In a forked child ``close`` does nothing.
    """

    def __init__(self):
        self.pid, self.root = os.getpid(), 0
        self.root = self.alloc(0, NV01_ROOT_CLIENT)

    def alloc(self, parent: int, class_: int, params=None, handle: int = 0) -> int:
        """Allocates an object of ``class_`` under ``parent`` and returns its handle."""
        made, (pointer, size) = number(ctypes.c_uint32, handle, "the handle"), _pointer(params)
        check(f"rm_alloc({class_:#06x})", _ffi.lib().rm_alloc(self.root, parent, ctypes.byref(made), class_, pointer, size))
        return made.value

    def alloc_os_memory(self, parent: int, class_: int, flags: int, address: int, size: int) -> int:
        """Makes a memory object from this process's own pages ``[address, address + size)``."""
        made, limit = ctypes.c_uint32(), number(ctypes.c_uint64, size - 1, "the size, less 1,")
        pointer = ctypes.c_void_p(number(ctypes.c_size_t, address, "the address").value)
        check(f"rm_alloc_memory({class_:#06x})", _ffi.lib().rm_alloc_memory(
            self.root, parent, ctypes.byref(made), class_, flags, ctypes.byref(pointer), ctypes.byref(limit)))
        return made.value

    def control(self, obj: int, cmd: int, params=None):
        """Makes a control call on ``obj``. Returns ``params``, which the library has filled in."""
        pointer, size = _pointer(params)
        check(f"rm_control({cmd:#010x})", _ffi.lib().rm_control(self.root, obj, cmd, pointer, size))
        return params

    def free(self, obj: int) -> None:
        """Frees ``obj``, everything below it and everything that depends on it. As in RM, an unknown object is not an error."""
        check("rm_free", _ffi.lib().rm_free(self.root, 0, obj))

    def map(self, device: int, memory: int, size: int, flags: int = 0) -> int:
        """Maps ``size`` bytes of a memory object into this process and returns the address."""
        address = ctypes.c_void_p()
        check("rm_map_memory", _ffi.lib().rm_map_memory(self.root, device, memory, 0, size, ctypes.byref(address), flags))
        return address.value or 0

    def unmap(self, device: int, memory: int, address: int) -> None:
        """Undoes one call of ``map``."""
        check("rm_unmap_memory", _ffi.lib().rm_unmap_memory(self.root, device, memory, address, 0))

    def map_dma(self, device: int, mapper: int, memory: int, size: int, flags: int = 0, address: int = 0) -> int:
        """Maps a memory object into the GPU address space of ``mapper`` and returns its GPU virtual address."""
        va = number(ctypes.c_uint64, address, "the address")
        check("rm_map_memory_dma", _ffi.lib().rm_map_memory_dma(
            self.root, device, mapper, memory, 0, size, flags, ctypes.byref(va)))
        return va.value

    def unmap_dma(self, device: int, mapper: int, memory: int, address: int) -> None:
        """Undoes one call of ``map_dma``."""
        check("rm_unmap_memory_dma", _ffi.lib().rm_unmap_memory_dma(self.root, device, mapper, memory, 0, address))

    def close(self) -> None:
        """Frees the client and everything that it made. It may be called again."""
        root, self.root = self.root, 0
        if root and os.getpid() == self.pid:
            check("rm_free", _ffi.lib().rm_free(root, 0, root))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()
