"""The Python commands of the README and the book, typed without the variables that they need: each ends in our sentence."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from test_book import BLOCKS, SAVED, commands

pytestmark = pytest.mark.skipif(os.path.exists("/dev/nvgpu"), reason="this machine has a board")
# Its programs are parts of one another, which are nothing alone.
TOGETHER = {"docs/accelerator.md"}
LONGEST = 20  # lines; a frontend's traceback has fifty


def typed():
    """Every printed command that runs one of its page's Python programs, with the program."""
    for page, blocks in BLOCKS.items():
        if page in TOGETHER:
            continue
        saved = {m[1]: b.text for b in blocks if b.language == "python" and (m := re.match(SAVED["python"], b.text))}
        for block in (b for b in blocks if b.language == "sh" and not b.words):
            joined = dataclasses.replace(block, text=block.text.replace("\\\n", " "))
            for command in commands(joined):
                words = command.split()
                name = next((w for w in words if w in saved), None)
                # Below the supervisor and in a profile there is a virtual board, whatever is not typed.
                board = {"tegrarm-sim", "profile"} & set(words)
                if name and {"python", "tegrarm"} & set(words) and not board and opens_a_gpu(saved[name]):
                    yield page, command, name, saved[name]


def opens_a_gpu(program):
    """A program that only reads what another one wrote needs no backend."""
    return any(name in program for name in ("tegrarm", "tinygrad", "numba", "triton"))


def in_report(command):
    """Whether the exception is in the report of pytest, which is on stdout and has pytest's form.

    `tegrarm run` says it before pytest starts.
    """
    return " pytest " in command and " run " not in command


CASES = list(typed())


def test_there_are_such_commands():
    pages = {page for page, *_ in CASES}
    assert {"README.md", "docs/python.md", "docs/tutorial.md", "docs/cli.md"} <= pages and len(CASES) >= 8


@pytest.mark.parametrize("page, command, name, program, with_device", [
    # Without DEV, a test of pytest is one of the device that tinygrad chooses.
    (*case, with_device) for case in CASES for with_device in (False, True) if with_device or not in_report(case[1])
], ids=lambda value: value[:50] if isinstance(value, str) else None)
def test_a_command_without_a_backend_says_what_to_type(page, command, name, program, with_device, tmp_path):
    (tmp_path / name).write_text(program)
    (tmp_path / "out").mkdir()  # a checkout has it
    env = {k: v for k, v in os.environ.items() if not k.startswith("TEGRARM_B") and k != "DEV"}
    env["PATH"] = f"{pathlib.Path(sys.executable).parent}:{env['PATH']}"
    bare = re.sub(r"TEGRARM_BACKEND=\S+ ", "", command)
    if not with_device:
        bare = re.sub(r"DEV=\S+ ", "", bare)
    elif "import tegrarm.tinygrad" in program or " run " in command or " trace " in command:
        env.setdefault("DEV", "TEGRA+NV")
    done = subprocess.run(["bash", "-c", bare.replace("target/release/", f"{ROOT}/target/release/")], cwd=tmp_path, env=env,
                          capture_output=True, text=True, timeout=300)
    said = (done.stdout if in_report(command) or "2>&1" in command else done.stderr).strip().splitlines()
    assert done.returncode != 0, f"{page}: {bare} found a GPU"
    if in_report(command):
        assert any(line.startswith("E ") and "TEGRARM_BACKEND=sim" in line for line in said), f"{page}: {bare}\n{done.stdout}"
    else:
        assert "TEGRARM_BACKEND=sim" in said[-1] and len(said) <= LONGEST, f"{page}: {bare}\n{done.stderr}"
