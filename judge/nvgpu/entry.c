/* What the comparison calls: open, ioctl, and the allocator of addresses. */
#include <nvgpu/gk20a.h>
#include <nvgpu/allocator.h>
#include <nvgpu/gmmu.h>
#include <nvgpu/vm.h>
#include <nvgpu/as.h>
#include <nvgpu/channel.h>
#include <uapi/linux/nvgpu.h>
#include "os/linux/ioctl.h"
#include "os/linux/ioctl_as.h"
#include "os/linux/ioctl_channel.h"
#include "os/linux/ioctl_ctrl.h"
#include "os/linux/ioctl_tsg.h"
#include "judge.h"

struct gk20a *judge_gpu(void);
struct nvgpu_cdev *judge_cdev(void);
void judge_rewind_channels(struct gk20a *g);
void judge_rewind_syncpoints(void);
void judge_rewind_units(struct gk20a *g);
void judge_forget(void);
extern _Thread_local bool judge_stopped;

const struct file_operations gk20a_as_ops = { .open = gk20a_as_dev_open, .release = gk20a_as_dev_release, .unlocked_ioctl = gk20a_as_dev_ioctl };
const struct file_operations gk20a_tsg_ops = { .open = nvgpu_ioctl_tsg_dev_open, .release = nvgpu_ioctl_tsg_dev_release, .unlocked_ioctl = nvgpu_ioctl_tsg_dev_ioctl };
const struct file_operations gk20a_channel_ops = { .open = gk20a_channel_open, .release = gk20a_channel_release, .unlocked_ioctl = gk20a_channel_ioctl };
static const struct file_operations ctrl_ops = { .open = gk20a_ctrl_dev_open, .release = gk20a_ctrl_dev_release, .unlocked_ioctl = gk20a_ctrl_dev_ioctl };

static const struct { const char *name; const struct file_operations *ops; } nodes[] = {
	{ "as", &gk20a_as_ops },
	{ "channel", &gk20a_channel_ops },
	{ "ctrl", &ctrl_ops },
	{ "tsg", &gk20a_tsg_ops },
};

int judge_open(const char *name)
{
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		if (strcmp(nodes[i].name, name) != 0)
			continue;
		struct file *file = judge_new_file(nodes[i].ops, NULL);
		file->inode.i_cdev = &judge_cdev()->cdev;
		int err = file->f_op->open(&file->inode, file);
		if (err != 0) {
			free(file);
			return err;
		}
		int fd = get_unused_fd_flags(0);
		fd_install(fd, file);
		return fd;
	}
	return -ENOENT;
}

/* True for a call in which a board's kernel stops: it follows a pointer that is not there. */
static bool stops(struct file *file, unsigned request)
{
	if (file->f_op == &gk20a_channel_ops && request == NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT) {
		/* A channel without an address space has nowhere to map the syncpoint. channel_priv begins with the GPU and the channel. */
		struct nvgpu_channel *channel = ((struct nvgpu_channel **)file->private_data)[1];

		return channel->vm == NULL;
	}
	return false;
}

long judge_ioctl(int fd, unsigned request, void *argument)
{
	struct file *file = fget(fd);

	if (file == NULL)
		return -EBADF;
	long result = stops(file, request) ? -EFAULT : file->f_op->unlocked_ioctl == NULL ? -ENOTTY : file->f_op->unlocked_ioctl(file, request, (unsigned long)argument);
	fput(file);
	if (judge_stopped)
		result = -EFAULT;
	judge_stopped = false;
	return result;
}

/* Makes the driver like a booted one, after a program closed everything. */
void judge_rewind(void)
{
	judge_forget();
	judge_rewind_channels(judge_gpu());
	judge_rewind_syncpoints();
	judge_rewind_units(judge_gpu());
}

/* The driver's allocator of GPU addresses by itself, as the address space of a program makes it. */
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
