"""Measures the time that work takes on the GPU, with an event before it and one after it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from .. import _ffi, hints
from ..calls import call, made, wait

if TYPE_CHECKING:
    from .device import TegraDevice


class Clock:
    """The two events of a device. They are used again and again, because a measurement waits for its end."""

    def __init__(self, dev: TegraDevice):
        self.dev, self.queue = dev, made("device_queue", dev.handle)
        self.events = [made("event_create", dev.handle) for _ in range(2)]

    def start(self) -> None:
        """Starts to measure the work that the device gets from now on."""
        call("event_record", self.events[0], self.queue, None)

    def stop(self, timeout: int | None = None) -> tuple[int, int]:
        """Waits for the work, at most ``timeout`` milliseconds. Returns the GPU's times in nanoseconds."""
        # A search allows a few times what the best kernel took, in whole milliseconds: for most kernels none, which means no limit,
        # as it does for tinygrad's own devices. If the GPU's time is modelled, the limit is no time of this computer.
        limit = None if hints.modelled() else timeout or None
        fence, times = ctypes.c_uint64(), (ctypes.c_uint64(), ctypes.c_uint64())
        call("event_record", self.events[1], self.queue, ctypes.byref(fence))
        wait("wait", self.dev.handle, fence, timeout_ns=_ffi.TEGRARM_WAIT_FOREVER if limit is None else limit * 1_000_000)
        for event, time in zip(self.events, times, strict=True):
            call("event_time", event, ctypes.byref(time))
        return times[0].value, times[1].value

    def of_cpu(self, time: int) -> int:
        """Converts a time of the GPU to CLOCK_MONOTONIC, which is Python's ``perf_counter_ns``."""
        gpu, cpu = ctypes.c_uint64(), ctypes.c_uint64()
        call("device_time", self.dev.handle, ctypes.byref(gpu), ctypes.byref(cpu), None)
        return time - gpu.value + cpu.value
