"""Measures the figures of a profile with short kernels, in place of a data sheet.

On a board the times are those of the device. A virtual Orin computes on the host, so that its times would be those of the host. There,
rates come from the instructions that the simulator counts (marked "virtual-time"). Bandwidths and the launch latency stay those of the data
sheet, unless host time is asked for (marked "host-time"). Host time is only useful to compare hosts.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .cuda import Kernels, compiled
from .profile import Profile

# Each thread executes ROUNDS times UNROLLED operations of the kind, on eight values that do not depend on each other.
SOURCE = """
#define REPEAT(OP) for (int r = 0; r < rounds; r++) { _Pragma("unroll") for (int k = 0; k < 8; k++) { OP; } }
extern "C" __global__ void empty(void) {}
extern "C" __global__ void copy(float4 *to, const float4 *from, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}
extern "C" __global__ void float32(float *out, int rounds) {
    float v[8]; for (int k = 0; k < 8; k++) v[k] = threadIdx.x + k;
    REPEAT(v[k] = fmaf(v[k], 0.999f, 1.5f))
    float sum = 0; for (int k = 0; k < 8; k++) sum += v[k]; out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void float16(float *out, int rounds) {
    unsigned v[8]; for (int k = 0; k < 8; k++) v[k] = 0x3c003c00u + threadIdx.x + k;
    REPEAT(asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(v[k]) : "r"(0x38003800u)))
    unsigned sum = 0; for (int k = 0; k < 8; k++) sum ^= v[k]; out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void int32(float *out, int rounds) {
    int v[8]; for (int k = 0; k < 8; k++) v[k] = threadIdx.x + k;
    REPEAT(v[k] = v[k] * 3 + rounds)
    int sum = 0; for (int k = 0; k < 8; k++) sum ^= v[k]; out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void matrix_float16(float *out, int rounds) {
    float d[8][4] = {}; unsigned a = 0x3c003c00u, b = 0x38003800u;
    REPEAT(asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
        : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3]) : "r"(a), "r"(b)))
    float sum = 0; for (int k = 0; k < 8; k++) sum += d[k][0]; out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
UNROLLED, THREADS = 8, 256
# The operations of one thread per step. A multiply-add counts as two, a half instruction has two lanes, and a warp's mma is 16 x 8 x 16.
OPERATIONS = {"float32": 2.0, "float16": 4.0, "int32": 2.0, "matrix_float16": 2.0 * 16 * 8 * 16 / 32}


def _timed(do: Callable[[], None], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        do()
        best = min(best, time.perf_counter() - started)
    return best


class _Bench:
    """The kernels on the device of this process."""

    def __init__(self, profile: Profile, rounds: int, size: int):
        self.kernels, self.blocks, self.rounds, self.size = Kernels(compiled(SOURCE)), 2 * max(1, profile.compute_units), rounds, size
        _, self.address, self.view = self.kernels.buffer(max(2 * size, 4 * self.blocks * THREADS))

    def arithmetic(self, name: str) -> None:
        """Makes one launch that uses every SM."""
        arguments = [ctypes.c_uint64(self.address), ctypes.c_int(self.rounds)]
        self.kernels.wait(self.kernels.launch(name, self.blocks, THREADS, arguments))

    def rate(self, name: str) -> float:
        """The operations per second."""
        work = OPERATIONS[name] * UNROLLED * self.rounds * self.blocks * THREADS
        return work / _timed(lambda: self.arithmetic(name))

    def bandwidth(self) -> float:
        """The bytes per second that a copy reads and writes."""
        arguments = [ctypes.c_uint64(self.address), ctypes.c_uint64(self.address + self.size), ctypes.c_int(self.size // 16)]
        return 2 * self.size / _timed(lambda: self.kernels.wait(self.kernels.launch("copy", self.blocks, THREADS, arguments)))

    def transfer(self) -> float:
        """The bytes per second of a copy from the host's memory into a buffer and back."""
        host = np.ones(self.size, np.uint8)

        def both() -> None:
            self.view[:self.size] = host
            host[:] = self.view[:self.size]

        return 2 * self.size / _timed(both)

    def latency(self, launches: int = 50) -> float:
        """The seconds of a launch, if many are started and only the last is waited for."""
        def many() -> None:
            fence = 0
            for _ in range(launches):
                fence = self.kernels.launch("empty", 1, 32, [])
            self.kernels.wait(fence)

        return _timed(many) / launches


def measured(profile: Profile, *, host_time: bool = False) -> Profile:
    """The profile, in which everything that can be measured on this process's device is replaced."""
    if profile.simulated and not host_time:
        return _by_instructions(profile)
    bench = _Bench(profile, rounds=64 if profile.simulated else 20_000, size=(1 << 20) if profile.simulated else (256 << 20))
    try:
        fields: dict[str, Any] = {
            "scalar_rates": {name: bench.rate(name) for name in ("float32", "float16", "int32")},
            "matrix_rates": {"float16": bench.rate("matrix_float16")} if profile.matrix_rates else {},
            "local_bandwidth": bench.bandwidth(), "transfer_bandwidth": bench.transfer(), "launch_latency": bench.latency()}
    finally:
        bench.kernels.close()
    source = "host-time" if profile.simulated else "measured"
    return dataclasses.replace(profile, **fields, efficiency=1.0, sources={**profile.sources, **dict.fromkeys(fields, source)})


_COUNT = """
import sys
from tegrarm.pool import measure
from tegrarm.pool.profile import from_device
bench = measure._Bench(from_device(), rounds=int(sys.argv[2]), size=4096)
bench.arithmetic(sys.argv[1])
"""


def _instructions(name: str, rounds: int) -> int:
    from .virtual import _SUM

    done = subprocess.run([sys.executable, "-c", _COUNT, name, str(rounds)], capture_output=True, text=True,
                          env={**os.environ, "TEGRARM_SIM_STATS": "1"})
    if done.returncode or not (found := _SUM.search(done.stderr)):
        raise RuntimeError(f"counting the instructions of {name} failed:\n{done.stderr[-2000:]}")
    return int(found[2])


def _by_instructions(profile: Profile) -> Profile:
    """The scalar rates from counted instructions and from the rate at which SMs issue them. They include the cost of loops, as on a board.
    """
    from .virtual import SCHEDULERS

    rates, few, many = {}, 16, 48
    issue = SCHEDULERS * profile.compute_units * profile.max_clock_hz
    for name in ("float32", "float16", "int32"):
        more = _instructions(name, many) - _instructions(name, few)
        work = OPERATIONS[name] * UNROLLED * (many - few) * 2 * profile.compute_units * THREADS
        rates[name] = work / (more / issue)
    return dataclasses.replace(profile, scalar_rates=rates, sources={**profile.sources, "scalar_rates": "virtual-time"})
