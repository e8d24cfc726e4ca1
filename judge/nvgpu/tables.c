/* Reads the page tables that the driver wrote, as the GMMU reads them: five levels, of which the fourth has one half for each page size. */
#include <nvgpu/gk20a.h>
#include <nvgpu/vm.h>
#include <nvgpu/as.h>
#include "judge.h"

extern const struct file_operations gk20a_as_ops;

struct level { unsigned shift, entries; };
static const struct level upper[] = { { 47, 4 }, { 38, 512 }, { 29, 512 } };
#define DUAL_SHIFT 21
#define DUAL_ENTRIES 256

/* Where memory.c's arena begins, as far as the address of a table does not tell. */
#ifdef JUDGE_R35
#define ARENA 0x8000000000ull
#else
#define ARENA 0ull
#endif

/* An entry of 0 in the field at bits 2:1 means that there is no table below. Tables lie in memory.c's arena, at their own addresses. */
static const uint64_t *below(uint64_t entry)
{
	uint64_t address = entry >> 8 & 0x3fffffffffffull;

	return (entry & 6) == 0 ? NULL : (const uint64_t *)(ARENA | address << 12);
}

static const uint64_t *below_big(uint64_t entry)
{
	uint64_t address = entry >> 4 & 0x3ffffffffffffull;

	return (entry & 6) == 0 ? NULL : (const uint64_t *)(ARENA | address << 8);
}

static void leaves(const uint64_t *table, unsigned shift, uint64_t va, judge_entry entry, void *context)
{
	for (unsigned i = 0; table != NULL && i < 1u << (DUAL_SHIFT - shift); i++) {
		if (table[i] != 0)
			entry(context, va + ((uint64_t)i << shift), 1ull << shift, table[i]);
	}
}

static void walk(const uint64_t *table, unsigned at, uint64_t va, unsigned big_shift, judge_entry entry, void *context)
{
	if (at == sizeof upper / sizeof *upper) {
		for (unsigned i = 0; i < DUAL_ENTRIES; i++) {
			uint64_t start = va + ((uint64_t)i << DUAL_SHIFT);

			leaves(below_big(table[2 * i]), big_shift, start, entry, context);
			leaves(below(table[2 * i + 1]), 12, start, entry, context);
		}
		return;
	}
	for (unsigned i = 0; i < upper[at].entries; i++) {
		const uint64_t *next = below(table[i]);

		if (next != NULL)
			walk(next, at + 1, va + ((uint64_t)i << upper[at].shift), big_shift, entry, context);
	}
}

int judge_tables(int fd, judge_entry entry, void *context)
{
	struct file *file = judge_file(fd);

	if (file == NULL || file->f_op != &gk20a_as_ops)
		return -EBADF;
	struct vm_gk20a *vm = ((struct gk20a_as_share *)file->private_data)->vm;
	struct nvgpu_gmmu_pd *root = &vm->pdb;

	if (root->mem == NULL)
		return -ENOENT;
	walk((const uint64_t *)((const char *)root->mem->cpu_va + root->mem_offs), 0, 0, vm->big_page_size == SZ_128K ? 17 : 16, entry, context);
	return 0;
}
