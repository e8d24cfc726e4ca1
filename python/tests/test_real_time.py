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


# With a virtual Orin in the process, a wait sleeps until the GPU's thread wakes it, as a wait on a board never does.
@pytest.mark.skipif(not TEGRARM_SIM.exists(), reason="no tegrarm-sim: make sim")
def test_launches_waits_and_replays_allocate_nothing_and_make_no_call(program):
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu", "TEGRARM_TEST_CUBINS": str(ROOT / "tests/data/cubin")}
    done = subprocess.run([TEGRARM_SIM, "run", "--quiet", "--", program], env=env, capture_output=True, text=True, timeout=120)
    told = [line for line in done.stdout.splitlines() if "runs" in line]
    assert done.returncode == 0 and len(told) == 2, done.stdout + done.stderr
