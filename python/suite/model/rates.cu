// The kernels of python/suite/model/rates.py: latencies, rates of instructions, and rates of caches of an SM.
#include <cuda_fp16.h>
typedef unsigned u;
#define GLOBAL(p) "l"(__cvta_generic_to_global(p))
// A chain of loads: each word is the address of the next one.
extern "C" __global__ void chase(void **from, void **out, int steps) {
    unsigned long long p = (unsigned long long)from;
    #pragma unroll 16
    for (int i = 0; i < steps; i++) asm volatile("ld.global.u64 %0, [%0];" : "+l"(p));
    *out = (void *)p;
}
__device__ __forceinline__ bool never(const float (&x)[4]) { return x[0] + x[1] + x[2] + x[3] == 1.2345e-30f; }
template <int CHAINS> __device__ __forceinline__ bool never(const int (&x)[CHAINS]) {
    int all = 0;
    for (int i = 0; i < CHAINS; i++) all ^= x[i];
    return all == 0x12345678;
}
// Independent chains of one class of instructions in each thread, and 64 instructions in each loop.
template <int CHAINS = 4, class Number, class Step> __device__ __forceinline__ void chains(float *out, int loops, Number a, Step step) {
    Number x[CHAINS];
    for (int i = 0; i < CHAINS; i++) x[i] = a + i + threadIdx.x;
    #pragma unroll 1
    for (int l = 0; l < loops; l++) {
        #pragma unroll
        for (int h = 0; h < 64 / CHAINS; h++)
            #pragma unroll
            for (int i = 0; i < CHAINS; i++) step(x[i]);
    }
    if (never(x)) *out = x[0];
}
__device__ __forceinline__ void fma_class(float *out, int loops, float a, float b) {
    chains(out, loops, a, [=](float &x) { x = fmaf(x, a, b); });
}
__device__ __forceinline__ void imad_class(float *out, int loops, int a, int b) {
    chains(out, loops, a, [=](int &x) { asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b)); });
}
__device__ __forceinline__ void alu_class(float *out, int loops, int a, int b) {
    chains(out, loops, a, [=](int &x) { x = (x & a) + b; });
}
extern "C" __global__ void ffma(float *out, int loops, float a, float b) { fma_class(out, loops, a, b); }
extern "C" __global__ void imad(float *out, int loops, int a, int b) { imad_class(out, loops, a, b); }
extern "C" __global__ void alu(float *out, int loops, int a, int b) { alu_class(out, loops, a, b); }
// The first half of the warps does one class, the second half the other.
extern "C" __global__ void ffma_imad(float *out, int loops, float a, float b, int c, int d) {
    if (threadIdx.x < blockDim.x / 2) fma_class(out, loops, a, b); else imad_class(out, loops, c, d);
}
extern "C" __global__ void ffma_alu(float *out, int loops, float a, float b, int c, int d) {
    if (threadIdx.x < blockDim.x / 2) fma_class(out, loops, a, b); else alu_class(out, loops, c, d);
}
extern "C" __global__ void alu_imad(float *out, int loops, int a, int b, int c, int d) {
    if (threadIdx.x < blockDim.x / 2) alu_class(out, loops, a, b); else imad_class(out, loops, c, d);
}
// The inner loop of the Empirical Roofline Toolkit: a chain for each element of the array.
extern "C" __global__ void ert_float(float *data, int loops, float c) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    float v = data[i], x = 0.8f;
    #pragma unroll 1
    for (int l = 0; l < loops; l++) {
        #pragma unroll
        for (int h = 0; h < 64; h++) x = fmaf(x, v, c);
    }
    data[i] = x;
}
extern "C" __global__ void ert_half2(__half2 *data, int loops, float c) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    __half2 v = data[i], x = __float2half2_rn(0.8f), d = __float2half2_rn(c);
    #pragma unroll 1
    for (int l = 0; l < loops; l++) {
        #pragma unroll
        for (int h = 0; h < 64; h++) x = __hfma2(x, v, d);
    }
    data[i] = x;
}
extern "C" __global__ void dp4a(float *out, int loops, int a, int b) {
    chains<8>(out, loops, a, [=](int &x) { x = __dp4a(a, b, x); });
}
#define MMA(NAME, SHAPE, KIND, PLACE, A, B) \
extern "C" __global__ void __launch_bounds__(1024) NAME(KIND *out, int loops, u seed) { \
    KIND c[6][4] = {}; u a0 = seed + threadIdx.x, a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3, b0 = seed, b1 = seed + 1; \
    _Pragma("unroll 1") for (int l = 0; l < loops; l++) { \
        _Pragma("unroll") for (int h = 0; h < 4; h++) \
            _Pragma("unroll") for (int i = 0; i < 6; i++) \
                asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, " A ", " B ", {%0,%1,%2,%3};" \
                    : "+" PLACE(c[i][0]), "+" PLACE(c[i][1]), "+" PLACE(c[i][2]), "+" PLACE(c[i][3]) \
                    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); \
    } \
    KIND sum = 0; for (int i = 0; i < 6; i++) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3]; \
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum; \
}
MMA(mma_half, "m16n8k16.row.col.f32.f16.f16.f32", float, "f", "{%4,%5,%6,%7}", "{%8,%9}")
MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f", "{%4,%5,%6,%7}", "{%8,%9}")
MMA(mma_byte, "m16n8k32.row.col.s32.s8.s8.s32", int, "r", "{%4,%5,%6,%7}", "{%8,%9}")
__device__ __forceinline__ float4 four(const float4 *p) {
    float4 v;
    asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : GLOBAL(p));
    return v;
}
// One block of 1024 threads on each SM reads its own 64 KiB again and again.
extern "C" __global__ void __launch_bounds__(1024) l1_read(const float4 *from, float *out, int passes, int zero) {
    const float4 *p = from + blockIdx.x * 4096 + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int l = 0; l < passes; l++) {
        #pragma unroll
        for (int i = 0; i < 4; i++) { float4 v = four(p + i * 1024); sum += v.x + v.y + v.z + v.w; }
        p += zero;  // ptxas does not know that these are the same addresses
    }
    if (sum == 1.2345e-30f) *out = sum;
}
// 32 KiB to another 32 KiB.
extern "C" __global__ void __launch_bounds__(1024) l1_copy(const float4 *from, float4 *to, int passes) {
    const float4 *p = from + blockIdx.x * 2048 + threadIdx.x;
    float4 *q = to + blockIdx.x * 2048 + threadIdx.x;
    #pragma unroll 1
    for (int l = 0; l < passes; l++) {
        #pragma unroll
        for (int i = 0; i < 2; i++) {
            float4 v = four(p + i * 1024);
            asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" :: GLOBAL(q + i * 1024), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
        }
    }
}
