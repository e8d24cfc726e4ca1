"""What a caller of a pool holds: a result that comes later, or a sentence that says why it does not."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import Future, InvalidStateError
from typing import Any

import numpy as np


class RequestFailed(RuntimeError):
    """A request has no answer; the sentence names the request, the stage and the reason."""


class DeadlineExceeded(RequestFailed):
    """The answer did not come in the time that the caller gave."""


class Cancelled(RequestFailed):
    """The caller took the request back, or the pool was closed."""


class Overloaded(RequestFailed):
    """The queue is full and the caller did not want to wait."""


@dataclasses.dataclass
class Session:
    """A row of requests whose stages remember something, as a decoder's cache of keys and values.

    The pool keeps the inputs so that it can build the memory again on another worker: the same inputs in the same order.
    """

    name: str
    history: list[np.ndarray] = dataclasses.field(default_factory=list)
    epoch: int = 0
    # Inputs that the workers have seen in this epoch; -1 if that is not known.
    seen: int = 0
    # The end of its last step on the clock of virtual time.
    ready: float = 0.0
    waiting: bool = False
    closed: bool = False


@dataclasses.dataclass
class Request:
    """One input on its way. ``future`` is set once: with the answer or with a :class:`RequestFailed`."""

    number: int
    data: np.ndarray
    session: Session | None
    deadline: float | None  # of time.monotonic()
    future: Future[np.ndarray]
    attempts: int = 0
    # Of the current attempt: the result of each stage, as the runtime names it, and when it was sent.
    refs: list[Any] = dataclasses.field(default_factory=list)
    sent_at: float = 0.0
    reasons: list[str] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"request {self.number}" + (f" of session {self.session.name}" if self.session else "")

    def late(self) -> bool:
        """Whether the caller's time is over."""
        return self.deadline is not None and time.monotonic() > self.deadline


class Answers:
    """Counts and sets answers: every request gets one, and a second one is an error of the pool that must not pass unseen."""

    def __init__(self) -> None:
        self.lock, self.answered, self.failed, self.dropped = threading.Lock(), 0, 0, 0

    def give(self, request: Request, value: np.ndarray) -> bool:
        """Sets the result; False if the caller had taken the request back."""
        with self.lock:
            # Counted first: whoever waits may look at the counts as soon as the answer is there.
            self.answered += 1
            try:
                request.future.set_result(value)
            except InvalidStateError:  # taken back
                self.answered -= 1
                self.dropped += 1
                return False
            return True

    def fail(self, request: Request, error: RequestFailed) -> None:
        """Sets the exception, unless the caller had taken the request back."""
        with self.lock:
            self.failed += 1
            try:
                request.future.set_exception(error)
            except InvalidStateError:
                self.failed -= 1
