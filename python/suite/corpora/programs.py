"""Kernels of the kinds that people write: hashes, sorts, Fourier transforms, sparse and dense algebra, simulations."""
# ruff: noqa: D103 - each function yields the cases that its name says.
import numpy
from case import Case

HASH = """
struct Slot { unsigned key, value; };
__device__ unsigned mix(unsigned x) { x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; return x ^ x >> 16; }
extern "C" __global__ void insert(const unsigned *keys, unsigned n, Slot *table, unsigned mask) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], at = mix(key) & mask;
        while (true) {
            unsigned old = atomicCAS(&table[at].key, ~0u, key);
            if (old == ~0u || old == key) { atomicAdd(&table[at].value, 1); break; }
            at = (at + 1) & mask;
        }
    }
}
extern "C" __global__ void find(const unsigned *keys, unsigned n, const Slot *table, unsigned mask, unsigned *counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at = mix(keys[i]) & mask, found = 0;
    for (; table[at].key != ~0u; at = (at + 1) & mask) if (table[at].key == keys[i]) { found = table[at].value; break; }
    counts[i] = found;
}
extern "C" __global__ void erase(const unsigned *keys, unsigned n, Slot *table, unsigned mask, unsigned long long *sum) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long mine = 0;
    if (i < n) { unsigned at = mix(keys[i]) & mask; while (table[at].key != keys[i]) at = (at + 1) & mask; mine = atomicExch(&table[at].value, 0); }
    for (int d = 16; d; d /= 2) mine += __shfl_down_sync(~0u, mine, d);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}"""


def hashing():
    def run(gpu, cubin):
        rng = numpy.random.default_rng(1)
        keys = rng.integers(0, 700, 3000).astype(numpy.uint32)
        table = numpy.full((2048, 2), 0xffffffff, numpy.uint32)
        table[:, 1] = 0
        n, mask = numpy.uint32(len(keys)), numpy.uint32(2047)
        gpu.launch(gpu.kernel(cubin, "insert"), 6, 128, keys, n, table, mask)
        wanted = numpy.bincount(keys, minlength=1000)
        asked, counts = numpy.arange(1000, dtype=numpy.uint32), numpy.zeros(1000, numpy.uint32)
        gpu.launch(gpu.kernel(cubin, "find"), 8, 128, asked, numpy.uint32(1000), table, mask, counts)
        numpy.testing.assert_array_equal(counts, wanted)
        total = numpy.zeros(1, numpy.uint64)
        gpu.launch(gpu.kernel(cubin, "erase"), 24, 128, keys, n, table, mask, total)
        assert total[0] == len(keys)
    yield Case("programs/hash table", HASH, run=run)


SORTS = """
extern "C" __global__ void bitonic(float *data, unsigned long long *keys, int n) {
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = data[i];
    __syncthreads();
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
                int o = i ^ j;
                if (o > i && (s[i] > s[o]) == ((i & k) == 0)) { float t = s[i]; s[i] = s[o]; s[o] = t; }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < n; i += blockDim.x) { data[i] = s[i]; keys[i] = (unsigned long long)__float_as_uint(s[i]) << 32 | i; }
}
// One pass of a radix sort: each block counts, one block scans, each block writes in order.
extern "C" __global__ void counts(const unsigned *in, int n, int shift, unsigned *table) {
    __shared__ unsigned h[16];
    if (threadIdx.x < 16) h[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&h[in[i] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) table[threadIdx.x * gridDim.x + blockIdx.x] = h[threadIdx.x];
}
extern "C" __global__ void offsets(unsigned *table, int n) {
    __shared__ unsigned part[256];
    unsigned sum = 0, each = (n + 255) / 256, first = threadIdx.x * each;
    for (unsigned i = first; i < first + each && i < n; ++i) sum += table[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        unsigned add = threadIdx.x >= d ? part[threadIdx.x - d] : 0;
        __syncthreads(); part[threadIdx.x] += add; __syncthreads();
    }
    sum = part[threadIdx.x] - sum;
    for (unsigned i = first; i < first + each && i < n; ++i) { unsigned x = table[i]; table[i] = sum; sum += x; }
}
extern "C" __global__ void scatter(const unsigned *in, unsigned *out, int n, int shift, const unsigned *table) {
    __shared__ unsigned base[8][16];
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned digit = i < n ? in[i] >> shift & 15 : 16;
    unsigned same = __match_any_sync(~0u, digit);
    if (threadIdx.x < 128) base[threadIdx.x / 16][threadIdx.x % 16] = 0;
    __syncthreads();
    if (digit < 16 && lane == __ffs(same) - 1) base[warp][digit] = __popc(same);
    __syncthreads();
    if (digit < 16) {
        unsigned before = __popc(same & ((1u << lane) - 1));
        for (int w = 0; w < warp; ++w) before += base[w][digit];
        out[table[digit * gridDim.x + blockIdx.x] + before] = in[i];
    }
}"""


