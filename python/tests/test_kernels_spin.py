"""Threads that wait for each other by looking at memory, in a warp, in a block and in a grid; and clocks."""

import os
import re

import cuda
import numpy
import pytest

import tegrarm

# A lock as books have it, in each of the ways to write its loop.
LOCKS = {
    "loop": "while (atomicCAS(lock, 0, 1) != 0); WORK atomicExch(lock, 0);",
    "flag": "for (bool done = false; !done;) if (atomicCAS(lock, 0, 1) == 0) { WORK atomicExch(lock, 0); done = true; }",
    "ticket": "int mine = atomicAdd(lock, gridDim.z); while (((volatile int *)lock)[1] != mine); WORK atomicAdd(lock + 1, gridDim.z);",
    "backoff": "for (int ns = 8; atomicCAS(lock, 0, 1) != 0; ns = min(2 * ns, 256)) __nanosleep(ns); WORK atomicExch(lock, 0);",
    "look": "do { while (*(volatile int *)lock); } while (atomicCAS(lock, 0, 1)); WORK atomicExch(lock, 0);",
    "libcu++": "cuda::atomic_ref<int, cuda::thread_scope_device> a(*lock); int free = 0; "
               "while (!a.compare_exchange_weak(free, 1, cuda::memory_order_acquire)) free = 0; "
               "WORK a.store(0, cuda::memory_order_release);",
}
WORK = "*(volatile int *)count = *(volatile int *)count + 1; __threadfence();"
SPACES = {"global": "int *lock = memory, *count = memory + 2;",
          "shared": "__shared__ int memory_[3]; int *lock = memory_, *count = memory_ + 2; "
                    "if (threadIdx.x < 3) memory_[threadIdx.x] = 0; __syncthreads();"}


# What is not compiled with --device-debug: libcu++ asserts, and the module then asks for a function that no library has here.
ASSERTING = ("libcu++", "libcu", "wait")
WAYS = [(way, name) for way in cuda.TRIED for name in [*LOCKS, "volatile", "atomic", "libcu", "wait"]
        if not (way.endswith("debug") and name in ASSERTING)]


def run(gpu, way, source, grid, block, *arguments):
    gpu.launch(gpu.kernel(cuda.compiled(source, way), "k"), grid, block, *arguments)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("way", "lock"), [pair for pair in WAYS if pair[1] in LOCKS])
def test_every_thread_takes_the_lock(gpu, way, lock, space):
    include = "#include <cuda/atomic>\n" if lock == "libcu++" else ""
    source = include + 'extern "C" __global__ void k(int *memory, int *out) {' + SPACES[space] + LOCKS[lock].replace("WORK", WORK) \
        + "__syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = *(volatile int *)count; }"
    for block, grid in ((32, 1), (32, 8), (160, 1), (96, 3)):
        out = numpy.zeros(grid, numpy.int32)
        run(gpu, way, source, grid, block, numpy.zeros(3, numpy.int32), out)
        assert out.max() == block * (grid if space == "global" else 1), (block, grid, out)


# A lane hands a value to the next one through memory, each waiting for the one before it; the last lane begins.
HANDOFF = """extern "C" __global__ void k(volatile int *cells, int *out) {
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x, before = (i + 1) % n;
    if (i == n - 1) cells[i] = 1; else { int v; while ((v = cells[before]) == 0) NAP; cells[i] = v + 1; }
    out[i] = cells[i];
}"""


@pytest.mark.parametrize("nap", ["", "__nanosleep(50)"])
@pytest.mark.parametrize("way", cuda.TRIED)
def test_values_are_handed_on_from_thread_to_thread(gpu, way, nap):
    for block, grid in ((32, 1), (128, 1), (32, 20), (64, 5)):
        n = block * grid
        out = numpy.zeros(n, numpy.int32)
        run(gpu, way, HANDOFF.replace("NAP", nap), grid, block, numpy.zeros(n, numpy.int32), out)
        assert out.tolist() == list(range(n, 0, -1))


