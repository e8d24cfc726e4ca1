/* Boots nvmap with its own probe, and has what stands in for Linux below it: files, dma-bufs, pages, trees and ids. Carveouts are not built. */
#include <sys/mman.h>
#include "judge.h"
#include "nvmap_priv.h"

#define ARENA ((char *)0x9000000000ull)
#define ARENA_SIZE (16ull << 30)

struct task_struct judge_task = { .pid = 1, .comm = "judge", .group_leader = &judge_task };
struct judge_bus platform_bus_type;
struct vm_operations_struct nvmap_vma_ops;
static struct platform_device platform;
static struct miscdevice *node;
static uint64_t total;
static unsigned exported;

unsigned long totalram_pages(void) { return total >> PAGE_SHIFT; }

/* What nvmap's probe asks of Linux. There are no debug files, no device tree, and an IOMMU is there. */
void *devm_kzalloc(struct device *dev, size_t size, gfp_t gfp) { (void)dev; (void)gfp; return calloc(1, size); }
int nvmap_init(struct platform_device *device) { (void)device; return 0; }
struct dentry *debugfs_create_dir(const char *name, struct dentry *in) { (void)name; (void)in; return NULL; }
int debugfs_create_file(void) { return 0; }
int debugfs_create_u32(void) { return 0; }
int iommu_present(void) { return 1; }
int of_property_read_bool(void) { return 0; }
void platform_set_drvdata(struct platform_device *device, void *data) { device->dev.driver_data = data; }
int misc_register(struct miscdevice *device) { node = device; return 0; }
ssize_t seq_read(struct file *file, char *to, size_t size, loff_t *at) { (void)file; (void)to; (void)size; (void)at; return 0; }
loff_t seq_lseek(struct file *file, loff_t at, int from) { (void)file; (void)at; (void)from; return 0; }
int single_release(struct inode *inode, struct file *file) { (void)inode; (void)file; return 0; }
/* A board without carveouts: nvmap finds none of them before it comes here. */
struct nvmap_heap_block *nvmap_carveout_alloc(struct nvmap_client *client, struct nvmap_handle *handle, unsigned long type, phys_addr_t *start)
{
	(void)client; (void)handle; (void)type; (void)start;
	return NULL;
}
struct device *dma_dev_from_handle(unsigned long type) { (void)type; return ERR_PTR(-ENODEV); }
void __clean_dcache_area_poc(void *at, size_t size) { (void)at; (void)size; }
void __dma_map_area(const void *at, size_t size, int direction) { (void)at; (void)size; (void)direction; }
/* No program maps a buffer here. */
struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long at) { (void)mm; (void)at; return NULL; }
int is_nvmap_vma(struct vm_area_struct *area) { (void)area; return 0; }

/* Pages: the arena's, one after the other, until all are free. */
static char *end;
static unsigned long live;

long si_mem_available(void) { return (long)((total >> PAGE_SHIFT) - live); }

struct page *alloc_pages(gfp_t gfp, unsigned order)
{
	size_t size = PAGE_SIZE << order;

	(void)gfp;
	if (end == NULL && (end = mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)) != ARENA)
		abort();
	if (size > (size_t)(ARENA + ARENA_SIZE - end))
		return NULL;
	end += size;
	live += 1ul << order;
	return (struct page *)(end - size);
}

unsigned long __alloc_pages_bulk(gfp_t gfp, int of, void *mask, int wanted, void *list, struct page **pages)
{
	int made = 0;

	(void)of;
	(void)mask;
	(void)list;
	while (made < wanted && (pages[made] != NULL || (pages[made] = alloc_pages(gfp, 0)) != NULL))
		made++;
	return (unsigned long)made;
}

void judge_free_page(struct page *page)
{
	(void)page;
	if (--live != 0)
		return;
	madvise(ARENA, (size_t)(end - ARENA), MADV_DONTNEED);
	end = ARENA;
}

/* The pages of a buffer are neighbours, because nothing takes pages between them. */
void *vmap(struct page **pages, unsigned count, unsigned long flags, pgprot_t protection)
{
	(void)flags;
	(void)protection;
	for (unsigned i = 1; i < count; i++) {
		if (pages[i] != pages[0] + i)
			abort();
	}
	return pages[0];
}
void vunmap(const void *at) { (void)at; }

/* Trees. */
struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *n = root->rb_node;

	while (n != NULL && n->rb_left != NULL)
		n = n->rb_left;
	return n;
}

struct rb_node *rb_next(const struct rb_node *n)
{
	if (n->rb_right != NULL)
		return rb_first(&(struct rb_root){ n->rb_right });
	while (n->parent != NULL && n->parent->rb_right == n)
		n = n->parent;
	return n->parent;
}

void rb_replace_node(struct rb_node *old, struct rb_node *new, struct rb_root *root)
{
	struct rb_node *parent = old->parent;

	if (parent == NULL)
		root->rb_node = new;
	else if (parent->rb_left == old)
		parent->rb_left = new;
	else
		parent->rb_right = new;
	if (new == NULL)
		return;
	if (new != old->rb_left && new != old->rb_right) {
		*new = *old;
		if (new->rb_left != NULL)
			new->rb_left->parent = new;
		if (new->rb_right != NULL)
			new->rb_right->parent = new;
	}
	new->parent = parent;
}

