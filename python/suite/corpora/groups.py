"""Cooperative groups and libcu++: tiles, coalesced and labelled groups, their algorithms, atomics, barriers, latches and semaphores."""
# ruff: noqa: D103 - each function yields the cases that its name says.
import numpy
from case import Case

GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
template <int W> __device__ void tile(const int *in, int *out) {
    auto t = cg::tiled_partition<W>(cg::this_thread_block());
    int i = threadIdx.x, x = in[i];
    out[i] = cg::reduce(t, x, cg::plus<int>());
    out[i + 256] = cg::inclusive_scan(t, x, cg::plus<int>());
    out[i + 512] = cg::exclusive_scan(t, x, cg::greater<int>()) * (t.thread_rank() != 0);
    out[i + 768] = t.shfl_xor(x, W / 2) + 1000 * t.any(x > 40) + 2000 * t.all(x > -45) + (int)t.meta_group_rank();
}
extern "C" __global__ void tile4(const int *in, int *out) { tile<4>(in, out); }
extern "C" __global__ void tile16(const int *in, int *out) { tile<16>(in, out); }
extern "C" __global__ void tile32(const int *in, int *out) { tile<32>(in, out); }
extern "C" __global__ void labelled(const int *in, int *out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = threadIdx.x, x = in[i], label = x & 3;
    auto g = cg::labeled_partition(warp, label);
    out[i] = cg::reduce(g, x, cg::plus<int>());
    out[i + 256] = g.size();
    out[i + 512] = g.thread_rank();
    out[i + 768] = 0;
    if (x > 0) { auto c = cg::coalesced_threads(); out[i + 768] = cg::reduce(c, x, cg::greater<int>()) + 100 * c.size(); }
}
extern "C" __global__ void block(const int *in, int *out) {
    auto b = cg::this_thread_block();
    __shared__ int s[256];
    cg::memcpy_async(b, s, in, sizeof s);
    cg::wait(b);
    int i = threadIdx.x;
    out[i] = s[255 - i];
    b.sync();
    auto token = b.barrier_arrive();
    s[i] = i;
    b.barrier_wait(std_move(token));
    auto half = cg::tiled_partition(b, 16);
    half.sync();
    out[i + 256] = half.size() + 100 * half.thread_rank();
    auto part = cg::binary_partition(cg::tiled_partition<32>(b), in[i] > 0);
    out[i + 512] = part.size();
    out[i + 768] = b.group_index().x + b.thread_index().x;
}""".replace("std_move(token)", "static_cast<decltype(token)&&>(token)")


def by(x, width, function):
    return numpy.concatenate([function(g) for g in x.reshape(-1, width)])


def tiles(width):
    def reference(x):
        t = x.reshape(-1, width)
        running = numpy.maximum.accumulate(t, 1)
        before = numpy.concatenate((numpy.zeros((len(t), 1), x.dtype), running[:, :-1]), 1)
        mixed = t[:, numpy.arange(width) ^ width // 2] + 1000 * (t > 40).any(1, keepdims=True) + 2000 * (t > -45).all(1, keepdims=True)
        mixed += numpy.arange(len(t))[:, None]
        return numpy.concatenate((by(x, width, lambda g: numpy.full(width, g.sum())), t.cumsum(1).ravel(), before.ravel(), mixed.ravel())).astype(x.dtype)
    return reference


def labels(x):
    found = numpy.zeros((4, len(x)), x.dtype)
    for w in range(0, len(x), 32):
        lanes = numpy.arange(w, w + 32)
        for label in range(4):
            group = lanes[(x[lanes] & 3) == label]
            found[0, group], found[1, group], found[2, group] = x[group].sum(), len(group), numpy.arange(len(group))
        some = lanes[x[lanes] > 0]
        if len(some):
            found[3, some] = x[some].max() + 100 * len(some)
    return found.ravel()


def blocks(x):
    lanes = numpy.arange(len(x))
    sizes = by(x, 32, lambda g: numpy.where(g > 0, (g > 0).sum(), (g <= 0).sum()))
    return numpy.concatenate((x[::-1], 16 + 100 * (lanes % 16), sizes, lanes)).astype(x.dtype)


def cooperative():
    x = numpy.random.default_rng(1).integers(-50, 50, 256).astype(numpy.int32)
    launches = [("tile4", 1, 256, x, tiles(4)), ("tile16", 1, 256, x, tiles(16)), ("tile32", 1, 256, x, tiles(32)), ("labelled", 1, 256, x, labels),
                ("block", 1, 256, x, blocks)]
    for kernel in launches:
        yield Case(f"groups/{kernel[0]}", GROUPS, [kernel])


STANDARD = """
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cuda/std/bit>
extern "C" __global__ void atomics(const int *in, int *out) {
    __shared__ cuda::atomic<int, cuda::thread_scope_block> most, count;
    if (threadIdx.x == 0) { most = -1000; count = 0; }
    __syncthreads();
    int x = in[threadIdx.x];
    most.fetch_max(x);
    int old = count.load();
    while (!count.compare_exchange_weak(old, old + x, cuda::std::memory_order_acq_rel)) {}
    __syncthreads();
    out[threadIdx.x] = most.load() + 10000 * (count.load(cuda::std::memory_order_relaxed) == 0) + count.load();
}
extern "C" __global__ void barriers(const int *in, int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    __shared__ int s[256];
    auto *p = &b;
    if (threadIdx.x == 0) init(p, 256);
    __syncthreads();
    int x = in[threadIdx.x];
    for (int k = 0; k < 5; ++k) { s[threadIdx.x] = x; b.arrive_and_wait(); x = s[(threadIdx.x + 17) % 256] + 1; b.wait(b.arrive()); }
    out[threadIdx.x] = x;
}
extern "C" __global__ void semaphores(const int *in, int *out) {
    using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 1>;
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ __align__(8) char one[sizeof(Semaphore)], other[sizeof(Latch)];
    Semaphore &free_ = *reinterpret_cast<Semaphore *>(one);
    Latch &done = *reinterpret_cast<Latch *>(other);
    __shared__ int sum;
    if (threadIdx.x == 0) { new (one) Semaphore(1); new (other) Latch(8); sum = 0; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) { free_.acquire(); int old = *(volatile int *)&sum; __nanosleep(20); *(volatile int *)&sum = old + in[threadIdx.x]; __threadfence_block(); free_.release(); done.count_down(); }
    done.wait();
    out[threadIdx.x] = *(volatile int *)&sum;
}
extern "C" __global__ void values(const int *in, int *out) {
    cuda::std::complex<float> z(in[threadIdx.x], 2), w(1, -1);
    z = z * w + cuda::std::conj(w);
    cuda::std::array<int, 4> a = {in[threadIdx.x], 2, 3, 4};
    auto t = cuda::std::make_tuple(a[0] + a[3], (short)cuda::std::popcount((unsigned)in[threadIdx.x]));
    out[threadIdx.x] = (int)z.real() * 1000 + (int)z.imag() + 7 * cuda::std::get<0>(t) + cuda::std::get<1>(t) + cuda::std::countl_zero((unsigned)in[threadIdx.x] | 1);
}"""


def library():
    x = numpy.random.default_rng(2).integers(-50, 50, 256).astype(numpy.int32)

    def after_barriers(v):
        for _ in range(5):
            v = numpy.roll(v, -17) + 1
        return v.astype(numpy.int32)

    def all_values(v):
        u = v.astype(numpy.uint32)
        bits = numpy.array([int(k).bit_count() for k in u])
        zeros = numpy.array([32 - int(k | 1).bit_length() for k in u])
        return ((v + 2 + 1) * 1000 + (2 - v + 1) + 7 * (v + 4) + bits + zeros).astype(numpy.int32)
    total = int(x.sum())
    launches = [("atomics", lambda v: numpy.full(256, v.max() + 10000 * (total == 0) + total, numpy.int32)), ("barriers", after_barriers),
                ("semaphores", lambda v: numpy.full(256, v[::32].sum(), numpy.int32)), ("values", all_values)]
    for kernel, reference in launches:
        yield Case(f"libcu++/{kernel}", STANDARD, [(kernel, 1, 256, x, reference)])


CASES = [cooperative, library]
