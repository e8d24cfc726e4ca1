"""Histograms, counters and sums as people write them in CUDA C++: `atomicAdd` and its kin on every type, in shared and global memory."""

import cuda
import numpy
import pytest

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// A histogram in shared memory, added to one in global memory.
template <class T> __device__ void histogram(const unsigned char *data, T *bins, int n) {
    __shared__ T mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = T(0);
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[data[i]], T(1));
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], mine[i]);
}
#define HISTOGRAM(name, T) \\
    extern "C" __global__ void histogram_##name(const unsigned char *data, T *bins, int n) { histogram<T>(data, bins, n); }
HISTOGRAM(int, int) HISTOGRAM(unsigned, unsigned) HISTOGRAM(long, unsigned long long)
HISTOGRAM(float, float) HISTOGRAM(double, double)
HISTOGRAM(half, __half) HISTOGRAM(bfloat, __nv_bfloat16)

// Counters that all threads, some threads, and threads in a loop of their own share.
extern "C" __global__ void counters(const int *x, int *out) {
    __shared__ int s[8];
    __shared__ unsigned u[4];
    for (int k = threadIdx.x; k < 8; k += blockDim.x) s[k] = 0;
    for (int k = threadIdx.x; k < 4; k += blockDim.x) u[k] = k;
    __syncthreads();
    int v = x[threadIdx.x];
    atomicAdd(&s[0], 1);
    if (v & 1) atomicAdd(&s[1], 1);
    if (v & 2) { atomicAdd(&s[2], 1); if (v & 4) atomicAdd(&s[2], 10); } else atomicSub(&s[2], 1);
    for (int k = 0; k < (v & 7); k++) atomicAdd(&s[3], 1);
    atomicAdd(&s[4 + (v & 1)], 1);
    atomicAdd(&s[6], v);
    atomicAdd(&s[7], -1);
    atomicInc(&u[0], 7);
    atomicDec(&u[1], 9);
    atomicAdd(&u[2], 1u);
    atomicAdd(u + 3, 0xffffffffu);
    __syncthreads();
    for (int k = threadIdx.x; k < 8; k += blockDim.x) out[k] = s[k];
    for (int k = threadIdx.x; k < 4; k += blockDim.x) out[8 + k] = u[k];
}

// Those that pass get places in the order in which they ask: a counter per block, one for all, and one whose address is generic.
extern "C" __global__ void compact(const int *x, int *kept, int *total, int *per_block, int n) {
    __shared__ int count, base;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, place = -1;
    if (i < n && x[i] % 3 == 0) place = atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0) { base = atomicAdd(total, count); per_block[blockIdx.x] = count; }
    __syncthreads();
    if (place >= 0) kept[base + place] = x[i];
}
extern "C" __global__ void anywhere(const int *x, int *out) {
    __shared__ int s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = 0;
    __syncthreads();
    int *at = x[threadIdx.x] & 1 ? &s[x[threadIdx.x] & 3] : &out[4 + (x[threadIdx.x] & 3)];
    atomicAdd(at, 1);
    atomicMax(at, 3);
    int old = atomicAdd(at, 2);
    out[8 + threadIdx.x] = old;
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = s[threadIdx.x];
}

// Two small floats at once: 0 global, 1 shared, 2 either; what was there is used or not.
template <class T, class P> __device__ void pairs(T *sums, T *olds, const P *x, int where, int keeps) {
    __shared__ T s[8];
    if (threadIdx.x < 8) s[threadIdx.x] = sums[threadIdx.x];
    __syncthreads();
    T v; v.x = x[2 * threadIdx.x]; v.y = x[2 * threadIdx.x + 1];
    int slot = threadIdx.x & 7;
    T *at = where == 0 || where == 2 && threadIdx.x % 3 ? &sums[slot] : &s[slot];
    if (keeps) olds[threadIdx.x] = atomicAdd(at, v); else atomicAdd(at, v);
    __syncthreads();
    if (where == 1 && threadIdx.x < 8) sums[threadIdx.x] = s[threadIdx.x];
    if (where == 2 && threadIdx.x < 8) sums[8 + threadIdx.x] = s[threadIdx.x];
}
#define PAIRS(name, T, P) \\
    extern "C" __global__ void pairs_##name(T *sums, T *olds, const P *x, int where, int keeps) { pairs(sums, olds, x, where, keeps); }
