/* One launch through the CUDA library, and the same launch through libtegrarm.
 *
 * Usage: cuda CUBIN WAY LIBCUDA, where WAY is "runtime", "cuda" or "graph", which launches a graph of NODES kernels. The functions have
 * names measured_*, which callgrind selects. They are called when the first launches have made what a kernel needs once.
 */
#include "tegrarm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 200
#define WARM 100
#define NODES 20
#define N 64
#define CHECK(call) do { unsigned s_ = (call); if (s_) { fprintf(stderr, "%s: %u\n", #call, s_); exit(1); } } while (0)

typedef unsigned (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {N, 1, 1}};

__attribute__((noinline)) void measured_runtime(struct tegrarm_kernel *kernel, const void *const *arguments, NvU64 *fence)
{
    CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, fence));
}

__attribute__((noinline)) void measured_cuda(Launch launch, void *kernel, void **arguments)
{
    CHECK(launch(kernel, 1, 1, 1, N, 1, 1, 0, NULL, arguments, NULL));
}

__attribute__((noinline)) void measured_graph(unsigned (*launch)(void *, void *), void *graph)
{
    CHECK(launch(graph, NULL));
}

/* CUDA_KERNEL_NODE_PARAMS of the first version. */
struct node {
    void *function;
    unsigned sizes[7];
    void **arguments, **extra;
};
typedef unsigned (*AddNode)(void **, void *, void **, size_t, struct node *);

static char image[1 << 20];

static void runtime(size_t size)
{
    struct tegrarm_device *device;
    struct tegrarm_module *module;
    struct tegrarm_kernel *kernel;
    struct tegrarm_buffer *buffer;
    void *cpu;
    NvU64 address, fence;
    NvU32 count = N;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_load(device, image, size, &module));
    CHECK(tegrarm_module_kernel(module, "vecadd", &kernel));
    CHECK(tegrarm_buffer_alloc(device, 4096, 0, &buffer));
    CHECK(tegrarm_buffer_address(buffer, &cpu, &address));
    memset(cpu, 0, 4096);
    const void *arguments[] = {&address, &address, &address, &count};
    for (int i = 0; i < WARM + ROUNDS; i++) {
        if (i < WARM)
            CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence));
        else
            measured_runtime(kernel, arguments, &fence);
        CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    }
    CHECK(tegrarm_device_close(device));
}

static void cuda(const char *path, int as_graph)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *context, *module, *kernel;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    NvU64 address;
    NvU32 count = N;
    Launch launch = (Launch)dlsym(library, "cuLaunchKernel");
    unsigned (*synchronize)(void) = (unsigned (*)(void))dlsym(library, "cuCtxSynchronize");
    CHECK(((unsigned (*)(unsigned))dlsym(library, "cuInit"))(0));
    CHECK(((unsigned (*)(void **, unsigned, int))dlsym(library, "cuCtxCreate_v2"))(&context, 0, 0));
    CHECK(((unsigned (*)(void **, const void *))dlsym(library, "cuModuleLoadData"))(&module, image));
    CHECK(((unsigned (*)(void **, void *, const char *))dlsym(library, "cuModuleGetFunction"))(&kernel, module, "vecadd"));
    CHECK(((unsigned (*)(NvU64 *, size_t))dlsym(library, "cuMemAlloc_v2"))(&address, 4096));
    void *arguments[] = {&address, &address, &address, &count};
    unsigned (*launch_graph)(void *, void *) = (unsigned (*)(void *, void *))dlsym(library, "cuGraphLaunch");
    void *graph, *node = NULL, *ready;
    struct node params = {kernel, {1, 1, 1, N, 1, 1, 0}, arguments, NULL};
    CHECK(((unsigned (*)(void **, unsigned))dlsym(library, "cuGraphCreate"))(&graph, 0));
    AddNode add = (AddNode)dlsym(library, "cuGraphAddKernelNode");
    for (int i = 0; i < NODES; i++)
        CHECK(add(&node, graph, &node, i > 0, &params));
    CHECK(((unsigned (*)(void **, void *, unsigned long long))dlsym(library, "cuGraphInstantiateWithFlags"))(&ready, graph, 0));
    for (int i = 0; i < WARM + ROUNDS; i++) {
        if (i < WARM) {
            CHECK(launch(kernel, 1, 1, 1, N, 1, 1, 0, NULL, arguments, NULL));
            CHECK(launch_graph(ready, NULL));
        } else if (as_graph) {
            measured_graph(launch_graph, ready);
        } else {
            measured_cuda(launch, kernel, arguments);
        }
        CHECK(synchronize());
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s CUBIN WAY LIBCUDA\n", argv[0]);
        return 2;
    }
    size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    if (!strcmp(argv[2], "runtime"))
        runtime(size);
    else
        cuda(argv[3], !strcmp(argv[2], "graph"));
    return 0;
}