void rb_erase(struct rb_node *n, struct rb_root *root)
{
	if (n->rb_left == NULL || n->rb_right == NULL) {
		rb_replace_node(n, n->rb_left != NULL ? n->rb_left : n->rb_right, root);
		return;
	}
	struct rb_node *next = rb_next(n);
	rb_erase(next, root);
	rb_replace_node(n, next, root);
}

/* Ids. The first one after a rewind is that of a booted board, whatever nvmap's counter says. */
static bool fresh;

int xa_alloc(struct xarray *ids, u32 *id, void *value, struct judge_limit limit, gfp_t gfp)
{
	struct judge_id **at = &ids->first;

	(void)gfp;
	*id = fresh ? U32_MAX / 2 : limit.min;
	fresh = false;
	while (*at != NULL && (*at)->id < *id)
		at = &(*at)->next;
	for (; *at != NULL && (*at)->id == *id; at = &(*at)->next)
		++*id;
	struct judge_id *made = malloc(sizeof *made);
	*made = (struct judge_id){ *id, value, *at };
	*at = made;
	return 0;
}

void *xa_load(struct xarray *ids, u32 id)
{
	struct judge_id *at = ids->first;

	while (at != NULL && at->id != id)
		at = at->next;
	return at == NULL ? NULL : at->value;
}

void *xa_erase(struct xarray *ids, u32 id)
{
	struct judge_id **at = &ids->first;

	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	struct judge_id *gone = *at;
	if (gone == NULL)
		return NULL;
	void *value = gone->value;
	*at = gone->next;
	free(gone);
	return value;
}

void xa_destroy(struct xarray *ids)
{
	while (ids->first != NULL)
		xa_erase(ids, ids->first->id);
}

/* dma-bufs: a file whose memfd each descriptor is a duplicate of. */
static int release_dmabuf(struct inode *inode, struct file *file)
{
	struct dma_buf *dmabuf = file->private_data;

	dmabuf->ops->release(dmabuf);
	close((int)(intptr_t)inode->i_private);
	free(dmabuf);
	exported--;
	return 0;
}

static const struct file_operations dmabuf_ops = { .release = release_dmabuf };

struct dma_buf *dma_buf_export(const struct judge_export *info)
{
	struct dma_buf *dmabuf = calloc(1, sizeof *dmabuf);
	int fd = get_unused_fd_flags(0);

	*dmabuf = (struct dma_buf){ .size = info->size, .ops = info->ops, .exp_name = info->exp_name, .priv = info->priv };
	dmabuf->file = judge_new_file(&dmabuf_ops, dmabuf);
	dmabuf->file->inode.i_private = (void *)(intptr_t)fd;
	judge_number(dmabuf->file, fd);
	exported++;
	return dmabuf;
}

struct dma_buf *dma_buf_get(int fd)
{
	struct file *file = fget((unsigned)fd);

	if (file != NULL && file->f_op == &dmabuf_ops)
		return file->private_data;
	if (file != NULL)
		fput(file);
	return ERR_PTR(fcntl(fd, F_GETFD) < 0 ? -EBADF : -EINVAL);
}

void get_dma_buf(struct dma_buf *dmabuf) { dmabuf->file->count++; }
void dma_buf_put(struct dma_buf *dmabuf) { fput(dmabuf->file); }
void fd_install(unsigned fd, struct file *file) { dup3((int)(intptr_t)file->inode.i_private, (int)fd, O_CLOEXEC); }

int judge_dup(int fd)
{
	struct file *file = fget((unsigned)fd);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0 && file != NULL)
		fput(file);
	return copy < 0 ? -errno : copy;
}

int judge_close(int fd)
{
	struct file *file = judge_file(fd);

	if (file != NULL)
		fput(file);
	return close(fd) < 0 ? -errno : 0;
}

int judge_nvmap_boot(uint64_t memory)
{
	total = memory;
	fresh = true;
	return nvmap_probe(&platform);
}

int judge_open(const char *name)
{
	int fd = get_unused_fd_flags(0);
	struct file *file = judge_new_file(node->fops, node);

	(void)name;
	judge_number(file, fd);
	int err = file->f_op->open(&file->inode, file);
	return err != 0 ? err : fd;
}

long judge_ioctl(int fd, unsigned request, void *argument)
{
	struct file *file = fget((unsigned)fd);

	if (file == NULL)
		return -EBADF;
	long result = file->f_op->unlocked_ioctl == NULL ? -ENOTTY : file->f_op->unlocked_ioctl(file, request, (unsigned long)argument);
	fput(file);
	return result;
}

/* The dma-bufs and the pages that nvmap holds. */
unsigned judge_held(void) { return exported + (unsigned)live; }

void judge_rewind(void)
{
	fresh = true;
	nvmap_dev->serial_id_counter = 0;
	if (live != 0) {
		live = 1;
		judge_free_page(NULL);
	}
}
