"""The splits that people use today, for comparison: by memory, as llama.cpp's RPC does, and into equal parts."""

from __future__ import annotations

import dataclasses

from .cluster import Cluster, Node
from .costs import Work
from .model import Model
from .planner import Plan, evaluate, micro_batch_choices, plan


def _split(cluster: Cluster, layers: int, shares: list[float]) -> tuple[tuple[int, int, Node], ...]:
    """Contiguous parts in the cluster's order, in proportion to the shares. Devices with an empty part are left out."""
    total, edges, seen = sum(shares), [0], 0.0
    for share in shares:
        seen += share
        edges.append(round(layers * seen / total))
    return tuple((a, b, node) for a, b, node in zip(edges[:-1], edges[1:], cluster.nodes, strict=True) if b > a)


def by_memory(cluster: Cluster, work: Work) -> Plan:
    """Each device gets layers in proportion to its share of all memory."""
    return evaluate(cluster, work, _split(cluster, len(work.model.layers), [n.profile.budget for n in cluster.nodes]), "by memory")


def equal(cluster: Cluster, work: Work) -> Plan:
    """Each device gets the same number of layers."""
    return evaluate(cluster, work, _split(cluster, len(work.model.layers), [1.0] * len(cluster.nodes)), "equal")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One model on one cluster, split in three ways. Each split has the number of micro-batches that is best for it."""

    planned: Plan
    memory: Plan
    even: Plan

    @staticmethod
    def gain(planned: Plan, other: Plan) -> float | None:
        """How many times faster the plan's step is. It is None if the other split does not fit into memory."""
        return other.step / planned.step if other.fits else None


def compare(model: Model, cluster: Cluster, *, batch: int) -> Comparison:
    """Compares the planner's split with the two others."""
    works = [Work(model, batch, m) for m in micro_batch_choices(batch)]
    planned = plan(model, cluster, batch=batch, objective="step")
    memory = min((by_memory(cluster, w) for w in works), key=lambda p: (not p.fits, p.step))
    even = min((equal(cluster, w) for w in works), key=lambda p: (not p.fits, p.step))
    return Comparison(planned, memory, even)


# What docs/pool.md shows: (model, batch) over clusters of the package. The clusters named "equal" show a case without a gain.
CASES = [
    ("llama3-8b-q4.5", 8, ["desk-two", "desk-mixed", "desk-10g", "four-equal", "orin-and-card", "cards-pcie"]),
    ("llama3-8b", 8, ["desk-two", "desk-10g", "orin-and-card", "cards-pcie"]),
    ("llama3-70b-q4.5", 8, ["desk-10g", "orin-and-card", "rack-orin", "cards-pcie", "datacenter"]),
    ("llama3-70b", 16, ["rack-orin", "datacenter"]),
    ("qwen2.5-7b-q8", 8, ["desk-two", "desk-mixed", "four-equal"]),
    ("qwen2.5-32b-q4.5", 8, ["desk-two", "desk-10g", "rack-orin", "cards-pcie"]),
    ("vit-l16", 32, ["desk-two", "desk-mixed", "four-equal", "cards-pcie"]),
    ("sd15-unet", 8, ["desk-two", "desk-mixed", "desk-10g", "orin-and-card", "cards-pcie"]),
]


# The gain that was expected for unequal clusters. The table marks the rows that do not reach it.
EXPECTED = 1.3


def _said(gain: float | None, cluster: Cluster) -> str:
    if gain is None:
        return ""
    unequal = len({node.profile.name for node in cluster.nodes}) > 1
    return f"{gain:.2f}" + (f", not {EXPECTED}" if unequal and gain < EXPECTED else "")


def table() -> str:
    """The comparison as a Markdown table."""
    from .cluster import named
    from .shapes import published

    lines = ["| model | batch | cluster | planned step | by memory | equal | gain over by memory | gain over equal |",
             "|---|--:|---|--:|--:|--:|--:|--:|"]
    for name, batch, clusters in CASES:
        for where in clusters:
            found = compare(published(name), named()[where], batch=batch)
            cells = [f"{p.step * 1e3:.1f} ms" if p.fits else "does not fit" for p in (found.memory, found.even)]
            gains = [_said(Comparison.gain(found.planned, p), named()[where]) for p in (found.memory, found.even)]
            lines.append(f"| {name} | {batch} | {where} | {found.planned.step * 1e3:.1f} ms | {' | '.join(cells)} | {' | '.join(gains)} |")
    return "\n".join(lines)
