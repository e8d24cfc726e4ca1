/* Allocates and frees a buffer of 1 MiB in two ways, in turns: through the runtime, and by hand with the same nine system
 * calls. Prints the median microseconds of both. It runs on device nodes (`tegrarm-sim run`, or a board). */
#include <fcntl.h>
#include <sys/mman.h>

#include "../../examples/c/example.h"
#include "nodes.h"
#include "timing.h"

enum { ROUNDS = 2000, SIZE = 1 << 20 };
static double took[2][ROUNDS];
static int nvmap, space;

static void by_hand(void)
{
    struct nvmap_create_handle buffer = {.size_or_fd = SIZE};
    call(nvmap, NVMAP_IOC_CREATE, &buffer);
    struct nvmap_alloc_handle alloc = {.handle = buffer.handle, .heap_mask = 1u << 30, .flags = 0x09000002, .align = 4096};
    call(nvmap, NVMAP_IOC_ALLOC, &alloc);
    call(nvmap, NVMAP_IOC_GET_FD, &buffer);
    struct nvgpu_as_map_buffer_ex_args map = {.dmabuf_fd = buffer.size_or_fd, .compr_kind = -1, .page_size = 4096};
    call(space, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &map);
    void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)buffer.size_or_fd, 0);
    if (p == MAP_FAILED || munmap(p, SIZE) != 0)
        _exit(1);
    call(space, NVGPU_AS_IOCTL_UNMAP_BUFFER, &map.offset);
    close((int)buffer.size_or_fd);
    call(nvmap, NVMAP_IOC_FREE, (void *)(uintptr_t)buffer.handle);
}

int main(void)
{
    int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
    nvmap = open("/dev/nvmap", O_RDWR);
    struct nvgpu_alloc_as_args as = {.flags = 2, .va_range_start = 0x200000, .va_range_end = 0xff00000000};
    call(ctrl, NVGPU_GPU_IOCTL_ALLOC_AS, &as);
    space = as.as_fd;
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_us();
        struct tegrarm_buffer *b;
        CHECK(tegrarm_buffer_alloc(device, SIZE, TEGRARM_BUFFER_CACHED, &b));
        CHECK(tegrarm_buffer_free(b));
        double middle = now_us();
        by_hand();
        took[0][i] = middle - start;
        took[1][i] = now_us() - middle;
    }
    printf("%.2f %.2f\n", percentile(took[0], ROUNDS, 50), percentile(took[1], ROUNDS, 50));
    CHECK(tegrarm_device_close(device));
    return 0;
}
