"""tinygrad's file interface on the file door of the library: the device nodes of desktop RM, without a preload library."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

from tinygrad.runtime import ops_nv

from ... import _ffi

NODES = "/dev/nvidia"
Published: Any = ops_nv.FileIOInterface


class DoorFile(Published):
    """A file. While :attr:`is_open` is set, the device nodes of RM are the library's. Every other file is tinygrad's own affair."""

    is_open = False  # the interface TEGRA sets it. Another interface of the process gets the nodes of the system

    def __init__(self, path: str = "", flags: int = os.O_RDONLY, fd: int | None = None):
        self._is_node = DoorFile.is_open and path.startswith(NODES)
        if not self._is_node:
            super().__init__(path, flags, fd)
            return
        self.path, opened = path, _ffi.lib().rm_open(path.encode(), flags)
        if opened < 0:
            raise failed(f"open {path}")
        self.fd = opened

    def __del__(self) -> None:
        if not self._is_node:
            super().__del__()
        elif hasattr(self, "fd"):
            _ffi.lib().rm_close(self.fd)

    def ioctl(self, request: int, arg: Any) -> int:
        """Makes an escape or a UVM call."""
        if not self._is_node:
            return super().ioctl(request, arg)
        if _ffi.lib().rm_ioctl(self.fd, request, ctypes.addressof(arg)) != 0:
            raise failed(f"ioctl {request:#x} of {self.path}")
        return 0

    def mmap(self, start: int | None, sz: int, prot: int, flags: int, offset: int) -> int:
        """Maps what RM_MAP_MEMORY gave to the descriptor."""
        if not self._is_node:
            return super().mmap(start, sz, prot, flags, offset)
        address = _ffi.lib().rm_mmap(start, sz, prot, flags, self.fd, offset)
        if address == ctypes.c_void_p(-1).value:
            raise failed(f"mmap of {self.path}")
        return address


def failed(what: str) -> OSError:
    """The error of a call that just failed, with the library's sentence."""
    return OSError(ctypes.get_errno() or errno.EINVAL, f"{what}: {_ffi.last_error()}")
