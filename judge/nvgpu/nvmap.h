/* What nvmap takes from Linux beyond stand-in.h, for a plain process with one thread: locks do nothing, and a page is a page of an arena behind a descriptor.
 * Every header that nvmap includes and does not bring itself is this file. */
#ifndef JUDGE_NVMAP_H
#define JUDGE_NVMAP_H
#include <limits.h>
#include <sys/resource.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned int uint;
typedef unsigned long ulong, vm_flags_t;
typedef int pgprot_t;
#define U32_MAX UINT32_MAX
#define __iomem
#define __weak __attribute__((weak))
#define ____cacheline_aligned_in_smp
#define MODULE_IMPORT_NS(name)
#define module_param_named(name, value, type, mode)
#define likely(x) (x)
#define unlikely(x) (x)
#define BUG() abort()
#define BUG_ON(x) ((x) ? abort() : (void)0)
#define WARN(x, ...) (!!(x))
#define IS_ENABLED(x) 1
#define pr_info(...) ((void)0)
#define pr_debug(...) ((void)0)
#define pr_err_ratelimited(...) ((void)0)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define mb() ((void)0)
#define smp_rmb() ((void)0)
#define wmb() ((void)0)
#define __fls(x) (31 - __builtin_clz(x))
#define virt_addr_valid(p) ((p) != NULL && !IS_ERR(p))
#define __put_user(value, at) ({ __typeof__(*(at)) judge_put = (value); copy_to_user((void *)(at), &judge_put, sizeof judge_put); })

/* Counters. */
typedef struct { int64_t counter; } atomic64_t;
typedef long atomic_long_t;
#define atomic_read(a) ((a)->counter)
#define atomic_set(a, n) ((a)->counter = (n))
#define atomic_add(n, a) ((void)((a)->counter += (n)))
#define atomic_sub(n, a) ((void)((a)->counter -= (n)))
#define atomic_inc(a) atomic_add(1, a)
#define atomic_dec(a) atomic_sub(1, a)
#define atomic_inc_return(a) (++(a)->counter)
#define atomic_dec_return(a) (--(a)->counter)
#define atomic_add_return(n, a) ((a)->counter += (n))
#define atomic_inc_not_zero(a) ((a)->counter == 0 ? 0 : ++(a)->counter)
#define atomic_add_unless(a, n, not) ((a)->counter == (not) ? 0 : ((a)->counter += (n), 1))
#define atomic64_read atomic_read
#define atomic64_set atomic_set
#define atomic64_add atomic_add
#define atomic64_sub atomic_sub
#define atomic_long_read(p) (*(p))
#define atomic_long_inc_not_zero(p) (*(p) == 0 ? 0 : ++*(p))
static inline long atomic_long_cmpxchg(atomic_long_t *p, long old, long value)
{
	long now = *p;

	*p = now == old ? value : now;
	return now;
}
struct kref { int count; };
#define kref_init(k) ((k)->count = 1)
#define kref_get(k) (++(k)->count)
#define kref_put(k, release) (--(k)->count == 0 ? release(k) : (void)0)

/* Locks of a process with one thread. */
struct mutex { int unused; };
struct rt_mutex { int unused; };
typedef struct mutex spinlock_t;
typedef struct mutex wait_queue_head_t;
#define mutex_init(lock) ((void)(lock))
#define mutex_lock(lock) ((void)(lock))
#define mutex_unlock(lock) ((void)(lock))
#define spin_lock_init mutex_init
#define spin_lock mutex_lock
#define spin_unlock mutex_unlock
#define down_read mutex_lock
#define up_read mutex_unlock
#define xa_lock mutex_lock
#define xa_unlock mutex_unlock
#define init_waitqueue_head mutex_init
#define wake_up(queue) ((void)(queue))
/* Nobody else gives the last reference away meanwhile. */
#define wait_event_interruptible_timeout(queue, condition, time) 0L
#define msecs_to_jiffies(time) (time)

