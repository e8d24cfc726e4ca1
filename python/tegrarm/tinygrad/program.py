"""A kernel of the device TEGRA that can be launched."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from tinygrad.helpers import PROFILE

from .. import _ffi
from ..calls import call, made
from ..rm import check
from . import profile, releases

if TYPE_CHECKING:
    from .allocator import TegraBuffer
    from .device import TegraDevice

GRID = _ffi.LaunchConfig.grid_dim.offset
# Three sizes of the grid and three of a block. The fields of the configuration behind them stay 0.
SIZES = f"6I{ctypes.sizeof(_ffi.LaunchConfig) - GRID - 24}x"
VALUES = {8: "q", 4: "i4x", 2: "h6x", 1: "b7x"}  # an argument that is no pointer also has a slot of eight bytes


def parameters(kernel: ctypes.c_void_p, count: int) -> list[int]:
    """The sizes of a kernel's parameters in bytes, which the machine code contains."""
    size = ctypes.c_uint32()

    def one(index: int) -> int:
        call("kernel_parameter", kernel, index, None, ctypes.byref(size))
        return size.value

    return [one(index) for index in range(count)]


class TegraProgram:
    """Loaded machine code, and the memory from which a launch takes its sizes and arguments.

    A launch writes them with one ``pack_into`` and makes one call. The library copies them during the call.
    """

    def __init__(self, dev: TegraDevice, obj: Any):
        self.dev, self.name, self.lib, self.profile_key = dev, obj.name, obj.lib, getattr(obj, "profile_key", None)
        self.module = made("module_load", dev.handle, obj.lib, len(obj.lib))
        self.kernel = made("module_kernel", self.module, obj.name.encode())
        self.attributes = _ffi.KernelAttributes(size=ctypes.sizeof(_ffi.KernelAttributes))
        call("kernel_attributes", self.kernel, ctypes.byref(self.attributes))
        self.sizes = parameters(self.kernel, self.attributes.parameters)
        self._formats: dict[int, struct.Struct] = {}
        self._make_block()
        if PROFILE:
            self.tag = profile.program(self)

    def _make_block(self) -> None:
        """Makes a block with the configuration of a launch and the arguments, and a pointer to each argument."""
        count, first = len(self.sizes), ctypes.sizeof(_ffi.LaunchConfig)
        self._block = ctypes.create_string_buffer(first + 8 * count)
        at = ctypes.addressof(self._block)
        _ffi.LaunchConfig.from_buffer(self._block).size = first
        self._pointers = (ctypes.c_void_p * max(count, 1))(*[at + first + 8 * i for i in range(count)])
        # These are made once, in the form that ctypes accepts. The sizes in the block are checked when they are packed.
        self._arguments = (None, self.kernel, ctypes.cast(at, ctypes.POINTER(_ffi.LaunchConfig)), self._pointers, count, None)
        self._launch = _ffi.lib().tegrarm_launch.unchecked

    def _format(self, buffers: int) -> struct.Struct:
        """The format in which a launch with this many buffers is written. Values come after the buffers."""
        values = "".join(VALUES[size] for size in self.sizes[buffers:])
        return self._formats.setdefault(buffers, struct.Struct(f"<{SIZES}{buffers}Q{values}"))

    def fill(self, bufs: tuple[TegraBuffer, ...], global_size: tuple, local_size: tuple | None, vals: tuple) -> tuple:
        """Writes a launch to the memory that the library reads. Returns the arguments of the call."""
        form = self._formats.get(len(bufs)) or self._format(len(bufs))
        form.pack_into(self._block, GRID, *global_size, *(local_size or (1, 1, 1)), *releases.addresses(bufs), *vals)
        return self._arguments

    def __call__(self, *bufs: TegraBuffer, global_size=(1, 1, 1), local_size=(1, 1, 1), vals=(), wait: bool = False,
                 timeout: int | None = None, **_more: Any) -> float | None:
        """Launches the kernel. With ``wait`` the result is the time that it took, in seconds."""
        if self.dev.running is not None:
            self.dev.settle()
        arguments = self.fill(bufs, global_size, local_size, vals)
        if wait or PROFILE:
            return self._timed(arguments, timeout)
        if status := self._launch(*arguments):
            check(f"tegrarm_launch({self.name})", status)
        return None

    def _timed(self, arguments: tuple, timeout: int | None) -> float:
        """Launches the kernel. The GPU writes its time before and after it."""
        clock = self.dev.clock
        clock.start()
        check(f"tegrarm_launch({self.name})", self._launch(*arguments))
        start, end = clock.stop(timeout)
        if PROFILE:
            profile.ran(self.dev, self.name, clock.of_cpu(start), clock.of_cpu(end), self.profile_key)
        return (end - start) / 1e9

    def __del__(self) -> None:
        if getattr(self, "module", None) and self.dev.is_ours():
            self.dev.settle()
            _ffi.lib().tegrarm_module_unload(self.module)
