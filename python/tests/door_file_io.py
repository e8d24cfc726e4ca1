"""tinygrad's FileIOInterface on the file door. Only this one class of tinygrad is exchanged.

It is used as ``python -c 'import door_file_io; ...'``, with this folder on the path, before tinygrad opens a device.
"""

import ctypes
import errno
import os

from tinygrad.runtime.support import hcq

from tegrarm import _ffi

Published = hcq.FileIOInterface
library = _ffi.lib()


def _failed() -> OSError:
    return OSError(errno.EINVAL, _ffi.last_error())


class DoorFileIO(Published):
    """Opens RM's device nodes with ``rm_open``, and every other path as tinygrad does."""

    def __init__(self, path: str = "", flags: int = os.O_RDONLY, fd: int | None = None):
        self.door = path.startswith("/dev/nvidia")
        if not self.door:
            super().__init__(path, flags, fd)
            return
        self.path, self.fd = path, library.rm_open(path.encode(), flags)
        if self.fd < 0:
            del self.fd
            raise _failed()

    def __del__(self):
        if hasattr(self, "fd"):
            library.rm_close(self.fd)

    def ioctl(self, request, arg):
        if not self.door:
            return super().ioctl(request, arg)
        if library.rm_ioctl(self.fd, request, ctypes.addressof(arg)) != 0:
            raise _failed()
        return 0

    def mmap(self, start, sz, prot, flags, offset):
        if not self.door:
            return super().mmap(start, sz, prot, flags, offset)
        address = library.rm_mmap(start, sz, prot, flags, self.fd, offset)
        if address == ctypes.c_void_p(-1).value:
            raise _failed()
        return address


hcq.FileIOInterface = DoorFileIO
