// The products of python/suite/model/products.py, after the algorithms and the launches of two published programs.

// The first program: an element for each thread, tiles of 32 x 32 in shared memory, and a tile of 16 x 16 for each warp by matrix instructions,
// with fragments from global memory. The last one has the PTX instructions that mma.h becomes.
#define MATRIX(kind) const kind *__restrict__
extern "C" __global__ void plain(MATRIX(float) a, MATRIX(float) b, float *__restrict__ c, int n) {
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= n || x >= n) return;
    float sum = 0;
    #pragma unroll 4
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
extern "C" __global__ void tiled(MATRIX(float) a, MATRIX(float) b, float *__restrict__ c, int n) {
    constexpr int T = 32;
    __shared__ float left[T][T + 1];
    __shared__ float right[T][T + 1];
    const int i = threadIdx.y, j = threadIdx.x, y = blockIdx.y * T + i, x = blockIdx.x * T + j, steps = (n + T - 1) / T;
    float sum = 0;
    for (int s = 0; s < steps; s++) {
        const int along = s * T + j, down = s * T + i;
        left[i][j] = y < n && along < n ? a[y * n + along] : 0;
        right[i][j] = down < n && x < n ? b[down * n + x] : 0;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < T; k++) sum += left[i][k] * right[k][j];
        __syncthreads();
    }
    if (y < n && x < n) c[y * n + x] = sum;
}
#define EIGHT(kind, r) kind(r[0]), kind(r[1]), kind(r[2]), kind(r[3]), kind(r[4]), kind(r[5]), kind(r[6]), kind(r[7])
#define OUT(x) "=r"(x)
#define IN(x) "r"(x)
#define SUM(x) "+f"(x)
#define VALUE(x) "f"(x)
#define GLOBAL(p) "l"(__cvta_generic_to_global(p))
extern "C" __global__ void warps(MATRIX(short) a, MATRIX(short) b, float *__restrict__ c, int n) {
    const int y = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize * 16, x = (blockIdx.y * blockDim.y + threadIdx.y) * 16;
    float s[8] = {};
    if (y >= n || x >= n) return;
    for (int k = 0; k < n; k += 16) {
        unsigned l[8], r[8];
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
            : EIGHT(OUT, l) : GLOBAL(a + y * n + k), "r"(n));
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
            : EIGHT(OUT, r) : GLOBAL(b + k * n + x), "r"(n));
        asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, "
            "{%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};" : EIGHT(SUM, s) : EIGHT(IN, l), EIGHT(IN, r));
    }
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;"
        :: GLOBAL(c + y * n + x), EIGHT(VALUE, s), "r"(n) : "memory");
}

// The second program: products of m x k and k x n, in single precision and with matrix instructions of TF32.
typedef unsigned u;
// The loop is one piece of PTX, so that only ptxas decides how it is unrolled, as in the measured program.
extern "C" __global__ void mmn(const float *a, const float *b, float *c, u m, u n, u k) {
    u y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= m) return;
    if (x >= n) return;
    float total;
    asm volatile("{ .reg .pred end; .reg .b32 i, p, q; .reg .b64 s, t; .reg .f32 v, w;\n"
        "mov.f32 %0, 0f00000000; mov.u32 i, 0;\n"
        "NEXT: setp.ge.u32 end, i, %5; @end bra LAST;\n"
        "mad.lo.u32 p, %3, %5, i; mul.wide.u32 s, p, 4; add.u64 s, %1, s; ld.global.f32 v, [s];\n"
        "mad.lo.u32 q, i, %6, %4; mul.wide.u32 t, q, 4; add.u64 t, %2, t; ld.global.f32 w, [t];\n"
        "fma.rn.f32 %0, v, w, %0; add.u32 i, i, 1; bra NEXT;\n"
        "LAST: }" : "=&f"(total) : GLOBAL(a), GLOBAL(b), "r"(y), "r"(x), "r"(k), "r"(n));
    c[y * n + x] = total;
}

__device__ __forceinline__ float word(u at) { float v; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at)); return v; }
__device__ __forceinline__ u bits(u at) { u v; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at)); return v; }
__device__ __forceinline__ u rounded(float f) { u v; asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(f)); return v; }
__device__ __forceinline__ void chunk(u to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), GLOBAL(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void arrived() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }
__device__ __forceinline__ void together() { asm volatile("bar.sync 0;" ::: "memory"); }

