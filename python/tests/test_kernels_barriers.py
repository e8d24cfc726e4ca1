"""Barriers in shared memory: PTX's mbarrier, and libcu++'s `barrier`, `latch`, `semaphore` and `atomic`, which wait in loops."""

import cuda
import numpy
import pytest

MBARRIER = """
typedef unsigned long long u64;
#define SHARED(p) "r"((unsigned)__cvta_generic_to_shared(p))
#define STATE(text, p, ...) u64 s; asm volatile(text : "=l"(s) : SHARED(p), ##__VA_ARGS__ : "memory"); return s
#define TEST(text, p, what) \\
    int r; asm volatile("{.reg .pred p; " text "; selp.s32 %0, 1, 0, p;}" : "=r"(r) : SHARED(p), what : "memory"); return r
__device__ void init(u64 *b, unsigned n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: SHARED(b), "r"(n) : "memory"); }
__device__ u64 arrive(u64 *b) { STATE("mbarrier.arrive.shared.b64 %0, [%1];", b); }
__device__ u64 arrive_early(u64 *b, unsigned n) { STATE("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;", b, "r"(n)); }
__device__ u64 drop(u64 *b) { STATE("mbarrier.arrive_drop.shared.b64 %0, [%1];", b); }
__device__ u64 drop_early(u64 *b, unsigned n) { STATE("mbarrier.arrive_drop.noComplete.shared.b64 %0, [%1], %2;", b, "r"(n)); }
__device__ int over(u64 *b, u64 s) { TEST("mbarrier.test_wait.shared.b64 p, [%1], %2", b, "l"(s)); }
__device__ int over_parity(u64 *b, unsigned parity) { TEST("mbarrier.test_wait.parity.shared.b64 p, [%1], %2", b, "r"(parity)); }
__device__ int pending(u64 s) { int r; asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(r) : "l"(s)); return r; }

// One thread, step by step.
extern "C" __global__ void steps(int *out) {
    __shared__ u64 b;
    int k = 0;
    init(&b, 4);
    u64 first = arrive(&b);
    out[k++] = pending(first); out[k++] = over(&b, first); out[k++] = over_parity(&b, 0); out[k++] = over_parity(&b, 1);
    u64 second = arrive_early(&b, 2);
    out[k++] = pending(second); out[k++] = over(&b, first);
    u64 third = arrive(&b);
    out[k++] = pending(third); out[k++] = over(&b, first); out[k++] = over(&b, third);
    out[k++] = over_parity(&b, 0); out[k++] = over_parity(&b, 1);
    u64 fourth = drop(&b);
    out[k++] = pending(fourth); out[k++] = over(&b, fourth);
    out[k++] = pending(drop_early(&b, 2));
    out[k++] = pending(arrive(&b)); out[k++] = over(&b, fourth); out[k++] = over_parity(&b, 1); out[k++] = over_parity(&b, 0);
    // One is left: it ends a phase by itself.
    u64 last = arrive(&b);
    out[k++] = pending(last); out[k++] = over(&b, last);
    last = arrive(&b);
    out[k++] = pending(last); out[k++] = over(&b, last);
    asm volatile("mbarrier.inval.shared.b64 [%0];" :: SHARED(&b) : "memory");
    init(&b, 1);
    out[k++] = pending(arrive(&b)); out[k++] = over_parity(&b, 0);
}

// All threads of a block, many phases: each reads what its neighbour wrote in the phase before.
extern "C" __global__ void phases(int *out, int rounds) {
    __shared__ u64 b[3];
    __shared__ int a[2][1024];
    int n = blockDim.x, me = threadIdx.x, seen = me, states = 0;
    if (me == 0) for (int k = 0; k < 3; k++) init(&b[k], n);
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        a[r & 1][me] = seen + r;
        u64 state = arrive(&b[r % 3]);
        states |= pending(state) < 1 || pending(state) > n;
        if (r & 1) while (!over(&b[r % 3], state)); else while (!over_parity(&b[r % 3], r / 3 & 1));
        seen = a[r & 1][(me + 1) % n];
    }
    out[me] = states ? -1 : seen;
}

// A warp leaves in every round, those of the last one stay.
extern "C" __global__ void leaving(int *out) {
    __shared__ u64 b;
    __shared__ int count;
    if (threadIdx.x == 0) { init(&b, blockDim.x); count = 0; }
    __syncthreads();
    int warps = blockDim.x / 32;
    for (int r = 0; r < warps; r++) {
        atomicAdd(&count, 1);
        if (threadIdx.x / 32 == r && r + 1 < warps) { out[threadIdx.x] = -r - 1; drop(&b); return; }
        u64 state = arrive(&b);
        while (!over(&b, state));
        if (threadIdx.x == blockDim.x - 1) out[blockDim.x + r] = count;
        // Nobody may count the next round before the last thread has read this one's count.
        state = arrive(&b);
        while (!over(&b, state));
    }
    out[threadIdx.x] = 1;
}

// Copies that arrive by themselves: counted by the barrier from the start, or on top of it.
template <bool ON_TOP> __device__ void copies(const int *in, int *out) {
    __shared__ u64 b;
    __shared__ int a[512];
    int n = blockDim.x, me = threadIdx.x;
    if (me == 0) init(&b, ON_TOP ? n : 2 * n);
    __syncthreads();
    for (int r = 0; r < 4; r++) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: SHARED(&a[me]), "l"(in + r * n + me) : "memory");
        if (ON_TOP) asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: SHARED(&b) : "memory");
        else asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: SHARED(&b) : "memory");
        u64 state = arrive(&b);
        while (!over(&b, state));
        out[r * n + me] = a[n - 1 - me];
        __syncthreads();
    }
}
extern "C" __global__ void copies_on_top(const int *in, int *out) { copies<true>(in, out); }
extern "C" __global__ void copies_counted(const int *in, int *out) { copies<false>(in, out); }

// Neighbours use barriers of their own: the instruction takes its address from a uniform register, so the compiler makes a loop.
extern "C" __global__ void copies_apart(const int *in, int *out) {
    __shared__ u64 b[4];
    __shared__ int a[512];
    int n = blockDim.x, me = threadIdx.x;
    if (me < 4) init(&b[me], 2 * ((n - me + 3) / 4));
    __syncthreads();
    u64 *mine = &b[me & 3];
    for (int r = 0; r < 4; r++) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: SHARED(&a[me]), "l"(in + r * n + me) : "memory");
        if (me % 5) asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: SHARED(mine) : "memory");
        else { asm volatile("cp.async.wait_all;" ::: "memory"); arrive(mine); }
        u64 state = arrive(mine);
        while (!over(mine, state));
        out[r * n + me] = a[(me + 4) % n & ~3 | me & 3];
        __syncthreads();
    }
}

// Addresses that only say where they lie when they are used.
extern "C" __global__ void generic(int *out) {
    __shared__ u64 b[2];
    u64 *p = &b[1];
    asm volatile("" : "+l"(p));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.b64 [%0], %1;" :: "l"(p), "r"(blockDim.x) : "memory");
    __syncthreads();
    u64 s; int r = 0;
    asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(s) : "l"(p) : "memory");
    while (!r)
        asm volatile("{.reg .pred p; mbarrier.test_wait.b64 p, [%1], %2; selp.s32 %0, 1, 0, p;}" : "=r"(r) : "l"(p), "l"(s) : "memory");
    out[threadIdx.x] = over_parity(&b[1], 0) * 2 + over_parity(&b[1], 1);
}
"""

