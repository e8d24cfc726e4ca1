/* What the comparison calls: open, ioctl, and a view into the page tables. */
#include <nvgpu/gk20a.h>
#include <nvgpu/gmmu.h>
#include <nvgpu/vm.h>
#include <nvgpu/as.h>
#include "os/linux/ioctl.h"
#include "os/linux/ioctl_as.h"
#include "os/linux/ioctl_channel.h"
#include "os/linux/ioctl_ctrl.h"
#include "os/linux/ioctl_tsg.h"
#include "judge.h"

struct gk20a *judge_gpu(void);
struct nvgpu_cdev *judge_cdev(void);

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

long judge_ioctl(int fd, unsigned request, void *argument)
{
	struct file *file = fget(fd);

	if (file == NULL)
		return -EBADF;
	long result = file->f_op->unlocked_ioctl == NULL ? -ENOTTY : file->f_op->unlocked_ioctl(file, request, (unsigned long)argument);
	fput(file);
	return result;
}
