// Ten programs with <<<...>>>, each in a process of its own: the argument names one. test_cuda_programs.py compiles this file twice, with NVRTC
// for the GPU and with clang for the CPU. Each program computes its results on the CPU too, and prints "right" if both have the same.
#ifdef __CUDACC_RTC__
#include <cooperative_groups.h>
#else
// What clang has to know of CUDA, because NVIDIA's headers say it to NVIDIA's compiler alone. The CPU executes none of the functions of the GPU.
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
extern "C" unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr);
#undef __global__
#undef __device__
#undef __constant__
#undef __shared__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
__device__ int atomicAdd(int *to, int value);
__device__ int __shfl_up_sync(unsigned mask, int value, unsigned delta);
__device__ int __shfl_down_sync(unsigned mask, int value, unsigned delta);
__device__ void __syncthreads();
#include <cstdio>
#include <cstring>
#include <vector>
#endif

__constant__ int weights[4];
__device__ int offset = 5;

struct Table { int values[2000]; };
struct Tap { int radius; float factor; };

__global__ void add(const int *a, const int *b, int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = a[i] + b[i];
}

__global__ void weigh(int *to) { to[threadIdx.x] = weights[threadIdx.x & 3] * 10 + offset; }

__global__ void product(const float *a, const float *b, float *to, int n) {
    __shared__ float left[16][16], above[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[threadIdx.y][threadIdx.x] = a[y * n + tile + threadIdx.x];
        above[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + x];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[threadIdx.y][k] * above[k][threadIdx.x];
        __syncthreads();
    }
    to[y * n + x] = sum;
}

template <typename T> __global__ void transpose(const T *from, T *to, int width, int height) {
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) if (x < width && y + row < height) tile[threadIdx.y + row][threadIdx.x] = from[(y + row) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) if (x < height && y + row < width) to[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}

__global__ void count(const unsigned char *from, int *bins, int n) {
    extern __shared__ int mine[];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[from[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void sum(const int *from, int *to, int n) {
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += from[i];
    for (int far = 16; far; far /= 2) mine += __shfl_down_sync(0xFFFFFFFFu, mine, far);
    if (threadIdx.x % 32 == 0) atomicAdd(to, mine);
}

__global__ void scan(const int *from, int *to) {
    __shared__ int warps[32];
    int lane = threadIdx.x % 32, mine = from[threadIdx.x];
    for (int far = 1; far < 32; far *= 2) {
        int other = __shfl_up_sync(0xFFFFFFFFu, mine, far);
        if (lane >= far) mine += other;
    }
    if (lane == 31) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int before = 0; before < int(threadIdx.x / 32); before++) mine += warps[before];
    to[threadIdx.x] = mine;
}

__global__ void meet(int *to) {
#ifdef __CUDACC_RTC__
    auto grid = cooperative_groups::this_grid();
    atomicAdd(to, 1);
    grid.sync();
    if (threadIdx.x == 0) to[1 + blockIdx.x] = to[0];
#endif
}

__global__ void look_up(Table table, int *to) {
    for (int i = threadIdx.x; i < 2000; i += blockDim.x) to[i] = table.values[1999 - i];
}

__global__ void smooth(const float *from, float *to, int n, Tap tap) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int at = -tap.radius; at <= tap.radius; at++) if (i + at >= 0 && i + at < n) sum += from[i + at] * tap.factor;
    to[i] = sum;
}

#ifndef __CUDACC_RTC__
#define OK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); return false; } } while (0)
#define SAME(got, want) do { if ((got) != (want)) { printf("line %d: %s is not %s\n", __LINE__, #got, #want); return false; } } while (0)

template <typename T> static T *on_gpu(const std::vector<T> &values) {
    T *made = nullptr;
    if (cudaMalloc(&made, values.size() * sizeof(T)) || cudaMemcpy(made, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice))
        return nullptr;
    return made;
}

template <typename T> static std::vector<T> from_gpu(const T *from, size_t n) {
    std::vector<T> values(n);
    if (cudaMemcpy(values.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost)) values.clear();
    return values;
}