LIBCUXX = """
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <cuda/std/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void meet(int *out, int rounds) {
    __shared__ block_barrier barrier;
    __shared__ int a[2][512];
    int n = blockDim.x, me = threadIdx.x, seen = me;
    if (me == 0) init(&barrier, n);
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        a[r & 1][me] = seen + r;
        if (r % 4 == 0) barrier.arrive_and_wait();
        else if (r % 4 == 1) { auto token = barrier.arrive(); barrier.wait(static_cast<block_barrier::arrival_token &&>(token)); }
        else if (r % 4 == 2) { (void)barrier.arrive(); barrier.wait_parity(r & 1); }
        else {
            auto token = barrier.arrive();
            while (!barrier.try_wait_for(static_cast<block_barrier::arrival_token &&>(token), cuda::std::chrono::microseconds(50)));
        }
        seen = a[r & 1][(me + 1) % n];
    }
    out[me] = seen;
}

// Warps hand a buffer to and fro: the first one fills it, the others empty it.
extern "C" __global__ void hand_over(int *out, int rounds) {
    __shared__ block_barrier full[2], empty[2];
    __shared__ int buffer[2][32];
    if (threadIdx.x < 2) { init(&full[threadIdx.x], blockDim.x); init(&empty[threadIdx.x], blockDim.x); }
    __syncthreads();
    int sum = 0;
    if (threadIdx.x < 32) {
        for (int r = 0; r < rounds; r++) {
            if (r >= 2) empty[r & 1].arrive_and_wait();
            buffer[r & 1][threadIdx.x] = r * 32 + threadIdx.x;
            (void)full[r & 1].arrive();
        }
    } else {
        for (int r = 0; r < rounds; r++) {
            full[r & 1].arrive_and_wait();
            sum += buffer[r & 1][threadIdx.x % 32] * (threadIdx.x / 32);
            if (r + 2 < rounds) (void)empty[r & 1].arrive();
        }
    }
    out[threadIdx.x] = sum;
}

// Threads of one warp wait for each other in branches of their own.
extern "C" __global__ void inside_a_warp(int *out) {
    __shared__ block_barrier barrier;
    __shared__ int a[32];
    if (threadIdx.x == 0) init(&barrier, 32);
    __syncwarp();
    if (threadIdx.x & 1) { a[threadIdx.x] = threadIdx.x; barrier.arrive_and_wait(); out[threadIdx.x] = a[threadIdx.x - 1]; }
    else { a[threadIdx.x] = 2 * threadIdx.x; barrier.arrive_and_wait(); out[threadIdx.x] = a[threadIdx.x + 1]; }
}

extern "C" __global__ void drop_out(int *out) {
    __shared__ block_barrier barrier;
    __shared__ int count;
    if (threadIdx.x == 0) { init(&barrier, blockDim.x); count = 0; }
    __syncthreads();
    for (unsigned r = 0; r <= threadIdx.x / 16; r++) { atomicAdd(&count, 1); barrier.arrive_and_wait(); }
    out[threadIdx.x] = atomicAdd(&count, 0);
    barrier.arrive_and_drop();
}

struct Completion { int *runs; __device__ void operator()() noexcept { ++*runs; } };
extern "C" __global__ void with_completion(int *out, int rounds) {
    using barrier_t = cuda::barrier<cuda::thread_scope_block, Completion>;
    __shared__ alignas(barrier_t) unsigned char room[sizeof(barrier_t)];
    __shared__ int runs;
    barrier_t *barrier = (barrier_t *)room;
    if (threadIdx.x == 0) { runs = 0; new (barrier) barrier_t(blockDim.x, Completion{&runs}); }
    __syncthreads();
    int wrong = 0;
    for (int r = 0; r < rounds; r++) { barrier->arrive_and_wait(); wrong |= *(volatile int *)&runs < r + 1; }
    out[threadIdx.x] = wrong ? -1 : runs;
}

// In global memory, for all blocks: these are not mbarriers.
extern "C" __global__ void of_the_device(cuda::barrier<cuda::thread_scope_device> *barrier, int *a, int *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x, seen = i;
    for (int r = 0; r < rounds; r++) {
        a[(r & 1) * n + i] = seen + r;
        barrier->arrive_and_wait();
        seen = ((volatile int *)a)[(r & 1) * n + (i + blockDim.x) % n];
    }
    out[i] = seen;
}
extern "C" __global__ void make_device_barrier(cuda::barrier<cuda::thread_scope_device> *barrier, int n) {
    new (barrier) cuda::barrier<cuda::thread_scope_device>(n);
}

extern "C" __global__ void latches(int *out) {
    __shared__ cuda::latch<cuda::thread_scope_block> *latch;
    __shared__ alignas(8) unsigned char room[sizeof(cuda::latch<cuda::thread_scope_block>)];
    __shared__ cuda::std::atomic<int> turns;
    if (threadIdx.x == 0) { latch = new (room) cuda::latch<cuda::thread_scope_block>(blockDim.x - 32); turns = 0; }
    __syncthreads();
    if (threadIdx.x >= 32) { turns.fetch_add(1); latch->count_down(); } else latch->wait();
    if (threadIdx.x < 32) out[threadIdx.x] = turns.load();
}

extern "C" __global__ void semaphores(int *out) {
    __shared__ alignas(8) unsigned char room[sizeof(cuda::counting_semaphore<cuda::thread_scope_block, 4>)];
    __shared__ int inside, most, sum;
    auto *semaphore = (cuda::counting_semaphore<cuda::thread_scope_block, 4> *)room;
    if (threadIdx.x == 0) { new (room) cuda::counting_semaphore<cuda::thread_scope_block, 4>(4); inside = most = sum = 0; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        for (int r = 0; r < 5; r++) {
            semaphore->acquire();
            atomicMax(&most, atomicAdd(&inside, 1) + 1);
            atomicAdd(&sum, 1);
            atomicSub(&inside, 1);
            semaphore->release();
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) { out[0] = most; out[1] = sum; out[2] = inside; }
}

template <class A> __device__ void all_of(A &a, long long *out, int i) {
    using T = decltype(a.load());
    atomicAdd((unsigned long long *)out, (unsigned long long)a.fetch_add(T(3), cuda::std::memory_order_relaxed) * 0 + 1);
    a.fetch_sub(T(1), cuda::std::memory_order_acq_rel);
    a += T(2);
    a++;
    T seen = a.load(cuda::std::memory_order_acquire);
    while (!a.compare_exchange_weak(seen, T(seen + 7), cuda::std::memory_order_seq_cst, cuda::std::memory_order_relaxed));
    T want = a.load();
    if (a.compare_exchange_strong(want, want)) atomicAdd((unsigned long long *)out + 1, 1ull);
}
template <class T> __device__ void atomics(cuda::atomic<T, cuda::thread_scope_device> *global, long long *out) {
    __shared__ cuda::atomic<T, cuda::thread_scope_block> shared;
    if (threadIdx.x == 0) shared = T(0);
    __syncthreads();
    all_of(shared, out, threadIdx.x);
    all_of(*global, out + 2, threadIdx.x);
    cuda::atomic<T, cuda::thread_scope_thread> mine(T(0));
    all_of(mine, out + 4, threadIdx.x);
    T plain = T(threadIdx.x);
    cuda::atomic_ref<T, cuda::thread_scope_thread> ref(plain);
    ref.fetch_max(T(20));
    ref.fetch_min(T(40));
    __syncthreads();
    if (threadIdx.x == 0) out[6 + blockIdx.x] = (long long)shared.load();
    out[16 + blockIdx.x * blockDim.x + threadIdx.x] = (long long)mine.load() * 1000 + (long long)plain;
}
#define ATOMICS(name, T) \\
    extern "C" __global__ void atomic_##name(cuda::atomic<T, cuda::thread_scope_device> *g, long long *out) { atomics<T>(g, out); }
ATOMICS(char, signed char) ATOMICS(short, short) ATOMICS(int, int) ATOMICS(unsigned, unsigned) ATOMICS(long, long long)
ATOMICS(float, float) ATOMICS(double, double)

struct Wide { int a, b; };
extern "C" __global__ void odd_atomics(int *out) {
    __shared__ cuda::atomic<Wide, cuda::thread_scope_block> wide;
    __shared__ cuda::std::atomic_flag flag;
    __shared__ cuda::atomic<int, cuda::thread_scope_block> turn;
    if (threadIdx.x == 0) { wide = Wide{0, 0}; flag.clear(); turn = 0; }
    __syncthreads();
    Wide seen = wide.load(), next;
    do { next = Wide{seen.a + 1, seen.b + (int)threadIdx.x}; } while (!wide.compare_exchange_weak(seen, next));
    if (!flag.test_and_set()) out[2] = 5;
    // Warps in turn: each waits for a value, and tells the next one.
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        for (int now = turn.load(); now != warp; now = turn.load()) turn.wait(now);
        out[3] = out[3] * 3 + warp;
        __threadfence();
        turn.store(warp + 1);
        turn.notify_all();
    }
    __syncthreads();
    if (threadIdx.x == 0) { out[0] = wide.load().a; out[1] = wide.load().b; }
}
"""

