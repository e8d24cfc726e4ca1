/* Stands in for os/posix/os_posix.h: there the posix state and the device are one structure, but here the device belongs to the Linux layer's structure. */
#ifndef NVGPU_OS_POSIX_H
#define NVGPU_OS_POSIX_H
#include <nvgpu/gk20a.h>
struct nvgpu_posix_io_callbacks;
struct nvgpu_os_posix {
	struct gk20a g;
	struct nvgpu_posix_io_callbacks *callbacks;
	struct nvgpu_list_node reg_space_head, recorder_head;
	int error_code;
	bool recording, mm_is_iommuable, mm_sgt_is_iommuable, is_soc_t194_a01, is_silicon, is_fpga, is_simulation;
};
struct nvgpu_os_posix *judge_os_posix(void);
#define nvgpu_os_posix_from_gk20a(g) ((void)(g), judge_os_posix())
#endif
