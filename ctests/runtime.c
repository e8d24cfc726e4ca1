/* A cubin runs on the GPU with the runtime alone: it is loaded and launched, and the test waits and reads the result. Then a
 * fault is reported. */
#include <math.h>

#include "cubin.h"

static void vector_add(void)
{
    enum { N = 1000 };
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    struct tegrarm_module *module = load_cubin(device, "vecadd.jit.cubin");
    struct tegrarm_kernel *vecadd;
    CHECK(tegrarm_module_kernel(module, "vecadd", &vecadd));

    float *pa, *pb, *pc, out[N];
    NvU64 a, b, c, fence;
    struct tegrarm_buffer *ba = float_buffer(device, sizeof out, &pa, &a), *bb = float_buffer(device, sizeof out, &pb, &b),
                          *bc = float_buffer(device, sizeof out, &pc, &c);
    for (int i = 0; i < N; i++) {
        pa[i] = (float)i;
        out[i] = 0.25f * (float)i;
    }
    CHECK(tegrarm_copy_in(NULL, bb, 0, out, sizeof out, NULL));
    unsigned n = N;
    const void *arguments[] = {&a, &b, &c, &n};
    struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {8, 1, 1}, .block_dim = {128, 1, 1}};
    CHECK(tegrarm_launch(NULL, vecadd, &config, arguments, 4, &fence));
    CHECK(tegrarm_wait(device, fence, 20000000000u));
    for (int i = 0; i < N; i++)
        assert(fabsf(pc[i] - 1.25f * (float)i) == 0.0f);

    CHECK(tegrarm_copy(NULL, ba, 0, bc, 0, sizeof out, NULL)); /* The copy runs on the GPU, in order with the launch. */
    memset(out, 0, sizeof out);
    CHECK(tegrarm_copy_out(NULL, ba, 0, out, sizeof out, NULL));
    assert(out[N - 1] == 1.25f * (N - 1));

    /* Mistakes of the caller give statuses. */
    assert(tegrarm_launch(NULL, vecadd, &config, arguments, 3, NULL) == NV_ERR_INVALID_ARGUMENT);
    config.block_dim[0] = 2048;
    assert(tegrarm_launch(NULL, vecadd, &config, arguments, 4, NULL) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_copy_out(NULL, ba, sizeof out - 1, out, 2, NULL) == NV_ERR_INVALID_BASE);
    assert(tegrarm_module_load(device, out, sizeof out, &module) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_wait(device, fence + 1000, TEGRARM_WAIT_POLL) == NV_ERR_INVALID_ARGUMENT);
    struct tegrarm_kernel *none;
    assert(tegrarm_module_kernel(module, "vecsub", &none) == NV_ERR_OBJECT_NOT_FOUND);
    struct tegrarm_fault fault = {.size = sizeof fault};
    CHECK(tegrarm_device_fault(device, &fault));
    assert(fault.cause == TEGRARM_FAULT_NONE && fault.sm == TEGRARM_FAULT_NO_SM);
    struct tegrarm_buffer *bad;
    assert(tegrarm_buffer_alloc(device, 1, TEGRARM_BUFFER_NO_POINTER << 1, &bad) == NV_ERR_INVALID_ARGUMENT);

    CHECK(tegrarm_buffer_free(bb));
    assert(tegrarm_buffer_free(bb) == NV_ERR_OBJECT_NOT_FOUND);
    CHECK(tegrarm_device_close(device)); /* This also frees buffers, the module and the kernel. */
    assert(tegrarm_buffer_free(ba) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_device_close(device) == NV_ERR_OBJECT_NOT_FOUND);
}

static void fault_report(void)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    struct tegrarm_module *module = load_cubin(device, "vecadd.nvrtc.cubin");
    struct tegrarm_kernel *vecadd;
    CHECK(tegrarm_module_kernel(module, "vecadd", &vecadd));
    NvU64 nowhere = 0x1234567000, fence;
    unsigned n = 32;
    const void *arguments[] = {&nowhere, &nowhere, &nowhere, &n};
    struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {32, 1, 1}};
    CHECK(tegrarm_launch(NULL, vecadd, &config, arguments, 4, &fence));
    assert(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER) == NV_ERR_RESET_REQUIRED);
    struct tegrarm_fault fault = {.size = sizeof fault};
    CHECK(tegrarm_device_fault(device, &fault));
    assert(fault.cause == TEGRARM_FAULT_MMU && fault.pc != 0 && strstr(fault.text, "MMU fault"));
    CHECK(tegrarm_device_close(device));
}

int main(void)
{
    NvU32 devices = 0;
    CHECK(tegrarm_device_count(&devices));
    vector_add();
    int fds = open_fds(), mappings = shared_mappings();
    vector_add();
    fault_report();
    assert(open_fds() == fds && "a file descriptor leaked");
    assert(shared_mappings() == mappings && "a mapping leaked");
    CHECK(tegrarm_shutdown());
    puts("runtime: ok");
    return 0;
}
