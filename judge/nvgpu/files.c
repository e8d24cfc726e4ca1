/* Files, descriptors, dma-bufs and the program's memory. A file of the driver is the struct file that the driver knows and a memfd that the program holds;
 * the memfd's inode ties them together, so a duplicate of the descriptor is the same file. */
#include "stand-in.h"
#include "judge.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

extern bool judge_stopped;

unsigned long judge_copy(void *to, const void *from, unsigned long n, bool out)
{
	/* A kernel that stopped writes nothing. */
	if (out && judge_stopped)
		return 0;
	struct iovec mine = { out ? (void *)from : to, n };
	struct iovec theirs = { out ? to : (void *)from, n };
	ssize_t done = n == 0 ? 0 : out ? process_vm_writev(getpid(), &mine, 1, &theirs, 1, 0) : process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);

	return n - (done < 0 ? 0 : (unsigned long)done);
}

bool capable(int capability)
{
	(void)capability;
	return true;
}

#define BUCKETS 1024
static struct file *files[BUCKETS];

static struct file **bucket(unsigned long inode)
{
	return &files[inode % BUCKETS];
}

static unsigned long inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static struct file *find(unsigned long inode)
{
	struct file *file = *bucket(inode);

	while (file != NULL && file->number != inode)
		file = file->next;
	return file;
}

struct file *judge_file(int fd)
{
	unsigned long inode = inode_of(fd);

	return inode == 0 ? NULL : find(inode);
}

struct file *fget(unsigned fd)
{
	struct file *file = judge_file(fd);

	if (file != NULL)
		file->count++;
	return file;
}

void fput(struct file *file)
{
	if (--file->count > 0)
		return;
	if (file->number != 0) {
		struct file **at = bucket(file->number);

		while (*at != file)
			at = &(*at)->next;
		*at = file->next;
	}
	if (file->f_op != NULL && file->f_op->release != NULL)
		file->f_op->release(&file->inode, file);
	free(file);
}

int get_unused_fd_flags(unsigned flags)
{
	int fd = memfd_create("judge", MFD_CLOEXEC);

	(void)flags;
	return fd < 0 ? -errno : fd;
}

void put_unused_fd(unsigned fd)
{
	close(fd);
}

void fd_install(unsigned fd, struct file *file)
{
	file->number = inode_of(fd);
	file->next = *bucket(file->number);
	*bucket(file->number) = file;
}

struct file *judge_new_file(const struct file_operations *ops, void *private_data)
{
	struct file *file = calloc(1, sizeof *file);

	file->f_op = ops;
	file->private_data = private_data;
	file->f_mode = FMODE_READ | FMODE_WRITE;
	file->count = 1;
	file->descriptors = 1;
	return file;
}

struct file *anon_inode_getfile(const char *name, const struct file_operations *ops, void *private_data, int flags)
{
	(void)name;
	(void)flags;
	return judge_new_file(ops, private_data);
}

int judge_dup(int fd)
{
	struct file *file = judge_file(fd);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy >= 0 && file != NULL)
		file->descriptors++;
	return copy < 0 ? -errno : copy;
}

int judge_close(int fd)
{
	struct file *file = judge_file(fd);

	if (file != NULL && --file->descriptors == 0)
		fput(file);
	return close(fd) < 0 ? -errno : 0;
}

/* dma-bufs. Who makes buffers tells what a descriptor is. */
static judge_resolver resolve;
static struct buffer *buffers;
/* Below the arena of memory.c. Bits 36 (gv11b) and 37 (ga10b) of an address stand for the L3 cache, so both are 0 here. */
#define FIRST_ADDRESS 0x4000000000ull
static uint64_t next_address = FIRST_ADDRESS;

struct buffer {
	/* The first member: a dma-buf is its buffer. */
	struct dma_buf dmabuf;
	struct file file;
	struct dma_resv resv;
	unsigned long inode;
	int fd;
	struct buffer *next;
};

void judge_resolve(judge_resolver resolver)
{
	resolve = resolver;
}

static void forget(struct buffer *buffer)
{
	struct buffer **at = &buffers;

	while (*at != buffer)
		at = &(*at)->next;
	*at = buffer->next;
	close(buffer->fd);
	free(buffer);
	if (buffers == NULL)
		next_address = FIRST_ADDRESS;
}

