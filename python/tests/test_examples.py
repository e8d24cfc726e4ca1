"""The examples in Python: each is run as its users run it."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

EXAMPLES = ROOT / "examples" / "python"
# A part of the last line that each example prints. Other examples have tests elsewhere: the demos are commands of the README, and Triton
# has its own environment.
PRINTED = {
    "control_loop.py": "40 steps, one of them lost",
    "dlpack.py": "the GPU wrote numpy's memory:  [2.0, 2.0, 2.0]",
    "ops_nv_style.py": "axpy of 1000 numbers, three times, with RM calls through ctypes: right",
    "overlap.py": "of which began and ended while a kernel ran",
}
ELSEWHERE = {"abi.py": "a part of ops_nv_style.py", "demo.py": "make demo", "demo_pool.py": "make demo-pool",
             "camera_loop.py": "below", "triton_softmax.py": "make test-triton"}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_runs(name, python):
    assert PRINTED[name] in python([str(EXAMPLES / name)])


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == PRINTED.keys() | ELSEWHERE.keys()


@pytest.mark.skipif(os.environ["TEGRARM_BACKEND"] == "sim" and not pathlib.Path(TEGRARM_SIM).exists(), reason="no tegrarm-sim: `make sim`")
def test_frames_of_another_process_arrive_without_a_copy():
    """Both processes use one virtual Orin. Its supervisor provides the device nodes."""
    command = [TEGRARM_SIM, "run", "--", sys.executable, EXAMPLES / "camera_loop.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "TEGRARM_BACKEND": "nvgpu"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 frames of another process in 3 buffers, 0 copies" in done.stdout
