// Kernels whose speed on a GPU is known to be limited by one thing.
//
//     python3 ../compile.py libnvrtc.so.12 model.cu

// Loads that lie `stride` words apart.
extern "C" __global__ void model_strided(const float *x, float *y, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * stride];
}

// Loads from shared memory that lie `stride` words apart.
extern "C" __global__ void model_banks(float *y, int stride, int rounds) {
    __shared__ volatile float tile[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = i;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < rounds; k++) sum += tile[(threadIdx.x * stride + k) & 1023];
    y[threadIdx.x] = sum;
}

// Sixteen chains of products that do not wait for each other.
extern "C" __global__ void model_products(float *y, float a, float b, int rounds) {
    float s[16];
#pragma unroll
    for (int i = 0; i < 16; i++) s[i] = i + threadIdx.x;
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 16; i++) s[i] = s[i] * a + b;
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += s[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// The same with one chain.
extern "C" __global__ void model_chain(float *y, float a, float b, int rounds) {
    float s = threadIdx.x;
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int j = 0; j < 128; j++) s = s * a + b;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// Four warps meet at a barrier again and again, and one of them works longer than the others.
extern "C" __global__ void model_barrier(float *y, float a, int rounds, int late) {
    float s = threadIdx.x;
    for (int k = 0; k < rounds; k++) {
        if (threadIdx.x / 32 == k % 4)
            for (int j = 0; j < late; j++) s = s * a + 1.0f;
        __syncthreads();
    }
    y[threadIdx.x] = s;
}
