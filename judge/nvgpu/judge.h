/* The entries of the shared library. A descriptor is a descriptor of this process; an error is a negative errno. The driver's state is global: one boot a
 * process. */
#ifndef JUDGE_H
#define JUDGE_H
#include <stdbool.h>
#include <stdint.h>

#define JUDGE_GA10B 0x17b000a1u
struct judge_chip {
	uint32_t boot_0;
	bool big_pages;
};
/* One entry of a page table: the address in the GPU's space, the size of the page, and the entry's two words as they lie in memory. */
typedef void (*judge_entry)(void *context, uint64_t va, uint64_t size, uint64_t entry);

int judge_boot(const struct judge_chip *chip);
/* nvmap is a library of its own. It knows open, ioctl, dup, close, held and rewind. */
int judge_nvmap_boot(uint64_t memory);
int judge_open(const char *node);
/* Tells that the descriptor is a dma-buf of the program, with memory of so many bytes behind it. */
int judge_buffer(int fd, uint64_t size);
long judge_ioctl(int fd, unsigned request, void *argument);
int judge_dup(int fd);
int judge_close(int fd);
int judge_tables(int fd, judge_entry entry, void *context);
uint64_t judge_buffer_at(uint64_t address, uint64_t *start, unsigned long *inode);
unsigned judge_held(void);
void judge_rewind(void);
/* What units of the GPU report when the work of a channel fails. */
enum judge_unit { JUDGE_MMU, JUDGE_SM, JUDGE_GR, JUDGE_PBDMA, JUDGE_CTXSW, JUDGE_CE, JUDGE_PREEMPT };
struct judge_failure {
	/* MMU: engine, client with its type in bit 7, fault type, access. SM: its number, global and warp ESR. GR: the bits of the
	 * interrupt and of the exception. PBDMA: both registers of its interrupts. CTXSW: how often it interrupts. CE: the code of the
	 * report. PREEMPT, whose end is not seen in time, has none. */
	uint32_t unit;
	uint32_t words[4];
	/* MMU: the address. SM: the program counter. */
	uint64_t address;
};
/* The driver's handlers of interrupts find that in the registers and in the buffer of faults. */
int judge_fail(int fd, const struct judge_failure *failure);
/* The messages of the driver's log about the last failure, a line for each. */
const char *judge_said(void);
void judge_listen(bool listen);
/* Between true and false, several threads may make calls at once. Page tables are not looked at meanwhile. */
void judge_parallel(bool parallel);
extern bool judge_is_parallel;
/* The glue's own lists have one lock, which a thread may take again. */
void judge_lock(void);
void judge_unlock(void);

/* The driver's allocator of addresses for a range. An address of 0 says that there was no room. */
struct judge_allocator;
struct judge_allocator *judge_allocator_make(uint64_t base, uint64_t size, bool big_pages);
uint64_t judge_allocator_take(struct judge_allocator *a, uint64_t size, uint32_t page_size);
uint64_t judge_allocator_take_fixed(struct judge_allocator *a, uint64_t base, uint64_t size, uint32_t page_size);
void judge_allocator_give(struct judge_allocator *a, uint64_t address);
void judge_allocator_end(struct judge_allocator *a);

struct file;
struct file_operations;
struct file *judge_file(int fd);
void judge_number(struct file *file, int fd);
struct file *judge_new_file(const struct file_operations *ops, void *private_data);
#endif
