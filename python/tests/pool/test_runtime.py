"""The pool on virtual Orins, each in a process of its own: answers, faults, back-pressure, deadlines and cancellation."""

import os
import random
import time
import urllib.request

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("nvidia.cuda_nvrtc")

from tegrarm.pool import Pool, RequestFailed, affine  # noqa: E402
from tegrarm.pool.requests import Cancelled, DeadlineExceeded, Overloaded  # noqa: E402
from tegrarm.pool.runtime import Limits  # noqa: E402
from tegrarm.pool.stage import Part  # noqa: E402

LONG = os.environ.get("TEGRARM_TEST_POOL") == "long"
RUNS = 200 if LONG else 5
LAYERS, SPLIT = 7, ((0, 3, "agx-orin-0"), (3, 5, "orin-nx-1"), (5, 7, "orin-nano-2"))
FAULTS = ("kill", "gpu", "hang", "link", "stop")

pytestmark = pytest.mark.timeout(7200 if LONG else 600)


def arrays(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2**32, 256, dtype=np.uint32) for _ in range(count)]


@pytest.fixture(scope="module")
def pool():
    # The limit is long, because the machine may be busy. A test that hangs takes this long.
    limits = Limits(hang_seconds=5, ping_seconds=0.5, restarts=10_000, attempts=6, queue=8)
    with Pool(affine.model(LAYERS), affine.factory(), split=SPLIT, limits=limits, metrics_port=0) as made:
        made.ready(300)
        yield made


def break_one(pool, kind, stage, after):
    hand = pool.health.hands[stage]
    pool.ray.get(hand.actor.misbehave.remote(kind, after))


def test_answers_are_the_models_and_in_order(pool):
    data = arrays(40)
    for x, y in zip(data, pool.map(data), strict=True):
        np.testing.assert_array_equal(y, affine.expected(x, LAYERS))


def test_stages_are_processes_of_their_own(pool):
    time.sleep(1.5)
    pids = {row["pid"] for row in pool.loads()}
    assert len(pids) == 3 and os.getpid() not in pids


