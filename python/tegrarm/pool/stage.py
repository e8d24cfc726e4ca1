"""What a worker runs: any callable that takes one array and returns one.

A factory makes it where the device is: ``factory(part)`` returns the stage, a callable ``stage(data, memory)``. ``memory`` is a dictionary
that belongs to the session of the request (empty at its first step, and None for requests without one). A stage may have two more
methods: ``fault()`` returns a sentence while its device cannot be used any more, and ``close()`` gives back what it holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class StageCallable(Protocol):
    """A part of a model on a device."""

    def __call__(self, data: np.ndarray, memory: dict[str, Any] | None) -> np.ndarray:
        """The part's output for one micro-batch."""
        ...


@dataclasses.dataclass(frozen=True)
class Part:
    """Which layers a stage has, and where it is. ``progress(share)`` tells how much has been loaded."""

    start: int
    stop: int
    layers: int
    device: str
    shared_memory: bool
    progress: Callable[[float], None] = lambda _share: None

    @property
    def first(self) -> bool:
        """Whether it has the model's input."""
        return self.start == 0

    @property
    def last(self) -> bool:
        """Whether it has the model's output."""
        return self.stop == self.layers


StageFactory = Callable[[Part], StageCallable]


class DeviceFault(RuntimeError):
    """The stage's device stopped; the worker is of no use any more."""


class LinkLost(RuntimeError):
    """The worker cannot be reached, or what it sends does not arrive."""


class StageError(RuntimeError):
    """The stage refused its input. Another attempt would end the same way."""


@dataclasses.dataclass
class Packet:
    """What goes from stage to stage. The array travels as a buffer of its own; the rest are a few words."""

    data: np.ndarray
    session: str = ""
    epoch: int = 0
    step: int = 0
    number: int = 0
    # The clock of virtual time: when the data is complete, and what each stage did until then as (stage, start, end).
    ready: float = 0.0
    spans: tuple[tuple[int, float, float], ...] = ()
    # The session's earlier inputs, where a stage has to build its memory again before it computes ``data``.
    past: tuple[np.ndarray, ...] = ()
