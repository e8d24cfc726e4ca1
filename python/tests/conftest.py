import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("TEGRARM_BACKEND", "sim")
TEGRARM_SIM = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "tegrarm-sim"
ZIG = os.environ.setdefault("TEGRARM_TEST_ZIG", str(ROOT / ".cache" / "zig" / "bin" / "python"))
if not shutil.which("clang"):
    os.environ.setdefault("CC", str(ROOT / "python" / "tests" / "cc_without_clang.sh"))  # for tinygrad's CPU device
HAS_CLANG = bool(shutil.which("clang")) or pathlib.Path(ZIG).exists()
# Files and folders of few tests that take minutes.
LONGEST = {"test_ci_guide.py", "test_packaging.py", "test_replay_board.py", "test_validate.py", "pool"}


def pytest_collection_modifyitems(items):
    """Puts the longest files first. If they came last, one of two workers would wait for the other."""
    items.sort(key=lambda item: LONGEST.isdisjoint(item.path.parts))


@pytest.fixture
def gpu():
    """An open device, for tests that launch kernels of CUDA C++."""
    import cuda  # Most tests run without numpy.

    device = cuda.Gpu()
    yield device
    device.close()


@pytest.fixture
def python():
    """Runs Python code (or a list of arguments) in a fresh process and returns its stdout; a failure shows both streams."""

    def run(code, *, env=None, timeout=300, status=0):
        command = [sys.executable, *(code if isinstance(code, list) else ["-c", code])]
        done = subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=timeout, cwd=ROOT)
        assert done.returncode == status, f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        return done.stdout if status == 0 else done.stdout + done.stderr

    return run