/* Lists. */
struct list_head { struct list_head *next, *prev; };
#define INIT_LIST_HEAD(l) ((l)->next = (l)->prev = (l))
#define list_empty(l) ((l)->next == (l))
#define list_entry container_of
#define list_first_entry(l, type, member) container_of((l)->next, type, member)
#define list_next_of(p, member) container_of((p)->member.next, __typeof__(*(p)), member)
#define list_for_each_entry(p, l, member) for (p = list_first_entry(l, __typeof__(*p), member); &p->member != (l); p = list_next_of(p, member))
#define list_for_each_entry_safe(p, n, l, member) \
	for (p = list_first_entry(l, __typeof__(*p), member), n = list_next_of(p, member); &p->member != (l); p = n, n = list_next_of(n, member))
static inline void list_add(struct list_head *entry, struct list_head *at)
{
	entry->next = at->next;
	entry->prev = at;
	at->next->prev = entry;
	at->next = entry;
}
#define list_add_tail(entry, l) list_add(entry, (l)->prev)
static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

/* Trees without balance. */
struct rb_node { struct rb_node *rb_left, *rb_right, *parent; };
struct rb_root { struct rb_node *rb_node; };
#define RB_ROOT (struct rb_root){ NULL }
#define rb_entry container_of
#define rb_insert_color(node, root) ((void)(node))
static inline void rb_link_node(struct rb_node *node, struct rb_node *parent, struct rb_node **at)
{
	*node = (struct rb_node){ .parent = parent };
	*at = node;
}
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_next(const struct rb_node *node);
void rb_erase(struct rb_node *node, struct rb_root *root);
void rb_replace_node(struct rb_node *old, struct rb_node *new, struct rb_root *root);

/* Ids. */
struct xarray { struct judge_id { u32 id; void *value; struct judge_id *next; } *first; };
#define XA_FLAGS_ALLOC1 1
struct judge_limit { u32 min, max; };
#define XA_LIMIT(from, to) (struct judge_limit){ from, to }
#define xa_init_flags(ids, flags) ((ids)->first = NULL)
int xa_alloc(struct xarray *ids, u32 *id, void *value, struct judge_limit limit, gfp_t gfp);
void *xa_erase(struct xarray *ids, u32 id);
void *xa_load(struct xarray *ids, u32 id);
void xa_destroy(struct xarray *ids);

/* Memory. A pointer to a page is the page's address in the arena. */
#define PAGE_SIZE 4096ul
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define PAGE_ALIGN(n) (((n) + PAGE_SIZE - 1) & PAGE_MASK)
#define PAGE_KERNEL 0
#define L1_CACHE_BYTES 64
struct page { char bytes[4096]; };
#define nth_page(page, n) ((page) + (n))
#define page_to_phys(page) ((phys_addr_t)(uintptr_t)(page))
#define page_address(page) ((void *)(page))
#define phys_to_page(address) ((struct page *)(uintptr_t)(address))
#define pfn_to_page(frame) ((struct page *)((uintptr_t)(frame) << 12))
#define __phys_to_pfn(address) ((address) >> 12)
#define pfn_valid(frame) 1
#define get_page(page) ((void)(page))
#define put_page(page) ((void)(page))
#define split_page(page, order) ((void)(page))
#define __free_page(page) judge_free_page(page)
#define __GFP_HIGHMEM 0
#define __GFP_NOWARN 0
#define __GFP_ZERO 0
#define __GFP_NOMEMALLOC 0
#define __GFP_RECLAIM 0
#define VM_MAP 0
#define VM_WRITE 64
#define VM_SHARED 128
#define MEMREMAP_WB 1
#define FOLL_FORCE 16
#define FOLL_WRITE 1
#define pgprot_writecombine(protection) (protection)
struct page *alloc_pages(gfp_t gfp, unsigned order);
#define alloc_pages_node(node, gfp, order) alloc_pages(gfp, order)
unsigned long __alloc_pages_bulk(gfp_t gfp, int node, void *mask, int wanted, void *list, struct page **pages);
void judge_free_page(struct page *page);
void *vmap(struct page **pages, unsigned count, unsigned long flags, pgprot_t protection);
void vunmap(const void *at);
static inline unsigned get_order(size_t size) { return size <= PAGE_SIZE ? 0 : 64 - __builtin_clzl((size - 1) >> 12); }
#define kzalloc(size, gfp) calloc(1, size)
#define vzalloc(size) calloc(1, size)
#define vmalloc(size) malloc(size)
#define kfree free
#define vfree(at) free(at)
#define kfree_sensitive free
#define SZ_32K 0x8000
#define DMA_MAPPING_ERROR (~(dma_addr_t)0)
#define NUMA_NO_NODE (-1)
/* As the kernels of a Jetson are configured. */
#define MAX_NUMNODES 16
#define numa_mem_id() 0
unsigned long totalram_pages(void);
long si_mem_available(void);
struct sysinfo { unsigned long totalram; };
#define si_meminfo(info) ((info)->totalram = totalram_pages())
#define NR_FREE_CMA_PAGES 0
#define global_zone_page_state(what) 0ul
#define arch_invalidate_pmem(at, size) ((void)(at))
struct kmem_cache { size_t size; };
#define KMEM_CACHE(type, flags) ({ struct kmem_cache *judge_cache = malloc(sizeof *judge_cache); judge_cache->size = sizeof(struct type); judge_cache; })
#define kmem_cache_alloc(cache, gfp) calloc(1, (cache)->size)
#define kmem_cache_free(cache, at) free(at)
#define kmem_cache_destroy free

