"""The table of odd environments in the documentation: each row is made and tried."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM
from odd_environments import ENVIRONMENTS, SKIP

PAGE = ROOT / "docs" / "odd-environments.md"
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
WAYS = {"in process": ("sim", []), "below `tegrarm-sim run`": ("nvgpu", [str(TEGRARM_SIM), "run", "--"])}


@pytest.fixture(scope="session")
def vecadd():
    """A program that allocates three buffers and launches one kernel. One of the environments has another /tmp, so it is not there."""
    release = TEGRARM_SIM.parent
    program = release.parent / "odd"
    source = pathlib.Path(__file__).with_name("odd.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", source, "-o", program, f"-I{ROOT / 'include'}", f"-L{release}",
                    "-ltegrarm", f"-Wl,-rpath,{release}"], check=True)
    return [str(program), str(ROOT / "tests/data/cubin/vecadd.nvrtc.cubin")]


def run(environment, way, program):
    """The exit status of the program, and what it printed."""
    backend, before = WAYS[way]
    env = {**os.environ, "TEGRARM_BACKEND": backend}
    command = [sys.executable, pathlib.Path(__file__).with_name("odd_environments.py"), environment, *before, *program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_environment_is_as_the_page_says(row, way, vecadd):
    expected = row[1 + list(WAYS).index(way)]
    status, said = run(row[0], way, vecadd)
    if status == SKIP and said.startswith("SKIPPED"):
        pytest.skip(said)
    if expected.startswith("works"):
        assert status == 0, said
        return
    words = re.search(r"`(.*?)`", expected)
    assert words and words[1] in said and status > 0, (expected, status, said)


def test_the_page_has_every_environment():
    assert [row[0] for row in ROWS] == list(ENVIRONMENTS)


PROCESSORS = """
#include <sched.h>
#include <string.h>
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    memset(set, 0, size);
    for (int i = 0; i < 64; i++)
        CPU_SET(i, set);
    return 0;
}
"""


def test_few_addresses_are_enough_on_many_processors(vecadd, tmp_path, monkeypatch):
    """A thread for each processor waits for calls, and their stacks may not take the addresses that the board's memory needs."""
    (tmp_path / "processors.c").write_text(PROCESSORS)
    library = tmp_path / "processors.so"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, tmp_path / "processors.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    count = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    asked = subprocess.run(count, check=True, capture_output=True, text=True)
    assert asked.stdout == "64\n"
    status, said = run("64 MiB of addresses", "below `tegrarm-sim run`", vecadd)
    assert status == 0, said