# Transactions count bytes; sm_87 has no such barriers.
TRANSACTIONS = """
#include <cuda/barrier>
extern "C" __global__ void transactions(int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, 1);
    __syncthreads();
    (void)cuda::device::barrier_arrive_tx(barrier, 1, 16);
}
"""


@pytest.fixture(params=cuda.TRIED)
def mbarrier(request, gpu):
    return lambda name: gpu.kernel(cuda.compiled(MBARRIER, request.param), name)


@pytest.fixture(params=cuda.TRIED)
def libcuxx(request, gpu):
    return lambda name: gpu.kernel(cuda.compiled(LIBCUXX, request.param, "--define-macro=NDEBUG"), name)


def handed_round(n, rounds, step=1):
    seen = numpy.arange(n)
    for r in range(rounds):
        seen = numpy.roll(seen + r, -step)
    return seen


def test_step_by_step(gpu, mbarrier):
    out = numpy.full(24, -1, numpy.int32)
    gpu.launch(mbarrier("steps"), 1, 1, out)
    assert out.tolist() == [
        4, 0, 0, 1,  # the first of four arrives; the phase before the first counts as over
        3, 0,
        1, 1, 1, 1, 0,  # the last one ends phase 0
        4, 0,  # the next phase, which one leaves
        3,  # two more leave
        1, 1, 1, 0,  # and the last one ends phase 1
        1, 1, 1, 1,  # a barrier of one
        1, 1,
    ]


