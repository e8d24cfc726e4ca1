"""Computes with tensors through libtegrarm, with two compilers, and shows what the library did.

`make demo` runs it. It needs tinygrad, numpy and the two compiler wheels of python/requirements.txt.
"""

import importlib.util
import os
import sys
import tempfile
import time

# The folder goes with this object, at the end of the program.
PLACE = tempfile.TemporaryDirectory(prefix="tegrarm-demo-")
RECORD = os.path.join(PLACE.name, "calls.jsonl")
os.environ["TEGRARM_RECORD"] = RECORD
os.environ.setdefault("DEV", "TEGRA+NV")

import numpy as np
from tinygrad import Context, Tensor

import tegrarm
import tegrarm.tinygrad
from tegrarm import trace

# Each compiler has its name, its name in tinygrad, and the package that contains it.
COMPILERS = (("NVRTC (CUDA C)", "TEGRA+NV:CUDA", "nvidia.cuda_nvrtc"), ("Mesa NAK", "TEGRA+NV:NAK", "tinymesa"))


def installed(package: str) -> bool:
    """Whether the compiler's package is installed. PyPI has no tinymesa for AArch64."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def device_line() -> str:
    profile = tegrarm.device_profile()
    name, _, chip = profile.name.decode().rstrip(")").partition(" (")
    return f"{'virtual ' if profile.simulated else 'the board: '}{name} ({chip}, sm_{profile.sm_version >> 8}{profile.sm_version & 0xff})"


def largest_error(got: Tensor, want: np.ndarray) -> float:
    return float(np.abs(got.numpy() - want).max())


def convolve(image: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """Computes conv2d without padding, in the slow and obvious way."""
    n, _, height, width = image.shape
    out, _, kh, kw = kernels.shape
    result = np.zeros((n, out, height - kh + 1, width - kw + 1), dtype=np.float64)
    for y in range(result.shape[2]):
        for x in range(result.shape[3]):
            result[:, :, y, x] = np.einsum("ncij,ocij->no", image[:, :, y:y + kh, x:x + kw].astype(np.float64), kernels)
    return result


def show(name: str, target: str) -> float:
    """Runs the three computations with one compiler and returns the largest error."""
    rng, started = np.random.default_rng(1), time.perf_counter()
    a, b = rng.standard_normal((2, 64, 64), dtype=np.float32)
    image, kernels = rng.standard_normal((1, 3, 16, 16), dtype=np.float32), rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
    with Context(DEV=target):
        total = (Tensor([1, 2, 3]) + Tensor([4, 5, 6])).numpy()
        matmul = largest_error(Tensor(a) @ Tensor(b), a.astype(np.float64) @ b)
        conv = largest_error(Tensor(image).conv2d(Tensor(kernels)), convolve(image, kernels))
    print(f"{name}  ({target})")
    print(f"  Tensor([1,2,3]) + Tensor([4,5,6])     {total}")
    print(f"  64x64 float matmul, max error         {matmul:.2e}")
    print(f"  conv2d 3->4 3x3 on 16x16, max error   {conv:.2e}")
    print(f"  {time.perf_counter() - started:.1f} s\n")
    assert total.tolist() == [5, 7, 9]
    return max(matmul, conv)


def main() -> int:
    print(f"libtegrarm {tegrarm.version()} on {device_line()}\n")
    for name, _, package in COMPILERS:
        if not installed(package):
            print(f"{name}: SKIPPED, {package} is not installed\n")
    worst = max(show(name, target) for name, target, package in COMPILERS if installed(package))
    print("RM call -> kernel calls made for it, counts")
    print(trace.table(trace.read(RECORD)))
    print(f"\nran on {device_line()}")
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