LIBCU_BARRIERS = """
#include <cuda/atomic>
__device__ void barrier_libcu(unsigned *count, unsigned *phase, int r) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> c(*count), p(*phase);
    if (c.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x * (r + 1) - 1) {
        p.store(r + 1, cuda::memory_order_release);
    }
    else while (p.load(cuda::memory_order_acquire) <= r);
}
__device__ void barrier_wait(unsigned *count, unsigned *phase, int r) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> c(*count), p(*phase);
    if (c.fetch_add(1) == gridDim.x * (r + 1) - 1) { p.store(r + 1); p.notify_all(); } else p.wait(r);
}
"""
BARRIER = """
__device__ void barrier_volatile(unsigned *count, unsigned *phase, int r) {
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x * (r + 1) - 1) *(volatile unsigned *)phase = r + 1;
    while (*(volatile unsigned *)phase <= r);
    __threadfence();
}
__device__ void barrier_atomic(unsigned *count, unsigned *phase, int r) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < gridDim.x * (r + 1));
    __threadfence();
}
extern "C" __global__ void k(unsigned *state, int *cells, int *wrong) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int r = 0; r < 20; r++) {
        cells[i] = i + r;
        __syncthreads();
        if (threadIdx.x == 0) BARRIER(state, state + 1, 2 * r);
        __syncthreads();
        int other = (i * 7 + 13 * r) % n;
        if (((volatile int *)cells)[other] != other + r) atomicAdd(wrong, 1);
        __syncthreads();
        if (threadIdx.x == 0) BARRIER(state, state + 1, 2 * r + 1);
        __syncthreads();
    }
}"""


@pytest.mark.parametrize(("way", "kind"), [pair for pair in WAYS if pair[1] not in LOCKS])
def test_a_barrier_of_the_whole_grid(gpu, way, kind):
    for grid, block in ((96, 64), (16, 256), (200, 32)):
        wrong = numpy.zeros(1, numpy.int32)
        source = (LIBCU_BARRIERS if kind in ASSERTING else "") + BARRIER.replace("BARRIER", f"barrier_{kind}")
        run(gpu, way, source, grid, block, numpy.zeros(2, numpy.uint32),
            numpy.zeros(grid * block, numpy.int32), wrong)
        assert wrong[0] == 0


# A scan in one pass: each block publishes its sum, then looks back at those before it.
LOOKBACK = """
extern "C" __global__ void k(const int *in, int *out, volatile unsigned long long *state, unsigned *next) {
    __shared__ int block, carry, sums[32];
    if (threadIdx.x == 0) block = atomicAdd(next, 1);
    __syncthreads();
    int i = block * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, x = in[i];
    for (int d = 1; d < 32; d *= 2) { int y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
    if (lane == 31) sums[warp] = x;
    __syncthreads();
    int total = 0, mine = 0;
    for (int w = 0; w < blockDim.x / 32; w++) { if (w < warp) mine += sums[w]; total += sums[w]; }
    if (threadIdx.x == 0) {
        int sum = 0;
        if (block) {
            state[block] = 1ull << 32 | (unsigned)total;
            for (int b = block - 1; ; b--) {
                unsigned long long s;
                while ((s = state[b]) >> 32 == 0);
                sum += (int)s;
                if (s >> 32 == 2) break;
            }
        }
        state[block] = 2ull << 32 | (unsigned)(sum + total);
        carry = sum;
    }
    __syncthreads();
    out[i] = x + mine + carry;
}"""


@pytest.mark.parametrize("way", cuda.TRIED)
def test_decoupled_look_back(gpu, way):
    n = 500 * 96
    values, out = numpy.random.default_rng(3).integers(-99, 99, n).astype(numpy.int32), numpy.zeros(n, numpy.int32)
    run(gpu, way, LOOKBACK, 500, 96, values, out, numpy.zeros(500, numpy.uint64), numpy.zeros(1, numpy.uint32))
    assert (out == numpy.cumsum(values)).all()


