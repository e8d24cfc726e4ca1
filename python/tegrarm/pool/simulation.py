"""The runtime as a discrete-event simulation (simpy). It has the same plan and the same window of micro-batches, but no devices.

It adds to the planner's formula: queues before stages, links that several stages share, devices that are sometimes late, and devices that
fail and return. The time is that of the model, so that a thousand devices take no more than a minute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from .planner import Plan
from .timeline import Span

HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class Conditions:
    """The disturbances of a run. By default there are none."""

    # The standard deviation of the logarithm of every stage time, and a share of them that takes ``straggle_factor`` times as long.
    jitter: float = 0.0
    stragglers: float = 0.0
    straggle_factor: float = 4.0
    # The mean time between failures of one device, and the time until its place works again (noticed, replaced, weights loaded).
    failure_seconds: float = float("inf")
    repair_seconds: float = 30.0
    # Failures at given times: (seconds, stage).
    fail_at: tuple[tuple[float, int], ...] = ()
    # Whether transfers between two sites share one link for each pair of sites and each direction.
    contention: bool = True


# Unplanned interruptions that were published for the training of Llama 3 405B: 419 in 54 days on 16,384 GPUs.
DATACENTRE_FAILURES = 54 * 24 * HOUR * 16384 / 419
# No such figure is published for boards on desks. This assumes one failure per device in three months, from power, cables or lack of
# memory.
DESK_FAILURES = 90 * 24 * HOUR


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of a simulated run."""

    seconds: float
    items: int
    steady_throughput: float  # items per second, without the filling and the draining
    loads: tuple[float, ...]  # the share of the time in which each stage computed
    failures: int
    retried: int              # micro-batches that were started again, because a device lost them
    spans: tuple[Span, ...]

    @property
    def throughput(self) -> float:
        """The items per second of the whole run."""
        return self.items / self.seconds


class _Down(Exception):
    """The device that has the micro-batch has failed."""