def sorting():
    def bitonic(gpu, cubin):
        x = numpy.random.default_rng(2).normal(size=1024).astype(numpy.float32)
        keys, wanted = numpy.zeros(1024, numpy.uint64), numpy.sort(x)
        gpu.launch(gpu.kernel(cubin, "bitonic"), 1, 256, x, keys, numpy.int32(1024), shared=4096)
        numpy.testing.assert_array_equal(x, wanted)
        numpy.testing.assert_array_equal(keys, wanted.view(numpy.uint32).astype(numpy.uint64) << 32 | numpy.arange(1024, dtype=numpy.uint64))

    def radix(gpu, cubin):
        n, blocks = 5000, 20
        x = numpy.random.default_rng(3).integers(0, 1 << 32, n).astype(numpy.uint32)
        wanted, other, table = numpy.sort(x), numpy.zeros_like(x), numpy.zeros(16 * blocks, numpy.uint32)
        for shift in range(0, 32, 4):
            gpu.launch(gpu.kernel(cubin, "counts"), blocks, 256, x, numpy.int32(n), numpy.int32(shift), table)
            gpu.launch(gpu.kernel(cubin, "offsets"), 1, 256, table, numpy.int32(16 * blocks))
            gpu.launch(gpu.kernel(cubin, "scatter"), blocks, 256, x, other, numpy.int32(n), numpy.int32(shift), table)
            x, other = other, x
        numpy.testing.assert_array_equal(x, wanted)
    yield Case("programs/bitonic sort", SORTS, run=bitonic)
    yield Case("programs/radix sort", SORTS, run=radix)


FFT = """
template <typename T> __device__ void transform(T *re, T *im, int n, T *s) {
    T *a = s, *b = s + n;
    int bits = __ffs(n) - 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { int r = __brev(i) >> 32 - bits; a[r] = re[blockIdx.x * n + i]; b[r] = im[blockIdx.x * n + i]; }
    __syncthreads();
    for (int half = 1; half < n; half *= 2) {
        for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
            int k = i & half - 1, at = 2 * (i - k) + k;
            T angle = -T(3.14159265358979323846) * k / half, c, d;
            if (sizeof(T) == 4) sincosf(angle, (float *)&d, (float *)&c); else sincos(angle, (double *)&d, (double *)&c);
            T x = a[at + half] * c - b[at + half] * d, y = a[at + half] * d + b[at + half] * c;
            a[at + half] = a[at] - x; b[at + half] = b[at] - y; a[at] += x; b[at] += y;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) { re[blockIdx.x * n + i] = a[i]; im[blockIdx.x * n + i] = b[i]; }
}
extern "C" __global__ void single(float *re, float *im, int n) { extern __shared__ float s[]; transform(re, im, n, s); }
extern "C" __global__ void wide(double *re, double *im, int n) { extern __shared__ double d[]; transform(re, im, n, d); }"""


def fourier():
    def run(gpu, cubin):
        for name, dtype, n, size in (("single", numpy.float32, 512, 4), ("wide", numpy.float64, 256, 8)):
            x = numpy.random.default_rng(4).normal(size=(3, 2, n))
            re, im = x[:, 0].astype(dtype), x[:, 1].astype(dtype)
            wanted = numpy.fft.fft(re.astype(complex) + 1j * im, axis=1)
            gpu.launch(gpu.kernel(cubin, name), 3, 64, re, im, numpy.int32(n), shared=2 * n * size)
            numpy.testing.assert_allclose(re + 1j * im, wanted, atol=1e-3 if size == 4 else 1e-10)
    yield Case("programs/FFT", FFT, run=run)


