"""Compares the planner with trying everything and with published splits, and runs it at its largest size."""

import itertools
import json
import os
import time

import numpy as np
import pytest

pytest.importorskip("scipy")

from instances import best_of_all, cluster, instance  # noqa: E402

from tegrarm.pool import baselines, ilp, plan, published, replan  # noqa: E402
from tegrarm.pool.chain import Solver  # noqa: E402
from tegrarm.pool.cluster import Cluster, Link, Node, named, read  # noqa: E402
from tegrarm.pool.costs import Work, groups  # noqa: E402
from tegrarm.pool.model import Layer, Model  # noqa: E402
from tegrarm.pool.planner import NoPlan, evaluate  # noqa: E402
from tegrarm.pool.profile import Profile, catalogue  # noqa: E402

LONG = os.environ.get("TEGRARM_TEST_POOL") == "long"


@pytest.mark.parametrize("first", range(0, 1000 if LONG else 100, 50))
def test_exact_as_trying_everything(first):
    impossible = 0
    for seed in range(first, first + 50):
        where, work = instance(seed)
        best = best_of_all(where, work)
        for objective, measure in (("throughput", "bottleneck"), ("latency", "latency"), ("step", "step")):
            if best is None:
                impossible += 1
                with pytest.raises(NoPlan):
                    plan(work.model, where, batch=work.batch, micro_batches=work.micro_batches, objective=objective)
                continue
            made = plan(work.model, where, batch=work.batch, micro_batches=work.micro_batches, objective=objective)
            assert made.exact and made.fits
            measure = "step" if objective == "throughput" and work.model.autoregressive else measure
            assert getattr(made, measure) == pytest.approx(best[measure], rel=1e-6), (seed, objective)
    assert impossible < 75, "most instances should have a solution"


def test_in_order_is_never_better_than_exact_and_valid():
    """Compares the solver for many devices with the exact one, on problems that both can solve."""
    same = 0
    for seed in range(60):
        where, work = instance(seed)
        solver = Solver(where, work)
        for objective in ("bottleneck", "latency"):
            exact, ordered = solver._by_counts(objective, float("inf")), solver._by_orders(objective, float("inf"))
            if exact is None:
                assert ordered is None
                continue
            if ordered is None:
                continue
            made = evaluate(where, work, ordered.stages)
            assert made.fits and len({n.name for _, _, n in ordered.stages}) == len(ordered.stages)
            assert getattr(made, objective) == pytest.approx(ordered.value, rel=1e-9)
            assert ordered.value >= exact.value * (1 - 1e-9)
            same += ordered.value <= exact.value * (1 + 1e-9)
    assert same > 60


@pytest.mark.parametrize("seed", range(40 if LONG else 6))
def test_graph_as_trying_everything(seed):
    where, work = instance(1000 + seed, devices=3, layers=5, graph=True)
    need, best = ilp._layer_bytes(work), None
    for assignment in itertools.product(range(3), repeat=5):
        if any(sum(need[v] for v in range(5) if assignment[v] == d) > where.nodes[d].profile.budget for d in range(3)):
            continue
        feeds = {(assignment[u], assignment[v]) for u, v in work.model.all_edges if assignment[u] != assignment[v]}
        if not any(all(order.index(a) < order.index(b) for a, b in feeds) for order in itertools.permutations(range(3))):
            continue
        pace = ilp.graph_pace(where, work, list(assignment))
        best = pace if best is None else min(best, pace)
    if best is None:
        with pytest.raises(NoPlan):
            ilp.dag(where, work)
        return
    found = ilp.dag(where, work)
    assert found.exact and found.bottleneck == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(60 if LONG else 8))
def test_replicas_as_trying_everything(seed):
    where, work = instance(2000 + seed, devices=4, layers=4)
    solver, devices, layers = Solver(where, work), range(len(where.nodes)), len(work.model.layers)
    group_of = {n.name: g for g, group in enumerate(groups(where)) for n in group.nodes}
    best = 0.0
    for count in range(1, layers + 1):
        for cuts in itertools.combinations(range(1, layers), count - 1):
            spans = list(itertools.pairwise([0, *cuts, layers]))
            for assignment in itertools.product(range(-1, count), repeat=len(devices)):
                paces = [sum(ilp.replica_rate(where, solver, where.nodes[d], group_of[where.nodes[d].name], *span)
                             for d in devices if assignment[d] == s) for s, span in enumerate(spans)]
                best = max(best, min(paces))
    if best == 0:
        with pytest.raises(NoPlan):
            ilp.replicated(where, work)
        return
    assert ilp.replicated(where, work).bottleneck == pytest.approx(1 / best, rel=1e-5)


def test_two_equal_devices_share_a_stage_that_cannot_be_cut():
    one = Model("one", (Layer("only", 1e6, 10.0, {"float16": 1e10}),))
    found = ilp.replicated(read("2*orin-nx-16gb@10gbe"), Work(one, 2, 2))
    alone = plan(one, read("orin-nx-16gb"), batch=2, micro_batches=2)
    assert len(found.parts[0][1]) == 2 and found.bottleneck == pytest.approx(alone.bottleneck / 2)


