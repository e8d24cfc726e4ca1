/* Boots the driver: the parts of its power-on sequence that need no firmware, over registers that are memory. */
#include <nvgpu/gk20a.h>
#include <nvgpu/hal_init.h>
#include <nvgpu/nvgpu_init.h>
#include <nvgpu/errata.h>
#include <nvgpu/enabled.h>
#include <nvgpu/kmem.h>
#include <nvgpu/mm.h>
#include <nvgpu/timers.h>
#include <nvgpu/nvhost.h>
#include <nvgpu/gmmu.h>
#include <nvgpu/pd_cache.h>
#include <nvgpu/cbc.h>
#include <nvgpu/cond.h>
#include <nvgpu/gr/gr.h>
#include <nvgpu/gr/gr_intr.h>
#include <nvgpu/tsg.h>
#include "common/gr/gr_priv.h"
#include <nvgpu/posix/io.h>
#include <nvgpu/posix/mock-regs.h>
#include "os/linux/os_linux.h"
#include "os/linux/ioctl.h"
#include "os/linux/platform_gk20a.h"
#include "os-posix.h"
#include "judge.h"

#define REGISTERS (16u << 20)
static u32 *registers;
static struct nvgpu_os_linux judge_linux;
int judge_boot_channels(struct nvgpu_os_linux *l);
void judge_write_registers(u32 *registers);
int judge_boot_clocks(struct gk20a *g, struct gk20a_platform *platform);
int judge_boot_units(struct gk20a *g);
static struct nvgpu_os_posix judge_posix;
static struct gk20a_platform platform;
static struct device device = { .driver_data = &platform, .parent = NULL, .name = "17000000.gpu" };
static struct device node = { .parent = &device, .name = "node" };
static struct nvgpu_cdev cdev = { .node = &node };
static bool booted;

struct gk20a *judge_gpu(void) { return &judge_linux.g; }
struct nvgpu_cdev *judge_cdev(void) { return &cdev; }
struct nvgpu_os_posix *judge_os_posix(void) { return &judge_posix; }
struct gk20a *nvgpu_get_gk20a_from_cdev(struct nvgpu_cdev *of) { (void)of; return &judge_linux.g; }
u32 nvgpu_get_gpu_instance_id_from_cdev(struct gk20a *g, struct nvgpu_cdev *of) { (void)g; (void)of; return 0; }

/* The posix layer's clock counts from 1970, as Linux's second clock does. */
u64 nvgpu_current_unix_time_us(void) { return (u64)nvgpu_current_time_us(); }

/* The same clock, for the time in a notifier. */
void ktime_get_real_ts64(struct timespec64 *time)
{
	u64 us = nvgpu_current_unix_time_us();

	time->tv_sec = us / 1000000;
	time->tv_nsec = us % 1000000 * 1000;
}

/* Another clock, for the time that WAIT writes: 250 in a second, as Linux counts them since it was started. */
u64 get_jiffies_64(void) { return (u64)nvgpu_current_time_ms() / 4 + 1; }

void jiffies_to_timespec64(unsigned long jiffies, struct timespec64 *time)
{
	time->tv_sec = (int64_t)(jiffies / 250);
	time->tv_nsec = (long)(jiffies % 250 * 4000000);
}

/* As Linux does: the errno of a wait that ends without what it waits for is negative. The posix layer's is not. */
int nvgpu_cond_timedwait(struct nvgpu_cond *c, unsigned *ms)
{
	struct timespec until;

	if (*ms == NVGPU_COND_WAIT_TIMEOUT_MAX_MS)
		return -pthread_cond_wait(&c->cond, &c->mutex.lock.mutex);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += *ms / 1000;
	until.tv_nsec += *ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	return -pthread_cond_timedwait(&c->cond, &c->mutex.lock.mutex, &until);
}

/* The processor sees what the GPU has written. */
int dma_buf_begin_cpu_access(struct dma_buf *buffer, int direction) { (void)buffer; (void)direction; return 0; }
int dma_buf_end_cpu_access(struct dma_buf *buffer, int direction) { (void)buffer; (void)direction; return 0; }

#ifdef JUDGE_R35
/* No buffer is memory of a discrete GPU. */
struct gk20a *nvgpu_vidmem_buf_owner(struct dma_buf *buffer) { (void)buffer; return NULL; }
#endif

/* The tables of registers that os/posix would load. Registers are memory here. */
int nvgpu_get_mock_reglist_gv11b(struct gk20a *g, u32 at, struct nvgpu_mock_iospace *space) { (void)g; (void)at; (void)space; return -1; }
int nvgpu_get_mock_reglist_ga10b(struct gk20a *g, u32 at, struct nvgpu_mock_iospace *space) { (void)g; (void)at; (void)space; return -1; }

