"""Plans say which device runs which layers in how many micro-batches, how long that takes, and what limits it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .chain import Solution, Solver, group_names
from .cluster import Cluster, Link, Node
from .costs import Work, groups
from .model import Model

OBJECTIVES = ("throughput", "latency", "step")


class NoPlan(ValueError):
    """No split of the model fits these devices. The sentence says what is missing."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """The part of one device, with its times for one micro-batch."""

    start: int
    stop: int
    node: Node
    seconds: float           # of the kernels
    copy_in: float           # of the copy into the device's own memory, if it has one
    copy_out: float
    link: Link | None        # the link over which the input came
    link_seconds: float
    resident: float
    compute_share: float     # shares of the kernels' time that arithmetic, memory traffic and launches would take alone
    memory_share: float
    launch_share: float

    @property
    def copy_seconds(self) -> float:
        """The time of the slower of the two copies. They do not wait for each other."""
        return max(self.copy_in, self.copy_out)

    @property
    def slowest(self) -> float:
        """The time between two micro-batches that this stage and the link of its input allow."""
        return max(self.seconds, self.copy_seconds, self.link_seconds)

    @property
    def limit(self) -> str:
        """What limits the stage, as a phrase."""
        if self.link_seconds >= max(self.seconds, self.copy_seconds):
            name = self.link.name if self.link and self.link.name else "its"
            return f"the {name} link in front of it"
        if self.copy_seconds > self.seconds:
            return "copies between the host's memory and its own"
        share = {"arithmetic": self.compute_share, "memory bandwidth": self.memory_share, "launches": self.launch_share}
        return max(share, key=lambda k: share[k])


@dataclasses.dataclass(frozen=True)
class Plan:
    """A split with its predicted times."""

    model: Model
    cluster: Cluster
    work: Work
    stages: tuple[Stage, ...]
    objective: str
    exact: bool

    @property
    def bottleneck(self) -> float:
        """The seconds between two micro-batches when the pipeline is full."""
        return max(s.slowest for s in self.stages)

    @property
    def latency(self) -> float:
        """The seconds that one micro-batch takes through all stages."""
        return sum(s.seconds + s.copy_in + s.copy_out + s.link_seconds for s in self.stages)

    @property
    def step(self) -> float:
        """The seconds until the whole batch has been through once. For a decoder with a full pipeline this is one token of every item."""
        return step_seconds(self.work, self.bottleneck, self.latency)

    @property
    def throughput(self) -> float:
        """The items per second."""
        return self.work.batch / self.step

    @property
    def fits(self) -> bool:
        """Whether every stage has the memory that it needs."""
        return all(s.resident <= s.node.profile.budget for s in self.stages)

    def table(self) -> str:
        """The plan as text: one line for each stage, and what limits the plan."""
        lines = [f"{self.model.name} on {self.cluster.name or 'this cluster'}: {self.work.batch} {self.model.unit}s in "
                 f"{self.work.micro_batches} micro-batches, for {self.objective}, {'exact' if self.exact else 'best order found'}",
                 f"{'stage':>5} {'device':24} {'layers':>11} {'memory':>10} {'kernels':>11} {'link in':>11}  limited by"]
        for i, s in enumerate(self.stages):
            mark = " <- the pipeline's pace" if s.slowest == self.bottleneck else ""
            lines.append(f"{i:>5} {s.node.name:24} {f'{s.start}..{s.stop - 1}':>11} {s.resident / 2**30:>6.2f} GiB "
                         f"{s.seconds * 1e3:>8.3f} ms {s.link_seconds * 1e3:>8.3f} ms  {s.limit}{mark}")
        unused = [n.name for n in self.cluster.nodes if n.name not in {s.node.name for s in self.stages}]
        if unused:
            lines.append(f"not used: {', '.join(unused[:8])}{f' and {len(unused) - 8} more' if len(unused) > 8 else ''}")
        lines.append(f"step {self.step * 1e3:.3f} ms, latency {self.latency * 1e3:.3f} ms, {self.throughput:.2f} {self.model.unit}s/s")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The plan as a dictionary, with what a runtime needs and what was predicted."""
        return {"model": self.model.name, "cluster": self.cluster.name, "batch": self.work.batch, "micro_batches": self.work.micro_batches,
                "objective": self.objective, "exact": self.exact, "step": self.step, "latency": self.latency,
                "stages": [{"device": s.node.name, "start": s.start, "stop": s.stop, "seconds": s.seconds, "copy": s.copy_seconds,
                            "link": s.link_seconds, "resident": s.resident, "limit": s.limit} for s in self.stages]}


def step_seconds(work: Work, bottleneck: float, latency: float) -> float:
    """The time of one pass of the batch. The passes of a decoder follow each other, so that its pipeline is always full."""
    if work.model.autoregressive:
        return max(work.micro_batches * bottleneck, latency)
    return latency + (work.micro_batches - 1) * bottleneck


def evaluate(cluster: Cluster, work: Work, split: tuple[tuple[int, int, Node], ...], objective: str = "given", exact: bool = False) -> Plan:
    """The times of any split. The memory is reported, and a split that needs too much is not refused."""
    stages: list[Stage] = []
    before: Node | None = None
    for start, stop, node in split:
        layers, profile = work.model.layers[start:stop], node.profile
        link = cluster.link(before, node) if before else None
        copy = work.copy_seconds(profile)
        stages.append(Stage(
            start, stop, node, sum(x.seconds(profile, work.items) for x in layers), float(copy[start]),
            float(copy[stop]), link, link.seconds(work.cut[start]) if link else 0.0, float(work.resident[start, stop]),
            sum(x.compute_seconds(profile, work.items) for x in layers), sum(x.memory_seconds(profile, work.items) for x in layers),
            sum(x.kernels for x in layers) * profile.launch_latency))
        before = node
    return Plan(work.model, cluster, work, tuple(stages), objective, exact)


