"""Asynchronous copies from global to shared memory: `cp.async` in every form of PTX, and what CUDA C++ builds on it."""

import cuda
import numpy
import pytest

from tegrarm.rm import RmError

THREADS = 64
FORMS = [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)]
HINTS = ["", ".L2::64B", ".L2::128B", ".L2::256B"]

# How many bytes are copied: all; a number that is known at run time; one that the compiler knows; all or nothing by a predicate
# of the copy; all, or the instruction is left out by a guard.
WAYS_TO_SAY = ["all", "size", "ignore", "guard", *(f"constant{n}" for n in (0, 1, 3, 4, 5, 8, 12, 15, 16))]


def copy(cache, size, hint, how):
    begin = f"cp.async.{cache}.shared.global{hint} [%0], [%1], {size}"
    if how == "all":
        return f'asm volatile("{begin};" :: "r"(to), "l"(from) : "memory");'
    if how == "size":
        return f'asm volatile("{begin}, %2;" :: "r"(to), "l"(from), "r"(n) : "memory");'
    if how == "ignore":
        none = ".reg .pred q; setp.eq.s32 q, %2, 0;"
        return f'asm volatile("{{ {none} {begin}, q; }}" :: "r"(to), "l"(from), "r"(n) : "memory");'
    if how == "guard":
        some = ".reg .pred q; setp.ne.s32 q, %2, 0;"
        return f'asm volatile("{{ {some} @q {begin}; }}" :: "r"(to), "l"(from), "r"(n) : "memory");'
    return f'asm volatile("{begin}, {how.removeprefix("constant")};" :: "r"(to), "l"(from) : "memory");'


def named(cache, size, hint, how):
    return f"copy_{cache}{size}{hint.replace('.L2::', '_')}_{how}"


def kernel(cache, size, hint, how):
    """Every thread copies into its own 16 bytes, which lie between marks; `n` and the source are the thread's own."""
    return f"""
extern "C" __global__ void {named(cache, size, hint, how)}(
    const unsigned char *bytes, const int *sizes, const long long *offsets, uint4 *out) {{
    __shared__ uint4 shared[{THREADS}];
    int i = threadIdx.x, n = sizes[i];
    shared[i] = make_uint4(0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5);
    __syncthreads();
    unsigned to = (unsigned)__cvta_generic_to_shared(&shared[i]);
    const unsigned char *from = bytes + offsets[i];
    {copy(cache, size, hint, how)}
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[i] = shared[i];
}}"""


CASES = [(cache, size, hint, how) for cache, size in FORMS for how in WAYS_TO_SAY for hint in (HINTS if how in ("all", "size") else [""])
         if not how.startswith("constant") or int(how[8:]) <= size]
SOURCE = "\n".join(kernel(*case) for case in CASES)


def sizes_of(how, size):
    if how.startswith("constant"):
        return numpy.full(THREADS, int(how[8:]), numpy.int32)
    if how == "size":
        return (numpy.arange(THREADS) * 7 % (size + 1)).astype(numpy.int32)
    return numpy.where(numpy.arange(THREADS) % 3, 0, size).astype(numpy.int32) if how != "all" else numpy.full(THREADS, size, numpy.int32)


@pytest.mark.parametrize("way", cuda.TRIED)
@pytest.mark.parametrize(("cache", "size"), FORMS)
def test_every_form(gpu, way, cache, size):
    data = numpy.random.default_rng(size).integers(1, 256, 4096, numpy.uint8)
    offsets = (numpy.arange(THREADS) * 5 % 64 * size + 512).astype(numpy.int64)
    for case in CASES:
        if case[:2] != (cache, size):
            continue
        how, out = case[3], numpy.zeros(THREADS * 16, numpy.uint8)
        sizes = sizes_of(how, size)
        gpu.launch(gpu.kernel(cuda.compiled(SOURCE, way), named(*case)), 1, THREADS, data, sizes, offsets, out)
        for thread, got in enumerate(out.reshape(THREADS, 16)):
            n, at = sizes[thread], offsets[thread]
            copied = bytes(data[at:at + n]) + bytes(size - n)
            if how == "guard" and n == 0:
                copied = b"\xa5" * size
            assert bytes(got) == copied + b"\xa5" * (16 - size), f"{named(*case)}, thread {thread}: {n} bytes"


def test_what_is_not_copied_is_not_read(gpu):
    """Nothing is mapped at these addresses."""
    data, out = numpy.zeros(64, numpy.uint8), numpy.zeros(THREADS * 16, numpy.uint8)
    nowhere = numpy.full(THREADS, 1 << 37, numpy.int64)
    for how in ("size", "ignore", "constant0"):
        for cache, size in FORMS:
            kernel = gpu.kernel(cuda.compiled(SOURCE), named(cache, size, "", how))
            gpu.launch(kernel, 1, THREADS, data, numpy.zeros(THREADS, numpy.int32), nowhere, out)
            assert (out.reshape(THREADS, 16)[:, :size] == 0).all()


