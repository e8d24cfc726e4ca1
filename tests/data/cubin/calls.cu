// Calls: functions that are not inlined, recursion (stack), a table of function pointers, a private array.
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

typedef int (*unary)(int);
__device__ unary operations[2] = { twice, square };

extern "C" __global__ void direct(const int *in, int *out)
{
    unsigned i = threadIdx.x;
    out[i] = twice(in[i]) + square(in[i] + 1);
}

extern "C" __global__ void recursive(const int *in, int *out)
{
    unsigned i = threadIdx.x;
    out[i] = fibonacci(in[i]);
}

extern "C" __global__ void indirect(const int *in, int *out)
{
    unsigned i = threadIdx.x;
    out[i] = operations[in[i] & 1](in[i]);
}

extern "C" __global__ void array(const int *in, int *out, int n)
{
    int local[64];
    unsigned i = threadIdx.x;
    for (int k = 0; k < 64; k++)
        local[k] = in[k] + (int)i;
    int sum = 0;
    for (int k = 0; k < n; k++)
        sum += local[in[k] & 63];
    out[i] = sum;
}