@pytest.mark.parametrize("model,batch,where", [(m, b, w) for m, b, ws in baselines.CASES for w in ws][:: 1 if LONG else 7])
def test_never_slower_than_the_splits_in_use(model, batch, where):
    found = baselines.compare(published(model), named()[where], batch=batch)
    assert found.planned.fits
    for other in (found.memory, found.even):
        if other.fits:
            assert found.planned.step <= other.step * (1 + 1e-9)


def test_unequal_clusters_gain():
    found = baselines.compare(published("llama3-8b-q4.5"), named()["orin-and-card"], batch=8)
    assert found.memory.fits and baselines.Comparison.gain(found.planned, found.memory) > 1.3
    assert found.even.fits and baselines.Comparison.gain(found.planned, found.even) > 1.3


def test_equal_devices_are_split_equally():
    layers = tuple(Layer(f"l{i}", 1e8, 1e3, {"float16": 1e9}) for i in range(8))
    made = plan(Model("even", layers), read("4*orin-nx-16gb@10gbe"), batch=8, micro_batches=8)
    assert [s.stop - s.start for s in made.stages] == [2, 2, 2, 2]


def test_a_device_that_leaves_is_planned_around_and_one_that_joins_is_used():
    model, where = published("llama3-70b-q4.5"), named()["desk-10g"]
    old = plan(model, where, batch=8)
    gone = old.stages[0].node
    new = replan(old, where.without(gone.name))
    assert gone.name not in {s.node.name for s in new.plan.stages} and new.plan.fits
    assert sum(m.weight_bytes for m in new.moves) > 0 and new.seconds > 0
    for move in new.moves:
        stage = next(s for s in new.plan.stages if s.node == move.node)
        assert set(move.layers) <= set(range(stage.start, stage.stop))
    back = replan(new.plan, where.without(gone.name).joined_by(gone))
    assert back.plan.step == pytest.approx(old.step)


def test_what_does_not_fit_is_said():
    with pytest.raises(NoPlan, match=r"needs 1\d\d\.\d GiB with a batch of 1.*have 6\.0 GiB"):
        plan(published("llama3-70b"), read("orin-nano-8gb"))
    big = Model("big", (Layer("huge", 7e9, 1.0, {"float16": 1.0}), Layer("small", 1.0, 1.0, {"float16": 1.0})))
    with pytest.raises(NoPlan, match="the largest, huge"):
        plan(big, read("2*orin-nano-8gb"))


def test_each_stage_says_what_limits_it():
    nx, wire = catalogue()["orin-nx-16gb"], Link(1e6, 0.0, "slow")
    where = Cluster((Node("a", nx, "a"), Node("b", nx, "b")), wire)
    for work, limit in (({"weight_bytes": 4e9, "matrix_work": {"float16": 1.0}}, "memory bandwidth"),
                        ({"weight_bytes": 1.0, "matrix_work": {"float16": 1e13}}, "arithmetic"),
                        ({"weight_bytes": 1.0, "matrix_work": {"float16": 1.0}}, "launches")):
        model = Model("m", (Layer("l", activation_bytes=1.0, **work),))
        assert plan(model, where).stages[0].limit == limit
    layer = Layer("l", 9e9, 1e6, {"float16": 1.0})
    made = plan(Model("m", (layer, layer)), where)
    assert made.stages[1].limit == "the slow link in front of it" and "slow link" in made.table()


def _thousand(different):
    rng, kinds, nodes = np.random.default_rng(1), list(catalogue().values())[:5], []
    for i in range(1000):
        kind = kinds[i % len(kinds)]
        if different:
            kind = Profile.from_json({**kind.to_json(), "local_bandwidth": kind.local_bandwidth * rng.uniform(0.8, 1.2)})
        nodes.append(Node(f"n{i}", kind, f"rack{i // 40}"))
    links = {(f"rack{i}", f"rack{i}"): Link(2.9e9, 3e-5, "25gbe") for i in range(25)}
    return Cluster(tuple(nodes), Link(1.17e9, 6e-5, "10gbe"), links, "thousand")


@pytest.mark.skipif(not LONG, reason="has a time limit: make test-pool")
@pytest.mark.parametrize("different", [False, True])
def test_a_thousand_devices_and_two_hundred_layers_in_ten_seconds(different):
    layers = tuple(Layer(f"l{i}", 3e8, 16384.0, {"float16": 6e8 * (1 + i % 3)}) for i in range(200))
    started = time.perf_counter()
    made = plan(Model("deep", layers), _thousand(different), batch=64, micro_batches=64)
    took = time.perf_counter() - started
    print(f"\n1000 devices{', all different' if different else ''}, 200 layers: {took:.2f} s, {len(made.stages)} stages")
    assert made.fits and len(made.stages) > 50 and took < 10


def test_cluster_forms_agree(tmp_path):
    where = cluster(np.random.default_rng(3), 4)
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(where.to_json()))
    assert read(str(path)) == where
    assert [n.profile.name for n in read("2*l4+rtx-4090@nvlink4").nodes] == ["l4", "l4", "rtx-4090"]
    with pytest.raises(ValueError, match="no profile 'orin'"):
        read("2*orin")
