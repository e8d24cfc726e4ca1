/* Adds two vectors through CUDA's driver interface: a program for NVIDIA's cuda.h, which knows nothing of libtegrarm.
 *
 *   cc -I HEADERS examples/c/cuda_vecadd.c -o cuda_vecadd -L target/release/cuda -lcuda
 *   python -m tegrarm run --cuda -- ./cuda_vecadd tests/data/cubin/vecadd.nvrtc.cubin
 *
 * HEADERS has cuda.h, for example nvidia/cuda_runtime/include of the wheel nvidia-cuda-runtime-cu12.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000

static void check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        const char *name = "an unknown result";
        cuGetErrorName(result, &name);
        fprintf(stderr, "%s: %s\n", call, name);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CUBIN\n", argv[0]);
        return 2;
    }
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    char name[64];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&kernel, module, "vecadd"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

    /* Managed memory has one address for the CPU and the GPU. */
    CUdeviceptr a, b, c;
    CHECK(cuMemAllocManaged(&a, COUNT * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&b, COUNT * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocManaged(&c, COUNT * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    float *first = (float *)a, *second = (float *)b, *sum = (float *)c;
    for (int i = 0; i < COUNT; i++) {
        first[i] = (float)i;
        second[i] = 2.0f * (float)i;
    }
    unsigned count = COUNT;
    void *values[] = {&a, &b, &c, &count};
    CHECK(cuLaunchKernel(kernel, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, stream, values, NULL));
    CHECK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        if (sum[i] != 3.0f * (float)i) {
            fprintf(stderr, "element %d is %g and not %g\n", i, sum[i], 3.0 * i);
            return 1;
        }
    }
    CHECK(cuMemFree(a));
    CHECK(cuMemFree(b));
    CHECK(cuMemFree(c));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    printf("%s: %d sums are right\n", name, COUNT);
    return 0;
}
