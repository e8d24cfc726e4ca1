"""What a caller of a pool gets: a result that comes later, or a sentence that says why there is none."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import Future, InvalidStateError
from typing import Any

import numpy as np


class RequestFailed(RuntimeError):
    """A request has no answer. The sentence names the request, the stage and the reason."""


class DeadlineExceeded(RequestFailed):
    """The answer did not come within the time that the caller gave."""


class Cancelled(RequestFailed):
    """The caller cancelled the request, or the pool was closed."""


class Overloaded(RequestFailed):
    """The queue is full, and the caller did not want to wait."""


@dataclasses.dataclass
class Session:
    """A sequence of requests whose stages keep a memory, such as a decoder's cache of keys and values.

    The pool keeps the inputs, so that another worker can build the memory again from the same inputs in the same order.
    """

    name: str
    history: list[np.ndarray] = dataclasses.field(default_factory=list)
    epoch: int = 0
    # The number of inputs that the workers have seen in this epoch, or -1 if it is not known.
    seen: int = 0
    # The end of the session's last step on the clock of virtual time.
    ready: float = 0.0
    waiting: bool = False
    closed: bool = False


@dataclasses.dataclass
class Request:
    """One input and its state. ``future`` is set once, to the answer or to a :class:`RequestFailed`."""

    number: int
    data: np.ndarray
    session: Session | None
    deadline: float | None  # of time.monotonic()
    future: Future[np.ndarray]
    attempts: int = 0
    # The results of the stages in the present attempt, as the runtime names them, and the time at which it was sent.
    refs: list[Any] = dataclasses.field(default_factory=list)
    sent_at: float = 0.0
    reasons: list[str] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        """The request's name in messages."""
        return f"request {self.number}" + (f" of session {self.session.name}" if self.session else "")

    def late(self) -> bool:
        """Whether the caller's deadline is over."""
        return self.deadline is not None and time.monotonic() > self.deadline


class Answers:
    """Counts the answers and sets them. Every request gets one. A second one is an error of the pool, and it is reported."""

    def __init__(self) -> None:
        self.lock, self.answered, self.failed, self.dropped = threading.Lock(), 0, 0, 0

    def give(self, request: Request, value: np.ndarray) -> bool:
        """Sets the result. Returns False if the caller had cancelled the request."""
        with self.lock:
            # It is counted before it is set, because a caller may read the counts as soon as the answer is there.
            self.answered += 1
            try:
                request.future.set_result(value)
            except InvalidStateError:  # the caller has cancelled the request
                self.answered -= 1
                self.dropped += 1
                return False
            return True

    def fail(self, request: Request, error: RequestFailed) -> None:
        """Sets the exception, unless the caller has cancelled the request."""
        with self.lock:
            self.failed += 1
            try:
                request.future.set_exception(error)
            except InvalidStateError:
                self.failed -= 1