/* The registers that were written while they are noted, with what they had said. */
static struct { u32 address, value; } noted[4096];
static unsigned notes;
bool judge_notes_registers;
/* The interrupts among them: a 1 that is written there clears the bit. */
static u32 interrupts[4];
static unsigned raised;

static void write_register(struct gk20a *g, struct nvgpu_reg_access *access)
{
	(void)g;
	if (access->addr >= REGISTERS)
		return;
	if (judge_notes_registers) {
		if (notes == sizeof noted / sizeof *noted)
			abort();
		noted[notes].address = access->addr;
		noted[notes++].value = registers[access->addr / 4];
	}
	for (unsigned i = 0; i < raised; i++) {
		if (interrupts[i] == access->addr) {
			registers[access->addr / 4] &= ~access->value;
			return;
		}
	}
	registers[access->addr / 4] = access->value;
}

/* Raises an interrupt, until the registers have their values again. */
void judge_raise(u32 address, u32 bits)
{
	struct nvgpu_reg_access access = { .addr = address, .value = bits };

	write_register(NULL, &access);
	interrupts[raised++] = address;
}

/* Gives the registers that were noted their values back. */
void judge_restore_registers(void)
{
	judge_notes_registers = false;
	raised = 0;
	while (notes > 0) {
		notes--;
		registers[noted[notes].address / 4] = noted[notes].value;
	}
}

static void read_register(struct gk20a *g, struct nvgpu_reg_access *access)
{
	(void)g;
	access->value = access->addr < REGISTERS ? registers[access->addr / 4] : 0;
}

static int read_fuse(unsigned long offset, u32 *value)
{
	(void)offset;
	*value = 0;
	return 0;
}

static struct nvgpu_posix_io_callbacks callbacks = {
	.writel = write_register, .writel_check = write_register, .bar1_writel = write_register, .usermode_writel = write_register,
	.__readl = read_register, .readl = read_register, .bar1_readl = read_register,
	.tegra_fuse_control_read = read_fuse, .tegra_fuse_readl = read_fuse,
};

/* What the GPU would answer. Each is a unit of the GPU that is asked to do something and says that it is done. */
static int done(struct gk20a *g) { (void)g; return 0; }
static void nothing(struct gk20a *g) { (void)g; }
static int flushed(struct gk20a *g, bool invalidate) { (void)g; (void)invalidate; return 0; }
static int invalidated(struct gk20a *g, struct nvgpu_mem *directory) { (void)g; (void)directory; return 0; }

static void answer_for_the_gpu(struct gk20a *g)
{
	g->ops.fb.tlb_invalidate = invalidated;
	g->ops.mm.cache.fb_flush = done;
	g->ops.mm.cache.l2_flush = flushed;
	g->ops.mm.cache.l2_invalidate = nothing;
	g->ops.mm.cache.cbc_clean = nothing;
	/* The counters of the performance units are found in the image of a context, which the firmware makes. */
	g->ops.perf.get_num_hwpm_perfmon = NULL;
}

