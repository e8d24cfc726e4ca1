"""Exact splits of a chain into contiguous stages, by dynamic programming.

A state has the number of devices of each kind that are used, the place of the last one, and the number of layers that are done. If there
are too many states because many devices differ, the same recurrence runs over the devices in a fixed order. The result is exact for that
order, and the best of several orders is taken. ``Solution.exact`` says which of the two was done.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from .cluster import Cluster, Node
from .costs import Costs, Group, Work, groups, place_link

# The number of elementary operations that the exact solver may use for one pass. They take about five seconds.
EXACT_BUDGET = 3e9
ORDERS = 6


@dataclasses.dataclass(frozen=True)
class Solution:
    """The stages in order, each as (first layer, one past the last, device)."""

    stages: tuple[tuple[int, int, Node], ...]
    value: float
    exact: bool


class Solver:
    """Everything that is computed once for one cluster and one batch."""

    def __init__(self, cluster: Cluster, work: Work):
        self.cluster, self.work, self.layers = cluster, work, len(work.model.layers)
        # A plan cannot use more devices of a kind than there are layers.
        self.groups = [dataclasses.replace(g, nodes=g.nodes[:self.layers]) for g in groups(cluster)]
        self.costs = [Costs(work, g.profile) for g in self.groups]
        self.places = sorted({g.place for g in self.groups})
        self.place = [self.places.index(g.place) for g in self.groups]
        self.wire = np.array([[[place_link(cluster, a, b).seconds(x) for x in work.cut] for b in self.places] for a in self.places])
        states = math.prod(len(g.nodes) + 1 for g in self.groups)
        self.best_order: list[int] | None = None  # of the last search without a cap; searches with a cap use this order only
        self.exact = states * len(self.groups) * self.layers ** 2 <= EXACT_BUDGET and states <= 200_000

    def solve(self, objective: str, cap: float = math.inf) -> Solution | None:
        """The best split in which no stage and no transfer is slower than ``cap``. It is None if there is none.

        ``objective`` is ``bottleneck`` (the slowest stage or transfer) or ``latency`` (their sum).
        """
        return self._by_counts(objective, cap) if self.exact else self._by_orders(objective, cap)

    def _stage(self, group: int, objective: str, cap: float) -> np.ndarray:
        costs = self.costs[group]
        values = costs.bottleneck if objective == "bottleneck" else costs.latency
        # The table is transposed, so that the search for the best start of each end reads neighbouring words.
        return np.ascontiguousarray((values if cap == math.inf else np.where(costs.bottleneck <= cap, values, np.inf)).T)

    def _arrivals(self, best: np.ndarray, place: int, objective: str, cap: float) -> tuple[np.ndarray, np.ndarray]:
        """For each prefix, the best value with which its activations are at ``place``, and the place from which they come."""
        wire = self.wire[:, place]
        wire = wire if cap == math.inf else np.where(wire <= cap, wire, np.inf)
        reached = np.maximum(best, wire) if objective == "bottleneck" else best + wire
        source = reached.argmin(axis=0)
        return reached[source, np.arange(reached.shape[1])], source

    @staticmethod
    def _extended(arrived: np.ndarray, stage: np.ndarray, objective: str) -> tuple[np.ndarray, np.ndarray]:
        """For each prefix, the best value after one more stage, and the layer at which that stage starts."""
        total = np.maximum(arrived, stage) if objective == "bottleneck" else arrived + stage
        start = total.argmin(axis=1)
        return total[np.arange(total.shape[0]), start], start

    # *** all devices, where devices of one kind are the same ***

    def _by_counts(self, objective: str, cap: float) -> Solution | None:
        sizes = [len(g.nodes) + 1 for g in self.groups]
        strides = [math.prod(sizes[:i]) for i in range(len(sizes))]
        states, width = math.prod(sizes), self.layers + 1
        stages = [self._stage(g, objective, cap) for g in range(len(self.groups))]
        best = np.full((states, len(self.places), width), np.inf)
        parent = np.full((states, len(self.places), width, 3), -1, dtype=np.int16)  # group, start, and the place before
        begin = np.full(width, np.inf)
        begin[0] = 0.0
        arrivals: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for state in range(states):
            arrivals.clear()
            if state and not np.isfinite(best[state]).any():
                continue
            for g, stride in enumerate(strides):
                if state // stride % sizes[g] == sizes[g] - 1:
                    continue
                place = self.place[g]
                if place not in arrivals:
                    arrivals[place] = (begin, np.full(width, -1)) if not state else self._arrivals(best[state], place, objective, cap)
                arrived, before = arrivals[place]
                value, start = self._extended(arrived, stages[g], objective)
                target = best[state + stride, place]
                better = value < target
                target[better] = value[better]
                parent[state + stride, place][better] = np.stack([np.full(width, g), start, before[start]], axis=1)[better]
        final = best[:, :, -1]
        last, where = (int(x) for x in np.unravel_index(final.argmin(), final.shape))
        if not np.isfinite(final[last, where]):
            return None
        return self._walk(last, where, parent, strides, float(final[last, where]))

    def _walk(self, state: int, place: int, parent: np.ndarray, strides: list[int], value: float) -> Solution:
        taken: list[tuple[int, int, int]] = []
        stop = self.layers
        while stop > 0:
            group, start, before = (int(x) for x in parent[state, place, stop])
            taken.append((start, stop, group))
            state, stop, place = state - strides[group], start, before
        pools = [iter(g.nodes) for g in self.groups]
        return Solution(tuple((i, j, next(pools[g])) for i, j, g in reversed(taken)), value, True)

    # *** many different devices, in a fixed order ***

    def _orders(self) -> list[list[int]]:
        """Orders of the kinds of devices. Those that probably give good results come first."""
        def speed(g: int) -> float:
            return self.costs[g].prefix[-1]

        kinds = range(len(self.groups))
        by_place = sorted(kinds, key=lambda g: (self.places[self.place[g]], speed(g)))
        sizes = sorted(kinds, key=lambda g: (-self.groups[g].profile.budget, speed(g)))
        orders = [sorted(kinds, key=speed), sorted(kinds, key=speed, reverse=True), by_place, by_place[::-1], sizes, sizes[::-1]]
        if len(self.groups) <= 3:
            orders += [list(p) for p in itertools.permutations(kinds)]
        unique: list[list[int]] = []
        for order in orders:
            if order not in unique:
                unique.append(order)
        return unique[:ORDERS]

    def _by_orders(self, objective: str, cap: float) -> Solution | None:
        orders = self._orders() if cap == math.inf or self.best_order is None else [self.best_order]
        best: Solution | None = None
        for order in orders:
            found = self._in_order(order, objective, cap)
            if found and (best is None or found.value < best.value):
                best, self.best_order = found, order
        return best

    def _in_order(self, order: list[int], objective: str, cap: float) -> Solution | None:
        """Each device in turn gets the next stage or is left out."""
        queue = [(g, node) for g in order for node in self.groups[g].nodes]
        width = self.layers + 1
        best = np.full((len(self.places), width), np.inf)
        made_by = np.full((len(self.places), width), -1, dtype=np.int32)  # the device that made the entry
        chosen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # for each device: start, place before, and the device that made it
        begin = np.full(width, np.inf)
        begin[0] = 0.0
        stage, last_group = np.empty(0), -1
        for number, (g, _node) in enumerate(queue):
            if g != last_group:
                stage, last_group = self._stage(g, objective, cap), g
            place = self.place[g]
            arrived, before = self._arrivals(best, place, objective, cap)
            fresh = begin < arrived
            arrived, before = np.where(fresh, begin, arrived), np.where(fresh, -1, before)
            value, start = self._extended(arrived, stage, objective)
            source = before[start]
            chosen.append((start.astype(np.int16), source.astype(np.int16), np.where(source < 0, -1, made_by[source, start])))
            better = value < best[place]
            best[place][better] = value[better]
            made_by[place][better] = number
        place = int(best[:, -1].argmin())
        if not np.isfinite(best[place, -1]):
            return None
        taken, stop, number = [], self.layers, int(made_by[place, -1])
        while stop > 0:
            start, _, made = chosen[number]
            taken.append((int(start[stop]), stop, queue[number][1]))
            number, stop = int(made[stop]), int(start[stop])
        return Solution(tuple(reversed(taken)), float(best[place, -1]), False)


def group_names(found: list[Group]) -> list[str]:
    """The names of the kinds of devices, for messages."""
    return [f"{len(g.nodes)} x {g.profile.name}" + (f" at {g.place}" if g.place else "") for g in found]
