"""``python -m tegrarm pool run`` runs the small decoder over a pool, shows the loads, and compares prediction and measurement."""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

from . import timeline, transformer, virtual
from .nodes import virtual as virtual_orins
from .nodes import virtual_environment
from .planner import Plan, evaluate, plan
from .runtime import Limits, Pool
from .simulation import simulate

ROWS = 2  # the number of sequences that a request decodes together
PROMPT = 3


def prompts(requests: int, shape: transformer.Shape) -> list[np.ndarray]:
    """The prompts, which are the same in every run."""
    rng = np.random.default_rng(7)
    return [rng.integers(0, shape.vocabulary, (ROWS, PROMPT)).astype(np.int32) for _ in range(requests)]


def decode_all(pool: Pool, asked: list[np.ndarray], tokens: int) -> list[list[list[int]]]:
    """Runs all requests at the same time. Each is a session of its own."""
    said: list[list[list[int]]] = [[] for _ in asked]
    errors: list[Exception] = []

    def one(i: int) -> None:
        session = pool.session()
        try:
            said[i] = transformer.decode(lambda data: pool.submit(data, session=session).result(), asked[i], tokens)
        except Exception as error:
            errors.append(error)
        finally:
            pool.end(session)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return said


def bar(share: float, width: int = 16) -> str:
    """How much of something is done, as a picture of the given width and as a number."""
    share = min(max(share, 0.0), 1.0)
    full = round(share * width)
    return f"[{'#' * full}{'.' * (width - full)}] {share:4.0%}"


def line(rows: list[dict[str, Any]], shares: dict[str, float]) -> str:
    """A line for every stage: a bar while it loads, then the share of time in which it computed, and how often it ran."""
    parts = []
    for row in rows:
        share = min(max(shares.get(row["device"], 0.0), 0.0), 1.0)
        state = f"{share:4.0%} {row.get('runs', 0):>4} runs" if row["up"] else f"loading {bar(row.get('loaded', 0.0))}"
        parts.append(f"{row['device']} {state}")
    return " | ".join(parts)


class Ticker:
    """Shows a line of loads on a terminal. Without a terminal it prints a line every few seconds."""

    def __init__(self, pool: Pool):
        self.pool, self.over = pool, threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True)

    def _show(self) -> None:
        before: dict[str, float] = {}
        then, shown, terminal = time.monotonic(), "", sys.stderr.isatty()
        while not self.over.wait(1.0 if terminal else 5.0):
            now, rows = time.monotonic(), self.pool.loads()
            done = {row["device"]: row.get("seconds", 0.0) for row in rows}
            shown = line(rows, {name: (seconds - before.get(name, seconds)) / (now - then) for name, seconds in done.items()})
            then, before = now, done
            print(("\r\033[K" if terminal else "") + shown, end="" if terminal else "\n", file=sys.stderr, flush=True)
        if terminal and shown:
            print(file=sys.stderr)

    def __enter__(self) -> Ticker:
        self.thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.over.set()
        self.thread.join()


def measured_plan(shape: transformer.Shape, path: pathlib.Path, modules: list[str], requests: int, steps: int,
                  slow: float) -> Plan:
    """The plan for virtual Orins in virtual time. Each kind of layer is counted once, on the first module."""
    cluster, places = virtual_orins(modules)
    environment = next(iter(places.values())).environment if places else virtual_environment()
    inputs = [np.full(ROWS, i, np.int32) for i in range(steps)]
    counted = virtual.measured_model(transformer.model(shape), transformer.factory(shape, path), inputs, environment, items=ROWS,
                                     twins=range(2, shape.blocks + 1))
    return plan(counted, virtual.clocked_cluster(cluster, slow), batch=ROWS * requests, micro_batches=requests, objective="step")


def spread(made: Plan, modules: list[str]) -> Plan:
    """The best plan that uses all devices. A model this small is fastest on one device, which would show nothing about a pool."""
    layers = len(made.model.layers)
    found = [evaluate(made.cluster, made.work, tuple(zip([0, *cuts], [*cuts, layers], nodes, strict=True)), "step", True)
             for cuts in itertools.combinations(range(1, layers), len(modules) - 1) for nodes in itertools.permutations(made.cluster.nodes)]
    return min((p for p in found if p.fits), key=lambda p: p.step)


def run(args: argparse.Namespace) -> int:
    """Makes a plan, loads it, decodes and compares."""
    shape, modules = transformer.Shape(), args.devices.split(",")
    asked, steps = prompts(args.requests, shape), PROMPT - 1 + args.tokens
    with tempfile.TemporaryDirectory(prefix="tegrarm-pool-") as folder:
        path = pathlib.Path(folder, "weights.safetensors")
        transformer.write_weights(path, shape)
        made = spread(measured_plan(shape, path, modules, args.requests, steps, args.slow), modules)
        print(made.table())
        split = tuple((s.start, s.stop, s.node.name) for s in made.stages)
        with Pool(made.model, transformer.factory(shape, path), modules=modules, address=args.address, batch=made.work.batch,
                  split=None if args.address else split, micro_batches=args.requests,
                  limits=Limits(hang_seconds=120), metrics_port=args.metrics_port) as pool, Ticker(pool):
            if pool.metrics is not None:
                print(f"figures for Prometheus: {pool.metrics.address}")
            pool.ready(600)
            virtual.start_clock(pool, [np.full(ROWS, i, np.int32) for i in range(steps)], args.slow)
            if args.kill:
                hand = pool.health.up()[1 % len(modules)]
                pool.ray.get(hand.actor.misbehave.remote("kill", args.requests * steps // 2))
            said = decode_all(pool, asked, args.tokens)
            for _, text in pool.events:
                print(text)
            compare(made, pool, steps, args.output)
        for prompt, rows in zip(asked, said, strict=True):
            print(f"prompt {prompt.tolist()} -> {rows}")
    return 0


def compare(made: Plan, pool: Pool, steps: int, output: str | None) -> float:
    """Prints predicted and measured values for each stage and in all. Returns the ratio of the throughputs."""
    predicted = simulate(made, passes=steps, record=True)
    spans = virtual.spans(pool)
    print(f"{'stage':>5} {'device':16} {'predicted':>12} {'measured':>12}   (virtual time of a micro-batch)")
    for number, stage in enumerate(made.stages):
        mine = [s.end - s.start for s in spans if s.track == stage.node.name and s.end > s.start]
        print(f"{number:>5} {stage.node.name:16} {stage.seconds * 1e6:>9.1f} us {np.mean(mine) * 1e6 if mine else 0:>9.1f} us")
    measured = virtual.throughput(pool)
    print(f"throughput in virtual time: predicted {predicted.steady_throughput:.0f}, measured {measured:.0f} {made.model.unit}s/s, "
          f"ratio {measured / predicted.steady_throughput:.3f}")
    if output:
        for what, found in (("predicted", predicted.spans), ("measured", spans)):
            timeline.write(found, f"{made.model.name}, {what}", pathlib.Path(f"{output}-{what}"))
    return measured / predicted.steady_throughput