# Blocks of even number produce, the others consume, through a queue of four places.
QUEUE = """
extern "C" __global__ void k(volatile int *queue, volatile int *put, volatile int *taken, int *out, int items) {
    int pair = blockIdx.x / 2;
    volatile int *q = queue + 4 * pair;
    if (threadIdx.x) return;
    for (int i = 0; i < items; i++) {
        if (blockIdx.x & 1) {
            while (put[pair] <= i) __nanosleep(20);
            out[pair] = out[pair] * 31 + q[i % 4];
            __threadfence();
            taken[pair] = i + 1;
        } else {
            while (i - taken[pair] >= 4);
            q[i % 4] = i * (pair + 1);
            __threadfence();
            put[pair] = i + 1;
        }
    }
}"""


@pytest.mark.parametrize("way", cuda.TRIED)
def test_producers_and_consumers(gpu, way):
    pairs, items = 24, 200
    queue, put, taken, out = (numpy.zeros(n * pairs, numpy.int32) for n in (4, 1, 1, 1))
    run(gpu, way, QUEUE, 2 * pairs, 32, queue, put, taken, out, numpy.int32(items))
    for pair, got in enumerate(out):
        h = 0
        for i in range(items):
            h = (h * 31 + i * (pair + 1)) & 0xFFFFFFFF
        assert numpy.uint32(h).astype(numpy.int32) == got


CLOCKS = """
__device__ unsigned long long timer() { unsigned long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
extern "C" __global__ void k(long long *out, int loops, int nap) {
    long long c = clock64(), *o = out + 8 * (blockIdx.x * blockDim.x + threadIdx.x), t = timer();
    unsigned low = clock();
    float x = 1;
    for (int i = 0; i < loops; i++) x = x * 1.5f + i;
    o[0] = clock64() - c;
    o[1] = (unsigned)clock() - low;
    o[2] = timer() - t;
    t = timer(); c = clock64();
    __nanosleep(nap);
    o[4] = clock64() - c;
    o[3] = timer() - t;
    c = clock64();
    while (clock64() - c < 100000);
    o[5] = clock64() - c;
    t = timer();
    while (timer() - t < 50000);
    o[6] = timer() - t;
    o[7] = x > 0;
}"""


@pytest.mark.parametrize("way", cuda.TRIED)
def test_clocks_pass_with_instructions(gpu, way):
    seen = []
    for _ in range(2):
        out = numpy.zeros((4 * 64, 8), numpy.int64)
        run(gpu, way, CLOCKS, 4, 64, out, numpy.int32(10_000), numpy.int32(2000))
        assert (out[:, 0] >= 20_000).all() and (out[:, 1] >= 20_000).all() and (out[:, 2] >= 10_000).all()
        assert (out[:, 3] >= 1000).all() and (out[:, 3] <= 4000).all() and (out[:, 4] >= 1000).all()
        assert (out[:, 5] >= 100_000).all() and (out[:, 6] >= 50_000).all()
        seen.append(out)
    assert (seen[0] == seen[1]).all(), "clocks depend on the machine"


GROUPS = """
__device__ int lock; __device__ volatile int count;
static __device__ __forceinline__ void take(unsigned mask) {
    if ((threadIdx.x & 31) == __ffs(mask) - 1) while (atomicCAS(&lock, 0, 1)) { NAP }
    __syncwarp(mask); __threadfence();
}
static __device__ __forceinline__ void work(unsigned mask) {
    for (unsigned left = mask; left; left &= left - 1) {
        if ((threadIdx.x & 31) == __ffs(left) - 1) count = count + 1;
        __syncwarp(mask);
    }
    __threadfence(); __syncwarp(mask);
    if ((threadIdx.x & 31) == __ffs(mask) - 1) atomicExch(&lock, 0);
}
static __device__ __noinline__ void a() { unsigned mask = __activemask(); take(mask); work(mask); }
static __device__ __noinline__ void b() { unsigned mask = __activemask(); take(mask); work(mask); }
extern "C" __global__ void k(int rounds, int *out) {
    unsigned seed = threadIdx.x * 2654435761u + blockIdx.x;
    for (int r = 0; r < rounds; r++) {
        seed = seed * 1664525u + 1013904223u;
        if (seed >> 30 == 0) { a(); continue; }
        if (seed >> 31) b(); else a();
    }
    __threadfence(); __syncthreads();
    if (threadIdx.x == 0) atomicMax(out, count);
}"""


