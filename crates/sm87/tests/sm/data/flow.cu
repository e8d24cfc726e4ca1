// Kernels of flow.rs: where lanes go, who waits for whom, and time.
//
//     python3 ../compile.py libnvrtc.so.12 flow.cu

// Every lane belongs to the group of lanes with its key.
extern "C" __global__ void key_groups(const int *keys, int *out) {
    int key = keys[threadIdx.x], lane = threadIdx.x & 31;
    unsigned group = __match_any_sync(~0u, key);
    int *o = out + 4 * threadIdx.x;
    o[0] = __reduce_add_sync(group, lane);
    o[1] = __ballot_sync(group, lane & 1);
    o[2] = __all_sync(group, lane < 16);
    o[3] = __shfl_sync(group, lane, __ffs(group) - 1);
}

__device__ __noinline__ int walk(int n, int d) {
    if (n <= 0) return d;
    int r = 0;
    if (n & 1) r += walk(n - 1, d + 1) * 3; else r += walk(n - 2, d + 2) + 1;
    if (n % 3 == 0) r ^= walk(n / 3, d);
    return r + n;
}

// Lanes recurse to different depths, some not at all, and meet again.
extern "C" __global__ void divergent_recursion(const int *n, int *out) {
    int r = 0, x = n[threadIdx.x];
    if (x & 1) r = walk(x, 0); else if (x & 2) r = walk(x + 3, 1);
    out[threadIdx.x] = r + __popc(__ballot_sync(~0u, r != 0)) * 65536;
}

// All CTAs wait for each other, `rounds` times; `seen` counts those that saw what the last round wrote.
extern "C" __global__ void grid_barrier(unsigned *count, volatile unsigned *phase, int *seen, int rounds) {
    for (int r = 0; r < rounds; r++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            if (atomicAdd(count, 1) == gridDim.x * (r + 1) - 1) *phase = r + 1;
            while (*phase <= r);
            __threadfence();
        }
        __syncthreads();
        atomicAdd(seen + r, 1);
    }
}

// Each CTA waits for the one before it.
extern "C" __global__ void chain(volatile int *flags, int nap) {
    if (threadIdx.x == 0) {
        if (blockIdx.x) while (flags[blockIdx.x - 1] == 0) if (nap) __nanosleep(nap);
        flags[blockIdx.x] = blockIdx.x ? flags[blockIdx.x - 1] + 1 : 1;
    }
}

// A lock that every thread takes.
extern "C" __global__ void spin_lock(int *lock, volatile int *count) {
    while (atomicCAS(lock, 0, 1) != 0);
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void clocks(long long *out, int loops, int nap) {
    long long begin = clock64(), timer, later;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer));
    float x = 1;
    for (int i = 0; i < loops; i++) x = x * 1.0001f + i;
    long long end = clock64();
    __nanosleep(nap);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(later));
    long long *o = out + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    o[0] = end - begin;
    o[1] = later - timer;
    o[2] = clock64() - end;
    o[3] = x;
}
