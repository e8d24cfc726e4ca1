"""One side of `make bench-peer`: reads the names of programs, runs each once, and answers with its time.

The first line that it writes has the names. An answer is a line: wall seconds, CPU seconds, and a hash of the PTX that tinygrad made for
the program. Both sides have the same hash, because they execute the same text. The first call of a program also compiles it, and its
result is compared with numpy's. Each answer is of a call that follows another one.
"""

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable

import numpy as np
from tinygrad import Device, Tensor, TinyJit, dtypes

if "TEGRA" in os.environ["DEV"]:
    import tegrarm.tinygrad  # noqa: F401 - adds the interface

TEXTS: list[str] = []


def keep_texts() -> None:
    """Keeps what the renderer gives, without the lines that name the GPU."""
    kind = type(Device[Device.DEFAULT].renderer)
    render = kind.render

    def kept(self: object, *arguments: object) -> str:
        TEXTS.append(re.sub(r"(?m)^\.(version|target) .*$", "", text := render(self, *arguments)))
        return text

    kind.render = kept


def product(size: int) -> tuple[Callable, list, np.ndarray]:
    a, b = numbers(size, size), numbers(size, size)
    return lambda x, y: (x @ y).realize(), [a, b], a @ b


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def total() -> tuple[Callable, list, np.ndarray]:
    a = numbers(1 << 20)
    return lambda x: x.sum().realize(), [a], a.sum(dtype=np.float64)


def added() -> tuple[Callable, list, np.ndarray]:
    a, b = numbers(1 << 20), numbers(1 << 20)[::-1].copy()
    return lambda x, y: (x + y).realize(), [a, b], a + b


def softmax() -> tuple[Callable, list, np.ndarray]:
    a = numbers(256, 256)
    exponents = np.exp(a - a.max(1, keepdims=True))
    return lambda x: x.softmax().realize(), [a], exponents / exponents.sum(1, keepdims=True)


def convolution() -> tuple[Callable, list, np.ndarray]:
    image, filters = numbers(1, 16, 32, 32), numbers(16, 16, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
    return lambda x, w: x.conv2d(w).realize(), [image, filters], np.einsum("cyxij,fcij->fyx", windows, filters)[None]


def four() -> tuple[Callable, list, np.ndarray]:
    def step(x: Tensor) -> Tensor:
        for _ in range(4):
            x = (x + 1).contiguous()
        return x.realize()

    a = numbers(16, 16)
    return step, [a], a + 4


PROGRAMS = {"float product, 128³": lambda: product(128), "float product, 256³": lambda: product(256), "sum of 2^20": total,
            "a + b of 2^20": added,
            "softmax, 256 rows of 256": softmax, "convolution, 16 of 3×3 on 16×32×32": convolution,
            "a TinyJit's call of four tiny kernels": four}


def prepared(name: str) -> tuple[Callable, str]:
    """A program that has run often enough for its TinyJit to be recorded, and the hash of its texts."""
    function, arrays, expected = PROGRAMS[name]()
    inputs = [Tensor(array, dtype=dtypes.float32).realize() for array in arrays]
    TEXTS.clear()
    step = TinyJit(function)
    for _ in range(3):
        np.testing.assert_allclose(step(*inputs).numpy(), expected, rtol=1e-3, atol=1e-3)
    return lambda: step(*inputs), hashlib.sha256("\n".join(dict.fromkeys(TEXTS)).encode()).hexdigest()[:12]


def main() -> None:
    """Answers on what was the standard output; gpuocelot writes to that itself, so it gets the standard error instead."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    keep_texts()
    print("|".join(PROGRAMS), file=answers)
    known: dict[str, tuple[Callable, str]] = {}
    for name in map(str.strip, sys.stdin):
        call, text = known[name] = known.get(name) or prepared(name)
        # While this process slept, the other sides used the caches, and a virtual machine may have lost its pages.
        call()
        Device[Device.DEFAULT].synchronize()
        started, before = time.perf_counter(), time.process_time()
        call()
        Device[Device.DEFAULT].synchronize()
        print(time.perf_counter() - started, time.process_time() - before, text, file=answers)


if __name__ == "__main__":
    main()
