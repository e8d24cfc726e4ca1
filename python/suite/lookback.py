#!/usr/bin/env python3
"""Runs two of CUB's algorithms that publish a state and a value with one store of sixteen bytes, again and again, and asks numpy.

usage: lookback [--runs N] [--quiet]

ReduceByKey on int32 and InclusiveSum on int64 are CUB's own agents, of which its kernels consist; CUB's functions for the host need
NVIDIA's runtime library. A block looks back at what the blocks before it have published (decoupled look-back), so a block that finds a
state without its value gives wrong numbers. Each run has other numbers. The status is 1 if a run was wrong.
"""
import argparse
import contextlib
import ctypes
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import cuda  # noqa: E402
import numpy  # noqa: E402

BLOCK, ITEMS, TILES = 128, 2, 48
TILE = BLOCK * ITEMS
N = TILE * TILES - 77  # the last tile is not full
# The state of CUB has a word of sixteen bytes for each tile, and as many as a warp has lanes in front of them.
STATUS = 16 * (TILES + 32)
# The headers of CUDA 12.9 include <iterator>, which NVRTC does not have.
COMPILER = "13"

SOURCE = """
#include <cub/agent/agent_reduce_by_key.cuh>
#include <cub/agent/agent_scan.cuh>
#include <cuda/std/functional>
using namespace cub::detail;
using Plus = cuda::std::plus<>;
using Equal = cuda::std::equal_to<>;
using None = cub::NullType;
using ReducePolicy = agent_reduce_by_key_policy<BLOCK, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS>;
using Reduce = reduce_by_key::AgentReduceByKey<ReducePolicy, const int *, int *, const int *, int *, int *, Equal, Plus, int, int, None>;
using ScanPolicy = agent_scan_policy<0, 0, void, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::LOAD_DEFAULT, cub::BLOCK_STORE_WARP_TRANSPOSE,
    cub::BLOCK_SCAN_WARP_SCANS, NoScaling<BLOCK, ITEMS>, default_delay_constructor_t<long long>>;
using Scan = scan::AgentScan<ScanPolicy, const long long *, long long *, Plus, None, int, long long>;
template <class S> __device__ S state(void *status, int tiles) { S s; s.Init(tiles, status, 0); return s; }
static_assert(sizeof(Reduce::ScanTileStateT::TxnWord) == 16 && sizeof(Scan::ScanTileStateT::TxnWord) == 16, "sixteen bytes at once");
extern "C" __global__ void reduce_begin(void *status) { state<Reduce::ScanTileStateT>(status, TILES).InitializeStatus(TILES); }
extern "C" __global__ void scan_begin(void *status) { state<Scan::ScanTileStateT>(status, TILES).InitializeStatus(TILES); }
extern "C" __global__ void reduce(const int *keys, const int *values, int *unique, int *sums, int *runs, void *status, int n) {
    __shared__ Reduce::TempStorage t;
    auto s = state<Reduce::ScanTileStateT>(status, TILES);
    Reduce(t, keys, unique, values, sums, runs, Equal{}, Plus{}, None{}).ConsumeRange(n, s, 0);
}
extern "C" __global__ void scan(const long long *in, long long *out, void *status, int n) {
    __shared__ Scan::TempStorage t;
    auto s = state<Scan::ScanTileStateT>(status, TILES);
    Scan(t, in, out, Plus{}, None{}).ConsumeRange(n, s, 0);
}"""


def compiled():
    """The machine code of both algorithms."""
    return cuda.compiled(SOURCE, COMPILER, f"-DBLOCK={BLOCK}", f"-DITEMS={ITEMS}", f"-DTILES={TILES}")


class Launches:
    """Launches on buffers that stay mapped from one run to the next."""

    def __init__(self, gpu, cubin, stack):
        self.gpu, self.module, self.stack = gpu, gpu.module(cubin), stack

    def buffer(self, dtype, count):
        """A buffer as an array of the host, and its address as an argument."""
        buffer, pointer, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        size = count * numpy.dtype(dtype).itemsize
        cuda.call("tegrarm_buffer_alloc", self.gpu.handle, size, 0, ctypes.byref(buffer))
        self.stack.callback(cuda.call, "tegrarm_buffer_free", buffer)
        cuda.call("tegrarm_buffer_address", buffer, ctypes.byref(pointer), ctypes.byref(address))
        array = numpy.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (size,)).view(dtype)
        return array, numpy.uint64(address.value)

    def kernel(self, name):
        """A kernel of the module as a function of its grid and its arguments."""
        kernel = ctypes.c_void_p()
        cuda.call("tegrarm_module_kernel", self.module, name.encode(), ctypes.byref(kernel))
        return lambda grid, *arguments: self.gpu.launch(kernel, grid, BLOCK, *arguments)


def reductions(launches, random):
    """Runs ReduceByKey. Yields for each run whether it was right."""
    (keys, at_keys), (values, at_values), (unique, at_unique), (sums, at_sums) = [launches.buffer(numpy.int32, N) for _ in range(4)]
    (runs, at_runs), (_, status) = launches.buffer(numpy.int32, 1), launches.buffer(numpy.uint8, STATUS)
    begin, reduce = launches.kernel("reduce_begin"), launches.kernel("reduce")
    while True:
        keys[:], values[:] = numpy.cumsum(random.integers(0, 4, N) == 0), random.integers(-1000, 1000, N)
        unique[:], sums[:], runs[:] = -1, -1, -1
        begin(1, status)
        reduce(TILES, at_keys, at_values, at_unique, at_sums, at_runs, status, numpy.int32(N))
        found, first = numpy.unique(keys, return_index=True)
        wanted = numpy.add.reduceat(values, first)
        yield runs[0] == len(found) and (unique[:len(found)] == found).all() and (sums[:len(found)] == wanted).all()


def scans(launches, random):
    """Runs InclusiveSum. Yields for each run whether it was right."""
    (given, at_given), (out, at_out) = [launches.buffer(numpy.int64, N) for _ in range(2)]
    _, status = launches.buffer(numpy.uint8, STATUS)
    begin, scan = launches.kernel("scan_begin"), launches.kernel("scan")
    while True:
        given[:], out[:] = random.integers(-(1 << 61), 1 << 61, N), -1
        begin(1, status)
        scan(TILES, at_given, at_out, status, numpy.int32(N))
        yield (out == given.cumsum()).all()


ALGORITHMS = {"ReduceByKey, int32": reductions, "InclusiveSum, int64": scans}


def wrong(name, runs, told=None):
    """The number of wrong runs of an algorithm."""
    bad = 0
    with contextlib.ExitStack() as stack:
        gpu = cuda.Gpu()
        stack.callback(gpu.close)
        outcomes = ALGORITHMS[name](Launches(gpu, compiled(), stack), numpy.random.default_rng(5))
        for run in range(runs):
            bad += not next(outcomes)
            if told:
                told(run + 1, bad)
    return bad


def main():
    """Runs the command line that is described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--quiet", action="store_true", help="no line about how far it is")
    given = parser.parse_args()
    failed = 0
    for name in ALGORITHMS:
        def told(run, bad, name=name):
            if run % 100 == 0:
                print(f"\r{name}: {run} of {given.runs}, {bad} wrong", end="", file=sys.stderr, flush=True)
        begun = time.monotonic()
        bad = wrong(name, given.runs, None if given.quiet else told)
        took = time.monotonic() - begun
        print(f"\r{name}: {bad} of {given.runs} runs wrong, {TILES} blocks of {BLOCK} threads, {took:.0f} s", flush=True)
        failed += bad
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
