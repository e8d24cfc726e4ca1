// Every kind of module data: __constant__ (initialised and not), double literals, the Payne-Hanek table of
// sinf, initialised and zeroed globals, a pointer to a global in a global.
__constant__ float weights[4] = { 0.5f, 1.5f, 2.5f, 3.5f };
__constant__ int offset;
__device__ unsigned counter = 40;
__device__ int table[6] = { 1, 1, 2, 3, 5, 8 };
__device__ int *cursor = &table[2];
__device__ float scratch[32];

extern "C" __global__ void weigh(const float *in, float *out)
{
    unsigned i = threadIdx.x;
    out[i] = in[i] * weights[i & 3] + (float)offset;
}

extern "C" __global__ void halves(const double *in, double *out)
{
    unsigned i = threadIdx.x;
    out[i] = in[i] * 0.1 + 3.141592653589793;
}

extern "C" __global__ void sines(const float *in, float *out)
{
    unsigned i = threadIdx.x;
    out[i] = sinf(in[i]);
}

extern "C" __global__ void globals(int *out)
{
    unsigned i = threadIdx.x;
    scratch[i] = (float)i;
    if (i == 0) {
        out[0] = (int)atomicAdd(&counter, 2u);
        out[1] = *cursor;
        out[2] = table[5];
    }
    __syncthreads();
    out[3 + i] = (int)scratch[31 - i];
}

// Generic pointers into constant, shared and global memory; a constant that holds the address of a constant.
__constant__ const float *indirection = &weights[1];

__device__ __noinline__ float load(const float *p) { return *p; }

extern "C" __global__ void generic(const float *in, float *out)
{
    __shared__ float tile[32];
    unsigned i = threadIdx.x;
    tile[i] = in[i];
    __syncthreads();
    const float *p = i % 3 == 0 ? &weights[i & 3] : i % 3 == 1 ? &tile[31 - i] : &in[i];
    out[i] = load(p) + *indirection;
}
