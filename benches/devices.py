"""tinygrad's devices TEGRA and NV (interface TEGRA) for the same work, in one process and in turns: CPU time of this thread. Printed is the
fastest tenth's slowest: other programs of the machine disturb the rest.

Prints three lines, each with microseconds on TEGRA and on NV: of a call of a TinyJit with four kernels, of one with 51 (a
transformer's step), and of an eager launch. What the GPU does is waited for, and not counted.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from tinygrad import Device, Tensor, TinyJit
from tinygrad.engine import realize

import tegrarm.tinygrad  # noqa: F401 - adds the devices

ROUNDS = 300
DEVICES = ("TEGRA", "NV")


def in_turns(work: dict[str, Callable]) -> list[float]:
    for device, call in work.items():
        for _ in range(4):
            call()
        Device[device].synchronize()
    taken: dict[str, list[float]] = {device: [] for device in work}
    for _ in range(ROUNDS):
        for device, call in work.items():
            started = time.thread_time_ns()
            call()
            taken[device].append((time.thread_time_ns() - started) / 1e3)
            Device[device].synchronize()
    return [statistics.quantiles(times, n=10)[0] for times in taken.values()]


def four_kernels(device: str) -> Callable:
    @TinyJit
    def step(x, w):
        for _ in range(4):
            x = (x @ w).relu().contiguous()
        return x.realize()

    x, w = (Tensor(np.eye(16, dtype=np.float32), device=device).realize() for _ in range(2))
    return lambda: step(x, w)


def transformer(device: str) -> Callable:
    layers, width = 3, 16
    weights = [[Tensor(np.eye(width, dtype=np.float32), device=device).realize() for _ in range(6)] for _ in range(layers)]

    @TinyJit
    def step(x):
        for query, key, value, out, up, down in weights:
            h = x.layernorm().contiguous()
            q, k, v = ((h @ w).contiguous() for w in (query, key, value))
            attended = ((q @ k.transpose(0, 1)).contiguous().softmax().contiguous() @ v).contiguous()
            x = (x + attended @ out).contiguous()
            x = (x + (x.layernorm().contiguous() @ up).relu().contiguous() @ down).contiguous()
        return x.realize()

    x = Tensor(np.ones((8, width), dtype=np.float32), device=device).realize()
    return lambda: step(x)


def eager(device: str) -> Callable:
    """A launch of a program, as tinygrad makes it."""
    x = Tensor(np.arange(64, dtype=np.int32), device=device).realize()
    known = set(realize.runtime_cache)
    y = (x + 1).realize()
    program, = (program for key, program in realize.runtime_cache.items() if key not in known and key[1] == device)
    buffers = [tensor.uop.buffer._buf for tensor in (y, x)]
    return lambda: program(*buffers, global_size=(1, 1, 1), local_size=(16, 1, 1))


def main() -> None:
    for make in (four_kernels, transformer, eager):
        print(*(f"{microseconds:.1f}" for microseconds in in_turns({device: make(device) for device in DEVICES})))


if __name__ == "__main__":
    main()