PAIRS(half, __half2, __half) PAIRS(bfloat, __nv_bfloat162, __nv_bfloat16)

// A maximum of floats and a product, which only compare-and-swap can make.
extern "C" __global__ void loops(const float *x, float *out) {
    __shared__ int most;
    __shared__ unsigned long long product;
    __shared__ unsigned short narrow[2];
    if (threadIdx.x == 0) { most = __float_as_int(-1e30f); product = 1; narrow[0] = narrow[1] = 0; }
    __syncthreads();
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int seen = most;
    while (__int_as_float(seen) < v) { int was = atomicCAS(&most, seen, __float_as_int(v)); if (was == seen) break; seen = was; }
    unsigned long long p = product, q;
    do { q = p; p = atomicCAS(&product, q, q * (2 * threadIdx.x + 3)); } while (p != q);
    unsigned short h = narrow[threadIdx.x & 1], g;
    do { g = h; h = atomicCAS(&narrow[threadIdx.x & 1], g, (unsigned short)(g + threadIdx.x)); } while (g != h);
    int all = __float_as_int(out[0]);
    while (__int_as_float(all) < v) { int was = atomicCAS((int *)out, all, __float_as_int(v)); if (was == all) break; all = was; }
    __syncthreads();
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = __int_as_float(most);
        ((unsigned long long *)out)[4 + blockIdx.x] = product;
        ((unsigned *)out)[16 + blockIdx.x] = narrow[0] | narrow[1] << 16;
    }
}

