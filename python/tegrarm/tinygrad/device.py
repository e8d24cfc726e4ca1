"""The device TEGRA: a GPU that is opened through the library's C interface, in the form that tinygrad expects."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

from tinygrad.device import Compiled
from tinygrad.helpers import DEBUG

from .. import _ffi, rm
from ..calls import SLICE_NS, made, wait
from . import fit, profile, releases, sampling
from .allocator import TegraAllocator
from .clock import Clock
from .program import TegraProgram
from .renderers import RENDERERS

if TYPE_CHECKING:
    from .recording import Recording


def replays() -> tuple[Any, str]:
    """Makes what a TinyJit captures one replay, by the way that this tinygrad has. The results are the class of its graphs, if it has
    graphs, and why there are no replays. A TinyJit without them runs kernel by kernel, or as tinygrad itself arranges it.
    """
    try:
        from . import jit
        from .graph import TegraGraph
    except fit.MISSING as no_graphs:
        try:
            from . import captured
            captured.put_in()
        except fit.MISSING as error:
            return None, f"it has other graphs ({no_graphs}), and other ways without them ({error})"
        return None, ""
    jit.take_whole()
    jit.take_single()
    jit.shorten()
    return TegraGraph, ""


class TegraDevice(Compiled):
    """The GPU ``TEGRA`` or ``TEGRA:n``. It executes its work in the order in which it gets it."""

    def __init__(self, device: str):
        index = int(device.partition(":")[2] or 0)
        if index >= (count := rm.device_count()):
            raise RuntimeError(f"no device {device}: libtegrarm has {count} GPU(s)")
        self.gpu = rm.device_profile(index)
        self.handle, self.pid = made("device_open", index), os.getpid()
        self.queue = made("device_queue", self.handle)
        self.clock = Clock(self)
        self._fence, self._wait = _ffi.lib().tegrarm_fence.unchecked, _ffi.lib().tegrarm_wait.unchecked
        self._last = ctypes.c_uint64()  # the fence of the newest work, when somebody has asked for it
        self.running: Recording | None = None  # the replay whose run was started and not waited for
        arch = f"sm_{self.gpu.sm_version >> 8}{self.gpu.sm_version & 0xff}"
        graph, no_replays = replays()
        graphs = {} if graph is None else {"graph": graph}  # a tinygrad without graphs may not take one
        super().__init__(device, TegraAllocator(self), RENDERERS, releases.runtime(TegraProgram), arch=arch, **graphs)
        sampling.refuse()
        releases.bind(self, TegraProgram)
        if no_replays and DEBUG >= 1:
            print(f"{device}: a TinyJit runs without replays on this tinygrad ({fit.found()}): {no_replays}")

    def count(self) -> int:
        """The number of GPUs."""
        return rm.device_count()

    def is_ours(self) -> bool:
        """Whether this process opened the device. A forked child cannot use what its parent opened."""
        return os.getpid() == self.pid

    def settle(self) -> None:
        """Waits for the run of a replay. Replays have their own channel, so that other work of the device would not wait for it."""
        if (replay := self.running) is not None:
            self.running = None
            replay.finish()

    def synchronize(self, timeout: int | None = None) -> None:
        """Waits for all work, at most ``timeout`` milliseconds. A fault raises an exception that says what happened."""
        self.settle()
        if status := self._fence(self.queue, self._last):
            rm.check("tegrarm_fence", status)
        fence = self._last.value
        if timeout is not None or self._wait(self.handle, fence, SLICE_NS):  # work that has not ended yet, or has failed
            wait("wait", self.handle, fence, timeout_ns=_ffi.TEGRARM_WAIT_FOREVER if timeout is None else timeout * 1_000_000)

    def _at_profile_finalize(self) -> None:
        profile.describe(self)

    def finalize(self) -> None:
        """Waits for the work at the end of the process. The kernel frees everything that is open."""
        if self.is_ours():
            try:
                self.synchronize()
            except rm.RmError as error:
                print(f"{self.device}: {error}")
