"""Workers that send nonsense, processes that are killed and stopped from outside, and strangers at the pool's ports."""

import contextlib
import os
import pathlib
import signal
import socket

import numpy as np
import pytest

pytest.importorskip("ray")

from tegrarm.pool import Pool, affine  # noqa: E402
from tegrarm.pool.runtime import Limits  # noqa: E402
from tegrarm.pool.stage import Packet, wrong_packet, wrong_report  # noqa: E402

LAYERS, SPLIT = 5, ((0, 3, "agx-orin-0"), (3, 5, "orin-nx-1"))
pytestmark = pytest.mark.timeout(600)
DATA = np.arange(4, dtype=np.uint32)
REPORT = {"busy": 0.0, "with": -1, "loaded": 1.0, "runs": 3, "seconds": 0.5, "bytes": 16, "pid": 7, "sessions": 0}


@pytest.mark.parametrize(("value", "says"), [
    (None, "NoneType, which is no packet"), ("the answer", "str, which is no packet"), (DATA, "ndarray, which is no packet"),
    (Packet([1, 2]), "without an array"), (Packet(np.array([None])), "without an array"),
    (Packet(DATA, ready=float("nan")), "times are no numbers"), (Packet(DATA, spans=((0, "a", 1),)), "times are no numbers"),
    (Packet(DATA, number=8), "request 8 in place of that to request 7"), (Packet(DATA, number=7, session="x"), "request 7"),
    (Packet(DATA, number=7, step=1), "request 7"),
], ids=str)
def test_nonsense_has_a_name(value, says):
    assert says in wrong_packet(value, 7)


def test_a_packet_and_a_report_are_taken():
    assert wrong_packet(Packet(DATA, "s", 1, 2, 7, 0.5, ((0, 0.0, 0.5),)), 7, "s", 2) == "" == wrong_report(REPORT)
    assert wrong_report({"pid": 7, "device": "agx-orin-0"}) == "", "what a worker says when it has loaded"


@pytest.mark.parametrize("report", [None, [], {**REPORT, "busy": "never"}, {**REPORT, "pid": "1"}, {**REPORT, "pid": 1.5},
                                    {**REPORT, "busy": float("nan")}, {**REPORT, "runs": -5}, {**REPORT, "up": True}], ids=str)
def test_a_report_is_numbers(report):
    assert wrong_report(report)


@pytest.fixture(scope="module")
def pool():
    pytest.importorskip("nvidia.cuda_nvrtc")
    limits = Limits(hang_seconds=5, ping_seconds=0.5, restarts=10_000, attempts=6, queue=8)
    with Pool(affine.model(LAYERS), affine.factory(), split=SPLIT, limits=limits, metrics_port=0) as made:
        made.ready(300)
        yield made


def answers(pool, count=6):
    data = [np.arange(256, dtype=np.uint32) + i for i in range(count)]
    for x, y in zip(data, pool.map(data), strict=True):
        np.testing.assert_array_equal(y, affine.expected(x, LAYERS))


@pytest.mark.parametrize(("kind", "stage"), [("lie", 0), ("lie", 1), ("swap", 1), ("babble", 0)])
def test_who_sends_nonsense_is_replaced_and_nobody_else(pool, kind, stage):
    pool.ready(300)
    before, hands = pool.health.replaced, list(pool.health.hands)
    pool.ray.get(hands[stage].actor.misbehave.remote(kind, 0))
    answers(pool)
    for _ in range(2000):  # a report is asked for twice a second
        if pool.health.hands != hands:
            break
        answers(pool, 1)
    assert pool.health.replaced == before + 1, pool.events[-3:]
    pool.ready(300)
    assert [new is old for new, old in zip(pool.health.hands, hands, strict=True)] == [number != stage for number in range(2)]
    assert any(word in pool.events[-1][1] for word in ("sent nonsense", "answers with")), pool.events[-1]
    assert not pool.broken


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
def test_a_worker_that_somebody_kills_or_stops(pool, number):
    pool.ready(300)
    before = pool.health.replaced
    os.kill(pool.health.hands[1].told["pid"], number)
    answers(pool)
    assert pool.health.replaced == before + 1 and not pool.broken


GREETINGS = (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4096, os.urandom(4096), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64, b"")


def ports_of_ray() -> set[int]:
    """The ports at which processes of this pool's Ray listen: those of our children."""
    ours, sockets, session = set(), set(), os.getsid(0)
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, _ = stat.read_text().rpartition(") ")
            if os.getsid(int(stat.parent.name)) == session and any(word in name for word in ("gcs_server", "raylet", "ray::", "python")):
                ours.add(stat.parent)
    for process in ours:
        for fd in process.glob("fd/*"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(fd))
    rows = [line.split() for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_a_stranger_at_every_port_is_nobody(pool):
    pool.ready(300)
    before, ports = pool.health.replaced, ports_of_ray()
    assert len(ports) > 2, "Ray listens"
    held = []
    for port in ports:
        for greeting in GREETINGS:
            with contextlib.suppress(OSError):
                one = socket.create_connection(("127.0.0.1", port), timeout=5)
                held.append(one)
                one.sendall(greeting)
    answers(pool)
    for one in held:
        one.close()
    answers(pool)
    assert pool.health.replaced == before and not pool.broken
