/* Computes c = a + b with a cubin, three buffers and one launch. */
#include "example.h"

enum { N = 1000 };

int main(int argc, char **argv)
{
    struct tegrarm_device *device;
    struct tegrarm_kernel *vecadd;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "vecadd", &vecadd));

    Floats a = floats(device, N), b = floats(device, N), c = floats(device, N);
    for (int i = 0; i < N; i++) {
        a.cpu[i] = (float)i;
        b.cpu[i] = 0.5f;
    }
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {(N + 127) / 128, 1, 1}, .block_dim = {128, 1, 1}};
    const int n = N;
    const void *arguments[] = {&a.gpu, &b.gpu, &c.gpu, &n}; /* There is one pointer for each parameter. */
    NvU64 fence;
    CHECK(tegrarm_launch(NULL, vecadd, &config, arguments, 4, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));

    for (int i = 0; i < N; i++)
        if (c.cpu[i] != a.cpu[i] + b.cpu[i]) {
            fprintf(stderr, "c[%d] is %g\n", i, (double)c.cpu[i]);
            return 1;
        }
    printf("vecadd: %d sums, all right; the last is %g\n", N, (double)c.cpu[N - 1]);
    CHECK(tegrarm_device_close(device)); /* This also frees everything that belongs to the device. */
    CHECK(tegrarm_shutdown());
    return 0;
}
