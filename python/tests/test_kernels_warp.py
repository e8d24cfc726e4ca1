"""Warp functions whose lanes name different masks, cooperative groups, and code that diverges, as CUDA C++ has them."""

import cuda
import numpy
import pytest

WARPS = 4
LANES = numpy.arange(32)


@pytest.fixture(scope="module", params=cuda.TRIED)
def way(request):
    return request.param


def run(gpu, way, source, grid, block, *arguments, **more):
    """Compiles and launches the kernel `k`."""
    gpu.launch(gpu.kernel(cuda.compiled(source, way), "k"), grid, block, *arguments, **more)


def numbers(seed, count, low, high):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


def parity(lanes):
    return sum(1 << lane for lane in lanes if lane & 1)


# What each function gives lane `lane`, from the lanes of its mask and everybody's value.
FUNCTIONS = {
    "__shfl_sync(m, v, s)": lambda lane, group, v, s: v[s[lane] & 31] if s[lane] & 31 in group else None,
    "__shfl_sync(m, v, s, 8)": lambda lane, group, v, s: v[lane & 24 | s[lane] & 7] if lane & 24 | s[lane] & 7 in group else None,
    "__shfl_up_sync(m, v, 3)": lambda lane, group, v, s: v[lane] if lane < 3 else v[lane - 3] if lane - 3 in group else None,
    "__shfl_down_sync(m, v, 2, 16)": lambda lane, group, v, s: v[lane] if lane % 16 > 13 else v[lane + 2] if lane + 2 in group else None,
    "__shfl_xor_sync(m, v, 5)": lambda lane, group, v, s: v[lane ^ 5] if lane ^ 5 in group else None,
    "(int)__ballot_sync(m, v & 1)": lambda lane, group, v, s: sum(1 << i for i in group if v[i] & 1),
    "__any_sync(m, v == 3)": lambda lane, group, v, s: any(v[i] == 3 for i in group),
    "__all_sync(m, v != 3)": lambda lane, group, v, s: all(v[i] != 3 for i in group),
    "__uni(m, v == 3)": lambda lane, group, v, s: len({bool(v[i] == 3) for i in group}) == 1,
    "(int)__match_any_sync(m, v)": lambda lane, group, v, s: sum(1 << i for i in group if v[i] == v[lane]),
    "(int)__match_any_sync(m, v * 0x100000001ll)": lambda lane, group, v, s: sum(1 << i for i in group if v[i] == v[lane]),
    "(int)__match_all_sync(m, v / 4, &p) + p": lambda lane, group, v, s: (sum(1 << i for i in group) + 1)
                                               if len({v[i] // 4 for i in group}) == 1 else 0,
    "__reduce_add_sync(m, v)": lambda lane, group, v, s: sum(v[i] for i in group),
    "__reduce_min_sync(m, v - 4)": lambda lane, group, v, s: min(v[i] - 4 for i in group),
    "__reduce_max_sync(m, v - 4)": lambda lane, group, v, s: max(v[i] - 4 for i in group),
    "(int)__reduce_xor_sync(m, (unsigned)v)": lambda lane, group, v, s: numpy.bitwise_xor.reduce([v[i] for i in group]),
    "(int)__reduce_or_sync(m, (unsigned)v)": lambda lane, group, v, s: numpy.bitwise_or.reduce([v[i] for i in group]),
    "(int)__reduce_and_sync(m, (unsigned)v | 8)": lambda lane, group, v, s: numpy.bitwise_and.reduce([v[i] | 8 for i in group]),
}
UNI = """
__device__ int __uni(unsigned m, int p) {
    int r;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.sync.uni.pred q, p, %2; selp.s32 %0, 1, 0, q; }"
                 : "=r"(r) : "r"(p), "r"(m));
    return r;
}
"""
# Where the lanes call it: all together; each group in its own branch; group after group in a loop; from a function.
PLACES = {
    "together": "x = CALL;",
    "branches": "if (k == 0) x = CALL; else if (k == 1) { __nanosleep(0); x = CALL; } else if (k & 1) x = CALL; else x = CALL;",
    "loop": "for (int i = 0; i < 8; i++) if (i == k) x = CALL;",
    "switch": "switch (k) { case 0: x = CALL; break; case 1: x = CALL; case 2: x += k == 1 ? 0 : CALL; break; default: x = CALL; }",
    "call": "x = k < 3 ? f(m, v, s) : k < 5 ? f(m, v, s) : CALL;",
    "twice": "x = CALL; if (k & 1) x = CALL; __syncwarp(m); x = CALL;",
}


@pytest.mark.parametrize("place", PLACES)
def test_functions_of_parts_of_a_warp(gpu, way, place):
    """Lanes with one key are one group; each group has its own mask."""
    bodies = "".join(f"{{ int x = 0, p = 0; {PLACES[place].replace('CALL', f)} *o = x; o += n; }}\n".replace("f(m", f"f{i}(m")
                     for i, f in enumerate(FUNCTIONS))
    functions = "".join(f"__device__ __noinline__ int f{i}(unsigned m, int v, int s) {{ int p = 0; return {f}; }}\n"
                        for i, f in enumerate(FUNCTIONS))
    source = UNI + functions + f"""extern "C" __global__ void k(const int *keys, const int *values, const int *lanes, int *out) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
        int k = keys[i], v = values[i], s = lanes[i], *o = out + i;
        unsigned m = 0;
        for (int lane = 0; lane < 32; lane++) m |= (unsigned)(keys[i - i % 32 + lane] == k) << lane;
        {bodies} }}"""
    n = 3 * 32 * WARPS
    keys, values, lanes = numbers(1, n, 0, 7), numbers(2, n, 0, 8), numbers(3, n, 0, 32)
    keys[:32], keys[32:64], keys[64:96] = 2, LANES, LANES // 16
    out = numpy.zeros((len(FUNCTIONS), n), numpy.int32)
    run(gpu, way, source, 3, 32 * WARPS, keys, values, lanes, out)
    for row, (name, function) in zip(out, FUNCTIONS.items(), strict=True):
        for start in range(0, n, 32):
            k, v, s = (a[start:start + 32].astype(int) for a in (keys, values, lanes))
            for lane in range(32):
                if place == "loop" and not 0 <= k[lane] < 8:
                    continue
                want = function(lane, [i for i in range(32) if k[i] == k[lane]], v, s)
                if want is not None:
                    assert row[start + lane] == numpy.uint32(int(want) & 0xFFFFFFFF).astype(numpy.int32), (name, start, lane, k.tolist())


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int *keys, const int *values, int *out) {
    auto block = cg::this_thread_block();
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x, k = keys[i], v = values[i], *o = out + i;
    auto put = [&](int x) { *o = x; o += n; };
    auto warp = cg::tiled_partition<32>(block);
    auto labels = cg::labeled_partition(warp, k);
    put(cg::reduce(labels, v, cg::plus<int>()));
    put(labels.thread_rank() * 100 + labels.size());
    put(labels.shfl(v, 0));
    put(cg::inclusive_scan(labels, v));
    put(cg::exclusive_scan(labels, v, cg::plus<int>()));
    auto tile = cg::tiled_partition<8>(block);
    put(cg::reduce(tile, v, cg::greater<int>()));
    put(tile.ballot(v & 1));
    put(tile.match_any(k));
    auto halves = cg::binary_partition(tile, v > 3);
    put(cg::reduce(halves, v, cg::plus<int>()));
    int x = 0;
    if (v & 1) {
        auto here = cg::coalesced_threads();
        x = cg::reduce(here, v, cg::plus<int>()) * 100 + here.size();
        if (k & 1) { auto fewer = cg::coalesced_threads(); x += fewer.shfl(v, fewer.size() - 1) * 10000; fewer.sync(); }
    } else if (k & 1) {
        x = cg::coalesced_threads().size();
    }
    put(x);
    auto quarters = cg::labeled_partition(tile, k & 1);
    put(cg::reduce(quarters, v, cg::bit_xor<int>()));
}"""


def test_cooperative_groups(gpu, way):
    n = 2 * 32 * WARPS
    keys, values = numbers(4, n, 0, 5), numbers(5, n, 0, 8)
    out = numpy.zeros((11, n), numpy.int32)
    run(gpu, way, GROUPS, 2, 32 * WARPS, keys, values, out)
    for i in range(n):
        warp, tile = range(i & ~31, (i & ~31) + 32), range(i & ~7, (i & ~7) + 8)
        group = [j for j in warp if keys[j] == keys[i]]
        before = [j for j in group if j < i]
        odd = [j for j in warp if values[j] & 1]
        both = [j for j in odd if keys[j] & 1]
        if values[i] & 1:
            divergent = sum(values[odd]) * 100 + len(odd) + (values[both[-1]] * 10000 if keys[i] & 1 else 0)
        else:
            divergent = len([j for j in warp if keys[j] & 1 and not values[j] & 1]) if keys[i] & 1 else 0
        want = [sum(values[group]), len(before) * 100 + len(group), values[group[0]], sum(values[before]) + values[i],
                sum(values[before]), max(values[tile]), sum(1 << j % 8 for j in tile if values[j] & 1),
                sum(1 << j % 8 for j in tile if keys[j] == keys[i]),
                sum(values[[j for j in tile if (values[j] > 3) == (values[i] > 3)]]), divergent,
                numpy.bitwise_xor.reduce(values[[j for j in tile if keys[j] & 1 == keys[i] & 1]])]
        assert out[:, i].tolist() == want, i
