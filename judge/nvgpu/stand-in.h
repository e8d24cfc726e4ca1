/* What nvgpu's Linux layer takes from Linux, for a plain process. Every <linux/...> header that the layer includes is this file (the makefile writes the
 * one-line headers). A file is a descriptor of this process with a struct file beside it; a dma-buf is memory behind a descriptor. files.c has the rest. */
#ifndef JUDGE_STAND_IN_H
#define JUDGE_STAND_IN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <fcntl.h>
#include <unistd.h>

#define __user
#define __force
#define __init
#define __exit
#define __packed __attribute__((packed))
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE JUDGE_LINUX
#define THIS_MODULE ((void *)0)
#define EXPORT_SYMBOL(name)
#define GFP_KERNEL 0
#define ENOIOCTLCMD 515
#define ERESTARTSYS 512

#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))

#ifdef JUDGE_R35
#define NSEC_PER_MSEC 1000000L
#endif
#define IS_ALIGNED(value, size) (((value) & ((size) - 1)) == 0)
static inline bool is_power_of_2(unsigned long value) { return value != 0 && (value & (value - 1)) == 0; }
static inline unsigned long rounddown_pow_of_two(unsigned long value) { return 1ul << (63 - __builtin_clzl(value)); }
#define access_ok(address, size) 1
#define dev_dbg(dev, ...) ((void)(dev))
#define pr_err(...) ((void)0)
#define pr_warn(...) ((void)0)
#define INIT_WORK(work, function) ((void)(work))
#define schedule_work(work) ((void)(work))
#define cancel_work_sync(work) ((void)(work))

/* Errors in pointers. */
#define MAX_ERRNO 4095
#define IS_ERR_VALUE(x) ((unsigned long)(void *)(x) >= (unsigned long)-MAX_ERRNO)
static inline void *ERR_PTR(long error) { return (void *)error; }
static inline long PTR_ERR(const void *p) { return (long)p; }
static inline bool IS_ERR(const void *p) { return IS_ERR_VALUE(p); }
static inline bool IS_ERR_OR_NULL(const void *p) { return p == NULL || IS_ERR(p); }
static inline void *ERR_CAST(const void *p) { return (void *)p; }

/* The program's memory. A range that is not mapped gives EFAULT and no signal. */
unsigned long judge_copy(void *to, const void *from, unsigned long n, bool out);
static inline unsigned long copy_from_user(void *to, const void *from, unsigned long n) { return judge_copy(to, from, n, false); }
static inline unsigned long copy_to_user(void *to, const void *from, unsigned long n) { return judge_copy(to, from, n, true); }

/* Simple types, of which only pointers or sizes matter. */
typedef struct { int counter; } atomic_t;
typedef unsigned int gfp_t;
typedef unsigned int fmode_t;
typedef unsigned short umode_t;
typedef unsigned int __poll_t;
typedef uint64_t dma_addr_t;
typedef uint64_t phys_addr_t;
typedef uint64_t resource_size_t;
typedef int irqreturn_t;
struct kobject { int unused; };
struct kobj_attribute { int unused; };
struct notifier_block { int unused; };
struct work_struct { int unused; };
struct delayed_work { int unused; };
struct workqueue_struct;
struct rw_semaphore { int unused; };
struct vm_area_struct;
struct device_dma_parameters { unsigned max_segment_size; };
struct dentry;
struct resource;
struct devfreq;
struct dev_ext_attribute;
struct mm_struct { struct rw_semaphore mmap_lock; };
struct vm_operations_struct { void (*open)(struct vm_area_struct *), (*close)(struct vm_area_struct *); };
struct vm_area_struct { unsigned long vm_start, vm_end, vm_pgoff, vm_flags; struct mm_struct *vm_mm; void *vm_private_data; const struct vm_operations_struct *vm_ops; int vm_page_prot; };
enum { VM_IO = 1, VM_DONTCOPY = 2, VM_DONTEXPAND = 4, VM_NORESERVE = 8, VM_DONTDUMP = 16, VM_PFNMAP = 32 };
#define PAGE_SHIFT 12
#define pgprot_noncached(protection) (protection)
#define io_remap_pfn_range(area, start, frame, size, protection) 0
#define zap_vma_ptes(area, start, size) ((void)(area))
#define down_write_trylock(lock) 1
#define up_write(lock) ((void)(lock))
#define __maybe_unused __attribute__((unused))
struct poll_table_struct;
typedef struct poll_table_struct poll_table;
enum { POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLRDNORM = 64, POLLHUP = 16 };
#define poll_wait(file, queue, table) ((void)(table))
struct timespec64 { int64_t tv_sec; long tv_nsec; };
#define CAP_SYS_NICE 23
bool capable(int capability);
struct class { const char *name; };
struct device { void *driver_data; struct device *parent; const char *name; void *of_node, *dma_parms, *platform_data; u_int64_t *dma_mask; };
struct device_node;
struct platform_device;
struct reset_control;
struct clk;
struct clk_hw { int unused; };
unsigned long clk_get_rate(struct clk *clk);
int clk_set_rate(struct clk *clk, unsigned long rate);
static inline struct clk *clk_get_sys(const char *device, const char *name) { (void)device; (void)name; return NULL; }
static inline int clk_prepare_enable(struct clk *clk) { (void)clk; return 0; }
static inline void clk_disable_unprepare(struct clk *clk) { (void)clk; }
struct icc_path;
struct cdev { const struct file_operations *ops; void *owner; dev_t dev; };

