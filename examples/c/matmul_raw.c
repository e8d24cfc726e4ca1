/* The same as matmul.c, but with RM calls alone. */
#include "raw.h"

enum { N = 64, TILE = 16 };

int main(int argc, char **argv)
{
    Gpu g;
    raw_open(&g);
    size_t size;
    unsigned char *image = read_file(argc > 1 ? argv[1] : "kernels.cubin", &size);
    Kernel matmul = raw_kernel(&g, image, "matmul");
    free(image);

    Buffer a = buffer_open(&g.channel.s, N * N * sizeof(float)), b = buffer_open(&g.channel.s, N * N * sizeof(float)),
           c = buffer_open(&g.channel.s, N * N * sizeof(float));
    volatile float *x = a.cpu, *y = b.cpu, *z = c.cpu;
    for (int i = 0; i < N * N; i++) {
        x[i] = (float)(i % 7);
        y[i] = (float)(i % 5);
    }
    const NvU32 grid[] = {N / TILE, N / TILE, 1}, block[] = {TILE, TILE, 1};
    raw_prepare(&g, &matmul, grid, block);
    struct { NvU64 a, b, c; NvU32 n; } arguments = {a.va, b.va, c.va, N};
    memcpy((char *)matmul.bank + PARAMETERS, &arguments, sizeof arguments);
    raw_wait(&g, raw_launch(&g, &matmul));

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += x[i * N + k] * y[k * N + j];
            if (z[i * N + j] != sum) {
                fprintf(stderr, "c[%d][%d] is %g, not %g\n", i, j, (double)z[i * N + j], (double)sum);
                return 1;
            }
        }
    printf("matmul_raw: %d x %d with RM calls alone, right\n", N, N);
    raw_close(&g);
    CHECK(tegrarm_shutdown());
    return 0;
}