static void release_buffer(struct dma_buf *dmabuf)
{
	forget((struct buffer *)dmabuf);
}

static const struct dma_buf_ops buffer_ops = { .release = release_buffer };

struct dma_buf *dma_buf_get(int fd)
{
	unsigned long inode = inode_of(fd);
	struct buffer *buffer = buffers;
	uint64_t size = 0;
	int mode;

	if (inode == 0)
		return ERR_PTR(-EBADF);
	mode = resolve == NULL ? -1 : resolve(fd, &size);
	if (mode < 0)
		return ERR_PTR(-EINVAL);
	/* A read-only descriptor of a buffer is a dma-buf of its own. */
	while (buffer != NULL && (buffer->inode != inode || buffer->file.f_mode != (fmode_t)mode))
		buffer = buffer->next;
	if (buffer != NULL) {
		buffer->file.count++;
		return &buffer->dmabuf;
	}
	buffer = calloc(1, sizeof *buffer);
	buffer->inode = inode;
	buffer->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	buffer->file.count = 1;
	buffer->file.f_mode = mode;
	buffer->dmabuf.size = size;
	buffer->dmabuf.file = &buffer->file;
	buffer->dmabuf.ops = &buffer_ops;
	buffer->dmabuf.resv = &buffer->resv;
	buffer->dmabuf.address = next_address;
	/* Buffers lie apart, so that a page of one is never the page after another's last. */
	next_address += (size + 0xfffff) / 0x100000 * 0x100000 + 0x100000;
	buffer->next = buffers;
	buffers = buffer;
	return &buffer->dmabuf;
}

void dma_buf_put(struct dma_buf *dmabuf)
{
	if (--dmabuf->file->count == 0)
		dmabuf->ops->release(dmabuf);
}

struct dma_buf_attachment *dma_buf_attach(struct dma_buf *dmabuf, struct device *dev)
{
	struct dma_buf_attachment *attachment = calloc(1, sizeof *attachment);

	attachment->dmabuf = dmabuf;
	attachment->dev = dev;
	return attachment;
}

void dma_buf_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	(void)dmabuf;
	free(attachment);
}

struct sg_table *dma_buf_map_attachment(struct dma_buf_attachment *attachment, enum dma_data_direction direction)
{
	struct sg_table *table = calloc(1, sizeof *table);

	(void)direction;
	attachment->dmabuf->pins++;
	table->one.address = attachment->dmabuf->address;
	table->one.length = attachment->dmabuf->size;
	table->sgl = &table->one;
	table->nents = 1;
	return table;
}

void dma_buf_unmap_attachment(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction)
{
	(void)direction;
	/* Linux warns and returns. REMAP does this after it refused a read-only buffer. */
	if (attachment == NULL || table == NULL)
		return;
	attachment->dmabuf->pins--;
	free(table);
}

int dma_buf_vmap(struct dma_buf *dmabuf, struct dma_buf_map *map)
{
	struct buffer *buffer = (struct buffer *)dmabuf;
	void *at = mmap(NULL, dmabuf->size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);

	map->vaddr = at == MAP_FAILED ? NULL : at;
	return at == MAP_FAILED ? -errno : 0;
}

void dma_buf_vunmap(struct dma_buf *dmabuf, struct dma_buf_map *map)
{
	munmap(map->vaddr, dmabuf->size);
}

/* Which buffer lies at a physical address: its size and first address, or 0 where none lies. */
uint64_t judge_buffer_at(uint64_t address, uint64_t *start, unsigned long *inode)
{
	struct buffer *buffer = buffers;

	while (buffer != NULL && (address < buffer->dmabuf.address || address >= buffer->dmabuf.address + buffer->dmabuf.size))
		buffer = buffer->next;
	if (buffer == NULL)
		return 0;
	*start = buffer->dmabuf.address;
	*inode = buffer->inode;
	return buffer->dmabuf.size;
}

/* The number of buffers that the driver still holds. */
unsigned judge_held(void)
{
	unsigned held = 0;

	for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next)
		held++;
	return held;
}

/* Takes back the buffers that the driver has forgotten, after everything was closed. */
void judge_forget(void)
{
	while (buffers != NULL)
		forget(buffers);
}
