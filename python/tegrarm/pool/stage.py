"""A stage, which a worker runs, is any callable that takes one array and returns one.

A factory makes it where the device is: ``factory(part)`` returns the stage, a callable ``stage(data, memory)``. ``memory`` is a dictionary
that belongs to the session of the request. It is empty at the session's first step, and None for requests without a session. A stage may
have two more methods. ``fault()`` returns a sentence if its device cannot be used any more, and ``close()`` frees what it holds.
"""

from __future__ import annotations

import dataclasses
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
