/* Boots the driver's scheduling of channels: the engines of Orin as a table, and the answers of the units that start and stop channels. */
#include <nvgpu/gk20a.h>
#include <nvgpu/channel.h>
#include <nvgpu/device.h>
#include <nvgpu/enabled.h>
#include <nvgpu/fifo.h>
#include <nvgpu/kmem.h>
#include <nvgpu/runlist.h>
#include <nvgpu/tsg.h>
#ifdef JUDGE_R35
#include <nvgpu/nvs.h>
#include <nvgpu/worker.h>
#else
#include <nvgpu/tsg_subctx.h>
#endif
#include <nvgpu/vm.h>
#include "os/linux/os_linux.h"
#include "os/linux/channel.h"
#include "judge.h"
#include <sched.h>

/* The engines that the driver reads from the unit TOP: the numbers are those that GET_ENGINE_INFO of a board tells. */
static const struct { u32 type, instance, engine, runlist; } engines[] = {
	{ NVGPU_DEVTYPE_GRAPHICS, 0, 0, 0 },
	{ NVGPU_DEVTYPE_LCE, 0, 1, 0 },
	{ NVGPU_DEVTYPE_LCE, 1, 2, 1 },
};
#define RUNLIST_BASE(runlist) (0x900000u + (runlist) * 0x1000u)
#define CHANNELS_BASE(runlist) (0xa00000u + (runlist) * 0x10000u)
#define SMS 16u
#define VEIDS 64u

static struct nvgpu_device *next_device(struct gk20a *g, u32 *token)
{
	if (*token == sizeof engines / sizeof *engines)
		return NULL;
	struct nvgpu_device *device = nvgpu_kzalloc(g, sizeof *device);

	device->type = engines[*token].type;
	device->inst_id = engines[*token].instance;
	device->engine_id = engines[*token].engine;
	device->runlist_id = engines[*token].runlist;
	device->rleng_id = *token == 1 ? 1 : 0;
	device->rl_pri_base = RUNLIST_BASE(device->runlist_id);
	device->engine = true;
	++*token;
	return device;
}

static u32 runlist_of(u32 base) { return (base - RUNLIST_BASE(0)) / 0x1000; }
static u32 channels_base(struct gk20a *g, u32 base) { (void)g; return CHANNELS_BASE(runlist_of(base)); }
static u32 number(struct gk20a *g, u32 base) { (void)g; return runlist_of(base); }

static u32 engine_at(struct gk20a *g, u32 slot, u32 base)
{
	(void)g;
	return runlist_of(base) == 0 ? slot : 2;
}

/* Each runlist has the unit that fetches its work. */
static void fetcher(struct gk20a *g, u32 base, struct nvgpu_pbdma_info *info)
{
	(void)g;
	for (u32 i = 0; i < PBDMA_PER_RUNLIST_SIZE; i++) {
		info->pbdma_pri_base[i] = i == 0 ? 0xb00000 + runlist_of(base) * 0x1000 : NVGPU_INVALID_PBDMA_PRI_BASE;
		info->pbdma_id[i] = i == 0 ? runlist_of(base) : NVGPU_INVALID_PBDMA_ID;
	}
}

/* A runlist is taken over at once, every channel is idle, and a preemption is done when it is asked for. */
#ifdef JUDGE_R35
static void submitted(struct gk20a *g, struct nvgpu_runlist *runlist) { (void)g; (void)runlist; }
#else
static void submitted(struct gk20a *g, u32 runlist, u64 address, enum nvgpu_aperture aperture, u32 count)
{
	(void)g;
	(void)runlist;
	(void)address;
	(void)aperture;
	(void)count;
}
#endif

static int not_pending(struct gk20a *g, struct nvgpu_runlist *runlist) { (void)g; (void)runlist; return 0; }
#ifdef JUDGE_R35
static void idle(struct gk20a *g, struct nvgpu_channel *channel, struct nvgpu_channel_hw_state *state)
{
	(void)g;
	(void)channel;
	memset(state, 0, sizeof *state);
}
#else
static void idle(struct gk20a *g, u32 runlist, u32 channel, struct nvgpu_channel_hw_state *state)
{
	(void)g;
	(void)runlist;
	(void)channel;
	memset(state, 0, sizeof *state);
}
#endif
static int preempted(struct gk20a *g, struct nvgpu_tsg *tsg) { (void)g; (void)tsg; return 0; }
static int channel_preempted(struct gk20a *g, struct nvgpu_channel *channel) { (void)g; (void)channel; return 0; }
/* Set when a board's kernel would stop. From then on the call fails with EFAULT and writes nothing. */
_Thread_local bool judge_stopped;
#ifndef JUDGE_R35
static int (*add_to_subcontext)(struct nvgpu_channel *channel, bool replayable);

/* The driver takes the page directory of the subcontext's address space. A channel that was bound to its group first has none there. */
static int added(struct nvgpu_channel *channel, bool replayable)
{
	if (channel->subctx != NULL && nvgpu_tsg_subctx_get_vm(channel->subctx) == NULL) {
		judge_stopped = true;
		return -EFAULT;
	}
	return add_to_subcontext(channel, replayable);
}
#endif
static void not_rung(struct nvgpu_channel *channel) { (void)channel; }
static u32 sms(struct gk20a *g) { (void)g; return SMS; }
static u32 veids(void) { return VEIDS; }

