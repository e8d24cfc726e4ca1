// The kernels of the examples. `compile.py` makes machine code of them.

extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

#define TILE 16

// c = a * b, all n x n, n a multiple of TILE: each block multiplies tiles that its threads load together.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float x[TILE][TILE], y[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += TILE) {
        x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += x[threadIdx.y][k] * y[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// One step of a controller: u = gain * (target - position), then the plant moves.
extern "C" __global__ void control(const float *target, float *position, float *command, float gain, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float u = gain * (target[i] - position[i]);
    command[i] = u;
    position[i] += u;
}
