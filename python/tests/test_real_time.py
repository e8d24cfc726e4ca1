"""The rules of docs/real-time.md: ctests/real_time.c counts allocations, page faults and system calls of a thread that has deadlines."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import _ffi

pytestmark = pytest.mark.skipif(os.path.exists("/dev/nvgpu") or not shutil.which("cc"), reason="needs cc, and is about the virtual Orin")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    made, library = tmp_path_factory.mktemp("real_time") / "real_time", pathlib.Path(_ffi.find()).resolve()
    options = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-pthread"]
    subprocess.run(["cc", *options, ROOT / "ctests/real_time.c", "-o", made, library, f"-Wl,-rpath,{library.parent}"], check=True)
    return made


WAYS = {"in process": ((), "sim"), "out of process": ((TEGRARM_SIM, "run", "--quiet", "--"), "nvgpu")}


@pytest.mark.parametrize("around, backend", WAYS.values(), ids=WAYS)
def test_launches_waits_and_replays_allocate_nothing_and_make_no_call(program, around, backend):
    if around and not TEGRARM_SIM.exists():
        pytest.skip("no tegrarm-sim: make sim")
    env = {**os.environ, "TEGRARM_BACKEND": backend, "TEGRARM_TEST_CUBINS": str(ROOT / "tests/data/cubin")}
    done = subprocess.run([*around, program], env=env, capture_output=True, text=True, timeout=120)
    told = [line for line in done.stdout.splitlines() if "runs" in line]
    assert done.returncode == 0 and len(told) == 2, done.stdout + done.stderr
    assert all("0 allocations, 0 page faults, 0 system calls" in line for line in told), told