def divisors(batch: int) -> list[int]:
    """The numbers of equal micro-batches into which a batch can be cut."""
    return [m for m in range(1, batch + 1) if batch % m == 0]


def micro_batch_choices(batch: int, most: int = 8) -> list[int]:
    """The numbers that a planner tries. If there are many, it tries ``most`` of them, spread over the whole range."""
    every = divisors(batch)
    if len(every) <= most:
        return every
    return sorted({every[round(i * (len(every) - 1) / (most - 1))] for i in range(most)})


def _solve(solver: Solver, objective: str) -> Solution | None:
    """Finds the best split for one number of micro-batches."""
    if objective == "latency":
        return solver.solve("latency")
    if objective == "throughput" and not solver.work.model.autoregressive:
        fastest = solver.solve("bottleneck")
        # Of all splits with that pace this is the one with the lowest latency. It also uses no more devices than it needs.
        return solver.solve("latency", fastest.value * (1 + 1e-9)) if fastest else None
    best, value, cap, tried = None, math.inf, math.inf, 0
    # The loop goes through splits with a falling bottleneck and a rising latency. The best split for every step is one of them. If a search
    # takes long and is not exact anyway, the loop takes larger steps.
    while (found := solver.solve("latency", cap)) is not None:
        pace = evaluate(solver.cluster, solver.work, found.stages).bottleneck
        if (step := step_seconds(solver.work, pace, found.value)) < value:
            best, value = found, step
        if step_seconds(solver.work, 0.0, found.value) >= value:
            break
        tried += 1
        cap = pace * (1 - 1e-9 if solver.exact or tried < 4 else 0.95)
    return best


def plan(model: Model, cluster: Cluster, *, batch: int = 1, micro_batches: int | None = None, objective: str = "throughput") -> Plan:
    """Finds the best contiguous split of a model over a cluster.

    ``objective`` is ``throughput`` for the fastest pace of a full pipeline, ``latency`` for one micro-batch alone, or ``step`` for the time
    of the whole batch, including the filling and the draining of the pipeline. The throughput of a decoder is its batch divided by its
    step. It has no more micro-batches than that, because an item's next token needs its last one. Without ``micro_batches`` their number is
    chosen too. A model that is not a chain is planned as a chain of its layers in their order, in which a cut costs all tensors that cross
    it. :func:`tegrarm.pool.ilp.dag` plans it as a graph.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"objective {objective!r} is not one of {', '.join(OBJECTIVES)}")
    if not cluster.nodes:
        raise NoPlan(f"cluster {cluster.name!r} has no devices")
    best: Plan | None = None
    for count in [micro_batches] if micro_batches else micro_batch_choices(batch):
        work = Work(model, batch, count)
        solver = Solver(cluster, work)
        if (found := _solve(solver, objective)) is None:
            continue
        made = evaluate(cluster, work, found.stages, objective, found.exact)
        if best is None or _order(made) < _order(best):
            best = made
    if best is None:
        raise NoPlan(_why(model, cluster, Work(model, batch, micro_batches or batch)))
    return best


def _order(made: Plan) -> tuple[float, float]:
    """The number that is compared between numbers of micro-batches: every objective in seconds per item or per batch."""
    if made.objective == "throughput":
        return made.step if made.model.autoregressive else made.bottleneck * made.work.micro_batches, made.latency
    return (made.latency if made.objective == "latency" else made.step), made.latency


def _why(model: Model, cluster: Cluster, work: Work) -> str:
    """The sentence that says why a model does not fit."""
    needed, there = work.resident[0, -1], sum(n.profile.budget for n in cluster.nodes)
    if needed > there:
        return (f"{model.name} needs {needed / 2**30:.1f} GiB with a batch of {work.batch}, and the {len(cluster.nodes)} devices "
                f"({', '.join(group_names(groups(cluster)))}) have {there / 2**30:.1f} GiB for it: add devices, or use fewer bits or items")
    largest = max((float(work.resident[i, i + 1]), x.name) for i, x in enumerate(model.layers))
    return (f"no contiguous split of {model.name} fits: its {needed / 2**30:.1f} GiB are less than the {there / 2**30:.1f} GiB "
            f"of all devices, but layers are indivisible (the largest, {largest[1]}, needs {largest[0] / 2**30:.2f} GiB)")


@dataclasses.dataclass(frozen=True)
class Move:
    """The layers that a device must load for a new plan."""

    node: Node
    layers: tuple[int, ...]
    weight_bytes: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class Replan:
    """A new plan, and the layers that must be loaded for it."""

    plan: Plan
    moves: tuple[Move, ...]

    @property
    def seconds(self) -> float:
        """The time until all devices have loaded their layers. They load at the same time."""
        return max((m.seconds for m in self.moves), default=0.0)


def replan(old: Plan, cluster: Cluster) -> Replan:
    """Makes a plan for the present cluster, with the layers that each device has to load for it."""
    new = plan(old.model, cluster, batch=old.work.batch, objective=old.objective if old.objective in OBJECTIVES else "throughput")
    had = {s.node.name: set(range(s.start, s.stop)) for s in old.stages}
    moves = []
    for stage in new.stages:
        missing = sorted(set(range(stage.start, stage.stop)) - had.get(stage.node.name, set()))
        if missing:
            size = sum(new.model.layers[i].weight_bytes for i in missing)
            source = cluster.between.seconds(size)
            copy = 0.0 if stage.node.profile.shared_memory else size / stage.node.profile.transfer_bandwidth
            moves.append(Move(stage.node, tuple(missing), size, source + copy))
    return Replan(new, tuple(moves))
