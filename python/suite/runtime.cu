// A program as people write it: launches with <<<...>>>, symbols, streams, events, cooperative groups, errors.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
namespace cg = cooperative_groups;

#define OK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    printf("line %d: %s: %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); exit(1); } } while (0)
#define IS(want, call) do { cudaError_t e = (call); if (e != (want)) { \
    printf("line %d: %s in place of %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorName(want)); exit(1); } } while (0)
#define TRUE(what) do { if (!(what)) { printf("line %d: not so: %s\n", __LINE__, #what); exit(1); } } while (0)

__constant__ int weights[4];
__device__ int offset = 5;
__managed__ int counter = 40;
__device__ __managed__ float both[1000];
static __managed__ int *link_to;

__global__ void add(const int *a, const int *b, int *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

__global__ void weighted(int *to) { to[threadIdx.x] = weights[threadIdx.x & 3] * 10 + offset; }

__global__ void sum(const int *from, int *to, int n) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += from[i];
    mine = cg::reduce(warp, mine, cg::plus<int>());
    if (warp.thread_rank() == 0) atomicAdd(to, mine);
}

__global__ void whole(int *to) {
    auto grid = cg::this_grid();
    atomicAdd(to, 1);
    grid.sync();
    if (grid.thread_rank() == 0) to[1] = to[0];
}

template <typename T> __global__ void shared(T *to) {
    extern __shared__ unsigned char bytes[];
    T *mine = reinterpret_cast<T *>(bytes);
    mine[threadIdx.x] = T(threadIdx.x);
    __syncthreads();
    to[threadIdx.x] = mine[blockDim.x - 1 - threadIdx.x];
}

__global__ void use_managed(int *one) {
    if (threadIdx.x == 0) *one += 1;
    both[threadIdx.x] = both[threadIdx.x] * 2 + threadIdx.x;
    if (threadIdx.x == 0) link_to = &counter;
}

__global__ void wrong(int *to) { to[1 << 28] = 1; }

static void CUDART_CB called(void *user) { ++*static_cast<int *>(user); }

int main() {
    int count = 0, driver = 0, runtime = 0, device = -1;
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDevice(&device));
    OK(cudaDriverGetVersion(&driver));
    OK(cudaRuntimeGetVersion(&runtime));
    TRUE(count == 1 && device == 0 && runtime == CUDART_VERSION && driver >= runtime);
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    TRUE(p.major == 8 && p.minor == 7 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.integrated == 1);
    TRUE(p.sharedMemPerBlock == 48 << 10 && p.totalGlobalMem > 1u << 30 && p.multiProcessorCount > 0 && p.name[0]);
    IS(cudaErrorInvalidDevice, cudaSetDevice(1));
    IS(cudaErrorInvalidDevice, cudaPeekAtLastError());
    IS(cudaErrorInvalidDevice, cudaGetLastError());
    IS(cudaSuccess, cudaGetLastError());
    TRUE(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));

    const int n = 10000;
    std::vector<int> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) a[i] = i, b[i] = 3 * i;
    int *da, *db, *dc;
    OK(cudaMalloc(&da, n * sizeof(int)));
    OK(cudaMalloc(&db, n * sizeof(int)));
    OK(cudaMalloc(&dc, n * sizeof(int)));
    cudaStream_t stream;
    cudaEvent_t from, to;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&from));
    OK(cudaEventCreate(&to));
    OK(cudaEventRecord(from, stream));
    OK(cudaMemcpyAsync(da, a.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(db, b.data(), n * sizeof(int), cudaMemcpyDefault, stream));
    add<<<(n + 255) / 256, 256, 0, stream>>>(da, db, dc, n);
    OK(cudaGetLastError());
    int calls = 0;
    OK(cudaLaunchHostFunc(stream, called, &calls));
    OK(cudaEventRecord(to, stream));
    OK(cudaEventSynchronize(to));
    float time = 0;
    OK(cudaEventElapsedTime(&time, from, to));
    TRUE(time > 0 && calls == 1);
    OK(cudaMemcpy(c.data(), dc, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) TRUE(c[i] == 4 * i);

    OK(cudaMemset(db, 0, 8));
    sum<<<4, 256>>>(dc, db, n);
    OK(cudaDeviceSynchronize());
    int total = 0;
    OK(cudaMemcpy(&total, db, 4, cudaMemcpyDeviceToHost));
    TRUE(total == 4 * (n / 2 * (n - 1)));

    OK(cudaMemset(db, 0, 8));
    void *arguments[] = {&db};
    OK(cudaLaunchCooperativeKernel((void *)whole, dim3(4), dim3(64), arguments, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(c.data(), db, 8, cudaMemcpyDeviceToHost));
    TRUE(c[0] == 256 && c[1] == 256);

    int values[4] = {1, 2, 3, 4}, five = 0;
    OK(cudaMemcpyToSymbol(weights, values, sizeof values));
    OK(cudaMemcpyFromSymbol(&five, offset, sizeof five));
    TRUE(five == 5);
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(offset, values, sizeof values));
    IS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol((void *)&calls, values, 4));
    cudaGetLastError();
    void *address;
    size_t size;
    OK(cudaGetSymbolAddress(&address, offset));
    OK(cudaGetSymbolSize(&size, weights));
    TRUE(size == 16);
    OK(cudaMemset(address, 0, 4));
    weighted<<<1, 32>>>(dc);
    OK(cudaMemcpy(c.data(), dc, 32 * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) TRUE(c[i] == 10 * (1 + (i & 3)));

    int *managed;
    OK(cudaMallocManaged(&managed, 4096));
    OK(cudaFuncSetAttribute(shared<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    shared<int><<<1, 128, 60 << 10>>>(managed);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 128; i++) TRUE(managed[i] == 127 - i);
    cudaPointerAttributes what;
    OK(cudaPointerGetAttributes(&what, managed));
    TRUE(what.type == cudaMemoryTypeManaged && what.hostPointer == managed);
    OK(cudaPointerGetAttributes(&what, da));
    TRUE(what.type == cudaMemoryTypeDevice && what.devicePointer == da);
    OK(cudaPointerGetAttributes(&what, a.data()));
    TRUE(what.type == cudaMemoryTypeUnregistered);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, add));
    TRUE(attributes.binaryVersion == 87 && attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
    int blocks = 0, least = 0, most = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    TRUE(blocks == 6);
    OK(cudaOccupancyMaxPotentialBlockSize(&least, &most, add));
    TRUE(most > 0);

    // Variables that the CPU and the GPU name: initial values, writes of both, their addresses, copies by pointer and by symbol.
    TRUE(counter == 40 && both[999] == 0 && !link_to);
    counter++;
    for (float &one : both) one = 1;
    use_managed<<<1, 1000>>>(&counter);
    OK(cudaDeviceSynchronize());
    TRUE(counter == 42 && both[0] == 2 && both[999] == 1001 && link_to == &counter);
    OK(cudaPointerGetAttributes(&what, &both[10]));
    TRUE(what.type == cudaMemoryTypeManaged && what.hostPointer == &both[10] && what.devicePointer == &both[10]);
    OK(cudaMemcpy(both, a.data(), 40, cudaMemcpyDefault));
    int seven = 7;
    OK(cudaMemcpyToSymbol(counter, &seven, 4));
    OK(cudaGetSymbolSize(&size, both));
    OK(cudaGetSymbolAddress(&address, counter));
    TRUE(counter == 7 && size == 4000 && address == &counter);
    OK(cudaMemPrefetchAsync(both, sizeof both, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, stream));

    void *pinned;
    OK(cudaMallocHost(&pinned, 4096));
    OK(cudaFreeHost(pinned));
    char *pitched;
    size_t pitch;
    OK(cudaMallocPitch(&pitched, &pitch, 100, 10));
    OK(cudaMemset2D(pitched, pitch, 7, 100, 10));
    std::vector<char> rows(50 * 10);
    OK(cudaMemcpy2D(rows.data(), 50, pitched, pitch, 50, 10, cudaMemcpyDeviceToHost));
    for (char row : rows) TRUE(row == 7);
    cudaExtent extent = make_cudaExtent(64, 4, 3);
    cudaPitchedPtr layers;
    OK(cudaMalloc3D(&layers, extent));
    OK(cudaMemset3D(layers, 9, extent));
    std::vector<char> box(64 * 4 * 3);
    cudaMemcpy3DParms parms = {};
    parms.srcPtr = layers, parms.dstPtr = make_cudaPitchedPtr(box.data(), 64, 64, 4), parms.extent = extent, parms.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&parms));
    for (char one : box) TRUE(one == 9);

    void *pooled;
    OK(cudaMallocAsync(&pooled, 1000, stream));
    OK(cudaMemsetAsync(pooled, 0, 1000, stream));
    OK(cudaFreeAsync(pooled, stream));

    cudaGraph_t graph;
    cudaGraphExec_t made;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<(n + 255) / 256, 256, 0, stream>>>(da, da, dc, n);
    add<<<(n + 255) / 256, 256, 0, stream>>>(da, dc, dc, n);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&made, graph, 0));
    OK(cudaGraphLaunch(made, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(c.data(), dc, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) TRUE(c[i] == 3 * i);
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    TRUE(nodes == 2);
    cudaGraph_t other;
    cudaGraphNode_t first, second;
    cudaKernelNodeParams node = {};
    int length = n;
    void *four[] = {&da, &da, &dc, &length};
    node.func = (void *)add, node.gridDim = dim3(40), node.blockDim = dim3(256), node.kernelParams = four;
    OK(cudaGraphCreate(&other, 0));
    OK(cudaGraphAddKernelNode(&first, other, nullptr, 0, &node));
    OK(cudaGraphAddMemcpyNode1D(&second, other, &first, 1, c.data(), dc, n * sizeof(int), cudaMemcpyDeviceToHost));
    OK(cudaGraphInstantiate(&made, other, 0));
    OK(cudaGraphLaunch(made, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) TRUE(c[i] == 2 * i);

    cudaTextureObject_t texture;
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    IS(cudaErrorNotSupported, cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    IS(cudaErrorNotSupported, cudaGetLastError());
    add<<<1, 2000>>>(da, db, dc, n);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    shared<int><<<1, 128, 100 << 10>>>(managed);
    IS(cudaErrorInvalidValue, cudaGetLastError());
    int *of_thread = nullptr;
    cudaError_t alone = cudaSuccess;
    std::thread([&] { cudaGetDeviceProperties(&p, 7); cudaMalloc(&of_thread, 16); alone = cudaPeekAtLastError(); }).join();
    IS(cudaErrorInvalidDevice, alone);
    TRUE(of_thread);
    OK(cudaGetLastError());
    IS(cudaErrorMemoryAllocation, cudaMalloc(&pinned, size_t(1) << 50));
    IS(cudaErrorMemoryAllocation, cudaGetLastError());
    wrong<<<1, 1>>>(da);
    OK(cudaGetLastError());
    IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    IS(cudaErrorIllegalAddress, cudaMalloc(&pinned, 16));
    IS(cudaErrorIllegalAddress, cudaGetLastError());
    IS(cudaErrorIllegalAddress, cudaGetLastError());
    OK(cudaDeviceReset());
    OK(cudaGetLastError());
    OK(cudaMalloc(&da, 128));
    weighted<<<1, 32>>>(da);
    OK(cudaMemcpy(c.data(), da, 128, cudaMemcpyDeviceToHost));
    TRUE(c[0] == 5);
    // The new context has new variables.
    TRUE(counter == 40 && both[1] == 0);
    use_managed<<<1, 1000>>>(&counter);
    OK(cudaDeviceSynchronize());
    TRUE(counter == 41 && both[2] == 2);
    puts("right");
}