@pytest.mark.parametrize(("how", "n", "offset", "why"), [
    ("all", 16, 8, "misaligned"),
    ("guard", 16, 4, "misaligned"),
    ("ignore", 16, 1, "misaligned"),
    ("all", 16, 1 << 37, "MMU|no mapping|unmapped|fault"),
    ("size", 5, 1 << 37, "MMU|no mapping|unmapped|fault"),
])
def test_faults(gpu, how, n, offset, why):
    with pytest.raises(RmError, match="(?i)" + why):
        gpu.launch(gpu.kernel(cuda.compiled(SOURCE), named("ca", 16, "", how)), 1, THREADS, numpy.zeros(4096, numpy.uint8),
                   numpy.full(THREADS, n, numpy.int32), numpy.full(THREADS, offset, numpy.int64), numpy.zeros(THREADS * 16, numpy.uint8))


BUILT_ON_IT = """
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/barrier>
namespace cg = cooperative_groups;

// A tile of a matrix whose edge is not a multiple of anything: what lies beyond is zero.
extern "C" __global__ void edge(const float *a, float *out, int rows, int columns) {
    __shared__ __align__(16) float tile[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + 4 * threadIdx.x;
    int left = row < rows ? columns - column : 0;
    size_t bytes = 4 * (left < 0 ? 0 : left > 4 ? 4 : left);
    __pipeline_memcpy_async(&tile[threadIdx.y][4 * threadIdx.x], a + row * ((columns + 3) / 4 * 4) + column, 16, 16 - bytes);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 4; k++) sum += tile[4 * threadIdx.x + k][threadIdx.y];
    atomicAdd(&out[blockIdx.x * 32 + threadIdx.y], sum);
}

// Copies of a group: any size and alignment, some of them asynchronous.
template <class T> __device__ void by_group(const T *in, T *out, int n, int offset) {
    extern __shared__ __align__(16) unsigned char room[];
    T *shared = (T *)room;
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, shared, in + offset, sizeof(T) * n);
    cg::wait(block);
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = shared[n - 1 - i];
}
extern "C" __global__ void group_char(const char *in, char *out, int n, int offset) { by_group(in, out, n, offset); }
extern "C" __global__ void group_int(const int *in, int *out, int n, int offset) { by_group(in, out, n, offset); }
extern "C" __global__ void group_int4(const int4 *in, int4 *out, int n, int offset) { by_group(in, out, n, offset); }

extern "C" __global__ void by_barrier(const int *in, int *out, int n) {
    __shared__ int shared[512];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    block.sync();
    for (int begin = 0; begin < n; begin += 512) {
        int many = min(512, n - begin);
        cuda::memcpy_async(block, shared, in + begin, sizeof(int) * many, barrier);
        barrier.arrive_and_wait();
        for (int i = threadIdx.x; i < many; i += blockDim.x) out[begin + i] = 3 * shared[many - 1 - i];
        barrier.arrive_and_wait();
    }
}

// A running sum over tiles, with so many tiles in flight.
template <int STAGES> __device__ void staged(const int *in, int *out, int tiles) {
    constexpr int TILE = 128;
    __shared__ __align__(16) int shared[STAGES][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int tile = 0, next = 0; tile < tiles; tile++) {
        for (; next < tiles && next < tile + STAGES; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, shared[next % STAGES], in + next * TILE, cuda::aligned_size_t<16>(TILE * sizeof(int)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        for (int i = threadIdx.x; i < TILE; i += blockDim.x) sum += shared[tile % STAGES][(i + tile) % TILE] * (i + 1);
        block.sync();
        pipe.consumer_release();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void staged1(const int *in, int *out, int tiles) { staged<1>(in, out, tiles); }
extern "C" __global__ void staged2(const int *in, int *out, int tiles) { staged<2>(in, out, tiles); }
extern "C" __global__ void staged3(const int *in, int *out, int tiles) { staged<3>(in, out, tiles); }
extern "C" __global__ void staged4(const int *in, int *out, int tiles) { staged<4>(in, out, tiles); }

// Each thread's own pipeline.
extern "C" __global__ void own_pipeline(const int *in, int *out, int n) {
    __shared__ int shared[3][128];
    auto pipe = cuda::make_pipeline();
    int sum = 0, ahead = 0;
    for (int i = 0; i < n; i++) {
        for (; ahead < n && ahead < i + 3; ahead++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&shared[ahead % 3][threadIdx.x], in + ahead * blockDim.x + threadIdx.x, sizeof(int), pipe);
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<2>(pipe);
        if (i + 3 > n) pipe.consumer_wait();
        sum = sum * 5 + shared[i % 3][threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// Warps with a role each: the first ones copy, the others add.
template <int STAGES> __device__ void roles(const int *in, int *out, int tiles, int producers) {
    constexpr int TILE = 256;
    __shared__ int shared[STAGES][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    bool produces = threadIdx.x < producers;
    auto pipe = cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    if (produces) {
        for (int tile = 0; tile < tiles; tile++) {
            pipe.producer_acquire();
            for (int i = threadIdx.x; i < TILE; i += producers)
                cuda::memcpy_async(&shared[tile % STAGES][i], in + tile * TILE + i, sizeof(int), pipe);
            pipe.producer_commit();
        }
    } else {
        int sum = 0, me = threadIdx.x - producers, others = blockDim.x - producers;
        for (int tile = 0; tile < tiles; tile++) {
            pipe.consumer_wait();
            for (int i = me; i < TILE; i += others) sum += shared[tile % STAGES][i] * (tile + 1);
            pipe.consumer_release();
        }
        atomicAdd(&out[blockIdx.x], sum);
    }
}
extern "C" __global__ void roles1(const int *in, int *out, int tiles, int producers) { roles<1>(in, out, tiles, producers); }
extern "C" __global__ void roles2(const int *in, int *out, int tiles, int producers) { roles<2>(in, out, tiles, producers); }
extern "C" __global__ void roles4(const int *in, int *out, int tiles, int producers) { roles<4>(in, out, tiles, producers); }
"""


