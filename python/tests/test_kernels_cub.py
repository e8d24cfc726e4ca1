"""CUB's primitives for warps and blocks, as its headers are: a sample of each, on several types."""

import importlib.util

import cuda
import numpy
import pytest
from conftest import ROOT

SPEC = importlib.util.spec_from_file_location("lookback", ROOT / "python" / "suite" / "lookback.py")
lookback = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lookback)

BLOCK = 128
INCLUDES = ["warp/warp_reduce", "warp/warp_scan", "warp/warp_merge_sort", "block/block_reduce", "block/block_scan",
            "block/block_radix_sort",
            "block/block_merge_sort", "block/block_histogram", "block/block_discontinuity", "block/block_exchange"]
SOURCE = "".join(f"#include <cub/{name}.cuh>\n" for name in INCLUDES) + """
extern "C" __global__ void k(const TYPE *in, TYPE *out) {
    int i = threadIdx.x;
    TYPE x = in[i], two[2] = {in[2 * i], in[2 * i + 1]};
    TYPE *o = out - 256;
    auto row = [&]() { __syncthreads(); return o += 256; };
    { using P = cub::WarpReduce<TYPE>; __shared__ typename P::TempStorage t[4];
      TYPE r = P(t[i / 32]).Sum(x); row(); if (i % 32 == 0) o[i] = r; }
    { using P = cub::WarpReduce<TYPE, 8>; __shared__ typename P::TempStorage t[16];
      TYPE r = P(t[i / 8]).Sum(x); row(); if (i % 8 == 0) o[i] = r; }
    { using P = cub::WarpReduce<TYPE>; __shared__ typename P::TempStorage t[4]; TYPE r = P(t[i / 32]).HeadSegmentedSum(x, i % 7 == 0);
      row(); if (i % 7 == 0 || i % 32 == 0) o[i] = r; }
    { using P = cub::WarpScan<TYPE>; __shared__ typename P::TempStorage t[4]; TYPE r; P(t[i / 32]).InclusiveSum(x, r); row()[i] = r; }
    { using P = cub::WarpMergeSort<TYPE, 2, 32>; __shared__ typename P::TempStorage t[4]; TYPE r[2] = {two[0], two[1]};
      P(t[i / 32]).Sort(r, cuda::std::less<TYPE>()); row(); o[2 * i] = r[0]; o[2 * i + 1] = r[1]; }
    { using P = cub::BlockReduce<TYPE, 128>; __shared__ typename P::TempStorage t; TYPE r = P(t).Sum(x); row(); if (i == 0) o[0] = r; }
    { using P = cub::BlockReduce<TYPE, 128, cub::BLOCK_REDUCE_RAKING>; __shared__ typename P::TempStorage t; TYPE r = P(t).Sum(x);
      row(); if (i == 0) o[0] = r; }
    { using P = cub::BlockScan<TYPE, 128, cub::BLOCK_SCAN_WARP_SCANS>; __shared__ typename P::TempStorage t;
      TYPE r; P(t).ExclusiveSum(x, r); row()[i] = r; }
    { using P = cub::BlockScan<TYPE, 128, cub::BLOCK_SCAN_RAKING>; __shared__ typename P::TempStorage t;
      TYPE r; P(t).InclusiveSum(x, r); row()[i] = r; }
    { using P = cub::BlockRadixSort<TYPE, 128, 2>; __shared__ typename P::TempStorage t; TYPE r[2] = {two[0], two[1]};
      P(t).Sort(r); row(); o[2 * i] = r[0]; o[2 * i + 1] = r[1]; }
    { using P = cub::BlockMergeSort<TYPE, 128, 2>; __shared__ typename P::TempStorage t; TYPE r[2] = {two[0], two[1]};
      P(t).Sort(r, cuda::std::less<TYPE>()); row(); o[2 * i] = r[0]; o[2 * i + 1] = r[1]; }
    { using P = cub::BlockHistogram<unsigned char, 128, 2, 64, cub::BLOCK_HISTO_ATOMIC>; __shared__ typename P::TempStorage t;
      __shared__ unsigned h[64]; unsigned char r[2] = {(unsigned char)two[0], (unsigned char)two[1]};
      P(t).Histogram(r, h); row(); if (i < 64) o[i] = h[i]; }
    { using P = cub::BlockHistogram<unsigned char, 128, 2, 64, cub::BLOCK_HISTO_SORT>; __shared__ typename P::TempStorage t;
      __shared__ unsigned h[64]; unsigned char r[2] = {(unsigned char)two[0], (unsigned char)two[1]};
      P(t).Histogram(r, h); row(); if (i < 64) o[i] = h[i]; }
    { using P = cub::BlockDiscontinuity<TYPE, 128>; __shared__ typename P::TempStorage t; int f[1]; TYPE r[1] = {x};
      P(t).FlagHeads(f, r, cuda::std::not_equal_to<TYPE>()); row()[i] = f[0]; }
    { using P = cub::BlockExchange<TYPE, 128, 2>; __shared__ typename P::TempStorage t; TYPE r[2] = {two[0], two[1]};
      P(t).BlockedToStriped(r); row(); o[i] = r[0]; o[128 + i] = r[1]; }
}"""
TYPES = {"int": numpy.int32, "unsigned char": numpy.uint8, "long long": numpy.int64, "double": numpy.float64}


def segments(x):
    """Sums from each head to the next one, or to the end of the warp."""
    heads = sorted({*range(0, BLOCK, 7), *range(0, BLOCK, 32)})
    return {head: x[head:stop].sum(dtype=x.dtype) for head, stop in zip(heads, [*heads[1:], BLOCK], strict=True)}


def reference(values):
    x, kind = values[:BLOCK], values.dtype
    warps = x.reshape(4, 32)
    sums, counts = {0: x.sum(dtype=kind)}, numpy.bincount(values.astype(int), minlength=64)
    rows = [dict(zip(range(0, BLOCK, 32), warps.sum(1, dtype=kind), strict=True)),
            dict(zip(range(0, BLOCK, 8), x.reshape(16, 8).sum(1, dtype=kind), strict=True)),
            segments(x), warps.cumsum(1, dtype=kind).ravel(), numpy.sort(values.reshape(4, 64), 1).ravel(), sums, sums,
            numpy.cumsum(x, dtype=kind) - x, numpy.cumsum(x, dtype=kind), numpy.sort(values), numpy.sort(values), counts, counts,
            numpy.concatenate(([1], x[1:] != x[:-1])), values]
    return [row if isinstance(row, dict) else dict(enumerate(row)) for row in rows]


# Most of the time is the compiler's. The newer one's headers are tried with a type of each kind.
@pytest.mark.parametrize(("way", "kind"), cuda.sampled(TYPES, ("int", "double"), ("12", "13")))
def test_primitives_of_cub(gpu, way, kind):
    values = numpy.random.default_rng(11).integers(0, 7, 2 * BLOCK).astype(TYPES[kind])
    want = reference(values)
    out = numpy.zeros((len(want), 2 * BLOCK), TYPES[kind])
    gpu.launch(gpu.kernel(cuda.compiled(SOURCE.replace("TYPE", kind), way), "k"), 1, BLOCK, values, out)
    for number, (got, row) in enumerate(zip(out, want, strict=True)):
        assert [got[i] for i in row] == list(row.values()), number


@pytest.mark.parametrize("name", lookback.ALGORITHMS)
def test_blocks_that_look_back_find_whole_states(name):
    """`make test-lookback` makes 10,000 runs of each."""
    assert lookback.wrong(name, 30) == 0
