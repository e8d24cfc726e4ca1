/* Modules and buffers of the runtime, for the C tests that launch the cubins of tests/data. */
#ifndef TEGRARM_CTESTS_CUBIN_H
#define TEGRARM_CTESTS_CUBIN_H

#include "session.h"

/* Reads a whole file. The caller frees the memory. */
static inline void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        abort();
    }
    assert(fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size);
    assert(bytes && fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

/* Loads a cubin by its name. The tests run in ctests/, or TEGRARM_TEST_CUBINS names the folder of the cubins. */
static inline struct tegrarm_module *load_cubin(struct tegrarm_device *device, const char *name)
{
    char path[512];
    const char *data = getenv("TEGRARM_TEST_CUBINS");
    snprintf(path, sizeof path, "%s/%s", data ? data : "../tests/data/cubin", name);
    size_t size;
    void *image = read_file(path, &size);
    struct tegrarm_module *module;
    CHECK(tegrarm_module_load(device, image, size, &module));
    free(image);
    return module;
}

/* Makes a buffer, and gives its address for the CPU and for the GPU. */
static inline struct tegrarm_buffer *float_buffer(struct tegrarm_device *device, NvU64 size, float **pointer, NvU64 *address)
{
    struct tegrarm_buffer *buffer;
    void *at;
    CHECK(tegrarm_buffer_alloc(device, size, TEGRARM_BUFFER_CACHED, &buffer));
    CHECK(tegrarm_buffer_address(buffer, &at, address));
    *pointer = at;
    return buffer;
}

#endif
