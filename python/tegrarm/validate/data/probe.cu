// The kernels of `tegrarm validate`. `make evidence-data` compiles them; the machine code lies beside this file.

typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void add(const int *a, const int *b, int *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void set(u32 *out, u32 value)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void increment(u32 *words)
{
    words[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

extern "C" __global__ void count_other(const u32 *words, u32 value, u32 *count)
{
    if (words[blockIdx.x * blockDim.x + threadIdx.x] != value)
        atomicAdd(count, 1);
}

extern "C" __global__ void copy(const uint4 *from, uint4 *to, u32 n)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[i];
}

extern "C" __global__ void load(const volatile u32 *from, u32 *to)
{
    *to = *from;
}

// The instruction of global memory, not the generic one, which would find shared memory in the window.
extern "C" __global__ void load_global(u64 from, u32 *to)
{
    u32 value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(from));
    *to = value;
}

extern "C" __global__ void trap()
{
    asm volatile("trap;");
}

extern "C" __global__ void spin(const volatile u32 *flag)
{
    while (!*flag)
        ;
}

extern "C" __global__ void windows(u64 *out)
{
    __shared__ volatile u32 shared;
    volatile u32 local[4];
    shared = 1;
    for (int i = 0; i < 4; i++)
        local[i] = i + (u32)out[i];
    u64 in_shared, in_local, at_shared = (u64)&shared, at_local = (u64)&local[out[8] & 3];
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(in_shared) : "l"(at_shared));
    asm("cvta.to.local.u64 %0, %1;" : "=l"(in_local) : "l"(at_local));
    out[0] = at_shared;
    out[1] = at_local;
    out[2] = in_shared;
    out[3] = in_local;
    out[9] = local[out[8] & 3] + shared;
}
