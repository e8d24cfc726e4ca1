/* The driver's own memory: page directories, instance blocks, rings. Its address in this process is its physical address, so it lies below 2^40, and bits 36 and 37,
 * which stand for the L3 cache in a physical address, are 0. */
#include <nvgpu/dma.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/nvgpu_mem.h>
#include <nvgpu/nvgpu_sgt.h>
#include <nvgpu/linux/vm.h>
#include <sys/mman.h>
#include "judge.h"

#define ARENA ((char *)0x8000000000ull)
#ifdef JUDGE_R35
/* r35's posix layer takes the lower half of an address for the physical address (tables.c). This much lies below the syncpoints (host1x.c). */
#define ARENA_SIZE (1ull << 30)
#else
#define ARENA_SIZE (64ull << 30)
#endif
#define CLASSES 32

/* Freed pieces of each power of two of pages, kept for the next piece of that size. */
struct piece { struct piece *next; };
static struct piece *spare[CLASSES];
static char *end;

static unsigned class_of(size_t size)
{
	unsigned class = 0;

	while ((4096ull << class) < size)
		class++;
	return class;
}

static void *take_locked(size_t size)
{
	unsigned class = class_of(size);
	size_t length = 4096ull << class;
	struct piece *piece = spare[class];

	if (end == NULL) {
		end = mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (end != ARENA)
			abort();
	}
	if (piece != NULL) {
		spare[class] = piece->next;
		memset(piece, 0, length);
		return piece;
	}
	/* A piece lies at a multiple of its size, up to 64 KiB. */
	size_t align = length < 65536 ? length : 65536;
	char *at = (char *)(((uintptr_t)end + align - 1) / align * align);
	if (at + length > ARENA + ARENA_SIZE)
		return NULL;
	end = at + length;
	return at;
}

static void *take(size_t size)
{
	judge_lock();
	void *memory = take_locked(size);

	judge_unlock();
	return memory;
}

int nvgpu_dma_alloc_flags_sys(struct gk20a *g, unsigned long flags, size_t size, struct nvgpu_mem *mem)
{
	void *memory = take(size);

	(void)g;
	(void)flags;
	if (memory == NULL)
		return -ENOMEM;
	mem->cpu_va = memory;
	mem->aperture = APERTURE_SYSMEM;
	mem->size = size;
	mem->aligned_size = (size + 4095) / 4096 * 4096;
	mem->gpu_va = 0;
	mem->skip_wmb = true;
	return 0;
}

void nvgpu_dma_free_sys(struct gk20a *g, struct nvgpu_mem *mem)
{
	(void)g;
	if ((mem->mem_flags & NVGPU_MEM_FLAG_SHADOW_COPY) == 0 && mem->cpu_va != NULL) {
		struct piece *piece = mem->cpu_va;
		unsigned class = class_of(mem->size);

		judge_lock();
		piece->next = spare[class];
		spare[class] = piece;
		judge_unlock();
	}
	memset(mem, 0, sizeof *mem);
}

bool nvgpu_iommuable(struct gk20a *g)
{
	(void)g;
	return false;
}

struct nvgpu_sgt *nvgpu_linux_sgt_create(struct gk20a *g, struct sg_table *table)
{
	struct nvgpu_mem_sgl piece = { .phys = table->sgl->address, .length = table->sgl->length };
	u64 total;

	return nvgpu_mem_sgt_posix_create_from_list(g, &piece, 1, &total);
}

/* What a memory object is made of: its own memory, or the dma-buf of a program. */
struct nvgpu_sgt *nvgpu_sgt_os_create_from_mem(struct gk20a *g, struct nvgpu_mem *mem)
{
	struct nvgpu_mem_sgl piece = { .phys = (u64)(uintptr_t)mem->cpu_va, .length = mem->size };
	u64 total;

	if ((mem->mem_flags & NVGPU_MEM_FLAG_FOREIGN_SGT) != 0)
		return nvgpu_linux_sgt_create(g, mem->priv.sgt);
	return nvgpu_mem_sgt_posix_create_from_list(g, &piece, 1, &total);
}
