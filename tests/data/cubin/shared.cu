// Static and dynamic shared memory, barriers.
extern "C" __global__ void reduce(const int *in, int *out)
{
    __shared__ int part[256];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

extern "C" __global__ void reverse(const int *in, int *out)
{
    extern __shared__ int buffer[];
    unsigned t = threadIdx.x;
    buffer[t] = in[t];
    __syncthreads();
    out[t] = buffer[blockDim.x - 1 - t];
}

extern "C" __global__ void mixed(const int *in, int *out)
{
    __shared__ int fixed[33];
    extern __shared__ int buffer[];
    unsigned t = threadIdx.x;
    buffer[t] = in[t];
    if (t < 33)
        fixed[t] = in[t] * 3;
    __syncthreads();
    out[t] = buffer[blockDim.x - 1 - t] + fixed[t % 33];
}
