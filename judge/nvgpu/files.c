/* Files, descriptors, dma-bufs and the program's memory. A file of the driver is the struct file that the driver knows and a memfd that the program holds;
 * the memfd's inode ties them together, so a duplicate of the descriptor is the same file. */
#include "stand-in.h"
#include "judge.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#ifdef JUDGE_NVMAP
/* nvmap never stops the kernel. */
#define judge_stopped false
#else
extern _Thread_local bool judge_stopped;
#endif
bool judge_is_parallel;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void judge_parallel(bool parallel) { judge_is_parallel = parallel; }
void judge_lock(void) { pthread_mutex_lock(&lock); }
void judge_unlock(void) { pthread_mutex_unlock(&lock); }

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

	judge_lock();
	struct file *file = inode == 0 ? NULL : find(inode);
	judge_unlock();
	return file;
}

struct file *fget(unsigned fd)
{
	judge_lock();
	struct file *file = judge_file(fd);

	if (file != NULL)
		file->count++;
	judge_unlock();
	return file;
}

void fput(struct file *file)
{
	judge_lock();
	bool last = --file->count == 0;
	if (last && file->number != 0) {
		struct file **at = bucket(file->number);

		while (*at != file)
			at = &(*at)->next;
		*at = file->next;
	}
	judge_unlock();
	if (!last)
		return;
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

/* Ties a file to the memfd behind a descriptor. */
void judge_number(struct file *file, int fd)
{
	judge_lock();
	file->number = inode_of(fd);
	file->next = *bucket(file->number);
	*bucket(file->number) = file;
	judge_unlock();
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

/* nvmap brings its own dma-bufs (nvmap.c). */
#ifndef JUDGE_NVMAP
void fd_install(unsigned fd, struct file *file) { judge_number(file, (int)fd); }

struct file *anon_inode_getfile(const char *name, const struct file_operations *ops, void *private_data, int flags)
{
	(void)name;
	(void)flags;
	return judge_new_file(ops, private_data);
}

/* dma-bufs. Who makes a buffer tells it, and the buffer stays for as long as the program has a descriptor or the driver a reference. */
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

/* A read-only descriptor of a buffer is a dma-buf of its own. */
static fmode_t mode_of(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY ? FMODE_READ : FMODE_READ | FMODE_WRITE;
}

static struct buffer *find_buffer(int fd)
{
	unsigned long inode = inode_of(fd);
	struct buffer *buffer = buffers;

	while (buffer != NULL && (buffer->inode != inode || buffer->file.f_mode != mode_of(fd)))
		buffer = buffer->next;
	return buffer;
}

static void forget(struct buffer *buffer)
{
	judge_lock();
	struct buffer **at = &buffers;

	while (*at != buffer)
		at = &(*at)->next;
	*at = buffer->next;
	if (buffers == NULL)
		next_address = FIRST_ADDRESS;
	judge_unlock();
	close(buffer->fd);
	free(buffer);
}

static void release_buffer(struct dma_buf *dmabuf)
{
	forget((struct buffer *)dmabuf);
}

static const struct dma_buf_ops buffer_ops = { .release = release_buffer };

int judge_buffer(int fd, uint64_t size)
{
	struct buffer *buffer = find_buffer(fd);

	if (inode_of(fd) == 0)
		return -EBADF;
	if (buffer != NULL) {
		buffer->file.count += buffer->file.descriptors++ == 0;
		return 0;
	}
	buffer = calloc(1, sizeof *buffer);
	buffer->inode = inode_of(fd);
	buffer->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	buffer->file.count = 1;
	buffer->file.descriptors = 1;
	buffer->file.f_mode = mode_of(fd);
	buffer->dmabuf.size = size;
	buffer->dmabuf.file = &buffer->file;
	buffer->dmabuf.ops = &buffer_ops;
	buffer->dmabuf.resv = &buffer->resv;
	buffer->dmabuf.address = next_address;
	/* Buffers lie apart, so that a page of one is never the page after another's last. */
	next_address += (size + 0xfffff) / 0x100000 * 0x100000 + 0x100000;
	buffer->next = buffers;
	buffers = buffer;
	return 0;
}

struct dma_buf *dma_buf_get(int fd)
{
	judge_lock();
	struct buffer *buffer = find_buffer(fd);

	if (buffer != NULL)
		buffer->file.count++;
	judge_unlock();
	if (buffer == NULL)
		return ERR_PTR(inode_of(fd) == 0 ? -EBADF : -EINVAL);
	return &buffer->dmabuf;
}

void get_dma_buf(struct dma_buf *dmabuf)
{
	judge_lock();
	dmabuf->file->count++;
	judge_unlock();
}

void dma_buf_put(struct dma_buf *dmabuf)
{
	judge_lock();
	bool last = --dmabuf->file->count == 0;
	judge_unlock();
	if (last)
		dmabuf->ops->release(dmabuf);
}

int judge_dup(int fd)
{
	judge_lock();
	struct file *file = judge_file(fd);
	struct buffer *buffer = find_buffer(fd);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy >= 0 && file != NULL)
		file->descriptors++;
	if (copy >= 0 && buffer != NULL)
		buffer->file.descriptors++;
	judge_unlock();
	return copy < 0 ? -errno : copy;
}

int judge_close(int fd)
{
	judge_lock();
	struct file *file = judge_file(fd);
	struct buffer *buffer = find_buffer(fd);
	bool file_ends = file != NULL && --file->descriptors == 0;
	bool buffer_ends = buffer != NULL && --buffer->file.descriptors == 0;
	judge_unlock();

	if (file_ends)
		fput(file);
	if (buffer_ends)
		dma_buf_put(&buffer->dmabuf);
	return close(fd) < 0 ? -errno : 0;
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
#endif
