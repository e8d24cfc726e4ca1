/* Hands work over and imports memory, through the runtime and by hand with the same system calls. The two ways take turns. It prints
 * the median microseconds of both for three things: to make a sync file, to wait for a sync file, and to import and free a dmabuf. It
 * runs on device nodes (`tegrarm-sim run`, or a board). */
#include <fcntl.h>
#include <sys/mman.h>

#include "../../examples/c/example.h"
#include "nodes.h"
#include "timing.h"

enum { ROUNDS = 500, SIZE = 1 << 20, CALLS = 3 };
static double took[CALLS][2][ROUNDS];
static int nvmap, space, host1x;

static void make_by_hand(NvU32 id, NvU32 threshold)
{
    struct host1x_create_fence create = {.id = id, .threshold = threshold};
    call(host1x, HOST1X_IOCTL_CREATE_FENCE, &create);
    close(create.fence_fd);
}

static void take_apart_by_hand(int file)
{
    struct { uint32_t id, threshold; } points[16];
    struct host1x_fence_extract extract = {.fence_fd = file, .num_fences = 16, .fences_ptr = (uintptr_t)points};
    call(host1x, HOST1X_IOCTL_FENCE_EXTRACT, &extract);
}

static void import_by_hand(int file)
{
    struct nvmap_create_handle buffer = {.size_or_fd = (uint32_t)file};
    lseek(file, 0, SEEK_END);
    call(nvmap, NVMAP_IOC_FROM_FD, &buffer);
    struct nvmap_create_handle get = {.handle = buffer.handle};
    call(nvmap, NVMAP_IOC_GET_FD, &get);
    struct nvgpu_as_map_buffer_ex_args map = {.dmabuf_fd = get.size_or_fd, .compr_kind = -1, .page_size = 4096};
    call(space, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &map);
    void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)get.size_or_fd, 0);
    if (p == MAP_FAILED || munmap(p, SIZE) != 0)
        _exit(1);
    call(space, NVGPU_AS_IOCTL_UNMAP_BUFFER, &map.offset);
    close((int)get.size_or_fd);
    call(nvmap, NVMAP_IOC_FREE, (void *)(uintptr_t)buffer.handle);
}

int main(void)
{
    int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
    nvmap = open("/dev/nvmap", O_RDWR);
    host1x = open("/dev/host1x-fence", O_RDWR);
    struct nvgpu_alloc_as_args as = {.flags = 2, .va_range_start = 0x200000, .va_range_end = 0xff00000000};
    call(ctrl, NVGPU_GPU_IOCTL_ALLOC_AS, &as);
    space = as.as_fd;
    struct tegrarm_device *device;
    struct tegrarm_queue *queue;
    struct tegrarm_buffer *buffer, *imported;
    NvU64 fence;
    NvU32 id, threshold;
    int memory;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_device_queue(device, &queue));
    CHECK(tegrarm_buffer_alloc(device, SIZE, TEGRARM_BUFFER_CACHED, &buffer));
    CHECK(tegrarm_buffer_export(buffer, &memory, NULL));
    CHECK(tegrarm_fence(queue, &fence));
    for (int i = 0; i < ROUNDS; i++) {
        int file, unused;
        CHECK(tegrarm_fence_syncpoint(device, fence, &id, &threshold));
        CHECK(tegrarm_fence_sync_file(device, fence, &file));
        double start = now_us();
        CHECK(tegrarm_fence_sync_file(device, fence, &unused));
        close(unused);
        double a = now_us();
        make_by_hand(id, threshold);
        double b = now_us();
        CHECK(tegrarm_queue_after_sync_file(queue, file));
        double c = now_us();
        take_apart_by_hand(file);
        double d = now_us();
        CHECK(tegrarm_buffer_import(device, memory, TEGRARM_BUFFER_CACHED, &imported));
        CHECK(tegrarm_buffer_free(imported));
        double e = now_us();
        import_by_hand(memory);
        double end = now_us();
        double all[CALLS][2] = {{a - start, b - a}, {c - b, d - c}, {e - d, end - e}};
        for (int k = 0; k < CALLS; k++)
            for (int way = 0; way < 2; way++)
                took[k][way][i] = all[k][way];
        close(file);
        CHECK(tegrarm_fence(queue, &fence));
        CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    }
    for (int k = 0; k < CALLS; k++)
        printf("%.2f %.2f\n", percentile(took[k][0], ROUNDS, 50), percentile(took[k][1], ROUNDS, 50));
    CHECK(tegrarm_device_close(device));
    return 0;
}