SPARSE = """
template <typename T> __device__ T warp_sum(T x) { for (int d = 16; d; d /= 2) x += __shfl_xor_sync(~0u, x, d); return x; }
extern "C" __global__ void csr(const int *rows, const int *columns, const float *values, const float *x, float *y, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float sum = 0;
    for (int k = rows[row] + threadIdx.x % 32; k < rows[row + 1]; k += 32) sum = fmaf(values[k], __ldg(x + columns[k]), sum);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] = sum;
}
extern "C" __global__ void coo(const int *row, const int *column, const float *value, const float *x, float *y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(y + row[i], value[i] * x[column[i]]);
}
extern "C" __global__ void cg_step(const int *rows, const int *columns, const double *values, double *x, double *r, double *p, double *q, int n, int steps) {
    __shared__ double part[32], total;
    auto dot = [&](const double *a, const double *b) {
        double sum = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) sum = fma(a[i], b[i], sum);
        sum = warp_sum(sum);
        __syncthreads();
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) { total = 0; for (int w = 0; w < blockDim.x / 32; ++w) total += part[w]; }
        __syncthreads();
        return total;
    };
    double old = dot(r, r);
    for (int s = 0; s < steps; ++s) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) { double sum = 0; for (int k = rows[i]; k < rows[i + 1]; ++k) sum += values[k] * p[columns[k]]; q[i] = sum; }
        __syncthreads();
        double alpha = old / dot(p, q);
        for (int i = threadIdx.x; i < n; i += blockDim.x) { x[i] += alpha * p[i]; r[i] -= alpha * q[i]; }
        __syncthreads();
        double now = dot(r, r);
        for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = r[i] + now / old * p[i];
        old = now;
        __syncthreads();
    }
}"""