@pytest.mark.parametrize("threads", [1, 20, 32, 96, 512])
def test_many_phases(gpu, mbarrier, threads):
    out = numpy.zeros(threads, numpy.int32)
    gpu.launch(mbarrier("phases"), 1, threads, out, numpy.int32(13))
    assert (out == handed_round(threads, 13)).all()


def test_threads_leave(gpu, mbarrier):
    out = numpy.zeros(128 + 4, numpy.int32)
    gpu.launch(mbarrier("leaving"), 1, 128, out)
    assert out[:128].tolist() == [-1] * 32 + [-2] * 32 + [-3] * 32 + [1] * 32
    assert out[128:].tolist() == [128, 224, 288, 320]


@pytest.mark.parametrize("how", ["on_top", "counted"])
@pytest.mark.parametrize("threads", [32, 75, 256])
def test_copies_arrive(gpu, mbarrier, how, threads):
    data = numpy.random.default_rng(threads).integers(0, 1 << 30, (4, threads), numpy.int32)
    out = numpy.zeros_like(data)
    gpu.launch(mbarrier(f"copies_{how}"), 1, threads, data, out)
    assert (out == data[:, ::-1]).all()


@pytest.mark.parametrize("threads", [32, 64, 256])
def test_copies_arrive_at_several_barriers(gpu, mbarrier, threads):
    data = numpy.random.default_rng(threads).integers(0, 1 << 30, (4, threads), numpy.int32)
    out = numpy.zeros_like(data)
    gpu.launch(mbarrier("copies_apart"), 1, threads, data, out)
    assert (out == numpy.roll(data, -4, 1)).all()


