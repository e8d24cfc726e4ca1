"""Measures the figures of a profile with short kernels. Without this, they come from a data sheet.

On a board the library measures them (``tegrarm_device_measure``). A virtual Orin computes on the host, so the times would be those of
the host. There, the rates are computed from the instructions that the simulator counts (marked "virtual-time"). Bandwidths and the
launch latency are those of the data sheet. If the user asks for host time (marked "host-time"), they are measured, which is only good
for comparing hosts.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
from typing import Any

from .._checked import number
from .cuda import Kernels, compiled
from .profile import Profile, rates

# Each thread does ROUNDS times UNROLLED operations of the kind, on eight values that do not depend on each other.
SOURCE = """
#define REPEAT(OP) for (int r = 0; r < rounds; r++) { _Pragma("unroll") for (int k = 0; k < 8; k++) { OP; } }
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
"""
UNROLLED, THREADS = 8, 256
# How many operations an instruction of a thread counts as: a multiply-add is two, and a half instruction has two lanes.
OPERATIONS = {"float32": 2.0, "float16": 4.0, "int32": 2.0}


def measured(profile: Profile, *, host_time: bool = False) -> Profile:
    """The profile, with the figures that can be measured on this process's device."""
    from tegrarm import measured_profile

    if profile.simulated and not host_time:
        return _by_instructions(profile)
    told = measured_profile()
    fields: dict[str, Any] = {
        "scalar_rates": rates(told, "scalar"), "matrix_rates": rates(told, "matrix"), "local_bandwidth": float(told.local_bandwidth),
        "transfer_bandwidth": float(told.transfer_bandwidth), "launch_latency": told.launch_latency_ns * 1e-9}
    source = "host-time" if profile.simulated else "measured"
    return dataclasses.replace(profile, **fields, efficiency=1.0, sources={**profile.sources, **dict.fromkeys(fields, source)})


def count(name: str, rounds: int, blocks: int) -> None:
    """Runs one launch that keeps every SM busy, in a process whose simulator counts instructions."""
    with Kernels(compiled(SOURCE)) as kernels:
        _, address, _ = kernels.buffer(4 * blocks * THREADS)
        arguments = [number(ctypes.c_uint64, address, "the address"), number(ctypes.c_int, rounds, "rounds")]
        kernels.wait(kernels.launch(name, blocks, THREADS, arguments))


_COUNT = "import sys; from tegrarm.pool.measure import count; count(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


def _instructions(name: str, rounds: int, blocks: int) -> int:
    from .virtual import _SUM

    done = subprocess.run([sys.executable, "-c", _COUNT, name, str(rounds), str(blocks)], capture_output=True, text=True,
                          env={**os.environ, "TEGRARM_SIM_STATS": "1"})
    if done.returncode or not (found := _SUM.search(done.stderr)):
        raise RuntimeError(f"counting the instructions of {name} failed:\n{done.stderr[-2000:]}")
    return int(found[2])


def _by_instructions(profile: Profile) -> Profile:
    """Scalar rates: the counted instructions at the rate at which SMs issue them. The instructions of loops count too, as on a board."""
    from .virtual import SCHEDULERS

    found, few, many, blocks = {}, 16, 48, 2 * max(1, profile.compute_units)
    issue = SCHEDULERS * profile.compute_units * profile.max_clock_hz
    for name in OPERATIONS:
        more = _instructions(name, many, blocks) - _instructions(name, few, blocks)
        work = OPERATIONS[name] * UNROLLED * (many - few) * blocks * THREADS
        found[name] = work / (more / issue)
    return dataclasses.replace(profile, scalar_rates=found, sources={**profile.sources, "scalar_rates": "virtual-time"})
