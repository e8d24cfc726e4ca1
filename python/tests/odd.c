/* Adds two vectors on the GPU. Every failure prints a sentence and gives status 1. Usage: odd CUBIN */
#include <stdio.h>

#include "tegrarm.h"

static int failed(const char *what, NV_STATUS status)
{
    char why[1024] = "";
    tegrarm_last_error(why, sizeof why);
    fprintf(stderr, "%s: %s: %s\n", what, tegrarm_status_name(status), why);
    return 1;
}
#define TRY(call)                              \
    do {                                       \
        NV_STATUS status_ = (call);            \
        if (status_ != NV_OK)                  \
            return failed(#call, status_);     \
    } while (0)

int main(int argc, char **argv)
{
    static char image[1 << 16];
    FILE *file = argc == 2 ? fopen(argv[1], "rbe") : NULL;
    if (!file)
        return perror("cubin"), 2;
    size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    struct tegrarm_device *device;
    struct tegrarm_module *module;
    struct tegrarm_kernel *kernel;
    TRY(tegrarm_device_open(0, &device));
    TRY(tegrarm_module_load(device, image, size, &module));
    TRY(tegrarm_module_kernel(module, "vecadd", &kernel));
    enum { N = 256 };
    float *cpu[3];
    NvU64 gpu[3], fence;
    for (int i = 0; i < 3; i++) {
        struct tegrarm_buffer *buffer;
        void *at;
        TRY(tegrarm_buffer_alloc(device, 4 * N, TEGRARM_BUFFER_CACHED, &buffer));
        TRY(tegrarm_buffer_address(buffer, &at, &gpu[i]));
        cpu[i] = at;
        for (int k = 0; k < N; k++)
            cpu[i][k] = (float)(i + k);
    }
    unsigned n = N;
    const void *arguments[] = {&gpu[0], &gpu[1], &gpu[2], &n};
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {2, 1, 1}, .block_dim = {128, 1, 1}};
    TRY(tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence));
    TRY(tegrarm_wait(device, fence, 60000000000u));
    if (cpu[2][5] != 11)
        return fprintf(stderr, "a wrong sum: %g\n", (double)cpu[2][5]), 1;
    TRY(tegrarm_device_close(device));
    return 0;
}
