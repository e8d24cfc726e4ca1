"""Queues of a device, the fences of their work, and measurements with the GPU's clock."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _ffi
from .calls import call, made, wait
from .memory import Handle
from .rm import RmError

if TYPE_CHECKING:
    from .array import Array
    from .device import Device

FOREVER = _ffi.TEGRARM_WAIT_FOREVER
KINDS = {"compute": _ffi.TEGRARM_QUEUE_COMPUTE, "copy": _ffi.TEGRARM_QUEUE_COPY}
PRIORITIES = {None: _ffi.TEGRARM_PRIORITY_DEFAULT, "low": _ffi.TEGRARM_PRIORITY_LOW, "medium": _ffi.TEGRARM_PRIORITY_MEDIUM,
              "high": _ffi.TEGRARM_PRIORITY_HIGH}


def nanoseconds(timeout: float | None) -> int:
    """Converts a time limit from seconds to nanoseconds. None means no limit."""
    if timeout is None or timeout >= FOREVER / 1e9:
        return FOREVER
    if timeout != timeout:
        raise ValueError("a time limit is a number of seconds, and not nan")
    return max(int(timeout * 1e9), 0)


def one_of(table: dict[Any, int], what: str, value: Any) -> int:
    """The number that belongs to a name. An unknown name is an error with a sentence that lists all names."""
    if value not in table:
        raise ValueError(f"{what} is {value!r}: it is one of {', '.join(repr(name) for name in table)}")
    return table[value]


# The functions to call when a fence has passed, by number. The library always calls `_tell`, an object that must live for ever.
_told: dict[int, Callable[[RmError | None], object]] = {}
_numbers = itertools.count(1)


@_ffi.FenceCallback
def _tell(_fence: int, status: int, number: int | None) -> None:
    if (function := _told.pop(number or 0, None)) is not None:
        function(None if status == 0 else RmError("tegrarm_fence_notify", status))


class Fence:
    """A point in the work of a queue."""

    __slots__ = ("_descriptor", "device", "value")

    def __init__(self, device: Device, value: int):
        self.device, self.value = device, value
        self._descriptor = -1

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the work is done, at most ``timeout`` seconds. Ctrl-C ends the wait. A fault raises an RmError that describes it."""
        wait("wait", self.device.handle, self.value, timeout_ns=nanoseconds(timeout))

    @property
    def done(self) -> bool:
        """Whether the work is done."""
        passed = ctypes.c_bool()
        call("fence_query", self.device.handle, self.value, ctypes.byref(passed))
        return passed.value

    def fileno(self) -> int:
        """A descriptor for ``select`` or ``poll``. It is readable when the work is done or lost. The fence closes it."""
        if self._descriptor < 0:
            descriptor = ctypes.c_int()
            call("fence_fd", self.device.handle, self.value, ctypes.byref(descriptor))
            self._descriptor = descriptor.value
        return self._descriptor

    def syncpoint(self) -> tuple[int, int]:
        """The fence for other drivers: a host1x syncpoint, and the value that it reaches after all work that the queue has now."""
        number, threshold = ctypes.c_uint32(), ctypes.c_uint32()
        call("fence_syncpoint", self.device.handle, self.value, ctypes.byref(number), ctypes.byref(threshold))
        return number.value, threshold.value

    def sync_file(self) -> int:
        """The fence as a Linux sync file: a new descriptor. The caller closes it (``os.close``) or sends it to another process."""
        descriptor = ctypes.c_int()
        call("fence_sync_file", self.device.handle, self.value, ctypes.byref(descriptor))
        return descriptor.value

    def then(self, function: Callable[[RmError | None], object]) -> None:
        """Calls a function in a thread of the library when the work is done. If the work is lost, the function gets the error."""
        number = next(_numbers)
        _told[number] = function
        try:
            call("fence_notify", self.device.handle, self.value, _tell, number)
        except RmError:
            del _told[number]
            raise

    def __repr__(self) -> str:
        return f"<tegrarm.Fence {self.value & (1 << 48) - 1} of queue {self.value >> 48}>"

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


