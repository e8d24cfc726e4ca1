/* Measures calls of the virtual Orin's kernel. It runs under `tegrarm-sim run` and prints one figure per line, in
 * microseconds. */
#include <assert.h>
#include <fcntl.h>

#include "nodes.h"
#include "timing.h"

enum { CALLS = 50000, CHANNELS = 1000, BUFFERS = 100000, PART = 10 };

/* Makes one operation many times. Returns the mean of the first tenth and of the last tenth, which differ if the cost grows. */
static void measure(const char *what, int rounds, void (*once)(void))
{
    double first = 0, last = 0;
    for (int part = 0; part < PART; part++) {
        double start = now_us();
        for (int i = 0; i < rounds / PART; i++)
            once();
        last = (now_us() - start) / (rounds / PART);
        if (part == 0)
            first = last;
    }
    printf("%s %.1f %.1f\n", what, first, last);
}

static int ctrl, nvmap, space;
static struct nvmap_create_handle buffer;

static void time_of_gpu(void)
{
    uint64_t args[2] = {0};
    call(ctrl, NVGPU_GPU_IOCTL_GET_GPU_TIME, args);
}

static void channel(void)
{
    int32_t fd = -1;
    call(ctrl, NVGPU_GPU_IOCTL_OPEN_CHANNEL, &fd);
    close(fd);
}

static void mapping(void)
{
    struct nvgpu_as_map_buffer_ex_args map = {.dmabuf_fd = buffer.size_or_fd, .compr_kind = -1, .page_size = 4096};
    call(space, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &map);
    struct nvgpu_as_unmap_buffer_args unmap = {.offset = map.offset};
    call(space, NVGPU_AS_IOCTL_UNMAP_BUFFER, &unmap);
}

int main(void)
{
    ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
    nvmap = open("/dev/nvmap", O_RDWR);
    assert(ctrl >= 0 && nvmap >= 0);
    struct nvgpu_alloc_as_args as = {.flags = 2, .va_range_start = 0x200000, .va_range_end = 0xff00000000};
    call(ctrl, NVGPU_GPU_IOCTL_ALLOC_AS, &as);
    space = as.as_fd;
    buffer.size_or_fd = 65536;
    call(nvmap, NVMAP_IOC_CREATE, &buffer);
    struct nvmap_alloc_handle alloc = {.handle = buffer.handle, .heap_mask = 1u << 30, .flags = 1, .align = 4096};
    call(nvmap, NVMAP_IOC_ALLOC, &alloc);
    call(nvmap, NVMAP_IOC_GET_FD, &buffer);
    measure("call", CALLS, time_of_gpu);
    measure("channel", CHANNELS, channel);
    measure("mapping", BUFFERS, mapping);
    return 0;
}