@pytest.fixture(params=cuda.TRIED)
def built(request, gpu):
    return lambda name: gpu.kernel(cuda.compiled(BUILT_ON_IT, request.param, "--define-macro=NDEBUG"), name)


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (33, 41), (1, 2), (50, 63)])
def test_tiles_at_the_edge_of_a_matrix(gpu, built, rows, columns):
    pitch = (columns + 3) // 4 * 4
    a = numpy.random.default_rng(rows).integers(-9, 9, (rows, pitch)).astype(numpy.float32)
    blocks = (columns + 31) // 32
    out = numpy.zeros(blocks * 32, numpy.float32)
    gpu.launch(built("edge"), (blocks, (rows + 31) // 32), (8, 32), a, out, numpy.int32(rows), numpy.int32(columns))
    assert (out[:columns] == a[:, :columns].sum(0)).all() and (out[columns:] == 0).all()


@pytest.mark.parametrize(("kind", "items"), [("char", 1), ("int", 4), ("int4", 16)])
@pytest.mark.parametrize(("n", "offset"), [(64, 0), (100, 4), (61, 1), (203, 3), (1, 5)])
def test_copies_of_a_group(gpu, built, kind, items, n, offset):
    data = numpy.random.default_rng(n).integers(0, 256, (n + offset, items), numpy.uint8)
    out = numpy.zeros((n, items), numpy.uint8)
    gpu.launch(built(f"group_{kind}"), 1, 96, data, out, numpy.int32(n), numpy.int32(offset), shared=n * items)
    assert (out == data[offset:][::-1]).all()


@pytest.mark.parametrize("n", [1, 100, 512, 1500])
def test_copies_that_a_barrier_waits_for(gpu, built, n):
    data, out = numpy.arange(n, dtype=numpy.int32), numpy.zeros(n, numpy.int32)
    gpu.launch(built("by_barrier"), 1, 160, data, out, numpy.int32(n))
    want = numpy.concatenate([data[i:i + 512][::-1] for i in range(0, n, 512)]) * 3
    assert (out == want).all()


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("tiles", [1, 2, 9])
def test_pipelines_of_a_block(gpu, built, stages, tiles):
    data = numpy.random.default_rng(stages).integers(-99, 99, tiles * 128, numpy.int32)
    out = numpy.zeros(2 * 64, numpy.int32)
    gpu.launch(built(f"staged{stages}"), 2, 64, data, out, numpy.int32(tiles))
    turned = numpy.stack([numpy.roll(tile, -k) for k, tile in enumerate(data.reshape(tiles, 128))]).sum(0) * numpy.arange(1, 129)
    assert (out == numpy.tile(turned.reshape(2, 64).sum(0), 2)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_pipelines_of_threads(gpu, built, n):
    data = numpy.random.default_rng(n).integers(-99, 99, (n, 128), numpy.int32)
    out, want = numpy.zeros(128, numpy.int32), numpy.zeros(128, numpy.int32)
    gpu.launch(built("own_pipeline"), 1, 128, data, out, numpy.int32(n))
    for row in data:
        want = want * 5 + row
    assert (out == want).all()


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize(("threads", "producers"), [(64, 32), (128, 32), (128, 64), (96, 16)])
def test_warps_with_roles(gpu, built, stages, threads, producers):
    data = numpy.random.default_rng(threads).integers(-99, 99, (7, 256), numpy.int32)
    out = numpy.zeros(3, numpy.int32)
    gpu.launch(built(f"roles{stages}"), 3, threads, data, out, numpy.int32(7), numpy.int32(producers))
    assert out.tolist() == [(data.sum(1) * numpy.arange(1, 8)).sum()] * 3
