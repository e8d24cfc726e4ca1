/* The memory objects are those of the posix layer; the Linux layer only makes scatter lists of dma-bufs. */
#ifndef JUDGE_NVGPU_MEM_H
#define JUDGE_NVGPU_MEM_H
struct gk20a;
struct sg_table;
struct nvgpu_sgt *nvgpu_linux_sgt_create(struct gk20a *g, struct sg_table *sgt);
#endif