// What these products share: 256 threads as 16 x 16, tiles of ROWS x 64 of C, K in steps of BK, and one or two buffers that cp.async fills. PAD
// and BPAD are the words after each row. If TURNED, B lies in the buffer by columns, and plain loads and stores bring it there.
template <int ROWS, int BK, int PAD, int BPAD, bool TURNED> struct Tile {
    static constexpr int LEFT_ROW = (BK + PAD) * 4, LEFT = ROWS * LEFT_ROW, RIGHT_ROW = (BK + BPAD) * 4;
    static constexpr int BUFFER = LEFT + (TURNED ? 64 * RIGHT_ROW : BK * 64 * 4);
    static __device__ __forceinline__ void left(int i, u to, const float *a, u row0, u k0, u k, u thread) {
        u c = thread + i * 256, row = c / (BK / 4), part = c % (BK / 4);
        chunk(to + row * LEFT_ROW + part * 16, a + ((row0 + row) * k + k0 + part * 4));
    }
    static __device__ __forceinline__ void right(int i, u to, const float *b, u column0, u k0, u n, u thread) {
        u c = thread + i * 256;
        chunk(to + LEFT + c * 16, b + ((k0 + c / 16) * n + column0 + c % 16 * 4));
    }
    static __device__ __forceinline__ void turned(int i, u to, const float *b, u column0, u k0, u n, u thread) {
        u c = thread + i * 256, x = c & 63, y = c >> 6, v;
        asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : GLOBAL(b + ((k0 + y) * n + column0 + x)));
        asm volatile("st.shared.b32 [%0], %1;" :: "r"(to + LEFT + x * RIGHT_ROW + y * 4), "r"(v) : "memory");
    }
    static __device__ __forceinline__ void stage(u to, const float *a, const float *b, u row0, u column0, u k0, u n, u k, u thread) {
        if (ROWS == 64) {
            #pragma unroll
            for (int i = 0; i < BK / 16; i++) { left(i, to, a, row0, k0, k, thread); right(i, to, b, column0, k0, n, thread); }
        } else {
            #pragma unroll
            for (int i = 0; i < ROWS * BK / 1024; i++) left(i, to, a, row0, k0, k, thread);
            if (TURNED) {
                #pragma unroll
                for (int i = 0; i < BK / 4; i++) turned(i, to, b, column0, k0, n, thread);
            } else {
                #pragma unroll
                for (int i = 0; i < BK / 16; i++) right(i, to, b, column0, k0, n, thread);
            }
        }
    }
    template <int STAGES, class Compute>
    static __device__ __forceinline__ void loop(u base, const float *a, const float *b, u row0, u column0, u n, u k, u thread, Compute compute) {
        if (STAGES == 2) {
            u parity = 0;
            stage(base, a, b, row0, column0, 0, n, k, thread);
            commit();
            #pragma unroll 1
            for (u k0 = 0; k0 < k; k0 += BK) {
                u here = base + parity * BUFFER;
                if (k0 + BK < k) {
                    stage(base + (parity ^ 1) * BUFFER, a, b, row0, column0, k0 + BK, n, k, thread);
                    commit();
                    arrived<1>();
                } else arrived<0>();
                together();
                compute(here);
                together();
                parity ^= 1;
            }
        } else {
            #pragma unroll 1
            for (u k0 = 0; k0 < k; k0 += BK) {
                stage(base, a, b, row0, column0, k0, n, k, thread);
                commit();
                arrived<0>();
                together();
                compute(base);
                together();
            }
        }
    }
};

extern __shared__ __align__(16) char tiles[];
extern "C" __global__ void mm(const float *a, const float *b, float *c, u m, u n, u k) {
    using T = Tile<64, 32, 0, 0, false>;
    u tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    u base = __cvta_generic_to_shared(tiles);
    float sum[4][4] = {};
    T::loop<2>(base, a, b, row0, column0, n, k, thread, [&](u here) {
        u l = here + ty * 512, r = here + tx * 16 + T::LEFT;
        #pragma unroll
        for (int i = 0; i < 32; i++) {
            float p[4], q[4];
            #pragma unroll
            for (int j = 0; j < 4; j++) p[j] = word(l + j * 128 + i * 4);
            asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(q[0]), "=f"(q[1]), "=f"(q[2]), "=f"(q[3]) : "r"(r + i * 256));
            #pragma unroll
            for (int j = 0; j < 4; j++)
                #pragma unroll
                for (int h = 0; h < 4; h++) sum[j][h] = fmaf(p[j], q[h], sum[j][h]);
        }
    });
    #pragma unroll
    for (int j = 0; j < 4; j++)
        #pragma unroll
        for (int h = 0; h < 4; h++)
            asm volatile("st.global.f32 [%0], %1;" :: GLOBAL(c + ((row0 + ty * 4 + j) * n + column0 + tx * 4 + h)), "f"(sum[j][h]) : "memory");
}