def sparse():
    def compressed(dense):
        rows = numpy.concatenate(([0], numpy.cumsum((dense != 0).sum(1)))).astype(numpy.int32)
        r, c = numpy.nonzero(dense)
        return rows, r.astype(numpy.int32), c.astype(numpy.int32), dense[r, c]

    def multiply(gpu, cubin):
        rng = numpy.random.default_rng(5)
        dense = (rng.integers(-8, 8, (90, 200)) * (rng.random((90, 200)) < .3)).astype(numpy.float32)
        x = rng.integers(-8, 8, 200).astype(numpy.float32)
        rows, r, c, v = compressed(dense)
        for name in ("csr", "coo"):
            y = numpy.zeros(90, numpy.float32)
            if name == "csr":
                gpu.launch(gpu.kernel(cubin, name), 23, 128, rows, c, v, x, y, numpy.int32(90))
            else:
                gpu.launch(gpu.kernel(cubin, name), (len(v) + 127) // 128, 128, r, c, v, x, y, numpy.int32(len(v)))
            numpy.testing.assert_array_equal(y, dense @ x)

    def solve(gpu, cubin):
        n = 100
        dense = numpy.diag([4.] * n) - numpy.diag([1.] * (n - 1), 1) - numpy.diag([1.] * (n - 1), -1)
        rows, _, c, v = compressed(dense)
        b = numpy.random.default_rng(6).normal(size=n)
        x, r, p, q = numpy.zeros(n), b.copy(), b.copy(), numpy.zeros(n)
        gpu.launch(gpu.kernel(cubin, "cg_step"), 1, 128, rows, c, v, x, r, p, q, numpy.int32(n), numpy.int32(25))
        numpy.testing.assert_allclose(dense @ x, b, atol=1e-9)
    yield Case("programs/SpMV", SPARSE, run=multiply)
    yield Case("programs/conjugate gradients", SPARSE, run=solve)


BODIES = """
extern "C" __global__ void forces(const float4 *body, float3 *force, int n) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
    float3 f = make_float3(0, 0, 0);
    for (int t = 0; t < n; t += 64) {
        tile[threadIdx.x] = t + threadIdx.x < n ? body[t + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
        #pragma unroll 8
        for (int k = 0; k < 64; ++k) {
            float x = tile[k].x - me.x, y = tile[k].y - me.y, z = tile[k].z - me.z, d = x * x + y * y + z * z + .01f, r = rsqrtf(d), m = tile[k].w * r * r * r;
            f.x += m * x; f.y += m * y; f.z += m * z;
        }
        __syncthreads();
    }
    if (i < n) force[i] = f;
}
extern "C" __global__ void escape(unsigned char *image, int width, int height) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double x0 = -2 + 3. * px / width, y0 = -1 + 2. * py / height, x = 0, y = 0;
    int n = 0;
    while (__dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y)) <= 4 && n < 100) { double t = __dadd_rn(__dsub_rn(__dmul_rn(x, x), __dmul_rn(y, y)), x0); y = __dadd_rn(__dmul_rn(__dmul_rn(2, x), y), y0); x = t; ++n; }
    image[py * width + px] = n;
}
extern "C" __global__ void life(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, n = 0;
    if (x >= w || y >= h) return;
    for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) if (dx || dy) n += in[(y + dy + h) % h * w + (x + dx + w) % w];
    out[y * w + x] = n == 3 || n == 2 && in[y * w + x];
}
extern "C" __global__ void quicksort(int *data, int n) {  // recursion in a thread, with its own stack
    struct S { static __device__ void sort(int *d, int lo, int hi) { if (lo >= hi) return; int p = d[(lo + hi) / 2], i = lo - 1, j = hi + 1;
        while (true) { do ++i; while (d[i] < p); do --j; while (d[j] > p); if (i >= j) break; int t = d[i]; d[i] = d[j]; d[j] = t; }
        sort(d, lo, j); sort(d, j + 1, hi); } };
    S::sort(data + n * threadIdx.x, 0, n - 1);
}"""


def simulations():
    def bodies(gpu, cubin):
        body = numpy.random.default_rng(7).normal(size=(150, 4)).astype(numpy.float32)
        force = numpy.zeros((150, 3), numpy.float32)
        gpu.launch(gpu.kernel(cubin, "forces"), 3, 64, body, force, numpy.int32(150))
        wide = body.astype(float)
        d = wide[None, :, :3] - wide[:, None, :3]
        m = wide[None, :, 3] * ((d ** 2).sum(2) + .01) ** -1.5
        numpy.testing.assert_allclose(force, (m[:, :, None] * d).sum(1), rtol=2e-3, atol=2e-3)

    def mandelbrot(gpu, cubin):
        w, h = 60, 40
        image = numpy.zeros((h, w), numpy.uint8)
        gpu.launch(gpu.kernel(cubin, "escape"), (4, 10), (16, 4), image, numpy.int32(w), numpy.int32(h))
        c = (-2 + 3. * numpy.arange(w) / w)[None, :] + 1j * (-1 + 2. * numpy.arange(h) / h)[:, None]
        x, y, n = numpy.zeros((h, w)), numpy.zeros((h, w)), numpy.zeros((h, w), numpy.uint8)
        for _ in range(100):
            go = x * x + y * y <= 4
            t = x * x - y * y + c.real
            x, y, n = numpy.where(go, t, x), numpy.where(go, 2 * x * y + c.imag, y), n + go.astype(numpy.uint8)
        numpy.testing.assert_array_equal(image, n)

    def life(gpu, cubin):
        world = (numpy.random.default_rng(8).random((37, 50)) < .4).astype(numpy.uint8)
        other, wanted = numpy.zeros_like(world), world.copy()
        for _ in range(4):
            gpu.launch(gpu.kernel(cubin, "life"), (4, 5), (16, 8), world, other, numpy.int32(50), numpy.int32(37))
            world, other = other, world
            n = sum(numpy.roll(wanted, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
            wanted = ((n == 3) | (n == 2) & (wanted == 1)).astype(numpy.uint8)
        numpy.testing.assert_array_equal(world, wanted)

    def quicksort(gpu, cubin):
        data = numpy.random.default_rng(9).integers(-1000, 1000, (40, 50)).astype(numpy.int32)
        wanted = numpy.sort(data, 1)
        old = gpu.stack()
        gpu.set_stack(16384)
        gpu.launch(gpu.kernel(cubin, "quicksort"), 1, 40, data, numpy.int32(50))
        gpu.set_stack(old)
        numpy.testing.assert_array_equal(data, wanted)
    for name, run in (("n-body", bodies), ("Mandelbrot", mandelbrot), ("life", life), ("quicksort", quicksort)):
        yield Case(f"programs/{name}", BODIES, run=run)


CASES = [hashing, sorting, fourier, sparse, simulations]
