/* The driver's allocator of GPU addresses by itself, as the address space of a program makes it. */
#include <nvgpu/gk20a.h>
#include <nvgpu/allocator.h>
#include <nvgpu/vm.h>
#include "judge.h"

struct gk20a *judge_gpu(void);

struct judge_allocator {
	struct nvgpu_allocator user;
	/* The allocator asks it for the size of big pages and for what an entry of a page directory covers. */
	struct vm_gk20a vm;
};

struct judge_allocator *judge_allocator_make(uint64_t base, uint64_t size, bool big_pages)
{
	struct gk20a *g = judge_gpu();
	struct judge_allocator *made = calloc(1, sizeof *made);

	made->vm.mm = &g->mm;
	made->vm.big_page_size = SZ_64K;
	made->vm.big_pages = big_pages;
	if (nvgpu_allocator_init(g, &made->user, &made->vm, "judge", base, size, SZ_4K, GPU_BALLOC_MAX_ORDER, GPU_ALLOC_GVA_SPACE, BUDDY_ALLOCATOR) == 0)
		return made;
	free(made);
	return NULL;
}

uint64_t judge_allocator_take(struct judge_allocator *a, uint64_t size, uint32_t page_size)
{
	return nvgpu_alloc_pte(&a->user, size, page_size);
}

uint64_t judge_allocator_take_fixed(struct judge_allocator *a, uint64_t base, uint64_t size, uint32_t page_size)
{
	return nvgpu_alloc_fixed(&a->user, base, size, page_size);
}

void judge_allocator_give(struct judge_allocator *a, uint64_t address)
{
	nvgpu_free(&a->user, address);
}

void judge_allocator_end(struct judge_allocator *a)
{
	nvgpu_alloc_destroy(&a->user);
	free(a);
}
