// Twelve programs with <<<...>>>, each in a process of its own: the argument names one. test_cuda_programs.py compiles this file twice, with NVRTC
// for the GPU and with clang for the CPU. Each program computes its results on the CPU too, and prints "right" if both have the same.
#ifdef __CUDACC_RTC__
#include <cooperative_groups.h>
#else
// What clang has to know of CUDA, because NVIDIA's headers say it to NVIDIA's compiler alone. The CPU executes none of the functions of the GPU.
#include <cuda.h>
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

#pragma clang diagnostic ignored "-Wdeprecated-declarations"  // copies of bytes to and from arrays
// Arrays come back as they were copied: rows at a place, bytes that go on in the next row, boxes of elements, and from array to array.
static bool arrays() {
    const int width = 37, height = 11, all = width * height;
    std::vector<float2> from(all + width), got(all + width);
    for (int i = 0; i < all + width; i++) from[i] = {float(i), float(-i)};
    auto same = [](const float2 &a, const float2 &b) { return a.x == b.x && a.y == b.y; };
    const size_t one = sizeof(float2), row = width * one;
    const auto in = cudaMemcpyHostToDevice, out = cudaMemcpyDeviceToHost, between = cudaMemcpyDeviceToDevice;
    cudaChannelFormatDesc pairs = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat), read;
    cudaArray_t first, second, box;
    OK(cudaMallocArray(&first, &pairs, width, height));
    OK(cudaMallocArray(&second, &pairs, width, height, cudaArraySurfaceLoadStore));
    cudaExtent size;
    unsigned flags;
    OK(cudaArrayGetInfo(&read, &size, &flags, second));
    SAME(size.width, size_t(width)); SAME(size.height, size_t(height)); SAME(size.depth, 0u); SAME(flags, unsigned(cudaArraySurfaceLoadStore));
    SAME(memcmp(&read, &pairs, sizeof read), 0);
    // Rows of a pitch to a place, and from it.
    OK(cudaMemcpy2DToArray(first, 0, 0, from.data(), row, row, height, in));
    OK(cudaMemcpy2DFromArray(got.data(), row, first, 5 * one, 2, 9 * one, 4, out));
    for (int y = 0; y < 4; y++) for (int x = 0; x < 9; x++) SAME(same(got[y * width + x], from[(y + 2) * width + x + 5]), true);
    // Bytes over the ends of rows: the rest of one, whole ones, and the beginning of one.
    OK(cudaMemcpyArrayToArray(second, 0, 0, first, 0, 0, all * one, between));
    OK(cudaMemcpyToArray(second, 30 * one, 1, from.data(), (7 + 3 * width + 2) * one, in));
    OK(cudaMemcpyFromArray(got.data(), second, 2 * one, 1, (28 + 3 * width + 9 + 20) * one, cudaMemcpyDefault));
    for (int i = 0; i < 28 + 3 * width + 29; i++) {
        const int place = width + 2 + i, first_new = width + 30, new_ones = 7 + 3 * width + 2;
        SAME(same(got[i], from[place >= first_new && place < first_new + new_ones ? place - first_new : place]), true);
    }
    OK(cudaMemcpyArrayToArray(second, 36 * one, 3, first, 3 * one, 5, (2 * width + 1) * one, between));
    OK(cudaMemcpyFromArray(got.data(), second, 36 * one, 3, (2 * width + 1) * one, out));
    for (int i = 0; i < 2 * width + 1; i++) SAME(same(got[i], from[5 * width + 3 + i]), true);
    OK(cudaMemcpy2DArrayToArray(second, 4 * one, 4, first, 0, 0, 3 * one, 3, between));
    // In a stream, and in a graph that a capture makes of it.
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMemcpy2DFromArrayAsync(got.data(), row, second, 0, 4, row, 3, out, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&made, graph, 0));
    OK(cudaGraphLaunch(made, stream));
    OK(cudaStreamSynchronize(stream));
    for (int y = 0; y < 3; y++) for (int x = 0; x < 3; x++) SAME(same(got[y * width + 4 + x], from[y * width + x]), true);
    // A box counts in elements where an array is in the copy.
    OK(cudaMalloc3DArray(&box, &pairs, make_cudaExtent(8, 5, 4)));
    cudaMemcpy3DParms parts = {};
    parts.srcPtr = make_cudaPitchedPtr(from.data(), 8 * one, 8, 5);
    parts.dstArray = box, parts.extent = make_cudaExtent(8, 5, 2), parts.dstPos = make_cudaPos(0, 0, 2), parts.kind = in;
    OK(cudaMemcpy3D(&parts));
    cudaMemcpy3DParms back = {};
    back.srcArray = box, back.srcPos = make_cudaPos(3, 1, 2), back.extent = make_cudaExtent(4, 3, 2), back.kind = out;
    back.dstPtr = make_cudaPitchedPtr(got.data(), 4 * one, 4, 3);
    OK(cudaMemcpy3DAsync(&back, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 24; i++) SAME(same(got[i], from[i / 12 * 40 + (i / 4 % 3 + 1) * 8 + i % 4 + 3]), true);
    cudaMemcpy3DPeerParms peers = {};
    peers.srcArray = box, peers.srcPos = make_cudaPos(0, 0, 2), peers.dstArray = first, peers.extent = make_cudaExtent(8, 5, 1);
    OK(cudaMemcpy3DPeer(&peers));
    OK(cudaMemcpyFromArray(got.data(), first, 0, 1, 8 * one, out));
    for (int x = 0; x < 8; x++) SAME(same(got[x], from[8 + x]), true);
    // What cannot be.
    SAME(cudaMemcpy2DToArray(first, 0, 0, from.data(), row, row, height, out), cudaErrorInvalidMemcpyDirection);
    SAME(cudaMemcpyFromArray(got.data(), first, 0, 0, one, cudaMemcpyHostToHost), cudaErrorInvalidMemcpyDirection);
    SAME(cudaMemcpyFromArray(got.data(), first, 0, height - 1, row + one, out), cudaErrorInvalidValue);
    SAME(cudaMemcpyToArray(first, row, 0, from.data(), one, in), cudaErrorInvalidValue);
    back.kind = in;
    SAME(cudaMemcpy3D(&back), cudaErrorInvalidMemcpyDirection);
    cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
    SAME(cudaMallocArray(&second, &three, 8, 8), cudaErrorInvalidChannelDescriptor);
    three = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
    SAME(cudaMallocArray(&second, &three, 8, 8), cudaErrorInvalidChannelDescriptor);
    // Each format is the driver's, and comes back as it was given.
    CUresult (*described)(CUDA_ARRAY3D_DESCRIPTOR *, CUarray) = nullptr;
    OK(cudaGetDriverEntryPointByVersion("cuArray3DGetDescriptor", reinterpret_cast<void **>(&described), 12000, cudaEnableDefault, nullptr));
    static const struct { cudaChannelFormatKind kind; int bits, channels; CUarray_format format; } FORMATS[] = {
        {cudaChannelFormatKindSigned, 8, 1, CU_AD_FORMAT_SIGNED_INT8}, {cudaChannelFormatKindSigned, 16, 2, CU_AD_FORMAT_SIGNED_INT16},
        {cudaChannelFormatKindSigned, 32, 4, CU_AD_FORMAT_SIGNED_INT32}, {cudaChannelFormatKindUnsigned, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8},
        {cudaChannelFormatKindUnsigned, 16, 1, CU_AD_FORMAT_UNSIGNED_INT16}, {cudaChannelFormatKindUnsigned, 32, 2, CU_AD_FORMAT_UNSIGNED_INT32},
        {cudaChannelFormatKindFloat, 16, 4, CU_AD_FORMAT_HALF}, {cudaChannelFormatKindFloat, 32, 1, CU_AD_FORMAT_FLOAT},
#define NORMALIZED(bits, channels) \
        {cudaChannelFormatKindUnsignedNormalized##bits##X##channels, bits, channels, CU_AD_FORMAT_UNORM_INT##bits##X##channels}, \
        {cudaChannelFormatKindSignedNormalized##bits##X##channels, bits, channels, CU_AD_FORMAT_SNORM_INT##bits##X##channels}
        NORMALIZED(8, 1), NORMALIZED(8, 2), NORMALIZED(8, 4), NORMALIZED(16, 1), NORMALIZED(16, 2), NORMALIZED(16, 4)};
    for (auto &each : FORMATS) {
        const int bits = each.bits, two = each.channels > 1 ? bits : 0, four = each.channels > 2 ? bits : 0;
        cudaChannelFormatDesc wanted = cudaCreateChannelDesc(bits, two, four, four, each.kind);
        CUDA_ARRAY3D_DESCRIPTOR driver;
        OK(cudaMallocArray(&second, &wanted, 16));
        OK(cudaGetChannelDesc(&read, second));
        SAME(memcmp(&read, &wanted, sizeof read), 0);
        SAME(described(&driver, CUarray(second)), CUDA_SUCCESS);
        SAME(driver.Format, each.format); SAME(driver.NumChannels, unsigned(each.channels)); SAME(driver.Height, 0u);
        OK(cudaFreeArray(second));
    }
    cudaMipmappedArray_t levels;
    OK(cudaMallocMipmappedArray(&levels, &pairs, make_cudaExtent(32, 8, 0), 3));
    OK(cudaGetMipmappedArrayLevel(&second, levels, 2));
    OK(cudaArrayGetInfo(nullptr, &size, nullptr, second));
    SAME(size.width, 8u); SAME(size.height, 2u);
    OK(cudaFreeMipmappedArray(levels));
    OK(cudaFreeArray(first));
    SAME(cudaFreeArray(first), cudaErrorInvalidResourceHandle);
    return true;
}

// A graph by hand whose nodes are made, read and changed by what describes a node of any type.
static bool nodes() {
    int values[4] = {1, 2, 3, 4}, others[4] = {9, 8, 7, 6}, *to, got[32], again[32];
    OK(cudaMalloc(&to, sizeof got));
    cudaGraph_t graph;
    cudaGraphNode_t fills, runs, reads;
    cudaGraphExec_t made;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNodeToSymbol(&fills, graph, nullptr, 0, (const void *)weights, values, sizeof values, 0, cudaMemcpyHostToDevice));
    void *arguments[] = {&to};
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeKernel;
    node.kernel.func = (void *)weigh, node.kernel.gridDim = dim3(1), node.kernel.blockDim = dim3(32), node.kernel.kernelParams = arguments;
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&runs, graph, &fills, nullptr, 1, &node));
#else
    OK(cudaGraphAddNode(&runs, graph, &fills, 1, &node));