def scraped(pool):
    """The figures at the pool's address, read by Prometheus's own library: (name, labels) -> value."""
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(pool.metrics.address, timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_prometheus_reads_the_pools_figures(pool):
    before, data = scraped(pool), arrays(20, 9)
    list(pool.map(data))
    answered = ("tegrarm_pool_requests_total", ("end", "answered"))
    after = scraped(pool)
    assert after[answered] == before[answered] + len(data) == pool.answers.answered
    assert after["tegrarm_pool_waiting",] == after["tegrarm_pool_flying",] == 0
    stages = [(("device", name), ("layers", f"{a}-{b}"), ("stage", str(k))) for k, (a, b, name) in enumerate(SPLIT)]
    assert all(after[("tegrarm_pool_loaded", *labels)] == 1 for labels in stages)

    def counted(what):
        now = scraped(pool)
        return [now[(f"tegrarm_pool_stage_{what}_total", *labels)] for labels in stages]

    # A worker reports what it did when it is asked the next time.
    runs = [row["runs"] for row in sorted(pool.loads(), key=lambda row: row["stage"])]
    for _ in range(600):
        if min(counted("micro_batches")) >= min(runs) + 1 or all(counted("bytes_in")):
            break
        time.sleep(0.1)
    assert all(counted("micro_batches")) and all(counted("busy_seconds")) and all(counted("bytes_in"))


def test_links_are_measured_over_ray(pool):
    found = pool.measured_links()
    assert len(found.links) == 6 and all(link.bandwidth > 1e6 and 0 < link.latency < 60 for link in found.links.values())


def test_a_session_remembers_and_a_replaced_worker_learns_it_again(pool):
    session, before = pool.session(), pool.health.replaced
    for step, x in enumerate(arrays(6, 1)):
        if step in (2, 4):
            break_one(pool, "kill", step // 2 - 1, 0)
        np.testing.assert_array_equal(pool.submit(x, session=session).result(200), affine.expected(x, LAYERS, step))
    assert pool.health.replaced == before + 2
    pool.end(session)
    with pytest.raises(RequestFailed, match="has ended"):
        pool.submit(arrays(1)[0], session=session)


def test_two_sessions_and_plain_requests_beside_each_other(pool):
    sessions, data = [pool.session(), pool.session()], arrays(8, 2)
    for step, x in enumerate(data):
        futures = [pool.submit(x, session=s) for s in sessions] + [pool.submit(x)]
        for future, before in zip(futures, (step, step, 0), strict=True):
            np.testing.assert_array_equal(future.result(200), affine.expected(x, LAYERS, before))
    pending = pool.submit(data[0], session=sessions[0])
    with pytest.raises(RequestFailed, match="has a step under way"):
        pool.submit(data[0], session=sessions[0])
    pending.result(200)
    for s in sessions:
        pool.end(s)


@pytest.mark.parametrize("seed", range(RUNS))
def test_whatever_breaks_every_request_is_answered_once_or_failed_by_name(pool, seed):
    chance = random.Random(seed)
    kind, stage, after = FAULTS[seed % len(FAULTS)], chance.randrange(3), chance.randrange(8)
    answered, failed, dropped = pool.answers.answered, pool.answers.failed, pool.answers.dropped
    before, data, calls = pool.health.replaced, arrays(12, seed), []
    pool.ready(300)
    break_one(pool, kind, stage, after)
    futures = [pool.submit(x) for x in data]
    for future in futures:
        future.add_done_callback(calls.append)
    session, steps = pool.session(), 0
    for step, x in enumerate(data[:3]):
        steps += 1
        try:
            np.testing.assert_array_equal(pool.submit(x, session=session).result(200), affine.expected(x, LAYERS, step))
        except RequestFailed as error:
            assert f"of session {session.name}" in str(error)
            break
    pool.end(session)
    for number, (x, future) in enumerate(zip(data, futures, strict=True)):
        try:
            np.testing.assert_array_equal(future.result(200), affine.expected(x, LAYERS), err_msg=f"{kind} at {stage}, request {number}")
        except RequestFailed as error:
            assert str(error).startswith("request ") and "stage" in str(error), error
    assert len(calls) == len(data), "every future ends once"
    assert pool.answers.answered - answered + pool.answers.failed - failed == len(data) + steps
    assert pool.answers.dropped == dropped
    assert pool.health.replaced == before + 1, pool.events[-3:]
    assert not pool.flying and not pool.queue


def test_a_request_that_breaks_every_worker_fails_with_the_reasons(pool):
    limit = pool.limits
    pool.limits = Limits(hang_seconds=5, ping_seconds=0.5, restarts=10_000, attempts=2, queue=8)
    try:
        break_one(pool, "gpu", 1, 0)
        future = pool.submit(arrays(1)[0])
        while pool.health.all_up() and not future.done():
            time.sleep(0.01)
        for _ in range(100_000):  # The new worker also breaks as soon as it exists.
            if future.done():
                break
            if pool.health.all_up() and not getattr(pool.health.hands[1], "broken", False):
                pool.health.hands[1].broken = True
                pool.health.hands[1].actor.misbehave.remote("gpu", 0)
            time.sleep(0.0005)
        try:
            future.result(100)
        except RequestFailed as error:
            for part in ("failed after 2 attempts", "outside all buffers of the device", "orin-nx-1"):
                assert part in str(error)
    finally:
        pool.limits = limit
        time.sleep(1)


def test_a_refused_input_fails_at_once_and_only_itself(pool):
    pool.ready(100)
    for hand in pool.health.hands:
        hand.actor.misbehave.remote("kill", 10**9)  # This ends a fault that an earlier test left armed.
    replaced, good = pool.health.replaced, arrays(1)[0]
    bad, fine = pool.submit(np.ones(4, np.float32)), pool.submit(good)
    with pytest.raises(RequestFailed, match="stage 0 on agx-orin-0 refused its input: ValueError: .*float32, not uint32"):
        bad.result(100)
    np.testing.assert_array_equal(fine.result(100), affine.expected(good, LAYERS))
    assert pool.health.replaced == replaced


def test_deadlines_and_cancellation(pool):
    session = pool.session()
    first = arrays(1)[0]
    pool.submit(first, session=session).result(100)
    break_one(pool, "hang", 0, 0)
    late, gone = pool.submit(first, session=session, deadline=0.5), pool.submit(first)
    with pytest.raises(DeadlineExceeded, match=r"request \d+ of session .* passed its deadline"):
        late.result(100)
    assert gone.cancel()
    np.testing.assert_array_equal(pool.submit(first).result(200), affine.expected(first, LAYERS))
    # For the session, the step that was given up never happened.
    np.testing.assert_array_equal(pool.submit(first, session=session).result(200), affine.expected(first, LAYERS, 1))
    pool.end(session)


def test_back_pressure(pool):
    pool.ready(100)
    break_one(pool, "hang", 0, 0)
    futures = []
    with pytest.raises(Overloaded, match="8 requests wait already"):
        for x in arrays(60, 5):
            futures.append(pool.submit(x, wait=False))
    assert len(futures) <= pool.limits.queue + pool.window + 1
    for x, future in zip(arrays(60, 5), futures, strict=False):
        np.testing.assert_array_equal(future.result(200), affine.expected(x, LAYERS))


def test_a_device_that_breaks_again_and_again_is_planned_around(pool):
    limit = pool.limits
    pool.limits = Limits(hang_seconds=5, ping_seconds=0.5, restarts=pool.health.restarts.get("orin-nx-1", 0), attempts=6, queue=8)
    try:
        break_one(pool, "kill", 1, 2)
        data = arrays(8, 6)
        for x, y in zip(data, pool.map(data), strict=True):
            np.testing.assert_array_equal(y, affine.expected(x, LAYERS))
        assert "orin-nx-1" not in [s.node.name for s in pool.plan.stages]
        pool.join(pool.places["orin-nx-1"])
        for x, y in zip(data, pool.map(data), strict=True):
            np.testing.assert_array_equal(y, affine.expected(x, LAYERS))
        assert "orin-nx-1" in [n.name for n in pool.cluster.nodes]
    finally:
        pool.limits = limit


def test_closing_ends_what_waits(pool):
    pool.ready(100)
    pool.health.hands[0].actor.misbehave.remote("hang", 0)
    time.sleep(0.5)
    future = pool.submit(arrays(1)[0])
    pool.close()
    with pytest.raises(Cancelled, match="the pool was closed"):
        future.result(1)


def test_the_base_package_imports_none_of_it(python):
    out = python("import sys, tegrarm, tegrarm.rm, tegrarm.trace, tegrarm.__main__, tegrarm.pool\n"
                 "print([m for m in ('ray', 'scipy', 'simpy', 'ortools', 'numpy') if m in sys.modules])")
    assert out == "[]\n"


def test_a_part_knows_its_ends():
    assert Part(0, 2, 4, "d", True).first and not Part(0, 2, 4, "d", True).last and Part(2, 4, 4, "d", True).last




def test_activations_are_not_copied_out_of_the_object_store():
    """What a stage is given lies in the memory that Ray shares between processes: not its own, and not to be written."""
    size = 1 << 20

    def how_it_came(part):  # in here, so that it travels to the workers as it is and not as a module's name
        def look(data, _memory):
            answer = np.zeros(data.shape, np.uint32)
            answer[:3 * part.start] = data[:3 * part.start]
            answer[3 * part.start:3 * part.start + 3] = [data.flags.writeable, data.flags.owndata, data.size]
            return answer
        return look

    with Pool(affine.model(3, size), how_it_came, split=tuple((k, k + 1, SPLIT[k][2]) for k in range(3))) as made:
        made.ready(300)
        answer = made.submit(np.zeros(size, np.uint32)).result(300)
    for k in range(1, 3):
        assert answer[3 * k:3 * k + 3].tolist() == [False, False, size], k


def test_a_part_that_cannot_be_loaded_is_said():
    def cannot_load(_part):
        raise OSError("the weights are not there")

    with Pool(affine.model(2), cannot_load, modules=["orin-nx", "orin-nano"]) as made:
        with pytest.raises(RequestFailed, match="could not load its layers: OSError: the weights are not there"):
            made.ready(300)
        with pytest.raises(RequestFailed, match="was not taken: .*the weights are not there"):
            made.submit(np.ones(1))
