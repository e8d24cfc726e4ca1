"""Launches per second in `tegrarm top`: who counts them, in which process, and what is not counted."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import TEGRARM_SIM
from test_top import needs_sim

from tegrarm import counts, top

DELETED = "/memfd:tegrarm-counters (deleted)"


def process(root: pathlib.Path, pid: int, files: list[bytes], status: str = "") -> pathlib.Path:
    """The directory of a process that has loaded the library and shows these counts."""
    place = root / "proc" / str(pid)
    (place / "fd").mkdir(parents=True)
    (place / "maps").write_text("7f00-7f01 r-xp 0 0:0 1 /usr/lib/libtegrarm.so.0\n")
    (place / "status").write_text(f"Name:\tprogram\n{status}")
    for number, contents in enumerate(files):
        kept = root / f"{pid}-{number}-memfd:tegrarm-counters"
        kept.write_bytes(contents)
        (place / "fd" / str(number)).symlink_to(kept)
    return place


def page(owner: int, source: int, count: int) -> bytes:
    return counts.WORDS.pack(counts.MAGIC, owner, source, count).ljust(4096, b"\0")


def of(place: pathlib.Path):
    return counts.of_process(place, (place / "status").read_text())


def test_the_gpu_knows_more_than_the_library(tmp_path):
    assert of(process(tmp_path, 42, [page(42, counts.LIBRARY, 5), page(42, counts.LIBRARY, 2)])) == (7, "library")
    assert of(process(tmp_path, 43, [page(43, counts.LIBRARY, 5), page(43, counts.GPU, 9)])) == (9, "virtual GPU")


def test_what_is_not_of_the_process_does_not_count(tmp_path):
    """A forked child has its parent's file. In a container a process has another number."""
    assert of(process(tmp_path, 42, [page(41, counts.LIBRARY, 5)])) is None
    assert of(process(tmp_path, 4242, [page(17, counts.LIBRARY, 5)], "NSpid:\t4242\t17\n")) == (5, "library")
    assert of(process(tmp_path, 17, [page(17, counts.LIBRARY, 5)], "NSpid:\t17\t3\n")) is None


def test_a_file_that_is_something_else(tmp_path):
    others = [b"", b"short", b"\0" * 4096, page(42, 77, 5), counts.WORDS.pack(b"tegrarm9", 42, counts.LIBRARY, 5)]
    place = process(tmp_path, 42, others)
    (place / "fd" / "77").symlink_to(DELETED)  # it ended between two looks
    assert of(place) is None


def test_a_rate_is_the_difference_of_two_looks(tmp_path):
    place = process(tmp_path, 42, [page(42, counts.LIBRARY, 100)])
    clock = iter([10.0, 12.0, 13.0, 14.0]).__next__
    watch = top.Watch(top.Files(tmp_path), "board")

    def rate(count: int, source: int = counts.LIBRARY):
        (tmp_path / "42-0-memfd:tegrarm-counters").write_bytes(page(42, source, count))
        seen = watch.look(clock)
        return seen["processes"][0]["launches_per_second"], top.text(seen).splitlines()[-1].split()[6], top.prometheus(seen)

    assert rate(100)[:2] == (None, "-")
    value, shown, lines = rate(600)
    assert (value, shown) == (250.0, "250")
    assert 'tegrarm_process_launches_total{pid="42",name="program"} 600' in lines
    assert 'tegrarm_process_launches_per_second{pid="42",name="program"} 250.0' in lines
    assert "# TYPE tegrarm_process_launches_total counter" in lines
    assert rate(3)[:2] == (None, "-"), "it began anew: the device was closed and opened"
    assert rate(9, counts.GPU)[:2] == (None, "-"), "another count is no difference"
    assert place.exists()


PROGRAM = """
import ctypes, json, os, pathlib, subprocess, sys
from tegrarm import counts

def me():
    command = [sys.executable, "-m", "tegrarm", "top", "--json", "-n", "1", "-d", "0.01"]
    seen = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    [mine] = [p for p in seen["processes"] if p["pid"] == os.getpid()]
    return mine["launches"], mine["counted_by"]

def library():
    place = pathlib.Path(f"/proc/{os.getpid()}")
    return counts.of_process(place, (place / "status").read_text())
"""
RUNTIME = PROGRAM + """
import tegrarm
SOURCE = 'extern "C" __global__ void one(float *x) { x[threadIdx.x] = 1.0f; }'
def work(times):
    with tegrarm.Device() as device, device.compile(SOURCE) as module, device.queue() as queue:
        x = device.empty((4,), "float32")
        for _ in range(times): module.one[1, 4](x).wait()
        for _ in range(times): module.one[1, 4, 0, queue](x).wait()
        return me(), library()
"""
NV = PROGRAM + """
import tegrarm.tinygrad
from tinygrad import Tensor
for i in range(3): (Tensor([1.0, 2.0]).realize() + i).realize().tolist()
print(json.dumps([me(), library()]))
"""


def run(code: str, *below: str, **env: str) -> list:
    done = subprocess.run([*below, sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TEGRARM_BACKEND": "sim", **env})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SUPERVISED = (str(TEGRARM_SIM), "run", "--")
IN_PROCESS = pytest.param((), {}, id="in process")
ON_NODES = pytest.param(SUPERVISED, {"TEGRARM_BACKEND": "nvgpu"}, id="tegrarm-sim run", marks=needs_sim)


@pytest.mark.parametrize(("below", "env"), [IN_PROCESS, ON_NODES])
def test_launches_of_the_runtime(below, env):
    """The device is opened twice: what was counted before belongs to the process, whoever counts."""
    (first, _), (second, _) = run(RUNTIME + "print(json.dumps([work(5), work(2)]))", *below, **env)
    assert first == [10, "virtual GPU"] and second == [14, "virtual GPU"]


@needs_sim
def test_launches_of_the_runtime_as_on_a_board():
    """The files of the process alone, which is all that a board has."""
    _, mine = run(RUNTIME + "print(json.dumps(work(5)))", *SUPERVISED, TEGRARM_BACKEND="nvgpu")
    assert mine == [10, "library"]


@pytest.mark.parametrize(("below", "env"), [IN_PROCESS, ON_NODES])
def test_what_a_program_submits_itself_only_the_gpu_counts(below, env):
    (launches, by), mine = run(NV, *below, DEV="TEGRA+NV", **env)
    assert launches >= 3 and by == "virtual GPU"
    assert mine == ([launches, by] if not below else None)


def test_a_forked_child_counts_for_itself():
    child = RUNTIME + """
work(3)
read, write = os.pipe()
if not os.fork():
    os.write(write, json.dumps([library(), *work(1)]).encode())
    os._exit(0)
os.close(write)
print(json.dumps([json.loads(os.fdopen(read).read()), library()]))
"""
    (before, seen, mine), parents = run(child)
    assert before is None, "it has its parent's file, which is not its own"
    assert seen == [2, "virtual GPU"] and mine == [2, "virtual GPU"]
    assert parents == [6, "virtual GPU"]


@needs_sim
def test_a_process_that_may_make_no_files_works():
    """The limit would end a program that makes a file larger than that. The library then counts for itself."""
    code = RUNTIME + "print(json.dumps(work(1)))"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))"
    seen, mine = run(f"{limit}\n{code}", *SUPERVISED, TEGRARM_BACKEND="nvgpu")
    assert seen == [2, "virtual GPU"] and mine is None