#endif
    cudaGraphNodeParams copy = {};
    copy.type = cudaGraphNodeTypeMemcpy;
    copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(to, sizeof got, sizeof got, 1);
    copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(got, sizeof got, sizeof got, 1);
    copy.memcpy.copyParams.extent = make_cudaExtent(sizeof got, 1, 1), copy.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&reads, graph, &runs, nullptr, 1, &copy));
#else
    OK(cudaGraphAddNode(&reads, graph, &runs, 1, &copy));
#endif
    OK(cudaGraphInstantiate(&made, graph, 0));
    OK(cudaGraphLaunch(made, nullptr));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) SAME(got[i], values[i & 3] * 10 + 5);
    // As they are read.
    cudaKernelNodeParams kernel;
    OK(cudaGraphKernelNodeGetParams(runs, &kernel));
    SAME(kernel.func, (void *)weigh); SAME(kernel.blockDim.x, 32u); SAME(*static_cast<int **>(kernel.kernelParams[0]), to);
    cudaMemcpy3DParms described;
    OK(cudaGraphMemcpyNodeGetParams(reads, &described));
    SAME(described.srcPtr.ptr, (void *)to); SAME(described.dstPtr.ptr, (void *)got); SAME(described.extent.width, sizeof got);
    SAME(described.kind, cudaMemcpyDeviceToHost); SAME(described.srcArray, nullptr);
