/* The part of the kernel's interface (linux/nvgpu.h, linux/nvmap.h) that the benchmarks call by hand. */
#ifndef TEGRARM_BENCH_NODES_H
#define TEGRARM_BENCH_NODES_H

#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NVGPU_GPU_IOCTL_ALLOC_AS 0xc0404708
#define NVGPU_GPU_IOCTL_OPEN_CHANNEL 0xc004470b
#define NVGPU_GPU_IOCTL_GET_GPU_TIME 0xc0104719
#define NVGPU_AS_IOCTL_MAP_BUFFER_EX 0xc0284107
#define NVGPU_AS_IOCTL_UNMAP_BUFFER 0xc0084105
#define NVMAP_IOC_CREATE 0xc0084e00
#define NVMAP_IOC_ALLOC 0x40144e03
#define NVMAP_IOC_GET_FD 0xc0084e0f
#define NVMAP_IOC_FREE 0x4e04
#define NVMAP_IOC_FROM_FD 0xc0084e10
#define HOST1X_IOCTL_CREATE_FENCE 0xc0105802
#define HOST1X_IOCTL_FENCE_EXTRACT 0xc0185805

struct nvmap_create_handle { uint32_t size_or_fd, handle; };
struct nvmap_alloc_handle { uint32_t handle, heap_mask, flags, align; int32_t numa_nid; };
struct nvgpu_alloc_as_args {
    uint32_t big_page_size;
    int32_t as_fd;
    uint32_t flags, reserved;
    uint64_t va_range_start, va_range_end, va_range_split;
    uint32_t padding[6];
};
struct nvgpu_as_map_buffer_ex_args {
    uint32_t flags;
    int16_t compr_kind, incompr_kind;
    uint32_t dmabuf_fd, page_size;
    uint64_t buffer_offset, mapping_size, offset;
};
struct host1x_create_fence {
    uint32_t id, threshold;
    int32_t fence_fd;
    uint32_t reserved;
};
struct host1x_fence_extract {
    int32_t fence_fd;
    uint32_t num_fences;
    uint64_t fences_ptr;
    uint32_t reserved[2];
};
struct nvgpu_as_unmap_buffer_args { uint64_t offset; };

static inline void call(int fd, unsigned long request, void *arg)
{
    if (ioctl(fd, request, arg) != 0) {
        perror("ioctl");
        _exit(1);
    }
}

#endif