// Numbers that differ from element to element.
static std::vector<int> numbers(int n, int modulus) {
    std::vector<int> made(n);
    for (int i = 0; i < n; i++) made[i] = i * 7919 % modulus;
    return made;
}

static bool adds() {
    const int n = 10007;
    auto a = numbers(n, 10007), b = numbers(n, 997);
    int *to;
    OK(cudaMalloc(&to, n * sizeof(int)));
    add<<<(n + 255) / 256, 256>>>(on_gpu(a), on_gpu(b), to, n);
    OK(cudaGetLastError());
    auto got = from_gpu(to, n);
    for (int i = 0; i < n; i++) SAME(got[i], a[i] + b[i]);
    add<<<1, 2000>>>(to, to, to, n);
    SAME(cudaGetLastError(), cudaErrorInvalidConfiguration);
    SAME(cudaGetLastError(), cudaSuccess);
    return true;
}

static bool symbols() {
    int values[4] = {1, 2, 3, 4}, five = 0, *to;
    OK(cudaMemcpyToSymbol((const void *)weights, values, sizeof values));
    OK(cudaMemcpyFromSymbol(&five, (const void *)&offset, sizeof five));
    SAME(five, 5);
    OK(cudaMallocManaged(&to, 32 * sizeof(int)));
    weigh<<<1, 32>>>(to);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) SAME(to[i], values[i & 3] * 10 + 5);
    return true;
}

static bool products() {
    const int n = 64;
    std::vector<float> a(n * n), b(n * n);
    for (int i = 0; i < n * n; i++) a[i] = float(i % 13), b[i] = float(i % 7);  // sums of small whole numbers are exact
    float *to;
    OK(cudaMalloc(&to, n * n * sizeof(float)));
    product<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(on_gpu(a), on_gpu(b), to, n);
    auto got = from_gpu(to, n * n);
    for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) {
        float want = 0;
        for (int k = 0; k < n; k++) want += a[y * n + k] * b[k * n + x];
        SAME(got[y * n + x], want);
    }
    return true;
}

static bool transposes() {
    const int width = 100, height = 70;
    std::vector<double> from(width * height);
    for (int i = 0; i < width * height; i++) from[i] = i + 0.5;
    double *to;
    OK(cudaMalloc(&to, from.size() * sizeof(double)));
    transpose<double><<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(on_gpu(from), to, width, height);
    auto got = from_gpu(to, from.size());
    for (int y = 0; y < height; y++) for (int x = 0; x < width; x++) SAME(got[x * height + y], from[y * width + x]);
    return true;
}

static bool counts() {
    const int n = 30000;
    std::vector<unsigned char> from(n);
    std::vector<int> want(256);
    for (int i = 0; i < n; i++) from[i] = (unsigned char)(i * i % 251), want[from[i]]++;
    int *bins;
    OK(cudaMalloc(&bins, 256 * sizeof(int)));
    OK(cudaMemset(bins, 0, 256 * sizeof(int)));
    count<<<6, 256, 256 * sizeof(int)>>>(on_gpu(from), bins, n);
    auto got = from_gpu(bins, 256);
    for (int i = 0; i < 256; i++) SAME(got[i], want[i]);
    return true;
}

static bool sums() {
    const int n = 20000;
    auto from = numbers(n, 1009);
    int *total, want = 0, wants = 0;
    for (int value : from) want += value;
    OK(cudaMalloc(&total, sizeof(int)));
    OK(cudaMemset(total, 0, sizeof(int)));
    sum<<<4, 256>>>(on_gpu(from), total, n);
    SAME(from_gpu(total, 1).at(0), want);
    int *to;
    OK(cudaMalloc(&to, 1024 * sizeof(int)));
    scan<<<1, 1024>>>(on_gpu(from), to);
    auto got = from_gpu(to, 1024);
    for (int i = 0; i < 1024; i++) SAME(got[i], wants += from[i]);
    return true;
}