// A lock that the threads of a warp take one after another.
extern "C" __global__ void locked(int *out) {
    __shared__ int lock, inside, sum;
    if (threadIdx.x == 0) lock = inside = sum = 0;
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            int now = ++*(volatile int *)&inside;
            *(volatile int *)&sum += now * (int)threadIdx.x;
            *(volatile int *)&inside = 0;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""


@pytest.fixture(params=cuda.TRIED)
def kernel(request, gpu):
    return lambda name: gpu.kernel(cuda.compiled(SOURCE, request.param), name)


def bfloats(bits):
    """Numbers of bfloat16 bits."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


KINDS = {"int": numpy.int32, "unsigned": numpy.uint32, "long": numpy.uint64, "float": numpy.float32, "double": numpy.float64,
         "half": numpy.float16, "bfloat": numpy.uint16}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skewed", [False, True])
def test_histogram(gpu, kernel, kind, skewed):
    draw = numpy.random.default_rng(1)
    data = draw.integers(0, 256, 2000, numpy.uint8)
    if skewed:  # all threads at a few bins; bfloat16 counts to 256
        data = data[:700] % 4 * 60
    bins = numpy.zeros(256, KINDS[kind])
    gpu.launch(kernel(f"histogram_{kind}"), 3, 128, data, bins, numpy.int32(len(data)))
    counts = bfloats(bins) if kind == "bfloat" else bins
    assert (counts == numpy.bincount(data, minlength=256)).all()


@pytest.mark.parametrize("threads", [1, 31, 32, 100, 256])
def test_shared_counters(gpu, kernel, threads):
    x = numpy.random.default_rng(threads).integers(-50, 50, threads, numpy.int32)
    out = numpy.zeros(12, numpy.int32)
    gpu.launch(kernel("counters"), 1, threads, x, out)
    two = numpy.where(x & 2, numpy.where(x & 4, 11, 1), -1).sum()
    want = [threads, (x & 1).sum(), two, (x & 7).sum(), (x & 1 == 0).sum(), (x & 1).sum(), x.sum(), -threads]
    down = 1
    for _ in range(threads):
        down = 9 if down == 0 or down > 9 else down - 1
    assert out.tolist() == [*want, threads % 8, down, 2 + threads, 3 - threads]


@pytest.mark.parametrize(("n", "blocks", "threads"), [(64, 1, 64), (1000, 5, 224), (4000, 16, 256)])
def test_compaction(gpu, kernel, n, blocks, threads):
    x = numpy.random.default_rng(n).permutation(n).astype(numpy.int32)
    kept, total, per_block = numpy.full(n, -1, numpy.int32), numpy.zeros(1, numpy.int32), numpy.zeros(blocks, numpy.int32)
    gpu.launch(kernel("compact"), blocks, threads, x, kept, total, per_block, numpy.int32(n))
    want = x[x % 3 == 0]
    assert total[0] == per_block.sum() == len(want) and (kept[total[0]:] == -1).all()
    assert (numpy.sort(kept[:total[0]]) == numpy.sort(want)).all()


def test_counters_at_generic_addresses(gpu, kernel):
    x = numpy.random.default_rng(3).integers(0, 4, 128, numpy.int32)
    out = numpy.zeros(8 + 128, numpy.int32)
    gpu.launch(kernel("anywhere"), 1, 128, x, out)
    counts = numpy.bincount(x, minlength=4)
    # Threads meet in any order, so a maximum with 3 comes to 3 or leaves what more than one sum made.
    for value, count in enumerate(counts):
        got = out[value] if value & 1 else out[4 + value]
        assert 3 * count <= got <= 3 * count + 2 and (out[4 + value] if value & 1 else out[value]) == 0
        olds = out[8:][x == value]
        assert len(set(olds)) == count and olds.min() >= 3 and olds.max() < got


@pytest.mark.parametrize("name", ["half", "bfloat"])
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("keeps", [0, 1])
def test_pairs_of_small_floats(gpu, kernel, name, where, keeps):
    numbers = numpy.arange(192) % 5 + 1
    first = numpy.arange(16)

    def store(x):
        return (x.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16) if name == "bfloat" else x.astype(numpy.float16)

    def load(x):
        return bfloats(x) if name == "bfloat" else x.astype(numpy.float32)

    sums = numpy.concatenate([store(first), store(numpy.zeros(16))])
    olds = store(numpy.full(192, -1))
    gpu.launch(kernel(f"pairs_{name}"), 1, 96, sums, olds, store(numbers), numpy.int32(where), numpy.int32(keeps))
    thread = numpy.arange(96)
    in_global = thread >= 0 if where == 0 else thread < 0 if where == 1 else thread % 3 != 0
    got = load(sums).reshape(2, 8, 2)
    for slot in range(8):
        for part in range(2):
            begin, added = first.reshape(8, 2)[slot, part], numbers.reshape(96, 2)[:, part]
            for mine, final in ((in_global, got[0]), (~in_global, got[1 if where == 2 else 0])):
                mine = mine & (thread & 7 == slot)
                if mine.any():
                    assert final[slot, part] == begin + added[mine].sum(), (slot, part)
                    # In some order each found what the ones before it had made.
                    if keeps:
                        found = load(olds).reshape(96, 2)[mine, part]
                        order = numpy.argsort(found)
                        steps = numpy.concatenate([[begin], begin + numpy.cumsum(added[mine][order])[:-1]])
                        assert (found[order] == steps).all(), (slot, part)


def test_loops_of_compare_and_swap(gpu, kernel):
    x = numpy.random.default_rng(5).normal(size=3 * 96).astype(numpy.float32)
    out = numpy.zeros(24, numpy.float32)
    out[0] = -1e30
    gpu.launch(kernel("loops"), 3, 96, x, out)
    assert out[0] == x.max() and (out[1:4] == x.reshape(3, 96).max(1)).all()
    product = 1
    for thread in range(96):
        product = product * (2 * thread + 3) % (1 << 64)
    assert out.view(numpy.uint64)[4:7].tolist() == [product] * 3
    even, odd = sum(range(0, 96, 2)), sum(range(1, 96, 2))
    assert out.view(numpy.uint32)[16:19].tolist() == [even | odd << 16] * 3


def test_a_lock_inside_a_warp(gpu, kernel):
    out = numpy.zeros(2, numpy.int32)
    gpu.launch(kernel("locked"), 2, 96, out)
    assert out.tolist() == [sum(range(96))] * 2