#if CUDART_VERSION >= 13020
    memset(&node, 0xFF, sizeof node);
    OK(cudaGraphNodeGetParams(reads, &node));
    SAME(node.type, cudaGraphNodeTypeMemcpy); SAME(memcmp(&node.memcpy.copyParams, &described, sizeof described), 0);
    OK(cudaGraphNodeGetParams(runs, &node));
    SAME(node.kernel.func, (void *)weigh); SAME(node.kernel.functionType, cudaKernelFunctionTypeDeviceEntry);
#endif
    // As they are changed, in the executable graph and in the graph.
    OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(made, fills, (const void *)weights, others, sizeof others, 0, cudaMemcpyHostToDevice));
    copy.memcpy.copyParams.dstPtr.ptr = again;
    OK(cudaGraphExecNodeSetParams(made, reads, &copy));
    OK(cudaGraphLaunch(made, nullptr));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) SAME(again[i], others[i & 3] * 10 + 5);
    OK(cudaGraphMemcpyNodeSetParams1D(fills, to, others, 4, cudaMemcpyHostToDevice));
    OK(cudaGraphMemcpyNodeSetParamsFromSymbol(reads, again, (const void *)weights, sizeof(int), sizeof(int), cudaMemcpyDeviceToHost));
    SAME(cudaGraphMemcpyNodeSetParamsFromSymbol(reads, again, (const void *)weights, 32, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    OK(cudaGraphExecDestroy(made));
    OK(cudaGraphInstantiate(&made, graph, 0));
    OK(cudaGraphLaunch(made, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(again[0], 8);  // the second of the weights, which the run before left there
    cudaLaunchAttributeValue value = {};
    value.priority = -1;
    OK(cudaGraphKernelNodeSetAttribute(runs, cudaLaunchAttributePriority, &value));
    value.priority = 7;
    OK(cudaGraphKernelNodeGetAttribute(runs, cudaLaunchAttributePriority, &value));
    SAME(value.priority, -1);
    OK(cudaGraphDebugDotPrint(graph, "/dev/null", cudaGraphDebugDotFlagsVerbose));
    return true;
}

static const struct { const char *name; bool (*program)(); } PROGRAMS[] = {
    {"adds", adds}, {"symbols", symbols}, {"products", products}, {"transposes", transposes}, {"counts", counts}, {"sums", sums},
    {"meets", meets}, {"streams", streams}, {"graphs", graphs}, {"parameters", parameters}, {"arrays", arrays},
    {"nodes", nodes},
};

int main(int, char **arguments) {
    for (auto &one : PROGRAMS) if (!strcmp(one.name, arguments[1])) return one.program() && puts("right") >= 0 ? 0 : 1;
    return 2;
}
#endif
