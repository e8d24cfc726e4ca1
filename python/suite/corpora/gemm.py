"""Matrix products as libraries write them: with wmma, and with tiles that go through cp.async, ldmatrix and mma in several stages."""
# ruff: noqa: D103 - each function yields the cases that its name says.
from itertools import product

import numpy
from case import Case

# The packages of the tests do not contain mma.h. Its functions consist of these instructions.
WMMA = """
#include <cuda_fp16.h>
extern "C" __global__ void gemm(const half *a, const half *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    unsigned x[8], y[8];
    float d[8] = {};
    for (int i = 0; i < k; i += 16) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]),
                     "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7]) : "l"(a + row * k + i), "r"(k) : "memory");
        asm volatile("wmma.load.b.sync.aligned.LAYOUT.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;" : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]),
                     "=r"(y[3]), "=r"(y[4]), "=r"(y[5]), "=r"(y[6]), "=r"(y[7]) : "l"(B_ADDRESS) : "memory");
        asm volatile("wmma.mma.sync.aligned.row.LAYOUT.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, "
                     "{%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]),
                     "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
                     "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    }
    for (int i = 0; i < 8; ++i) d[i] *= 2;
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;" :: "l"(c + row * n + column), "f"(d[0]),
                 "f"(d[1]), "f"(d[2]), "f"(d[3]), "f"(d[4]), "f"(d[5]), "f"(d[6]), "f"(d[7]), "r"(n) : "memory");
}"""