int judge_boot(const struct judge_chip *chip)
{
	struct nvgpu_os_linux *l = &judge_linux;
	struct gk20a *g = &l->g;
	bool orin = chip->boot_0 == JUDGE_GA10B;

	if (booted)
		return -EBUSY;
	registers = calloc(1, REGISTERS);
	/* Only the units of ga10b are described. */
	if (orin) {
		judge_write_registers(registers);
		judge_posix.is_silicon = true;
	}
	registers[0] = chip->boot_0;
	l->dev = &device;
	platform.g = g;
	g->log_mask = getenv("JUDGE_LOG") != NULL ? NVGPU_DEFAULT_DBG_MASK : 0;
	g->mm.g = g;
	g->regs = NVGPU_POSIX_REG_BAR0 << NVGPU_POSIX_REG_SHIFT;
	g->bar1 = NVGPU_POSIX_REG_BAR1 << NVGPU_POSIX_REG_SHIFT;
	g->usermode_regs = NVGPU_POSIX_REG_USERMODE << NVGPU_POSIX_REG_SHIFT;
	nvgpu_posix_io_init_reg_space(g);
	nvgpu_posix_register_io(g, &callbacks);
	if (nvgpu_kmem_init(g) != 0 || nvgpu_init_errata_flags(g) != 0 || nvgpu_init_enabled_flags(g) != 0)
		return -ENOMEM;
	nvgpu_set_enabled(g, NVGPU_HAS_SYNCPOINTS, true);
	int err = nvgpu_detect_chip(g);
	if (err != 0)
		return err;
	answer_for_the_gpu(g);

	/* What the platform of the board says (os/linux/platform_ga10b_tegra.c), and Linux's probe (os/linux/driver_common.c). */
	nvgpu_set_enabled(g, NVGPU_MM_HONORS_APERTURE, true);
	nvgpu_set_enabled(g, NVGPU_MM_UNIFIED_MEMORY, true);
	g->mm.disable_bigpage = !chip->big_pages;
	nvgpu_mutex_init(&g->mm.tlb_lock);
	nvgpu_mutex_init(&g->mm.l2_op_lock);
	nvgpu_mutex_init(&g->dbg_sessions_lock);
	nvgpu_mutex_init(&g->sched_ctrl.control_lock);
	nvgpu_rwsem_init(&g->deterministic_busy);
	nvgpu_init_list_node(&g->profiler_objects);
	g->poll_timeout_default = 3000;
	g->ch_wdt_init_limit_ms = 5000;
	g->ptimer_src_freq = 31250000;
	g->runlist_interleave = true;
	g->tsg_timeslice_low_priority_us = NVGPU_TSG_TIMESLICE_LOW_PRIORITY_US;
	g->tsg_timeslice_medium_priority_us = NVGPU_TSG_TIMESLICE_MEDIUM_PRIORITY_US;
	g->tsg_timeslice_high_priority_us = NVGPU_TSG_TIMESLICE_HIGH_PRIORITY_US;
	g->tsg_timeslice_min_us = NVGPU_TSG_TIMESLICE_MIN_US;
	g->tsg_timeslice_max_us = NVGPU_TSG_TIMESLICE_MAX_US;
	g->tsg_dbg_timeslice_max_us = NVGPU_TSG_DBG_TIMESLICE_MAX_US_DEFAULT;
	nvgpu_mutex_init(&l->ctrl_privs_lock);
	nvgpu_init_list_node(&l->ctrl_privs);
	nvgpu_mutex_init(&l->dmabuf_priv_list_lock);
	nvgpu_init_list_node(&l->dmabuf_priv_list);
	nvgpu_ref_init(&g->refcount);
	g->ops.mm.get_default_va_sizes(NULL, &g->mm.channel.user_size, &g->mm.channel.kernel_size);
	err = nvgpu_pd_cache_init(g);
	if (err != 0)
		return err;
	/* What the chip's code says of the chip. */
	err = g->ops.chip_init_gpu_characteristics(g);
	if (err != 0)
		return err;
	nvgpu_set_enabled(g, NVGPU_SUPPORT_FAULT_RECOVERY, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_NVS, true);
	/* The code that traces switches of contexts is not built. */
	nvgpu_set_enabled(g, NVGPU_SUPPORT_FECS_CTXSW_TRACE, true);
	/* The board has memory for protected content, caches that see each other's stores, and a switch for the GPU's power. */
	nvgpu_set_enabled(g, NVGPU_SUPPORT_VPR, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_IO_COHERENCE, true);
	nvgpu_set_enabled(g, NVGPU_CAN_RAILGATE, true);
	nvgpu_set_power_state(g, NVGPU_STATE_POWERED_ON);
	/* What Linux says of itself (os/linux/module.c). */
	nvgpu_set_enabled(g, NVGPU_SUPPORT_DETERMINISTIC_OPTS, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_BUFFER_METADATA, true);
#ifdef JUDGE_R35
	nvgpu_set_enabled(g, NVGPU_SUPPORT_PARTIAL_MAPPINGS, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_USERSPACE_MANAGED_AS, true);
#else
	nvgpu_set_enabled(g, NVGPU_SUPPORT_MULTI_PROCESS_TSG_SHARING, true);
	nvgpu_mutex_init(&g->ctrl_dev_id_lock);
#endif
	nvgpu_set_enabled(g, NVGPU_SUPPORT_SYNC_FENCE_FDS, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_REMAP, true);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_MAPPING_MODIFY, true);
	nvgpu_get_nvhost_dev(g);
#ifdef JUDGE_R35
	/* As the driver does in a function of its own file. */
	err = nvgpu_mem_create_from_phys(g, &g->syncpt_mem, g->syncpt_unit_base, g->syncpt_unit_size >> PAGE_SHIFT);
#else
	err = nvgpu_init_syncpt_mem(g);
#endif
	if (err != 0)
		return err;
	/* Without a description of the units, the compression-bit cache has no room: every request for tags finds none. */
	g->cbc = nvgpu_kzalloc(g, sizeof *g->cbc);
	g->mig.num_gpu_instances = 1;
	g->num_gr_instances = 1;
	g->gr = nvgpu_kzalloc(g, sizeof *g->gr);
	g->gr->intr = nvgpu_gr_intr_init_support(g);
	nvgpu_set_enabled(g, NVGPU_CLK_ARB_ENABLED, orin);
	err = judge_boot_channels(l);
	if (err == 0 && orin)
		err = judge_boot_units(g);
	if (err == 0 && orin)
		err = judge_boot_clocks(g, &platform);
	if (err != 0)
		return err;
	g->sw_ready = true;
	booted = true;
	return 0;
}
