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