TILES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void copy(void *to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
constexpr int M = 64, N = 64, K = 32, STAGES = _STAGES;
// Rows have 64 bytes. The four pieces of a row are permuted by the number of the row, so that ldmatrix has no bank conflicts.
__device__ int place(int row, int piece) { return row * K + 8 * (piece ^ row / 2 % 4); }
extern "C" __global__ void gemm(const TYPE *a, const TYPE *b, float *c, int m, int n, int k) {  // b is n × k
    __shared__ __align__(16) TYPE sa[STAGES][M * K], sb[STAGES][N * K];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, top = blockIdx.y * M, left = blockIdx.x * N;
    float d[2][4][4] = {};
    auto fetch = [&](int stage, int at) {
        for (int p = threadIdx.x; p < M * K / 8; p += 128) {
            int row = p / 4, piece = p % 4;
            copy(sa[stage] + place(row, piece), a + (size_t)(top + row < m ? top + row : 0) * k + at + 8 * piece, top + row < m && at + 8 * piece < k);
            copy(sb[stage] + place(row, piece), b + (size_t)(left + row < n ? left + row : 0) * k + at + 8 * piece, left + row < n && at + 8 * piece < k);
        }
        asm volatile("cp.async.commit_group;");
    };
    int tiles = (k + K - 1) / K;
    for (int s = 0; s < STAGES - 1; ++s) { if (s < tiles) fetch(s, s * K); else asm volatile("cp.async.commit_group;"); }
    for (int t = 0; t < tiles; ++t) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2));
        __syncthreads();
        if (t + STAGES - 1 < tiles) fetch((t + STAGES - 1) % STAGES, (t + STAGES - 1) * K); else asm volatile("cp.async.commit_group;");
        TYPE *pa = sa[t % STAGES], *pb = sb[t % STAGES];
        for (int kk = 0; kk < 2; ++kk) {
            unsigned fa[2][4], fb[4][2];
            for (int i = 0; i < 2; ++i) {
                int row = warp / 2 * 32 + 16 * i + lane % 16;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"(shared(pa + place(row, 2 * kk + lane / 16))) : "memory");
            }
            for (int j = 0; j < 4; ++j) {
                int row = warp % 2 * 32 + 8 * j + lane % 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(fb[j][0]), "=r"(fb[j][1])
                             : "r"(shared(pb + place(row, 2 * kk + lane / 8 % 2))) : "memory");
            }
            for (int i = 0; i < 2; ++i) for (int j = 0; j < 4; ++j)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.KIND.KIND.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]), "+f"(d[i][j][3])
                             : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
        }
    }
    for (int i = 0; i < 2; ++i) for (int j = 0; j < 4; ++j) for (int e = 0; e < 4; ++e) {
        int row = top + warp / 2 * 32 + 16 * i + lane / 4 + e / 2 * 8, column = left + warp % 2 * 32 + 8 * j + lane % 4 * 2 + e % 2;
        if (row < m && column < n) c[(size_t)row * n + column] = d[i][j][e];
    }
}"""

SIMT = """
extern "C" __global__ void gemm(const TYPE *a, const TYPE *b, TYPE *c, int m, int n, int k) {
    __shared__ TYPE ta[16][33], tb[16][33];
    TYPE sum[2][2] = {};
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32, row = blockIdx.y * 32;
    for (int t = 0; t < k; t += 16) {
        for (int i = y * 16 + x; i < 512; i += 256) {
            int r = i / 16, q = i % 16;
            ta[q][r] = row + r < m && t + q < k ? a[(row + r) * k + t + q] : (TYPE)0;
            r = i / 32; q = i % 32;
            tb[r][q] = t + r < k && column + q < n ? b[(t + r) * n + column + q] : (TYPE)0;
        }
        __syncthreads();
        #pragma unroll
        for (int q = 0; q < 16; ++q) for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) sum[i][j] += ta[q][y + 16 * i] * tb[q][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) if (row + y + 16 * i < m && column + x + 16 * j < n) c[(row + y + 16 * i) * n + column + x + 16 * j] = sum[i][j];
}"""


def small(shape, dtype, seed=1):
    """Small integers, whose products and sums are exact in every type."""
    return numpy.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def sizes(*numbers):
    return [numpy.int32(n) for n in numbers]


def wmma():
    for layout, address in (("row", 'b + i * n + column), "r"(n'), ("col", 'b + column * k + i), "r"(k')):
        def run(gpu, cubin, layout=layout):
            m, n, k = 48, 64, 80
            a, b = small((m, k), numpy.float16), small((k, n), numpy.float16, 2)
            c = numpy.zeros((m, n), numpy.float32)
            given = b if layout == "row" else numpy.ascontiguousarray(b.T)
            gpu.launch(gpu.kernel(cubin, "gemm"), (n // 16, m // 16), 32, a, given, c, *sizes(m, n, k))
            numpy.testing.assert_array_equal(c, 2 * (a.astype(numpy.float32) @ b.astype(numpy.float32)))
        yield Case(f"gemm/wmma {layout}", WMMA.replace("LAYOUT", layout).replace("B_ADDRESS", address), run=run)


def tiles():
    for (c, kind), stages, (m, n, k) in product((("half", "f16"), ("__nv_bfloat16", "bf16")), (2, 3, 4), ((64, 64, 64), (100, 72, 136))):
        def run(gpu, cubin, kind=kind, m=m, n=n, k=k):
            a, b = small((m, k), numpy.float32), small((n, k), numpy.float32, 2)
            given = [x.astype(numpy.float16) if kind == "f16" else (x.view(numpy.uint32) >> 16).astype(numpy.uint16) for x in (a, b)]
            out = numpy.zeros((m, n), numpy.float32)
            gpu.launch(gpu.kernel(cubin, "gemm"), ((n + 63) // 64, (m + 63) // 64), 128, *given, out, *sizes(m, n, k))
            numpy.testing.assert_array_equal(out, a @ b.T)
        source = TILES.replace("TYPE", c).replace("KIND", kind).replace("_STAGES", str(stages))
        yield Case(f"gemm/cp.async, ldmatrix, mma: {kind}, {stages} stages, {m}x{n}x{k}", source, run=run)


def simt():
    for c, dtype in (("float", numpy.float32), ("double", numpy.float64), ("int", numpy.int32), ("unsigned char", numpy.uint8)):
        def run(gpu, cubin, dtype=dtype):
            m, n, k = 50, 70, 45
            a, b = small((m, k), dtype), small((k, n), dtype, 2)
            out = numpy.zeros((m, n), dtype)
            gpu.launch(gpu.kernel(cubin, "gemm"), (3, 2), (16, 16), a, b, out, *sizes(m, n, k))
            numpy.testing.assert_array_equal(out, a @ b)
        yield Case(f"gemm/tiles of {c}", SIMT.replace("TYPE", c), run=run)


CASES = [wmma, tiles, simt]
