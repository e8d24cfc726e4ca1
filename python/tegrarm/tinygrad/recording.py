"""Kernels and copies of one device as one replay of the library. They are recorded once. A run writes what changes and rings one
doorbell.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from .. import _ffi
from ..calls import SLICE_NS, call, made, wait
from ..rm import check
from . import releases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tinygrad.device import Buffer


class Recording:
    """A replay. What changes between its runs are arguments of kernels. Each of them has a key, and each key a place among the values."""

    def __init__(self, dev: Any):
        self.dev = dev
        self.handle = made("replay_create", dev.handle)
        self.slots: dict[Any, int] = {}

    def copy(self, dest: Buffer, src: Buffer) -> None:
        """Records a copy of all of ``src``."""
        to, of = releases.memory(dest), releases.memory(src)
        call("replay_copy", self.handle, to.handle, to.offset, of.handle, of.offset, dest.nbytes)

    def launch(self, ast: Any, program: Any, bufs: Sequence[Buffer], vals: tuple, changing: dict[int, Any]) -> None:
        """Records the launch of a kernel with these buffers and values. ``changing`` has the keys of the arguments that change, by their
        positions among all arguments: the buffers come first.
        """
        grid, block = ast.arg.launch_dims({})
        _, kernel, *how, _ = program.fill(tuple(b._buf for b in bufs), grid, block, vals)
        launch = ctypes.c_uint32()
        call("replay_launch", self.handle, kernel, *how, ctypes.byref(launch))
        for argument, key in changing.items():
            call("replay_argument", self.handle, launch, argument, self.slots.setdefault(key, len(self.slots)))

    def end(self) -> None:
        """Ends the recording. Runs can start."""
        self.values = (ctypes.c_uint64 * max(len(self.slots), 1))()
        self._submit, self._arguments = _ffi.lib().tegrarm_replay_submit.unchecked, (self.handle, self.values, len(self.slots))
        self._wait = _ffi.lib().tegrarm_replay_wait.unchecked

    def start(self) -> None:
        """Starts a run with the values. The device's next work, or a synchronize, waits for it."""
        if self.dev.running is not None:
            self.dev.settle()
        if status := self._submit(*self._arguments):
            check("tegrarm_replay_submit", status)
        self.dev.running = self

    def finish(self) -> None:
        """Waits for the run."""
        if self._wait(self.handle, SLICE_NS):
            wait("replay_wait", self.handle)  # it has not ended yet, or has failed

    def __del__(self) -> None:
        if getattr(self, "handle", None) and self.dev.is_ours():
            if self.dev.running is self:
                self.dev.running = None
            _ffi.lib().tegrarm_replay_destroy(self.handle)  # this waits for a run in flight
