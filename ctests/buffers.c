/* Tests buffers that are shared as dmabufs, made of pages of this process or used in parts; the attributes of kernels; and
 * absurd sizes. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cubin.h"

enum { PAGE = 4096 };

/* Two devices share memory without a copy. */
static void dmabufs(struct tegrarm_device *device)
{
    struct tegrarm_device *other;
    struct tegrarm_buffer *camera, *part, *picture;
    CHECK(tegrarm_device_open(0, &other));
    CHECK(tegrarm_buffer_alloc(device, 2 * PAGE, TEGRARM_BUFFER_CACHED, &camera));
    CHECK(tegrarm_buffer_part(camera, PAGE, PAGE, &part));
    int fd;
    NvU64 offset, fence;
    CHECK(tegrarm_buffer_export(part, &fd, &offset));
    assert(offset == PAGE);
    CHECK(tegrarm_buffer_import(other, fd, TEGRARM_BUFFER_GPU_READ_ONLY, &picture));
    CHECK(tegrarm_fill(NULL, part, 0, PAGE, 0x5a, 1, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_buffer_free(part));
    CHECK(tegrarm_buffer_free(camera));
    void *pointer;
    CHECK(tegrarm_buffer_address(picture, &pointer, NULL));
    const unsigned char *seen = pointer;
    assert(seen[PAGE - 1] == 0 && seen[PAGE] == 0x5a && seen[2 * PAGE - 1] == 0x5a);
    assert(tegrarm_buffer_import(other, -1, 0, &part) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_buffer_import(other, 9999, 0, &part) == NV_ERR_INVALID_ARGUMENT);
    CHECK(tegrarm_device_close(other));
    assert(close(fd) == 0);
}

/* Memory comes and goes at addresses that are reserved. */
static void reserved(struct tegrarm_device *device)
{
    struct tegrarm_buffer *array, *memory, *none;
    void *pointer;
    NvU64 address, fence;
    CHECK(tegrarm_buffer_reserve(device, 4 * PAGE, &array));
    CHECK(tegrarm_buffer_alloc(device, PAGE, TEGRARM_BUFFER_NO_POINTER, &memory));
    CHECK(tegrarm_buffer_map(array, 0, memory, 0, PAGE, 0));
    CHECK(tegrarm_buffer_map(array, PAGE, memory, 0, PAGE, TEGRARM_BUFFER_GPU_READ_ONLY));
    CHECK(tegrarm_buffer_free(memory));
    CHECK(tegrarm_fill(NULL, array, PAGE - 4, 4, 0x5a, 1, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_buffer_address(array, &pointer, &address));
    assert((NvU64)pointer == address && ((unsigned char *)pointer)[2 * PAGE - 1] == 0x5a);
    char bytes[8] = {0};
    CHECK(tegrarm_copy_out(NULL, array, PAGE - 4, bytes, 8, NULL));
    assert(bytes[3] == 0x5a && bytes[4] == 0);
    assert(tegrarm_copy_in(NULL, array, 2 * PAGE - 4, bytes, 8, NULL) == NV_ERR_INVALID_BASE);
    assert(tegrarm_buffer_map(array, PAGE, array, 0, PAGE, 0) == NV_ERR_NOT_SUPPORTED);
    assert(tegrarm_buffer_map(array, PAGE, memory, 0, PAGE, 0) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_buffer_map(array, 2 * PAGE, array, 0, PAGE, TEGRARM_BUFFER_NO_POINTER) == NV_ERR_INVALID_ARGUMENT);
    CHECK(tegrarm_buffer_unmap(array, 0, 2 * PAGE));
    assert(tegrarm_buffer_unmap(array, 0, 2 * PAGE) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_buffer_reserve(device, PAGE - 1, &none) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_buffer_reserve(device, PAGE, NULL) == NV_ERR_INVALID_POINTER);
    CHECK(tegrarm_buffer_free(array));
}

/* Descriptors of other things are no dmabufs, and no sync files. */
static void no_dmabufs(struct tegrarm_device *device)
{
    int ends[2], pair[2];
    assert(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int found[] = {ends[0], ends[1], pair[0], open("/", O_RDONLY | O_DIRECTORY), open("/dev/null", O_RDWR), open("/dev/null", O_PATH),
                   open("/proc/self/exe", O_PATH), open("/proc/self/exe", O_RDONLY), eventfd(0, 0), epoll_create1(0)};
    struct tegrarm_queue *queue;
    CHECK(tegrarm_device_queue(device, &queue));
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct tegrarm_buffer *none;
        assert(found[i] >= 0);
        assert(tegrarm_buffer_import(device, found[i], 0, &none) == NV_ERR_INVALID_ARGUMENT);
        assert(tegrarm_queue_after_sync_file(queue, found[i]) == NV_ERR_INVALID_ARGUMENT);
        assert(close(found[i]) == 0);
    }
    assert(close(pair[1]) == 0);
}

/* A kernel writes to pages that mmap made. They are shared pages, because out of process the simulator reaches no others
 * (OOP-D01). */
static void pages(struct tegrarm_device *device)
{
    float *sum = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(sum != MAP_FAILED);
    struct tegrarm_buffer *ones, *result, *hidden;
    CHECK(tegrarm_buffer_alloc(device, PAGE, TEGRARM_BUFFER_NO_POINTER, &ones));
    CHECK(tegrarm_buffer_import_pages(device, sum, PAGE, 0, &result));
    assert(tegrarm_buffer_import_pages(device, sum + 1, 64, 0, &hidden) == NV_ERR_INVALID_ADDRESS);
    NvU64 a, c;
    void *pointer;
    CHECK(tegrarm_buffer_address(ones, &pointer, &a));
    assert(pointer == NULL && tegrarm_copy_out(NULL, ones, 0, &c, 4, NULL) == NV_ERR_NOT_SUPPORTED);
    CHECK(tegrarm_buffer_address(result, &pointer, &c));
    assert(pointer == sum);
    CHECK(tegrarm_fill(NULL, ones, 0, PAGE, 0x3f800000, 4, NULL));

    struct tegrarm_kernel *add;
    CHECK(tegrarm_module_kernel(load_cubin(device, "vecadd.jit.cubin"), "vecadd", &add));
    struct tegrarm_kernel_attributes known = {.size = sizeof known};
    CHECK(tegrarm_kernel_attributes(add, &known));
    assert(known.parameters == 4 && known.registers > 0 && known.max_threads >= 128);
    NvU32 n = 1024, blocks, offset, size, block[] = {128, 1, 1};
    CHECK(tegrarm_kernel_parameter(add, 3, &offset, &size));
    assert(offset == 24 && size == 4);
    CHECK(tegrarm_kernel_occupancy(add, block, 0, &blocks));
    assert(blocks >= 1 && blocks <= 16);
    const void *arguments[] = {&a, &a, &c, &n};
    size_t sizes[] = {8, 8, 8, 8};
    struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {8, 1, 1}, .block_dim = {128, 1, 1}, .param_sizes = sizes};
    assert(tegrarm_launch(NULL, add, &config, arguments, 4, NULL) == NV_ERR_INVALID_ARGUMENT);
    char why[256];
    tegrarm_last_error(why, sizeof why);
    assert(strstr(why, "argument 3 has 8 bytes"));
    sizes[3] = sizeof n;
    config.flags = TEGRARM_LAUNCH_COOPERATIVE;
    CHECK(tegrarm_launch(NULL, add, &config, arguments, 4, NULL));
    CHECK(tegrarm_buffer_free(result)); /* This waits for the GPU, so the page belongs to the program again. */
    for (int i = 0; i < 1024; i++)
        assert(sum[i] == 2.0f);
    CHECK(tegrarm_buffer_free(ones));
    munmap(sum, PAGE);
}

static void limits(struct tegrarm_device *device)
{
    NvU64 available, total, stack;
    CHECK(tegrarm_device_memory(device, &available, &total));
    assert(available > 0 && available <= total);
    CHECK(tegrarm_device_set_limit(device, TEGRARM_LIMIT_STACK_SIZE, 2048));
    CHECK(tegrarm_device_limit(device, TEGRARM_LIMIT_STACK_SIZE, &stack));
    assert(stack >= 2048);
    NvU64 heap;
    CHECK(tegrarm_device_set_limit(device, TEGRARM_LIMIT_HEAP_SIZE, 5000));
    CHECK(tegrarm_device_limit(device, TEGRARM_LIMIT_HEAP_SIZE, &heap));
    assert(heap == 8192);
    assert(tegrarm_device_set_limit(device, TEGRARM_LIMIT_PRINTF_SIZE, (NvU64)1 << 46) == NV_ERR_INVALID_ARGUMENT);
    struct tegrarm_buffer *none;
    assert(tegrarm_buffer_alloc(device, (NvU64)1 << 46, 0, &none) == NV_ERR_NO_MEMORY);
    struct tegrarm_module *module;
    assert(tegrarm_module_load(device, "", (size_t)-1, &module) == NV_ERR_INVALID_ARGUMENT); /* A failed ftell returns this number. */
}

int main(void)
{
    int fds = 0, mappings = 0;
    for (int round = 0; round < 3; round++) {
        struct tegrarm_device *device;
        CHECK(tegrarm_device_open(0, &device));
        /* The test does this once, because the virtual Orin in this process does not see that close(2) ends a descriptor, and
         * keeps the memory. */
        if (round == 0)
            dmabufs(device);
        no_dmabufs(device);
        reserved(device);
        pages(device);
        limits(device);
        CHECK(tegrarm_device_close(device));
        assert(round < 2 || (open_fds() == fds && shared_mappings() == mappings));
        fds = open_fds();
        mappings = shared_mappings();
    }
    CHECK(tegrarm_shutdown());
    puts("buffers: ok");
    return 0;
}