class Queue:
    """A queue: its work runs in order, and at the same time as the work of other queues."""

    def __init__(self, device: Device, handle: Handle):
        self.device, self._handle = device, handle

    @classmethod
    def make(cls, device: Device, kind: str, priority: str | None, timeslice_us: int) -> Queue:
        """Makes another queue of a device."""
        options = _ffi.QueueOptions(size=ctypes.sizeof(_ffi.QueueOptions), kind=one_of(KINDS, "kind", kind),
                                    priority=one_of(PRIORITIES, "priority", priority), timeslice_us=timeslice_us)
        made_ = made("queue_create", device.handle, ctypes.byref(options))
        return cls(device, Handle(made_, "queue_destroy", device.gpu))

    @property
    def handle(self) -> ctypes.c_void_p:
        """The handle for the C interface. A queue that is closed has none, and neither has one of a closed device."""
        _ = self.device.gpu
        if not self._handle.open:
            raise ValueError("the queue is closed")
        return self._handle.value

    @property
    def number(self) -> int:
        """The number of the queue, which is also in the records of a profile."""
        number = ctypes.c_uint32()
        call("queue_number", self.handle, ctypes.byref(number))
        return number.value

    def fence(self) -> Fence:
        """A fence at the end of the work that the queue has now."""
        fence = ctypes.c_uint64()
        call("fence", self.handle, ctypes.byref(fence))
        return Fence(self.device, fence.value)

    def after(self, fence: Fence) -> None:
        """Lets all later work of this queue wait until a fence of another queue has passed. The GPU waits, and the CPU does not."""
        call("queue_after", self.handle, fence.value)

    def after_syncpoint(self, number: int, threshold: int) -> None:
        """The same for a host1x syncpoint, which another driver or another process increments."""
        call("queue_after_syncpoint", self.handle, number, threshold)

    def after_sync_file(self, descriptor: int) -> None:
        """The same for a Linux sync file, for example of a camera, an encoder, or the GPU's work in another process."""
        call("queue_after_sync_file", self.handle, descriptor)

    def copy(self, target: Array, source: Array) -> Fence:
        """Copies all items of an array into another. The GPU copies, and the call returns at once."""
        if target.nbytes != source.nbytes or target.dtype != source.dtype:
            raise ValueError(f"{source!r} and {target!r} must have the same number of items of the same type")
        fence = ctypes.c_uint64()
        call("copy", self.handle, target.memory.handle.value, target._offset, source.memory.handle.value, source._offset,
             source.nbytes, ctypes.byref(fence))
        return Fence(self.device, fence.value)

    @property
    def open(self) -> bool:
        """Whether the queue can still be given work."""
        return self._handle.open

    def wait(self, timeout: float | None = None) -> None:
        """Waits until all work that the queue has now is done."""
        self.fence().wait(timeout)

    def close(self) -> None:
        """Destroys the queue when its work is done. A second call does nothing. The default queue ends with its device.

        Ctrl-C ends the wait, and the queue is still there.
        """
        if self._handle.open:
            self.device.finish(self.wait)
            self._handle.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        if kind is not None:
            self.device.finish(self.device.settle)
        self.close()


class Event:
    """A point in the work of a queue, and the GPU's time there."""

    def __init__(self, device: Device):
        self.device = device
        self._handle = Handle(made("event_create", device.handle), "event_destroy", device.gpu)
        self._fence: Fence | None = None

    def record(self, queue: Queue | None = None) -> Fence:
        """Puts the event behind all work that a queue has now."""
        fence = ctypes.c_uint64()
        where = queue or self.device.default_queue
        call("event_record", self._handle.value, where.handle, ctypes.byref(fence))
        self._fence = Fence(self.device, fence.value)
        return self._fence

    def time(self) -> int:
        """The time at which the GPU reached the event, in nanoseconds of its clock. The call waits for the event."""
        if self._fence is not None:
            self._fence.wait()
        time = ctypes.c_uint64()
        call("event_time", self._handle.value, ctypes.byref(time))
        return time.value


class Timer:
    """Measures how long the GPU takes for the work of a ``with`` block."""

    def __init__(self, device: Device, queue: Queue | None):
        self._queue, self.start, self.end = queue or device.default_queue, Event(device), Event(device)

    def __enter__(self) -> Timer:
        self.start.record(self._queue)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end.record(self._queue)

    @property
    def ns(self) -> int:
        """The time in nanoseconds. The call waits for the end of the work."""
        return self.end.time() - self.start.time()

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self.ns / 1e9
