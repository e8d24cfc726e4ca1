"""Kernels without a bug for the checker. The first argument has 103 numbers."""

# Each kernel: name, grid, block, dynamic shared memory, code.
EVERYTHING = """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[65];
    extern __shared__ int more[];
    int i = threadIdx.x, frame[8];
    for (int n = 0; n < 8; n++) frame[n + zero] = p[(i + n) % 100];
    own[i] = frame[p[i] & 7];
    more[i] = i;
    if (i == 0) own[64] = 1;
    __syncthreads();
    if (i >= 60) return;
    atomicAdd(own + 64, own[63 - i]);
    __syncthreads();
    __syncwarp(__activemask());
    asm volatile("bar.sync 1, 64;");
    p[i] = own[64] + more[63 - i];
    p[99] = 1;
}"""
CLEAN = [("everything", 1, 64, 256, EVERYTHING), ("bit-fields", 1, 32, 0, """
struct Fields { unsigned one : 1, seven : 7, rest : 24, other; };
__device__ __noinline__ void fill(Fields &f, unsigned x) {
    f.seven = x;
    f.rest = x * 3;
    f.one = x & 1;
}
extern "C" __global__ void k(int *p, int zero) {
    Fields f;
    fill(f, p[threadIdx.x]);
    if (f.one) p[threadIdx.x] = f.rest;
    p[f.seven % 100] = f.seven;
}"""), ("reduction", 4, 256, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[256];
    int i = threadIdx.x;
    own[i] = p[i % 90];
    __syncthreads();
    for (int half = 128; half >= 32; half /= 2) {
        if (i < half) own[i] += own[i + half];
        __syncthreads();
    }
    if (i < 32) {
        int sum = own[i];
        for (int n = 16; n; n /= 2) sum += __shfl_down_sync(~0u, sum, n);
        if (i == 0) atomicAdd(p + 99, sum);
    }
}"""), ("one lane polls, the others wait at the barrier", 2, 64, 0, """
extern "C" __global__ void k(int *p, int zero) {
    if (blockIdx.x == 1) {
        for (int i = 0; i < 50; i++) __nanosleep(10000);
        if (threadIdx.x == 0) atomicExch(p + 90, zero - 1);
        return;
    }
    if (threadIdx.x % 32 == 0) while (atomicAdd(p + 90, 0) != zero - 1);
    __syncthreads();
    p[threadIdx.x] = 1;
}"""), ("barriers in shared memory behind a pointer", 1, 64, 0, """
__device__ int meets(int x) {
    __shared__ unsigned long long b;
    unsigned at = (unsigned)__cvta_generic_to_shared(&b), over = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at) : "memory");
    __syncthreads();
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    while (!over)
        asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(over) : "r"(at), "l"(state) : "memory");
    return x + over;
}
__device__ int plain(int x) { return x; }
__device__ int (*functions[2])(int) = {plain, meets};
extern "C" __global__ void k(int *p, int zero) { p[threadIdx.x] = functions[zero + 1](threadIdx.x); }"""), ("histogram", 3, 128, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(bins + threadIdx.x * 7 % 16, 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(p + threadIdx.x, bins[threadIdx.x]);
}"""), ("last block", 5, 64, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int last;
    if (threadIdx.x == 0) {
        p[blockIdx.x] = blockIdx.x + 50;
        __threadfence();
        last = atomicAdd(p + 99, 1) == 99 + gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 40) p[50] = p[0] + p[1] + p[2] + p[3] + p[4];
}"""), ("lock", 4, 64, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own;
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(p, 0, 1)) {}
        __threadfence();
        p[1] += 5;
        __threadfence();
        atomicExch(p, 0);
    }
    __syncthreads();
}"""), ("grid barrier", 6, 64, 0, """
#include <cooperative_groups.h>
extern "C" __global__ void k(int *p, int zero) {
    int i = blockIdx.x * 16 + threadIdx.x % 16;
    for (int n = 0; n < 3; n++) {
        int next = p[(i + 16) % 96];
        cooperative_groups::this_grid().sync();
        if (threadIdx.x < 16) p[i] = next + 1;
        cooperative_groups::this_grid().sync();
    }
}"""), ("flag", 4, 32, 0, """
extern "C" __global__ void k(int *p, int zero) {
    volatile int *flag = p + 64;
    if (threadIdx.x == 0) {
        if (blockIdx.x) while (flag[blockIdx.x - 1] != -1) {}
        __threadfence();
        p[blockIdx.x + 1] = p[blockIdx.x] + 1;
        __threadfence();
        flag[blockIdx.x] = -1;
    }
}"""), ("one value", 4, 64, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (threadIdx.x & 3) { found = 1; p[50] = 77; }
    __syncthreads();
    p[60 + blockIdx.x] = found;
}"""), ("producer and consumer", 2, 64, 0, """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[32];
    int lane = threadIdx.x % 32;
    for (int n = 0; n < 5; n++) {
        if (threadIdx.x < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            own[lane] = n + lane;
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        } else {
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
            if (blockIdx.x == 0) p[lane] = own[31 - lane];
        }
    }
}"""), ("barrier object", 2, 64, 0, """
#include <cuda/barrier>
extern "C" __global__ void k(int *p, int zero) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int own[64];
    if (threadIdx.x == 0) init(&all, blockDim.x);
    __syncthreads();
    for (int n = 0; n < 4; n++) {
        own[threadIdx.x] = p[threadIdx.x % 50] + n;
        all.arrive_and_wait();
        int x = own[63 - threadIdx.x];
        all.arrive_and_wait();
        if (blockIdx.x == 1 && threadIdx.x < 32) p[50 + threadIdx.x] = x;
    }
}"""), ("unwritten copies", 2, 64, 0, """
struct Padded { char a; int b; double c; };
extern "C" __global__ void k(int *p, int zero) {
    __shared__ Padded own[65];
    __shared__ float4 rows[64];
    int i = threadIdx.x, frame[16];
    own[i].a = i; own[i].c = i;
    if (i & 1) own[i].b = 3 * i;
    rows[i].x = i * zero; rows[i].z = i;
    frame[i & 15] = 3;
    __syncthreads();
    Padded copy = own[63 - i];
    float4 row = rows[i ^ 33];
    __syncthreads();
    own[i] = copy;
    rows[i] = row;
    int x = frame[(i + zero) & 15], y = own[64].b;
    __syncthreads();
    bool odd = (63 - i) & 1;
    if (blockIdx.x == 0) p[i] = (odd && own[i].b > 7 ? own[i].b : 0) + own[i].a + (int)rows[i].x + x + (y & zero);
}"""), ("tiles", 1, 64, 0, """
#include <cooperative_groups.h>
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    auto block = cooperative_groups::this_thread_block();
    auto tile = cooperative_groups::tiled_partition<8>(block);
    own[threadIdx.x] = p[threadIdx.x];
    tile.sync();
    int x = own[threadIdx.x ^ 7] + tile.shfl_xor(own[threadIdx.x], 3);
    block.sync();
    own[63 - threadIdx.x] = x;
    block.sync();
    p[threadIdx.x] = own[threadIdx.x];
}"""), ("three of four words", 1, 32, 0, """
extern "C" __global__ void k(int *p, int zero) {
    int4 a = *(int4 *)(p + 96);
    int2 b = *(int2 *)(p + 100);
    int c = p[102];
    p[threadIdx.x] = a.x * a.y + a.z * a.w + b.x + b.y * c;
}"""), ("three of four words and a call", 1, 1, 0, """
extern "C" __global__ void k(int *p, int zero) {
    float4 a = *(float4 *)(p + 96);
    float2 b = *(float2 *)(p + 100);
    float c = ((float *)p)[102], by = 1.0f / p[zero];
    ((float4 *)p)[0] = make_float4(a.x * by, a.y * by, a.z * by, a.w * by);
    ((float2 *)p)[2] = make_float2(b.x * by, b.y * by);
    ((float *)p)[6] = c * by;
}"""), ("flags of a few threads", 1, 20, 0, """
// ptxas keeps many predicates as bits of one register, of which it clears and sets one after another. No thread has cleared all of them.
extern "C" __global__ void k(int *p, int zero) {
    int i = threadIdx.x, x = 0;
    if (i == 3) return;
    asm volatile("{ .reg .b32 flags; .reg .pred first, second;\\n"
                 "setp.gt.s32 first, %1, 7; and.b32 flags, flags, 0xfffffff7; @first or.b32 flags, flags, 8;\\n"
                 "setp.lt.s32 first, %1, 11; @first bra all; add.s32 %0, %0, 5;\\n"
                 "all: and.b32 flags, flags, 8; setp.ne.b32 second, flags, 0; @second add.s32 %0, %0, 2; }" : "+r"(x) : "r"(i));
    p[i] = p[x + i];
}""")]