#define WARN_ON(x) (!!(x))
#define dev_err(dev, ...) ((void)(dev))
static inline void *dev_get_drvdata(const struct device *dev) { return dev->driver_data; }
static inline int dev_to_node(const struct device *dev) { (void)dev; return -1; }
static inline ssize_t strscpy(char *to, const char *from, size_t size) { return snprintf(to, size, "%s", from); }
static inline const char *dev_name(const struct device *dev) { return dev->name; }

/* Files. */
#define FMODE_READ 1u
#define FMODE_WRITE 2u
#define FMODE_PREAD 8u
#define FMODE_PWRITE 16u
struct inode { struct cdev *i_cdev; void *i_private; };
struct file {
	const struct file_operations *f_op;
	void *private_data;
	unsigned f_flags;
	fmode_t f_mode;
	long count, descriptors;
	unsigned long number;
	struct inode inode;
	struct file *next;
};
struct file_operations {
	void *owner;
	int (*open)(struct inode *, struct file *);
	int (*release)(struct inode *, struct file *);
	long (*unlocked_ioctl)(struct file *, unsigned, unsigned long);
	long (*compat_ioctl)(struct file *, unsigned, unsigned long);
	int (*mmap)(struct file *, struct vm_area_struct *);
	unsigned (*poll)(struct file *, poll_table *);
	loff_t (*llseek)(struct file *, loff_t, int);
	ssize_t (*read)(struct file *, char *, size_t, loff_t *);
	ssize_t (*write)(struct file *, const char *, size_t, loff_t *);
};
struct file *fget(unsigned fd);
void fput(struct file *file);
struct fd { struct file *file; };
static inline struct fd fdget(unsigned fd) { return (struct fd){ fget(fd) }; }
static inline void fdput(struct fd fd) { fput(fd.file); }
int get_unused_fd_flags(unsigned flags);
void put_unused_fd(unsigned fd);
void fd_install(unsigned fd, struct file *file);
struct file *anon_inode_getfile(const char *name, const struct file_operations *ops, void *private_data, int flags);
static inline struct inode *file_inode(struct file *file) { return &file->inode; }

/* Scatter lists: a buffer is one piece. */
struct scatterlist { uint64_t address; uint64_t length; };
struct sg_table { struct scatterlist *sgl; unsigned nents; struct scatterlist one; };
#define sg_dma_address(s) ((s)->address)
#define sg_phys(s) ((s)->address)

struct gk20a;
struct nvgpu_sgt;
struct nvgpu_sgt *nvgpu_linux_sgt_create(struct gk20a *g, struct sg_table *table);

/* dma-bufs. */
enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_NONE };
struct dma_resv { int unused; };
struct dma_buf;
struct dma_buf_attachment { struct dma_buf *dmabuf; struct device *dev; void *priv; };
struct dma_buf_map { void *vaddr; bool is_iomem; };
struct dma_buf_ops {
	void (*release)(struct dma_buf *);
	int (*attach)(struct dma_buf *, struct dma_buf_attachment *);
	void (*detach)(struct dma_buf *, struct dma_buf_attachment *);
	struct sg_table *(*map_dma_buf)(struct dma_buf_attachment *, enum dma_data_direction);
	void (*unmap_dma_buf)(struct dma_buf_attachment *, struct sg_table *, enum dma_data_direction);
	int (*begin_cpu_access)(struct dma_buf *, enum dma_data_direction);
	int (*end_cpu_access)(struct dma_buf *, enum dma_data_direction);
	int (*mmap)(struct dma_buf *, struct vm_area_struct *);
	int (*vmap)(struct dma_buf *, struct dma_buf_map *);
	void (*vunmap)(struct dma_buf *, struct dma_buf_map *);
	bool cache_sgt_mapping;
};
struct dma_buf {
	size_t size;
	struct file *file;
	const struct dma_buf_ops *ops;
	const char *exp_name;
	void *priv;
	struct dma_resv *resv;
	uint64_t address;
	long pins;
};
#define DMA_BUF_MAP_INIT_VADDR(p) { (p) }
struct dma_buf *dma_buf_get(int fd);
void dma_buf_put(struct dma_buf *buffer);
void get_dma_buf(struct dma_buf *buffer);
struct dma_buf_attachment *dma_buf_attach(struct dma_buf *buffer, struct device *dev);
void dma_buf_detach(struct dma_buf *buffer, struct dma_buf_attachment *attachment);
struct sg_table *dma_buf_map_attachment(struct dma_buf_attachment *attachment, enum dma_data_direction direction);
void dma_buf_unmap_attachment(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction);
int dma_buf_vmap(struct dma_buf *buffer, struct dma_buf_map *map);
void dma_buf_vunmap(struct dma_buf *buffer, struct dma_buf_map *map);
static inline void dma_resv_lock(struct dma_resv *resv, void *context) { (void)resv; (void)context; }
static inline void dma_resv_unlock(struct dma_resv *resv) { (void)resv; }

/* Trace points that the posix layer does not have. The layer passes some of them on as functions. */
void trace_gk20a_channel_sched_defaults();
void trace_gk20a_channel_set_timeout();
void trace_gk20a_channel_set_timeslice();

#endif
