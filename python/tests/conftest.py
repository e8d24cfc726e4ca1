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
# A program of tinygrad for both devices, `DEV=TEGRA` and `DEV=TEGRA+NV`: the results are those of numpy.
AS_NUMPY = """
rng = np.random.default_rng(3)
a, b = rng.standard_normal((2, 33, 33), dtype=np.float32)
def same(got, want, tol=1e-4): np.testing.assert_allclose(got.numpy(), want, rtol=tol, atol=tol)
same(Tensor(a) @ Tensor(b), a @ b)
same(Tensor(a).softmax(), np.exp(a) / np.exp(a).sum(1, keepdims=True))
same(Tensor(a).sum(axis=0), a.sum(axis=0)); same(Tensor(a).max(), a.max())
same(Tensor(a).sin(), np.sin(a)); same(Tensor(a).permute(1, 0).contiguous() + 1, a.T + 1)
assert ((Tensor(a) > 0).where(Tensor(a), 0).numpy() == np.maximum(a, 0)).all()
assert (Tensor(np.arange(1000, dtype=np.int64)) // 7).numpy().tolist() == [i // 7 for i in range(1000)]
"""


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
