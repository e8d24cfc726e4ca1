"""The time of planning and the throughput for growing numbers of devices, by simulation."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from .cluster import Cluster, Link, Node, known_links
from .model import Layer, Model
from .planner import plan
from .profile import catalogue
from .simulation import DATACENTRE_FAILURES, DESK_FAILURES, Conditions, simulate

DEVICES_PER_RACK = 40
MIX = ("agx-orin-64gb", "agx-orin-64gb", "orin-nx-16gb", "agx-orin-32gb", "orin-nano-8gb")


def racks(devices: int) -> Cluster:
    """Racks of Orins, with 25 Gb/s inside a rack and 10 Gb/s between two racks."""
    profiles = catalogue()
    nodes = tuple(Node(f"n{i}", profiles[MIX[i % len(MIX)]], f"rack{i // DEVICES_PER_RACK}") for i in range(devices))
    inside = known_links()["25gbe"]
    links: dict[tuple[str, str], Link] = {(site, site): inside for site in {n.site for n in nodes}}
    return Cluster(nodes, known_links()["10gbe"], links, f"{devices} devices")


def deep_model(layers: int) -> Model:
    """A deep model of equal blocks, each as large as one of Llama 3 70B. It takes images and no tokens."""
    block = Layer("block", 1.7e9, 2 * 8192.0, {"float16": 1.7e9}, {"float32": 1.6e5}, kernels=9)
    return Model(f"{layers} blocks", tuple(dataclasses.replace(block, name=f"block {i}") for i in range(layers)))


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table. Throughputs are items per second."""

    devices: int
    stages: int
    plan_seconds: float
    predicted: float
    simulated: float
    stragglers: float
    apart: float            # the throughput if links were not shared
    failure_cost: float     # the seconds of work that one failure costs
    published_loss: float   # the share of the time that is lost at the published rate
    desk_loss: float


FAILURES = 4  # the number of runs with one failure each
REPAIR_SECONDS = 60.0


def measure(devices: int, *, layers: int = 200, batch: int = 64, passes: int = 4) -> Row:
    """Makes a plan for that many devices and simulates it under several conditions."""
    # The smaller clusters have a model with as many layers as fit on their devices.
    model = deep_model(layers if devices >= 100 else 80)
    started = time.perf_counter()
    made = plan(model, racks(devices), batch=batch, micro_batches=batch)
    seconds, stages = time.perf_counter() - started, len(made.stages)
    clean = simulate(made, passes=passes)
    late = simulate(made, passes=passes, conditions=Conditions(jitter=0.1, stragglers=0.01))
    apart = simulate(made, passes=passes, conditions=Conditions(contention=False))
    # At published rates a run of a minute has no failure. So one device fails in the middle, and the loss is computed from its cost.
    rng, costs = np.random.default_rng(devices), []
    for _ in range(FAILURES):
        when, where = clean.seconds * float(rng.uniform(0.2, 0.8)), int(rng.integers(stages))
        once = Conditions(fail_at=((when, where),), repair_seconds=REPAIR_SECONDS)
        costs.append(simulate(made, passes=passes, conditions=once).seconds - clean.seconds)
    cost = sum(costs) / len(costs)
    return Row(devices, stages, seconds, made.work.items / made.bottleneck, clean.steady_throughput, late.steady_throughput,
               apart.steady_throughput, cost, cost * stages / DATACENTRE_FAILURES, cost * stages / DESK_FAILURES)


def table(counts: tuple[int, ...] = (10, 100, 1000)) -> str:
    """The figures as a Markdown table."""
    lines = ["| devices | stages | planned in | predicted | simulated | links apart | 1 % stragglers | a failure costs "
             "| lost at the published rate | lost at the desk rate |", "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for count in counts:
        r = measure(count)
        lines.append(f"| {r.devices} | {r.stages} | {r.plan_seconds:.1f} s | {r.predicted:.1f}/s | {r.simulated:.1f}/s | {r.apart:.1f}/s "
                     f"| {r.stragglers:.1f}/s | {r.failure_cost:.0f} s | {r.published_loss:.2%} | {r.desk_loss:.2%} |")
    return "\n".join(lines)