/* The process. */
#define TASK_COMM_LEN 16
#define PF_KTHREAD 0x200000
struct task_struct { int pid; unsigned flags; char comm[TASK_COMM_LEN]; struct task_struct *group_leader; struct mm_struct *mm, *active_mm; void *files; };
extern struct task_struct judge_task;
#define current (&judge_task)
#define get_current() current
#define get_task_comm(to, task) ((to)[0] = 0)
#define get_task_struct(task) ((void)(task))
#define put_task_struct(task) ((void)(task))
#define task_lock(task) ((void)(task))
#define task_unlock(task) ((void)(task))
#define nonseekable_open(inode, file) 0
#define close_fd(fd) judge_close((int)(fd))
int judge_close(int fd);
struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long at);

/* What only the parts use that nobody calls: statistics, debug files, carveouts, devices. */
#define S_IRUGO 0
#define S_IWUSR 0
#define THIS_MODULE ((void *)0)
#define MISC_DYNAMIC_MINOR 255
struct miscdevice { int minor; const char *name; const struct file_operations *fops; struct device *parent; };
struct seq_file { void *private; };
struct platform_device { struct device dev; };
struct reserved_mem;
struct property { int length; void *value; };
extern struct judge_bus { int unused; } platform_bus_type;
struct of_device_id { const char *compatible; };
struct soc_device_attribute { const char *soc_id; };
#define soc_device_match(what) ((what)->soc_id[5] == '2') /* TEGRA234 */
struct arm64_ftr_reg { int unused; };
#define sched_clock() 0ul
#define CONFIG_MMU 1
#define DEFINE_SIMPLE_ATTRIBUTE(name, get, set, format) static const struct file_operations name
ssize_t seq_read(struct file *file, char *to, size_t size, loff_t *at);
loff_t seq_lseek(struct file *file, loff_t at, int from);
int single_release(struct inode *inode, struct file *file);
#define debugfs_remove(what) ((void)(what))
#define get_file_rcu(file) ((file)->count == 0 ? false : (++(file)->count, true))
#define f_count count
enum { DMA_ATTR_PRIVILEGED = 512, DMA_ATTR_ALLOC_SINGLE_PAGES = 256, DMA_ATTR_SKIP_CPU_SYNC = 32 };
#define PROT_READ 1
#define DEFINE_DMA_BUF_EXPORT_INFO(name) struct judge_export name = { 0 }
struct judge_export { const char *exp_name; const struct dma_buf_ops *ops; size_t size; int flags; void *priv; };
struct dma_buf *dma_buf_export(const struct judge_export *info);
void *devm_kzalloc(struct device *dev, size_t size, gfp_t gfp);
struct dentry *debugfs_create_dir(const char *name, struct dentry *in);
#endif