def test_generic_addresses(gpu, mbarrier):
    out = numpy.zeros(64, numpy.int32)
    gpu.launch(mbarrier("generic"), 1, 64, out)
    assert (out == 2).all()


@pytest.mark.parametrize("threads", [32, 50, 256])
def test_threads_meet(gpu, libcuxx, threads):
    out = numpy.zeros(threads, numpy.int32)
    gpu.launch(libcuxx("meet"), 1, threads, out, numpy.int32(12))
    assert (out == handed_round(threads, 12)).all()


@pytest.mark.parametrize("threads", [64, 128])
def test_a_buffer_is_handed_over(gpu, libcuxx, threads):
    out = numpy.zeros(threads, numpy.int32)
    gpu.launch(libcuxx("hand_over"), 1, threads, out, numpy.int32(9))
    lane, warp = numpy.arange(threads) % 32, numpy.arange(threads) // 32
    assert (out == warp * sum(r * 32 + lane for r in range(9))).all()


def test_a_barrier_inside_a_warp(gpu, libcuxx):
    out = numpy.zeros(32, numpy.int32)
    gpu.launch(libcuxx("inside_a_warp"), 1, 32, out)
    lane = numpy.arange(32)
    assert (out == numpy.where(lane & 1, 2 * (lane - 1), lane + 1)).all()