static bool meets() {
    int *to;
    OK(cudaMalloc(&to, 5 * sizeof(int)));
    OK(cudaMemset(to, 0, 5 * sizeof(int)));
    void *arguments[] = {&to};
    OK(cudaLaunchCooperativeKernel((const void *)meet, dim3(4), dim3(64), arguments, 0, nullptr));
    auto got = from_gpu(to, 5);
    for (int i = 0; i < 5; i++) SAME(got[i], 256);
    return true;
}

static void CUDART_CB called(void *calls) { ++*static_cast<int *>(calls); }

static bool streams() {
    const int n = 4096;
    cudaStream_t one, two;
    cudaEvent_t done;
    int *pinned, *on_one, *on_two, calls = 0;
    OK(cudaStreamCreate(&one));
    OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    OK(cudaEventCreate(&done));
    OK(cudaMallocHost(&pinned, n * sizeof(int)));
    for (int i = 0; i < n; i++) pinned[i] = i;
    OK(cudaMallocAsync(&on_one, n * sizeof(int), one));
    OK(cudaMalloc(&on_two, n * sizeof(int)));
    OK(cudaMemcpyAsync(on_one, pinned, n * sizeof(int), cudaMemcpyHostToDevice, one));
    add<<<n / 256, 256, 0, one>>>(on_one, on_one, on_one, n);
    OK(cudaEventRecord(done, one));
    OK(cudaStreamWaitEvent(two, done, 0));
    add<<<n / 256, 256, 0, two>>>(on_one, on_one, on_two, n);
    OK(cudaMemcpyAsync(pinned, on_two, n * sizeof(int), cudaMemcpyDeviceToHost, two));
    OK(cudaLaunchHostFunc(two, called, &calls));
    OK(cudaStreamSynchronize(two));
    SAME(calls, 1);
    for (int i = 0; i < n; i++) SAME(pinned[i], 4 * i);
    OK(cudaFreeAsync(on_one, one));
    OK(cudaStreamDestroy(one));
    return true;
}

static bool graphs() {
    const int n = 1000;
    auto values = numbers(n, 911);
    int *to = on_gpu(values);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<4, 256, 0, stream>>>(to, to, to, n);
    add<<<4, 256, 0, stream>>>(to, to, to, n);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&made, graph, 0));
    for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(made, stream));
    OK(cudaStreamSynchronize(stream));
    auto got = from_gpu(to, n);
    for (int i = 0; i < n; i++) SAME(got[i], values[i] * 64);
    return true;
}

// Parameters of more than 4 KiB, a structure of two kinds, and a fault, which stays until the device is reset.
static bool parameters() {
    Table table;
    auto values = numbers(2000, 1999);
    memcpy(table.values, values.data(), sizeof table);
    int *to;
    OK(cudaMalloc(&to, sizeof table));
    look_up<<<1, 128>>>(table, to);
    auto got = from_gpu(to, 2000);
    for (int i = 0; i < 2000; i++) SAME(got[i], values[1999 - i]);
    std::vector<float> ones(500, 1.0f);
    float *smoothed;
    OK(cudaMalloc(&smoothed, 500 * sizeof(float)));
    smooth<<<2, 256>>>(on_gpu(ones), smoothed, 500, Tap{2, 0.25f});
    auto means = from_gpu(smoothed, 500);
    for (int i = 0; i < 500; i++) SAME(means[i], 0.25f * float(5 - (i < 2 ? 2 - i : i > 497 ? i - 497 : 0)));
    weigh<<<1, 32>>>(nullptr);
    SAME(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    SAME(cudaMalloc(&to, 4), cudaErrorIllegalAddress);
    OK(cudaDeviceReset());
    OK(cudaMalloc(&to, 4));
    return true;
}

static const struct { const char *name; bool (*program)(); } PROGRAMS[] = {
    {"adds", adds}, {"symbols", symbols}, {"products", products}, {"transposes", transposes}, {"counts", counts}, {"sums", sums},
    {"meets", meets}, {"streams", streams}, {"graphs", graphs}, {"parameters", parameters},
};

int main(int, char **arguments) {
    for (auto &one : PROGRAMS) if (!strcmp(one.name, arguments[1])) return one.program() && puts("right") >= 0 ? 0 : 1;
    return 2;
}
#endif
