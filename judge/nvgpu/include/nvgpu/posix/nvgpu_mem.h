/* The private part of a memory object, as the Linux layer uses it. The rest is the posix layer's. */
#define nvgpu_mem_priv judge_unused_mem_priv
#include_next <nvgpu/posix/nvgpu_mem.h>
#undef nvgpu_mem_priv
#ifndef JUDGE_POSIX_NVGPU_MEM_H
#define JUDGE_POSIX_NVGPU_MEM_H
struct nvgpu_mem_priv { void *sgt; void *pages; unsigned long flags; };
#endif
