"""Splits that are not a chain of single devices, as integer linear programs for HiGHS (scipy's ``milp``).

:func:`dag` assigns the layers of a graph to devices. :func:`replicated` lets several devices share a stage, and each takes micro-batches at
its own pace. Both find the fastest pace, and both are exact unless the time limit ends the search (``Result.exact``).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .chain import Solver
from .cluster import Cluster, Node
from .costs import Work, groups
from .planner import NoPlan


@dataclasses.dataclass(frozen=True)
class Result:
    """The parts as (layers, devices), in an order in which they feed each other, and the seconds between two micro-batches."""

    parts: tuple[tuple[tuple[int, ...], tuple[Node, ...]], ...]
    bottleneck: float
    exact: bool
    # No split has a better pace than this. It equals ``bottleneck`` if the search was finished.
    bound: float


class _Program:
    """Rows of a mixed-integer program, collected one by one."""

    def __init__(self) -> None:
        self.integer: list[int] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, upper: float, *, integer: bool, lower: float = 0.0) -> int:
        """Adds a variable and returns its number."""
        self.integer.append(int(integer))
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.integer) - 1

    def require(self, terms: dict[int, float], lower: float = -np.inf, upper: float = np.inf) -> None:
        """Requires ``lower <= sum(terms) <= upper``."""
        self.rows.append((terms, lower, upper))

    def minimise(self, variable: int, sign: float, limit_s: float) -> Any:
        """scipy's solution with the least value of one variable, or with the largest value if the sign is negative."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        cost = np.zeros(len(self.integer))
        cost[variable] = sign
        data = [(value, i, j) for i, (terms, _, _) in enumerate(self.rows) for j, value in terms.items()]
        values, rows, columns = zip(*data, strict=True)
        matrix = csr_array((values, (rows, columns)), shape=(len(self.rows), len(self.integer)))
        constraints = LinearConstraint(matrix, [r[1] for r in self.rows], [r[2] for r in self.rows])
        return milp(cost, integrality=self.integer, bounds=Bounds(self.lower, self.upper), constraints=constraints,
                    options={"time_limit": limit_s, "mip_rel_gap": 1e-7})


def _layer_bytes(work: Work) -> np.ndarray:
    """The bytes that each layer needs on its device, wherever its neighbours are: weights, state, and its output twice."""
    return np.array([x.weight_bytes + work.batch * x.state_bytes + 2 * work.items * x.activation_bytes for x in work.model.layers])


def dag(cluster: Cluster, work: Work, *, limit_s: float = 60.0) -> Result:
    """The fastest pace of a graph of layers over devices. Each device runs one part, and no two parts feed each other in a circle.

    A tensor is sent to a device once, even if several of its layers read it, and a pair of devices sends its tensors one after another.
    """
    model, nodes, program = work.model, cluster.nodes, _Program()
    pace_scale = max(work.layer_seconds(n.profile).sum() for n in nodes)
    pace = program.variable(10.0, integer=False)  # in units of the time that the slowest device takes for all layers
    at = [[program.variable(1, integer=True) for _ in nodes] for _ in model.layers]
    position = [program.variable(len(nodes) - 1, integer=False) for _ in nodes]
    need = _layer_bytes(work)
    for v in range(len(model.layers)):
        program.require({at[v][d]: 1.0 for d in range(len(nodes))}, 1, 1)
    for d, node in enumerate(nodes):
        seconds = work.layer_seconds(node.profile) / pace_scale
        program.require({pace: -1.0, **{at[v][d]: seconds[v] for v in range(len(seconds))}}, upper=0)
        program.require({at[v][d]: need[v] / node.profile.budget for v in range(len(need))}, upper=1)
    far = float(len(nodes))
    sends: dict[tuple[int, int], dict[int, float]] = {}
    for d, source in enumerate(nodes):
        for e, target in enumerate(nodes):
            if d == e:
                continue
            link, sent = cluster.link(source, target), {}
            for u, v in model.all_edges:
                # A part that feeds another part comes before it.
                program.require({position[e]: 1, position[d]: -1, at[u][d]: -far, at[v][e]: -far}, lower=1 - 2 * far)
                if u not in sent:
                    sent[u] = program.variable(1, integer=False)
                program.require({sent[u]: 1, at[u][d]: -1, at[v][e]: -1}, lower=-1)
            size = {u: work.items * model.layers[u].activation_bytes for u in sent}
            sends[d, e] = {sent[u]: link.seconds(size[u]) / pace_scale for u in sent}
            program.require({pace: -1.0, **sends[d, e]}, upper=0)
    answer = program.minimise(pace, 1.0, limit_s)
    if answer.x is None:
        raise NoPlan(f"{model.name} over {len(nodes)} devices: {answer.message}")
    where = [int(np.argmax([answer.x[at[v][d]] for d in range(len(nodes))])) for v in range(len(model.layers))]
    order = sorted({d for d in where}, key=lambda d: answer.x[position[d]])
    parts = tuple((tuple(v for v, w in enumerate(where) if w == d), (nodes[d],)) for d in order)
    return Result(parts, graph_pace(cluster, work, where), answer.status == 0, answer.mip_dual_bound * pace_scale)