def test_threads_drop_out(gpu, libcuxx):
    out = numpy.zeros(128, numpy.int32)
    gpu.launch(libcuxx("drop_out"), 1, 128, out)
    # Those that stay may have counted already when the others look.
    least = numpy.cumsum(numpy.arange(8, 0, -1) * 16)
    assert (out >= numpy.repeat(least, 16)).all() and out.max() <= least[-1]


def test_a_function_runs_when_a_phase_ends(gpu, libcuxx):
    out = numpy.zeros(96, numpy.int32)
    gpu.launch(libcuxx("with_completion"), 1, 96, out, numpy.int32(6))
    assert (out >= 6).all()


@pytest.mark.parametrize(("blocks", "threads"), [(2, 32), (8, 64)])
def test_a_barrier_of_all_blocks(gpu, libcuxx, blocks, threads):
    n = blocks * threads
    barrier, out, room = numpy.zeros(64, numpy.uint64), numpy.zeros(n, numpy.int32), numpy.zeros(2 * n, numpy.int32)
    gpu.launch(libcuxx("make_device_barrier"), 1, 1, barrier, numpy.int32(n))
    gpu.launch(libcuxx("of_the_device"), blocks, threads, barrier, room, out, numpy.int32(5))
    assert (out == handed_round(n, 5, threads)).all()


def test_latches(gpu, libcuxx):
    out = numpy.zeros(32, numpy.int32)
    gpu.launch(libcuxx("latches"), 1, 128, out)
    assert (out == 96).all()


def test_semaphores(gpu, libcuxx):
    out = numpy.zeros(3, numpy.int32)
    gpu.launch(libcuxx("semaphores"), 1, 256, out)
    assert 1 <= out[0] <= 4 and out[1:].tolist() == [40, 0]


KINDS = {"char": numpy.int8, "short": numpy.int16, "int": numpy.int32, "unsigned": numpy.uint32, "long": numpy.int64,
         "float": numpy.float32, "double": numpy.float64}


# Loops of compare-and-swap for what is narrower than a word, and for what is no integer.
@pytest.mark.parametrize(("libcuxx", "kind"), cuda.sampled(KINDS, ("char", "double")), indirect=["libcuxx"])
def test_atomic_objects(gpu, libcuxx, kind):
    threads = 8 if kind == "char" else 64  # 12 for each thread
    memory, out = numpy.zeros(8, KINDS[kind]), numpy.zeros(16 + 2 * threads, numpy.int64)
    gpu.launch(libcuxx(f"atomic_{kind}"), 2 if kind != "char" else 1, threads, memory, out)
    blocks = 2 if kind != "char" else 1
    n = blocks * threads
    assert memory[0] == 12 * n and out[6:6 + blocks].tolist() == [12 * threads] * blocks
    assert out[[0, 2, 4]].tolist() == [n] * 3 and out[5] == n and 1 <= out[1] <= n and 1 <= out[3] <= n
    assert out[16:16 + n].tolist() == [12000 + min(max(i % threads, 20), 40) for i in range(n)]


def test_odd_atomics(gpu, libcuxx):
    out = numpy.zeros(4, numpy.int32)
    gpu.launch(libcuxx("odd_atomics"), 1, 128, out)
    assert out.tolist() == [128, sum(range(128)), 5, ((0 * 3 + 1) * 3 + 2) * 3 + 3]


@pytest.mark.parametrize("way", cuda.TRIED)
def test_the_compiler_refuses_transactions(way):
    with pytest.raises(ValueError, match="(?i)sm_?90|unresolved|barrier_arrive_tx"):
        cuda.compiled(TRANSACTIONS, way)