/* A channel that is closed waits until nobody uses it. While one thread makes calls, nobody does. The driver loses a reference when BIND_CHANNEL finds that the
 * channel has another address space than the subcontext (os/linux/ioctl_tsg.c), and on a board the close of that channel never ends. Here it ends: while several
 * threads make calls, after so many turns of the others. */
#define TURNS 100000

void nvgpu_channel_wait_until_counter_is_N(struct nvgpu_channel *channel, nvgpu_atomic_t *counter, int wanted, struct nvgpu_cond *condition, const char *caller,
	const char *name)
{
	(void)channel;
	(void)condition;
	(void)caller;
	(void)name;
	for (unsigned turn = 0; judge_is_parallel && turn < TURNS && nvgpu_atomic_read(counter) != wanted; turn++)
		sched_yield();
}

/* The worker that cleans up after finished jobs does it at once. */
void nvgpu_channel_worker_enqueue(struct nvgpu_channel *channel) { nvgpu_channel_clean_up_jobs(channel); }

/* There are no interrupts to wait for. */
int nvgpu_cic_rm_wait_for_deferred_interrupts(struct gk20a *g) { (void)g; return 0; }

#ifdef JUDGE_R35
/* The thread that looks whose turn it is does not start: there is no work. */
int nvgpu_worker_init(struct gk20a *g, struct nvgpu_worker *worker, const struct nvgpu_worker_ops *ops) { (void)g; (void)worker; (void)ops; return 0; }
#else
/* The firmware that schedules domains is not there. */
bool nvgpu_nvs_gsp_usr_domain_present(struct gk20a *g) { (void)g; return false; }
#endif

/* Makes the ids of channels those of a driver that has just booted: the id that was closed last would be used next. All channels are closed. */
void judge_rewind_channels(struct gk20a *g)
{
	struct nvgpu_fifo *f = &g->fifo;

	judge_stopped = false;
#ifndef JUDGE_R35
	g->ctrl_device_instance_id = 0;
#endif
	nvgpu_init_list_node(&f->free_chs);
	for (u32 id = 0; id < f->num_channels; id++)
		nvgpu_list_add(&f->channel[id].free_chs, &f->free_chs);
}

int judge_boot_channels(struct nvgpu_os_linux *l)
{
	struct gk20a *g = &l->g;
	struct nvgpu_gpu_instance *instance = &g->mig.gpu_instance[0];
	int err;

	/* The scheduler in the GPU's firmware. */
#ifndef JUDGE_R35
	nvgpu_set_enabled(g, NVGPU_SUPPORT_GSP_SCHED, false);
	nvgpu_set_enabled(g, NVGPU_SUPPORT_KMD_SCHEDULING_WORKER_THREAD, false);
#endif
	g->ops.top.parse_next_device = next_device;
	g->ops.runlist.get_chram_bar0_offset = channels_base;
	g->ops.runlist.get_runlist_id = number;
	g->ops.runlist.get_engine_id_from_rleng_id = engine_at;
	g->ops.runlist.get_pbdma_info = fetcher;
	g->ops.runlist.hw_submit = submitted;
#ifdef JUDGE_R35
	g->ops.runlist.wait_pending = not_pending;
#else
	g->ops.runlist.check_pending = not_pending;
#endif
	g->ops.channel.read_state = idle;
	g->ops.fifo.preempt_tsg = preempted;
	g->ops.fifo.preempt_channel = channel_preempted;
	g->ops.usermode.ring_doorbell = not_rung;
	g->ops.gr.init.get_no_of_sm = sms;
	g->ops.gr.init.get_max_subctx_count = veids;
#ifndef JUDGE_R35
	add_to_subcontext = g->ops.tsg.add_subctx_channel_hw;
	g->ops.tsg.add_subctx_channel_hw = added;
#endif
	err = nvgpu_device_init(g);
	if (err != 0)
		return err;
	instance->gr_syspipe.gr_dev = nvgpu_device_get(g, NVGPU_DEVTYPE_GRAPHICS, 0);
	instance->gr_syspipe.max_veid_count_per_tsg = VEIDS;
	instance->num_lce = nvgpu_device_get_copies(g, instance->lce_devs, NVGPU_MIG_MAX_ENGINES);
	/* The kernel's own window, in which the driver maps the USERD of its channels. */
	g->mm.bar1.vm = nvgpu_vm_init(g, g->ops.mm.gmmu.get_default_big_page_size(), SZ_64K, 0, SZ_16M - SZ_64K, 0, true,
#ifdef JUDGE_R35
		false,
#endif
		false, "bar1");
	if (g->mm.bar1.vm == NULL)
		return -ENOMEM;
	err = g->ops.mm.init_bar2_vm(g);
	if (err != 0)
		return err;
	err = nvgpu_fifo_setup_sw_common(g);
#ifdef JUDGE_R35
	if (err == 0)
		err = nvgpu_nvs_init(g);
#endif
	if (err != 0)
		return err;
	return nvgpu_channel_init_support_linux(l);
}
