"""Virtual time is the time that a virtual Orin would take. It is computed from counted instructions and does not depend on the host.

A virtual Orin computes on the host's cores, so that its wall-clock time says nothing about a GPU. Its instruction counts are the same in
every run. In virtual time, a micro-batch takes its launches times the profile's launch latency, and in addition the longer of two times:
its warp instructions at the rate at which the module's SMs issue them (four each per clock), or its memory traffic at the module's
bandwidth.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from .cluster import Cluster
from .model import Layer, Model
from .profile import Profile
from .runtime import Pool
from .stage import StageFactory
from .timeline import Span

SCHEDULERS = 4  # of an SM of sm_87; each issues one warp instruction per clock
_SUM = re.compile(r"^\s*all\s+(\d+)\s+(\d+)\s", re.M)


@dataclasses.dataclass(frozen=True)
class Counts:
    """The counts of one micro-batch, on average."""

    launches: float
    instructions: float


def clocked(profile: Profile, slow: float = 1.0) -> Profile:
    """The profile with a single rate, warp instructions per second (as int32), for models that are measured in them.

    With ``slow``, each instruction counts as that many. Otherwise a model that is small enough to be simulated consists of launches only.
    """
    rate = SCHEDULERS * profile.compute_units * profile.max_clock_hz / slow
    return dataclasses.replace(profile, matrix_rates={}, scalar_rates={"int32": rate}, efficiency=1.0,
                               sources={**profile.sources, "scalar_rates": "virtual-time"})


def clocked_cluster(cluster: Cluster, slow: float = 1.0) -> Cluster:
    """The cluster with every device clocked in this way."""
    return dataclasses.replace(cluster, nodes=tuple(dataclasses.replace(n, profile=clocked(n.profile, slow)) for n in cluster.nodes))


def count(factory: StageFactory, place: tuple[int, int, int, str, bool], inputs: Sequence[np.ndarray], environment: dict[str, str], *,
          session: bool) -> tuple[Counts, list[np.ndarray]]:
    """The counts of a part over the inputs, and its outputs. They are the difference between a process that computes and one that only
    loads.
    """
    from ray import cloudpickle

    totals, outputs = [], []
    for calls in (0, len(inputs)):
        with tempfile.TemporaryDirectory(prefix="tegrarm-pool-") as folder:
            request, answer = pathlib.Path(folder, "request"), pathlib.Path(folder, "answer")
            request.write_bytes(cloudpickle.dumps((factory, place, list(inputs), calls, session)))
            done = subprocess.run([sys.executable, "-m", "tegrarm.pool.counted", request, answer], capture_output=True, text=True,
                                  env={**os.environ, **environment, "TEGRARM_SIM_STATS": "1"})
            if done.returncode or not (found := _SUM.search(done.stderr)):
                raise RuntimeError(f"counting layers {place[0]} to {place[1] - 1} on {place[3]} failed:\n{done.stderr[-2000:]}")
            totals.append((int(found[1]), int(found[2])))
            outputs = pickle.loads(answer.read_bytes())
    launches, instructions = (b - a for a, b in zip(*totals, strict=True))
    return Counts(launches / len(inputs), instructions / len(inputs)), outputs


def measured_model(model: Model, factory: StageFactory, inputs: Sequence[np.ndarray], environment: dict[str, str], *,
                   items: int, twins: Sequence[int] = ()) -> Model:
    """The model with its work in warp instructions. Each layer is counted alone on one device. A layer in ``twins`` is like the layer
    before it and is only run for its output.
    """
    layers: list[Layer] = []
    data = list(inputs)
    for i, layer in enumerate(model.layers):
        if i in twins:
            layers.append(dataclasses.replace(layers[-1], name=layer.name))
            continue
        counts, outputs = count(factory, (i, i + 1, len(model.layers), "counted", True), data, environment, session=model.autoregressive)
        layers.append(dataclasses.replace(layer, matrix_work={}, scalar_work={"int32": counts.instructions / items},
                                          kernels=round(counts.launches)))
        # Twins have the same shapes, so that the counts of the next layer do not depend on the values.
        data = outputs
    return dataclasses.replace(model, layers=tuple(layers))


def seconds(counts: Counts, pool: Pool, number: int, slow: float = 1.0) -> float:
    """The virtual time that a stage of a pool takes for one micro-batch."""
    stage, work = pool.plan.stages[number], pool.plan.work
    profile = clocked(stage.node.profile, slow)
    traffic = sum(layer.memory_seconds(profile, work.items) for layer in work.model.layers[stage.start:stage.stop])
    return counts.launches * profile.launch_latency + max(counts.instructions / profile.scalar_rates["int32"], traffic)


def start_clock(pool: Pool, inputs: Sequence[np.ndarray], slow: float = 1.0) -> list[float]:
    """Counts every stage of a pool with its present split on its own module, and starts the workers' clocks. Returns the seconds per stage.
    """
    data, costs = list(inputs), []
    for number, (stage, hand) in enumerate(zip(pool.plan.stages, pool.health.up(), strict=True)):
        place = (stage.start, stage.stop, len(pool.model.layers), stage.node.name, stage.node.profile.shared_memory)
        counts, data = count(pool.factory, place, data, pool.places[stage.node.name].environment, session=pool.model.autoregressive)
        costs.append(seconds(counts, pool, number, slow))
        link = stage.link
        latency, bandwidth = (link.latency, link.bandwidth) if link else (0.0, float("inf"))
        pool.clock[hand.node.name, stage.start, stage.stop] = (costs[-1], latency, bandwidth)
        pool.ray.get(hand.actor.set_virtual.remote(costs[-1], latency, bandwidth))
    pool.traces.clear()
    return costs


def spans(pool: Pool) -> list[Span]:
    """The work of the stages in virtual time, from the answers since the clock was started."""
    names = [s.node.name for s in pool.plan.stages]
    return [Span(names[k], "run", packet.number, start, end) for packet in pool.traces for k, start, end in packet.spans]


def throughput(pool: Pool) -> float:
    """The items per second of virtual time, in the middle half of the run."""
    ends = sorted(packet.ready for packet in pool.traces)
    a, b = len(ends) // 4, len(ends) * 3 // 4
    return (b - a) * pool.plan.work.items / (ends[b] - ends[a])
