/* Computes c = a * b with a kernel that uses shared memory. */
#include "example.h"

enum { N = 64, TILE = 16 };

int main(int argc, char **argv)
{
    struct tegrarm_device *device;
    struct tegrarm_kernel *matmul;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "matmul", &matmul));

    Floats a = floats(device, N * N), b = floats(device, N * N), c = floats(device, N * N);
    for (int i = 0; i < N * N; i++) {
        a.cpu[i] = (float)(i % 7);
        b.cpu[i] = (float)(i % 5);
    }
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {N / TILE, N / TILE, 1}, .block_dim = {TILE, TILE, 1}};
    const int n = N;
    const void *arguments[] = {&a.gpu, &b.gpu, &c.gpu, &n};
    NvU64 fence;
    CHECK(tegrarm_launch(NULL, matmul, &config, arguments, 4, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a.cpu[i * N + k] * b.cpu[k * N + j];
            if (c.cpu[i * N + j] != sum) {
                fprintf(stderr, "c[%d][%d] is %g, not %g\n", i, j, (double)c.cpu[i * N + j], (double)sum);
                return 1;
            }
        }
    printf("matmul: %d x %d in tiles of %d, right\n", N, N, TILE);
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    return 0;
}
