"""A stage, which a worker runs, is any callable that takes one array and returns one.

A factory makes it where the device is: ``factory(part)`` returns the stage, a callable ``stage(data, memory)``. ``memory`` is a dictionary
that belongs to the session of the request. It is empty at the session's first step, and None for requests without a session. A stage may
have two more methods. ``fault()`` returns a sentence if its device cannot be used any more, and ``close()`` frees what it holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class StageCallable(Protocol):
    """A part of a model on a device."""

    def __call__(self, data: np.ndarray, memory: dict[str, Any] | None) -> np.ndarray:
        """Computes the part's output for one micro-batch."""
        ...


@dataclasses.dataclass(frozen=True)
class Part:
    """The layers of a stage, and its place. ``progress(share)`` reports how much has been loaded."""

    start: int
    stop: int
    layers: int
    device: str
    shared_memory: bool
    progress: Callable[[float], None] = lambda _share: None

    @property
    def first(self) -> bool:
        """Whether the stage gets the model's input."""
        return self.start == 0

    @property
    def last(self) -> bool:
        """Whether the stage gives the model's output."""
        return self.stop == self.layers


StageFactory = Callable[[Part], StageCallable]


class DeviceFault(RuntimeError):
    """The device of the stage has stopped, and the worker cannot be used any more."""


class LinkLost(RuntimeError):
    """The worker cannot be reached, or the data that it sends does not arrive."""


class NoPacket(RuntimeError):
    """What a stage was given is nothing that it can compute with. The worker before it is to blame."""


class StageError(RuntimeError):
    """The stage refused its input. Another attempt would have the same result."""


@dataclasses.dataclass
class Packet:
    """What one stage sends to the next. The array is sent as a buffer of its own, and the rest is small."""

    data: np.ndarray
    session: str = ""
    epoch: int = 0
    step: int = 0
    number: int = 0
    # The clock of virtual time: when the data is complete, and the work of each stage until then as (stage, start, end).
    ready: float = 0.0
    spans: tuple[tuple[int, float, float], ...] = ()
    # The earlier inputs of the session, if a stage has to build its memory again before it computes ``data``.
    past: tuple[np.ndarray, ...] = ()


def wrong_packet(value: Any, number: int | None = None, session: str = "", step: int = 0) -> str:
    """What is wrong with what a worker sent, in words; empty if a stage or a caller can use it. With a number, it must be the answer to
    that request, and to that step of its session. Whether the numbers in it are right, nobody can see from it.
    """
    if not isinstance(value, Packet):
        return f"a {type(value).__name__}, which is no packet"
    if not isinstance(value.data, np.ndarray) or value.data.dtype.hasobject:
        return "a packet without an array of numbers"
    if not all(_finite(time) for time in (value.ready, *(part for span in value.spans for part in span))):
        return "a packet whose times are no numbers"
    if number is not None and (value.number, value.session, value.step) != (number, session, step):
        return f"the answer to request {value.number} in place of that to request {number}"
    return ""


def wrong_report(value: Any) -> str:
    """What is wrong with what a worker says about itself; empty if the pool can use it."""
    if not isinstance(value, dict):
        return f"a {type(value).__name__}, which is no report"
    numbers = {key: value.get(key, 0) for key in ("busy", "with", "loaded", "runs", "seconds", "bytes", "pid", "sessions")}
    if bad := [key for key, number in numbers.items() if not _finite(number) or number < -1]:
        return f"a report whose {bad[0]} is no number"
    if not isinstance(numbers["pid"], int) or set(value) - {*numbers, "device"}:
        return "a report with other fields"
    return ""


def _finite(number: Any) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number)