@pytest.mark.parametrize("nap", ["", "__nanosleep(50);", "__nanosleep(2000);"])
@pytest.mark.parametrize("way", cuda.TRIED)
def test_groups_of_lanes_in_several_warps_take_one_lock(gpu, way, nap):
    """Groups of a warp spin or sleep until a third group of the same warp, which has a higher pc, releases the lock."""
    for grid, block in ((1, 64), (1, 128), (3, 96)):
        out = numpy.zeros(1, numpy.int32)
        gpu.launch(gpu.kernel(cuda.compiled(GROUPS.replace("NAP", nap), way), "k"), grid, block, numpy.int32(30), out)
        assert out[0] == grid * block * 30, (grid, block)


# A kernel polls sixteen bytes that the copy engine writes, behind the data that they announce.
ANNOUNCED = """
extern "C" __global__ void k(const unsigned *flag, const unsigned *data, unsigned *wrong, unsigned last) {
    for (unsigned seen = 0; seen != last;) {
        unsigned x, y, z, t, found;
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(t) : "l"(flag) : "memory");
        asm volatile("fence.acq_rel.sys;" ::: "memory");
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(found) : "l"(data) : "memory");
        wrong[0] += x != y || y != z || z != t;
        wrong[1] += x < seen;
        wrong[2] += found < x;
        seen = x;
    }
}"""


def test_a_kernel_polls_what_the_copy_engine_writes():
    """Each copy of sixteen bytes is seen as a whole, never an older one behind a newer one, and the data in front of it are there."""
    last = 300
    with tegrarm.Device() as device, device.queue("copy") as copies:
        kernel = device.load(cuda.compiled(ANNOUNCED))["k"]
        flag, data, wrong = device.zeros(4, "uint32"), device.zeros(1, "uint32"), device.zeros(3, "uint32")
        numbers = device.array(numpy.repeat(numpy.arange(last + 1, dtype=numpy.uint32), 4).reshape(-1, 4))
        kernel[1, 1](flag, data, wrong, numpy.uint32(last))
        for number in range(1, last + 1):
            copies.copy(data, numbers[number][:1])
            copies.copy(flag, numbers[number])
        device.wait()
        assert wrong.numpy().tolist() == [0, 0, 0]


def test_a_wait_in_vain_names_the_kernel_that_runs(python):
    """The kernel runs until the program lets it end, so the loop ends when the GPU has said what it executes."""
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("a board does not tell what its GPU executes")
    out = python("""
import tegrarm
SOURCE = '''extern "C" __global__ void busy(volatile int *end, unsigned *x) {
    for (unsigned at = 1, v = 0;; at++) {
        v = v * 3 + at;
        if (at % 65536 == 0 && *end) { *x = v; break; }
    }
}'''
dev = tegrarm.Device()
end, x = dev.zeros(1, "int32"), dev.zeros(1, "uint32")
view = end.memoryview()
fence = dev.compile(SOURCE)["busy"][1, 1](end, x)
said = ""
while "is running" not in said:
    try: fence.wait(timeout=0.2)
    except TimeoutError as error: said = str(error)
    else: raise SystemExit("the kernel ended by itself")
view[0] = 1
dev.wait()
print(said)
""")
    assert re.search(r"; the simulated GPU knows: the kernel busy at 0x\w+ is running, with a grid of 1 x 1 x 1 blocks$", out, re.M), out