class _Run:
    def __init__(self, plan: Plan, passes: int, window: int, conditions: Conditions, seed: int, record: bool):
        import simpy

        self.simpy, self.plan, self.conditions, self.record = simpy, plan, conditions, record
        self.env, self.rng = simpy.Environment(), np.random.default_rng(seed)
        self.stages = [simpy.Resource(self.env, 1) for _ in plan.stages]
        self.window = simpy.Resource(self.env, window)
        self.links: dict[tuple[Any, ...], Any] = {}
        self.spans: list[Span] = []
        self.busy = [0.0] * len(plan.stages)
        self.finished: list[float] = []
        # How often the device of each stage has failed, and when it works again.
        self.failed, self.up_at = [0] * len(plan.stages), [0.0] * len(plan.stages)
        self.retried, self.over, self.total = 0, self.env.event(), passes * plan.work.micro_batches

    def _note(self, track: str, what: str, number: int, start: float) -> None:
        if self.record:
            self.spans.append(Span(track, what, number, start, self.env.now))

    def _slowness(self) -> float:
        c = self.conditions
        factor = float(np.exp(self.rng.normal(0, c.jitter) - c.jitter ** 2 / 2)) if c.jitter else 1.0
        return factor * (c.straggle_factor if c.stragglers and self.rng.random() < c.stragglers else 1.0)

    def _ends(self, k: int) -> list[Any]:
        """What a transfer into stage k occupies: the sender's output and the receiver's input, or the wire of the pair."""
        source, target = self.plan.stages[k - 1].node, self.plan.stages[k].node
        if not self.conditions.contention:
            keys: list[tuple[Any, ...]] = [("stage", k)]
        elif source.site == target.site:
            keys = [("pair", source.name, target.name)]
        else:
            keys = [("in", target.site), ("out", source.site)]
        return [self.links.setdefault(key, self.simpy.Resource(self.env, 1)) for key in sorted(keys)]

    def _transfer(self, k: int, number: int) -> Iterator[Any]:
        stage = self.plan.stages[k]
        requests = []
        for end in self._ends(k):  # always in the same order, so that no two transfers wait for each other
            requests.append((end, end.request()))
            yield requests[-1][1]
        start = self.env.now
        yield self.env.timeout(stage.link_seconds)
        for end, request in requests:
            end.release(request)
        self._note(f"link to {stage.node.name}", "link", number, start)

    def _compute(self, k: int, number: int) -> Iterator[Any]:
        stage = self.plan.stages[k]
        with self.stages[k].request() as turn:
            yield turn
            if self.env.now < self.up_at[k]:
                yield self.env.timeout(self.up_at[k] - self.env.now)
            before, start = self.failed[k], self.env.now
            yield self.env.timeout(max(stage.seconds, stage.copy_seconds) * self._slowness())
            self.busy[k] += self.env.now - start
            self._note(stage.node.name, "run", number, start)
            if self.failed[k] != before:
                raise _Down
        extra = stage.copy_in + stage.copy_out - max(0.0, stage.copy_seconds - stage.seconds)
        if extra > 0:
            yield self.env.timeout(extra)

    def _through(self, number: int) -> Iterator[Any]:
        """Takes one micro-batch through all stages. It starts again if a device fails that had its state."""
        while True:
            try:
                for k in range(len(self.plan.stages)):
                    if k:
                        yield from self._transfer(k, number)
                    yield from self._compute(k, number)
                return
            except _Down:
                self.retried += 1

    def _one(self, number: int) -> Generator[Any, Any, None]:
        with self.window.request() as admitted:
            yield admitted
            yield from self._through(number)
        self._done()

    def _loop(self, number: int, passes: int) -> Generator[Any, Any, None]:
        """Takes a decoder's micro-batch through its passes. Each starts when the one before has ended."""
        for _ in range(passes):
            yield from self._through(number)
            self._done()

    def _done(self) -> None:
        self.finished.append(self.env.now)
        if len(self.finished) == self.total:
            self.over.succeed()

    def _failures(self, k: int) -> Generator[Any, Any, None]:
        while True:
            yield self.env.timeout(float(self.rng.exponential(self.conditions.failure_seconds)))
            yield from self._fails(k)

    def _fails_at(self, when: float, k: int) -> Generator[Any, Any, None]:
        yield self.env.timeout(when)
        yield from self._fails(k)

    def _fails(self, k: int) -> Generator[Any, Any, None]:
        self.failed[k] += 1
        start, self.up_at[k] = self.env.now, self.env.now + self.conditions.repair_seconds
        yield self.env.timeout(self.conditions.repair_seconds)
        self._note(self.plan.stages[k].node.name, "down", 0, start)

    def report(self) -> Report:
        passes = self.total // self.plan.work.micro_batches
        if np.isfinite(self.conditions.failure_seconds):
            for k in range(len(self.stages)):
                self.env.process(self._failures(k))
        for when, k in self.conditions.fail_at:
            self.env.process(self._fails_at(when, k))
        if self.plan.model.autoregressive:
            for number in range(self.plan.work.micro_batches):
                self.env.process(self._loop(number, passes))
        else:
            for number in range(self.total):
                self.env.process(self._one(number))
        self.env.run(until=self.over)
        seconds = self.env.now
        return Report(seconds, self.total * self.plan.work.items, self._steady(), tuple(b / seconds for b in self.busy),
                      sum(self.failed), self.retried, tuple(self.spans))

    def _steady(self) -> float:
        """The items per second in the middle half of the run."""
        a, b = len(self.finished) // 4, len(self.finished) * 3 // 4
        if b <= a or self.finished[b] <= self.finished[a]:
            return self.total * self.plan.work.items / self.env.now
        return (b - a) * self.plan.work.items / (self.finished[b] - self.finished[a])


def simulate(plan: Plan, *, passes: int = 8, window: int | None = None, conditions: Conditions | None = None, seed: int = 0,
             record: bool = False) -> Report:
    """Simulates a plan for ``passes`` batches. ``window`` is the greatest number of micro-batches in flight, as in the runtime."""
    window = window or default_window(len(plan.stages))
    return _Run(plan, passes, window, conditions or Conditions(), seed, record).report()


def default_window(stages: int) -> int:
    """The greatest number of micro-batches in flight: one for each stage and link, and one that waits."""
    return 2 * stages + 1
