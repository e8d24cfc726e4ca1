"""Small random planning problems, and their solutions, which are found by trying everything."""

import itertools

import numpy as np

from tegrarm.pool.cluster import Cluster, Link, Node
from tegrarm.pool.costs import Work
from tegrarm.pool.model import Layer, Model
from tegrarm.pool.planner import evaluate
from tegrarm.pool.profile import Profile


def profile(rng, name, *, memory):
    return Profile(
        name, bool(rng.integers(2)), int(memory), float(rng.uniform(20e9, 400e9)), float(rng.uniform(5e9, 30e9)),
        {"float16": float(rng.uniform(1e12, 50e12))}, {"float32": float(rng.uniform(0.5e12, 5e12))},
        launch_latency=float(rng.uniform(1e-6, 2e-5)))


def model(rng, layers, *, graph=False):
    rows = tuple(Layer(f"l{i}", float(rng.uniform(1e6, 2e8)), float(rng.uniform(1e3, 3e6)), {"float16": float(rng.uniform(1e8, 5e10))},
                       {"float32": float(rng.uniform(1e6, 1e9))}, state_bytes=float(rng.uniform(0, 1e6)),
                       kernels=int(rng.integers(1, 10))) for i in range(layers))
    edges = ()
    if graph:
        edges = tuple((int(rng.integers(0, j)), j) for j in range(1, layers))
        edges = tuple(sorted({*edges, *((int(rng.integers(0, j)), j) for j in range(2, layers) if rng.random() < 0.5)}))
    return Model("random", rows, edges, autoregressive=bool(rng.integers(2)), input_bytes=float(rng.uniform(1, 1e6)))


def link(rng):
    return Link(float(10 ** rng.uniform(8, 10.5)), float(10 ** rng.uniform(-6, -3.3)))


def cluster(rng, devices):
    """Devices of a few kinds, alone or several at one site. Some pairs of sites have links of their own."""
    roomy = rng.random() < 0.5
    kinds = [profile(rng, f"k{i}", memory=1e10 if roomy else rng.uniform(1e8, 6e8)) for i in range(int(rng.integers(1, devices + 1)))]
    sites = [f"s{i}" for i in range(int(rng.integers(1, devices + 1)))]
    nodes = tuple(Node(f"n{i}", kinds[rng.integers(len(kinds))], sites[rng.integers(len(sites))]) for i in range(devices))
    links = {(a, b): link(rng) for a, b in itertools.combinations_with_replacement(sites, 2) if rng.random() < 0.6}
    return Cluster(nodes, link(rng), links, "random")


def instance(seed, *, devices=4, layers=7, graph=False):
    rng = np.random.default_rng(seed)
    batch = int(rng.choice([1, 2, 4, 6]))
    counts = [m for m in range(1, batch + 1) if batch % m == 0]
    made = model(rng, int(rng.integers(1, layers + 1)) if not graph else layers, graph=graph)
    return cluster(rng, int(rng.integers(1, devices + 1)) if not graph else devices), Work(made, batch, int(rng.choice(counts)))


def every_split(where, work):
    """Every contiguous split over every sequence of different devices."""
    layers = len(work.model.layers)
    for count in range(1, min(len(where.nodes), layers) + 1):
        for cuts in itertools.combinations(range(1, layers), count - 1):
            edges = [0, *cuts, layers]
            for devices in itertools.permutations(where.nodes, count):
                yield tuple(zip(edges[:-1], edges[1:], devices, strict=True))


def best_of_all(where, work):
    """The smallest bottleneck, latency and step of all splits that fit. A value is None where no split fits."""
    plans = [p for split in every_split(where, work) if (p := evaluate(where, work, split)).fits]
    return {name: min(getattr(p, name) for p in plans) for name in ("bottleneck", "latency", "step")} if plans else None
