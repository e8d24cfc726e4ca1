/* Functions that all examples use: a check that prints the library's sentence, and a function that reads a file. */
#ifndef TEGRARM_EXAMPLE_H
#define TEGRARM_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tegrarm.h"
#include "tegrarm_abi.h"

#define CHECK(call) check(#call, (call))

static inline void check(const char *call, NV_STATUS status)
{
    if (status == NV_OK)
        return;
    char why[512] = "";
    tegrarm_last_error(why, sizeof why);
    fprintf(stderr, "%s\n  %s: %s\n", call, tegrarm_status_name(status), why);
    exit(1);
}

static inline void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    long length = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0)
        bytes = malloc((size_t)length + 1);
    if (!bytes || (rewind(file), fread(bytes, 1, (size_t)length, file)) != (size_t)length) {
        perror(path);
        exit(1);
    }
    fclose(file);
    *size = (size_t)length;
    return bytes;
}

/* The machine code of the examples: the program's first argument, or kernels.cubin. */
static inline struct tegrarm_module *load_kernels(struct tegrarm_device *device, int argc, char **argv)
{
    size_t size;
    void *image = read_file(argc > 1 ? argv[1] : "kernels.cubin", &size);
    struct tegrarm_module *module;
    CHECK(tegrarm_module_load(device, image, size, &module));
    free(image);
    return module;
}

/* A buffer of floats. The CPU and the GPU see it at the same address, unless the process uses that range for something else. */
typedef struct {
    struct tegrarm_buffer *buffer;
    float *cpu;
    NvU64 gpu;
} Floats;

static inline Floats floats(struct tegrarm_device *device, size_t count)
{
    Floats f;
    void *cpu;
    CHECK(tegrarm_buffer_alloc(device, count * sizeof(float), TEGRARM_BUFFER_CACHED, &f.buffer));
    CHECK(tegrarm_buffer_address(f.buffer, &cpu, &f.gpu));
    f.cpu = cpu;
    return f;
}

#endif
