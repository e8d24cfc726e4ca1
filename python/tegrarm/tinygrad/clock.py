"""How long the GPU takes for something: two events around it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from .. import _ffi
from .calls import call, made, wait

if TYPE_CHECKING:
    from .device import TegraDevice


class Clock:
    """A device's two events, used again and again: whoever measures waits for the end."""

    def __init__(self, dev: TegraDevice):
        self.dev, self.queue = dev, made("device_queue", dev.handle)
        self.events = [made("event_create", dev.handle) for _ in range(2)]

    def start(self) -> None:
        """What is given to the device from now on is measured."""
        call("event_record", self.events[0], self.queue, None)

    def stop(self, timeout: int | None = None) -> tuple[int, int]:
        """Waits for it, ``timeout`` milliseconds at most; the GPU's times, in nanoseconds."""
        fence, times = ctypes.c_uint64(), (ctypes.c_uint64(), ctypes.c_uint64())
        call("event_record", self.events[1], self.queue, ctypes.byref(fence))
        wait("wait", self.dev.handle, fence, timeout_ns=_ffi.TEGRARM_WAIT_FOREVER if timeout is None else timeout * 1_000_000)
        for event, time in zip(self.events, times, strict=True):
            call("event_time", event, ctypes.byref(time))
        return times[0].value, times[1].value

    def of_cpu(self, time: int) -> int:
        """A time of the GPU as CLOCK_MONOTONIC has it, which is Python's ``perf_counter_ns``."""
        gpu, cpu = ctypes.c_uint64(), ctypes.c_uint64()
        call("device_time", self.dev.handle, ctypes.byref(gpu), ctypes.byref(cpu), None)
        return time - gpu.value + cpu.value
