/* Syncpoints, as nvgpu asks host1x for them: 1024 of 64 KiB each in the aperture. They count in this file. */
#include <nvgpu/gk20a.h>
#include <nvgpu/nvhost.h>
#include <nvgpu/nvgpu_mem.h>
#include "judge.h"

#define SYNCPOINTS 1024u
#define STRIDE 0x10000u
#define APERTURE 0x60000000ull
/* Syncpoints below this number belong to other drivers. */
#define FIRST 17u

struct nvgpu_nvhost_dev { bool used[SYNCPOINTS]; u32 value[SYNCPOINTS]; };
static struct nvgpu_nvhost_dev host1x;

void nvgpu_free_nvhost_dev(struct gk20a *g) { g->nvhost = NULL; }

int nvgpu_get_nvhost_dev(struct gk20a *g)
{
	g->nvhost = &host1x;
	g->syncpt_unit_base = APERTURE;
	g->syncpt_unit_size = (u64)SYNCPOINTS * STRIDE;
	g->syncpt_size = STRIDE;
	return 0;
}

const char *nvgpu_nvhost_syncpt_get_name(struct nvgpu_nvhost_dev *dev, int id) { (void)dev; (void)id; return "judge"; }
u32 nvgpu_nvhost_syncpt_unit_interface_get_byte_offset(struct gk20a *g, u32 id) { (void)g; return id * STRIDE; }
void nvgpu_nvhost_syncpt_set_minval(struct nvgpu_nvhost_dev *dev, u32 id, u32 value) { dev->value[id] = value; }
void nvgpu_nvhost_syncpt_put_ref_ext(struct nvgpu_nvhost_dev *dev, u32 id) { dev->used[id] = false; }

u32 nvgpu_nvhost_get_syncpt_client_managed(struct nvgpu_nvhost_dev *dev, const char *name)
{
	u32 id = FIRST;

	(void)name;
	judge_lock();
	while (id < SYNCPOINTS && dev->used[id])
		id++;
	if (id < SYNCPOINTS)
		dev->used[id] = true;
	judge_unlock();
	return id < SYNCPOINTS ? id : 0;
}

/* What the Linux layer of each release adds (os/linux/nvhost.c and nvhost_host1x.c). */
#ifdef JUDGE_R35
#define SAFE_STATE 0x10000u
#else
#define SAFE_STATE 1000u
#endif
void nvgpu_nvhost_syncpt_set_safe_state(struct nvgpu_nvhost_dev *dev, u32 id) { dev->value[id] += SAFE_STATE; }
bool nvgpu_nvhost_syncpt_is_expired_ext(struct nvgpu_nvhost_dev *dev, u32 id, u32 value) { return (int)(dev->value[id] - value) >= 0; }
bool nvgpu_nvhost_syncpt_is_valid_pt_ext(struct nvgpu_nvhost_dev *dev, u32 id) { (void)dev; return id != 0 && id < SYNCPOINTS; }

int nvgpu_nvhost_syncpt_read_ext_check(struct nvgpu_nvhost_dev *dev, u32 id, u32 *value)
{
	*value = dev->value[id];
	return 0;
}

/* A physical range that the driver did not allocate. memory.c takes an address in this process for a physical address, so the range is its own address. */
int __nvgpu_mem_create_from_phys(struct gk20a *g, struct nvgpu_mem *mem, u64 address, int pages)
{
	(void)g;
	mem->aperture = APERTURE_SYSMEM;
	mem->cpu_va = (void *)(uintptr_t)address;
	mem->mem_flags |= NVGPU_MEM_FLAG_SHADOW_COPY;
	mem->size = (u64)pages << 12;
	mem->aligned_size = mem->size;
	return 0;
}

/* All syncpoints count from 0 again. */
void judge_rewind_syncpoints(void) { memset(&host1x, 0, sizeof host1x); }