// TF32: eight warps as 4 x 2, of which each has F fragments of 16 rows, and 32 columns. If EXACT, fragments are read by words and rounded; else A
// comes by ldmatrix, and B by words that are not rounded, or by ldmatrix if it is TURNED.
template <int F, bool EXACT, bool TURNED, int BK, int PAD, int BPAD, int STAGES>
__device__ __forceinline__ void tf32(const float *a, const float *b, float *c, u n, u k) {
    using T = Tile<64 * F, BK, PAD, BPAD, TURNED>;
    u thread = threadIdx.y * 16 + threadIdx.x, row0 = blockIdx.y * 64 * F, column0 = blockIdx.x * 64;
    u base = __cvta_generic_to_shared(tiles), warp = thread >> 5, lane = thread & 31, down = warp >> 1, side = warp & 1, g = lane >> 2, t = lane & 3;
    float sum[F][4][4] = {};
    u single = (down * 16 * F + g) * T::LEFT_ROW, column = (side * 32 + g) * 4;
    u eight = ((lane >> 3 & 1) * 8 + (lane & 7) + down * 16 * F) * T::LEFT_ROW, high = (lane >> 4) * 16;
    u flip = T::LEFT + (side * 32 + (lane & 7)) * T::RIGHT_ROW + (lane >> 3 & 1) * 16;
    T::template loop<STAGES>(base, a, b, row0, column0, n, k, thread, [&](u here) {
        #pragma unroll
        for (int s = 0; s < BK; s += 8) {
            u l[F][4], r[2];
            #pragma unroll
            for (int f = 0; f < F; f++) {
                if (EXACT) {
                    u at = here + single + f * 16 * T::LEFT_ROW + (s + t) * 4;
                    float v0 = word(at), v1 = word(at + 8 * T::LEFT_ROW), v2 = word(at + 16), v3 = word(at + 8 * T::LEFT_ROW + 16);
                    l[f][0] = rounded(v0); l[f][1] = rounded(v1); l[f][2] = rounded(v2); l[f][3] = rounded(v3);
                } else
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                        : "=r"(l[f][0]), "=r"(l[f][1]), "=r"(l[f][2]), "=r"(l[f][3]) : "r"(here + high + s * 4 + eight + f * 16 * T::LEFT_ROW));
            }
            #pragma unroll
            for (int j = 0; j < 4; j++) {
                u at = here + T::LEFT + (s + t) * 256 + column + j * 32;
                if (TURNED)
                    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                        : "=r"(r[0]), "=r"(r[1]) : "r"(here + flip + j * 8 * T::RIGHT_ROW + s * 4));
                else if (EXACT) {
                    float v0 = word(at), v1 = word(at + 1024);
                    r[0] = rounded(v0); r[1] = rounded(v1);
                } else { r[0] = bits(at); r[1] = bits(at + 1024); }
                #pragma unroll
                for (int f = 0; f < F; f++)
                    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                        : "+f"(sum[f][j][0]), "+f"(sum[f][j][1]), "+f"(sum[f][j][2]), "+f"(sum[f][j][3])
                        : "r"(l[f][0]), "r"(l[f][1]), "r"(l[f][2]), "r"(l[f][3]), "r"(r[0]), "r"(r[1]));
            }
        }
    });
    #pragma unroll
    for (int f = 0; f < F; f++)
        #pragma unroll
        for (int j = 0; j < 4; j++)
            #pragma unroll
            for (int i = 0; i < 4; i++)
                asm volatile("st.global.f32 [%0], %1;" :: GLOBAL(
                    c + ((row0 + down * 16 * F + f * 16 + g + i / 2 * 8) * n + column0 + side * 32 + t * 2 + j * 8) + i % 2),
                    "f"(sum[f][j][i]) : "memory");
}
#define PRODUCT(NAME, ...) \
extern "C" __global__ void NAME(const float *a, const float *b, float *c, u m, u n, u k) { tf32<__VA_ARGS__>(a, b, c, n, k); }
PRODUCT(mmm, 1, true, false, 32, 0, 0, 2)
PRODUCT(mmm_swz, 1, false, false, 32, 8, 0, 2)
PRODUCT(mmm_wide_m2, 2, false, false, 32, 8, 0, 2)
PRODUCT(mmm_wide_m4_s1, 4, false, false, 32, 8, 0, 1)
PRODUCT(mmm_wide_m4, 4, false, false, 32, 8, 0, 2)
PRODUCT(mmm_wide_b_m4_s1, 4, false, true, 32, 8, 4, 1)
PRODUCT(mmm_wide_b_m4, 4, false, true, 32, 8, 4, 2)
PRODUCT(mmm_wide_b_m2, 2, false, true, 32, 8, 4, 2)

// y = a x + y, with four elements for each thread or one.
extern "C" __global__ void saxpy4(const float *x, float *y, float a, u n) {
    u i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= n) return;
    if (i + 3 < n) {
        float4 p = *(const float4 *)(x + i), q = *(float4 *)(y + i);
        q.x = __fadd_rn(__fmul_rn(a, p.x), q.x); q.y = __fadd_rn(__fmul_rn(a, p.y), q.y);
        q.z = __fadd_rn(__fmul_rn(a, p.z), q.z); q.w = __fadd_rn(__fmul_rn(a, p.w), q.w);
        *(float4 *)(y + i) = q;
    } else for (; i < n; i++) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}
extern "C" __global__ void saxpy1(const float *x, float *y, float a, u n) {
    u i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}