def graph_pace(cluster: Cluster, work: Work, where: list[int]) -> float:
    """The seconds between two micro-batches, if layers are assigned to the cluster's devices by number."""
    model, nodes = work.model, cluster.nodes
    slowest = max(sum(t for v, t in enumerate(work.layer_seconds(n.profile)) if where[v] == d) for d, n in enumerate(nodes))
    sent = {(where[u], where[v], u) for u, v in model.all_edges if where[u] != where[v]}
    wires: dict[tuple[int, int], float] = {}
    for d, e, u in sent:
        seconds = cluster.link(nodes[d], nodes[e]).seconds(work.items * model.layers[u].activation_bytes)
        wires[d, e] = wires.get((d, e), 0.0) + seconds
    return max([slowest, *wires.values()])


def replica_rate(cluster: Cluster, solver: Solver, node: Node, group: int, start: int, stop: int) -> float:
    """The micro-batches per second of one replica. Its slowest possible links count, because any replica may feed it."""
    busy = float(solver.costs[group].bottleneck[start, stop])
    others = [n for n in cluster.nodes if n is not node]
    cuts = ([solver.work.cut[start]] if start else []) + ([solver.work.cut[stop]] if stop < solver.layers else [])
    wires = [cluster.link(node, other).seconds(size) for other in others for size in cuts]
    return 1.0 / max([busy, *wires]) if np.isfinite(busy) else 0.0


def replicated(cluster: Cluster, work: Work, *, limit_s: float = 60.0) -> Result:
    """The fastest pace of a chain whose stages may use several devices at the same time.

    The devices of a stage take micro-batches in proportion to their speed, so that the stage's pace is the sum of theirs.
    """
    solver, program = Solver(cluster, work), _Program()
    layers, nodes = solver.layers, cluster.nodes
    group_of = {node.name: g for g, group in enumerate(groups(cluster)) for node in group.nodes}
    spans = [(i, j) for i in range(layers) for j in range(i + 1, layers + 1)]
    rates = {(span, n): replica_rate(cluster, solver, node, group_of[node.name], *span)
             for span in spans for n, node in enumerate(nodes)}
    scale = max(sum(rates[span, n] for n in range(len(nodes))) for span in spans)
    if scale == 0:
        raise NoPlan(f"{work.model.name}: not one layer fits on any of the {len(nodes)} devices")
    pace = program.variable(1.0, integer=False)  # micro-batches per second, in units of ``scale``
    used = {span: program.variable(1, integer=True) for span in spans}
    takes = {key: program.variable(1, integer=True) for key, rate in rates.items() if rate > 0}
    for cut in range(layers + 1):
        flow: dict[int, float] = {used[i, j]: 1.0 for i, j in spans if j == cut}
        for i, j in spans:
            if i == cut:
                flow[used[i, j]] = -1.0
        total = {0: -1.0, layers: 1.0}.get(cut, 0.0)
        program.require(flow, total, total)
    for n in range(len(nodes)):
        mine = {takes[span, n]: 1.0 for span in spans if (span, n) in takes}
        if mine:
            program.require(mine, upper=1)
    for span in spans:
        mine = {takes[span, n]: rates[span, n] / scale for n in range(len(nodes)) if (span, n) in takes}
        # If the span is a stage, the sum of its replicas' paces is at least the pace of the pipeline.
        program.require({**mine, pace: -1.0, used[span]: -1.0}, lower=-1.0)
    answer = program.minimise(pace, -1.0, limit_s)
    if answer.x is None or answer.x[pace] <= 0:
        raise NoPlan(f"{work.model.name} over {len(nodes)} devices: no split into replicated stages fits ({answer.message})")
    parts = []
    for i, j in spans:
        if answer.x[used[i, j]] > 0.5:
            parts.append((tuple(range(i, j)), tuple(nodes[n] for n in range(len(nodes)) if ((i, j), n) in takes
                                                    if answer.x[takes[(i, j), n]] > 0.5)))
    paces = [sum(rates[(part[0], part[-1] + 1), nodes.index(n)] for n in devices) for part, devices in parts]
    return Result(tuple(parts), 1.0 / min(paces), answer.status == 0, -1.0 / (answer.mip_dual_bound * scale))
