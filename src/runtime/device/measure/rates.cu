// Kernels that show what a device reaches. rates.cubin is this file, compiled for sm_87:
//     python -m tegrarm compile src/runtime/measure/rates.cu src/runtime/measure/rates.cubin
// The table in measure.rs says what each kernel does: in each round, every thread does 8 operations on eight independent values. So the
// rate of the units is measured and not their latency.

#define REPEAT(OP) for (int r = 0; r < rounds; r++) { _Pragma("unroll") for (int k = 0; k < 8; k++) { OP; } }
#define HERE (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void empty(void) {}

extern "C" __global__ void copy(float4 *to, const float4 *from, int n, int rounds) {
    for (int r = 0; r < rounds; r++)
        for (int i = HERE; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

extern "C" __global__ void float32(float *out, int rounds) {
    float v[8];
    for (int k = 0; k < 8; k++) v[k] = threadIdx.x + k;
    REPEAT(v[k] = fmaf(v[k], 0.999f, 1.5f))
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += v[k];
    out[HERE] = sum;
}

// Two values in each register.
extern "C" __global__ void float16(unsigned *out, int rounds) {
    unsigned v[8];
    for (int k = 0; k < 8; k++) v[k] = 0x3c003c00u + threadIdx.x + k;
    REPEAT(asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(v[k]) : "r"(0x38003800u)))
    unsigned sum = 0;
    for (int k = 0; k < 8; k++) sum ^= v[k];
    out[HERE] = sum;
}

extern "C" __global__ void int32(int *out, int rounds) {
    int v[8];
    for (int k = 0; k < 8; k++) v[k] = threadIdx.x + k;
    REPEAT(v[k] = v[k] * 3 + rounds)
    int sum = 0;
    for (int k = 0; k < 8; k++) sum ^= v[k];
    out[HERE] = sum;
}

#define MATRIX(NAME, TYPE, SHAPE, BITS)                                                                                    \
    extern "C" __global__ void NAME(float *out, int rounds) {                                                              \
        TYPE d[8][4] = {};                                                                                                 \
        unsigned a = 0x3c003c00u, b = 0x38003800u;                                                                         \
        REPEAT(asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"             \
            : "+" BITS(d[k][0]), "+" BITS(d[k][1]), "+" BITS(d[k][2]), "+" BITS(d[k][3]) : "r"(a), "r"(b)))                \
        TYPE sum = 0;                                                                                                      \
        for (int k = 0; k < 8; k++) sum += d[k][0];                                                                        \
        out[HERE] = (float)sum;                                                                                            \
    }

MATRIX(matrix_float16, float, "m16n8k16.row.col.f32.f16.f16.f32", "f")
MATRIX(matrix_bfloat16, float, "m16n8k16.row.col.f32.bf16.bf16.f32", "f")
MATRIX(matrix_int8, int, "m16n8k32.row.col.s32.s8.s8.s32", "r")
