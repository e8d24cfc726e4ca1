/* The GPU's own description: what the registers of an AGX Orin with all its units say, and the driver's tables that it makes of them. */
#include <nvgpu/gk20a.h>
#include <nvgpu/cbc.h>
#include <nvgpu/clk_arb.h>
#include <nvgpu/comptags.h>
#include <nvgpu/enabled.h>
#include <nvgpu/engine_status.h>
#include <nvgpu/fbp.h>
#include <nvgpu/ce.h>
#include <nvgpu/channel.h>
#include <nvgpu/cic_mon.h>
#include <nvgpu/gr/config.h>
#include <nvgpu/gr/gr_intr.h>
#include <nvgpu/gr/obj_ctx.h>
#include <nvgpu/gr/zbc.h>
#include <nvgpu/gr/zcull.h>
#include <nvgpu/kmem.h>
#include <nvgpu/ltc.h>
#include <nvgpu/mmu_fault.h>
#include <nvgpu/pbdma_status.h>
#include <nvgpu/preempt.h>
#include <nvgpu/runlist.h>
#include <nvgpu/tsg.h>
#include <nvgpu/hw/gm20b/hw_top_gm20b.h>
#include <nvgpu/hw/ga10b/hw_ce_ga10b.h>
#include <nvgpu/hw/ga10b/hw_fuse_ga10b.h>
#include <nvgpu/hw/ga10b/hw_gr_ga10b.h>
#include <nvgpu/hw/ga10b/hw_ltc_ga10b.h>
#include <nvgpu/hw/ga10b/hw_pbdma_ga10b.h>
#include <nvgpu/hw/ga10b/hw_pri_ringmaster_ga10b.h>
#include <nvgpu/hw/ga10b/hw_proj_ga10b.h>
#include <nvgpu/hw/ga10b/hw_runlist_ga10b.h>
#include <nvgpu/hw/ga10b/hw_smcarb_ga10b.h>
#include <nvgpu/hw/ga10b/hw_top_ga10b.h>
#include "common/gr/gr_priv.h"
#include "common/gr/gr_intr_priv.h"
#include "common/gr/obj_ctx_priv.h"
#include "hal/fb/fb_mmu_fault_ga10b.h"
#include "hal/fifo/ctxsw_timeout_ga10b.h"
#include "hal/fifo/pbdma_ga10b.h"
#include "os/linux/clk.h"
#include "os/linux/ioctl_channel.h"
#include "os/linux/os_linux.h"
#include "os/linux/platform_gk20a.h"
#include "judge.h"

struct gk20a *judge_gpu(void);

#define GPCS 2u
#define TPCS 4u
#define IN_GPC(address, gpc) ((address) + (gpc) * proj_gpc_stride_v())
#define IN_TPC(address, gpc, tpc) (IN_GPC(address, gpc) + (tpc) * proj_tpc_in_gpc_stride_v())
/* The image of zcull that the firmware of a board asks for (published logs). */
#define ZCULL_SIZE 164352u
/* The lines of tags that the driver takes at most. The memory of an AGX Orin is nearly as many times 64 KiB. */
#define COMPTAG_LINES (ltc_ltcs_ltss_cbc_ctrl3_clear_upper_bound_init_v() + 1u)

/* Registers of the whole chip. Fuses that say what is switched off are 0: nothing is. */
static const struct { u32 address, value; } chip[] = {
	/* Published logs of a board: the largest numbers of FBPs, LTCs and slices; two GPCs of four TPCs are the chip's (hw_proj_ga10b.h). */
	{ top_num_gpcs_r(), GPCS },
	{ top_tpc_per_gpc_r(), TPCS },
	{ top_num_fbps_r(), 2 },
	{ top_num_ltcs_r(), 2 },
	{ top_ltc_per_fbp_r(), 1 },
	{ top_slices_per_ltc_r(), 4 },
	{ top_num_ces_r(), 2 },
	{ pri_ringmaster_enum_gpc_r(), GPCS },
	{ pri_ringmaster_enum_fbp_r(), 2 },
	{ pri_ringmaster_enum_ltc_r(), 2 },
	/* The chip's litter: two PES in a GPC; two ROPs, which no ioctl tells. */
	{ top_num_pes_per_gpc_r(), 2 },
	{ top_num_rop_per_gpc_r(), 2 },
	/* Published logs: 4 MiB of L2 are two LTCs of four slices of 512 KiB. A line of the compression cache has at least 512 bytes; what a board says is not known. */
	{ ltc_ltcs_ltss_cbc_param2_r(), 4u << 28 },
	{ ltc_ltc0_lts0_tstg_info_1_r(), 512u | 4u << 16 },
	/* Published logs: the SM's versions, its warps, and that it traces rays. */
	{ gr_gpc0_tpc0_sm_arch_r(), 96u | 0x806u << 8 | 0x807u << 20 },
	{ fuse_opt_sm_ttu_en_r(), 1 },
};

static void write_gpc(u32 *registers, u32 gpc)
{
	/* All TPCs, and a bank of zcull for each. */
	registers[IN_GPC(gr_gpc0_fs_gpc_r(), gpc) / 4] = TPCS | TPCS << 16;
	/* A GPC of four TPCs and two PES, as the driver's unit test of gv11b's configuration found it in silicon. */
	registers[IN_GPC(gr_gpc0_gpm_pd_pes_tpc_id_mask_r(0), gpc) / 4] = 0x5;
	registers[IN_GPC(gr_gpc0_gpm_pd_pes_tpc_id_mask_r(1), gpc) / 4] = 0xa;
	/* Logical and physical numbers are the same while no GPC is off. */
	registers[smcarb_smc_partition_gpc_map_r(gpc) / 4] = gpc << 16 | 1u << 31;
}

/* What the registers say before the driver looks at them. */
void judge_write_registers(u32 *registers)
{
	for (size_t i = 0; i < sizeof chip / sizeof *chip; i++)
		registers[chip[i].address / 4] = chip[i].value;
	for (u32 gpc = 0; gpc < GPCS; gpc++)
		write_gpc(registers, gpc);
}

/* The posix build leaves the fuse of the memory channels out: all four groups are there. */
static u32 memory_channels(struct gk20a *g) { (void)g; return 0xf; }

/* The firmware stops and starts the switching of contexts at once. */
static int switching(struct gk20a *g, u32 method, u32 instance, u32 *answer) { (void)g; (void)method; (void)instance; (void)answer; return 0; }

/* The firmware makes the image of a context. From the first one on, the driver knows where registers lie in it. */
#ifdef JUDGE_R35
int nvgpu_gr_obj_ctx_alloc(struct gk20a *g, struct nvgpu_gr_obj_ctx_golden_image *image, struct nvgpu_gr_global_ctx_buffer_desc *buffers,
	struct nvgpu_gr_ctx_desc *desc, struct nvgpu_gr_config *config, struct nvgpu_gr_ctx *ctx, struct nvgpu_gr_subctx *subctx, struct vm_gk20a *vm,
	struct nvgpu_mem *block, u32 class, u32 flags, bool cde, bool vpr)
{
	(void)vm;
#else
int nvgpu_gr_obj_ctx_alloc(struct gk20a *g, struct nvgpu_gr_obj_ctx_golden_image *image, struct nvgpu_gr_global_ctx_buffer_desc *buffers,
	struct nvgpu_gr_ctx_desc *desc, struct nvgpu_gr_config *config, struct nvgpu_gr_ctx *ctx, struct nvgpu_channel *channel, struct nvgpu_tsg_subctx *subctx,
	struct nvgpu_gr_ctx_mappings *mappings, struct nvgpu_mem *block, u32 class, u32 flags, bool cde, bool vpr)
{
	(void)channel;
	(void)mappings;
#endif
	(void)g; (void)buffers; (void)desc; (void)config; (void)ctx; (void)subctx; (void)block; (void)class; (void)flags; (void)cde; (void)vpr;
	image->ready = true;
	return 0;
}

/* The clock of the GPU, in the steps that a board offers. */
struct clk { unsigned long rate; };
static unsigned long steps[] = { 306000000, 408000000, 510000000, 612000000, 714000000, 816000000, 918000000, 1020000000, 1122000000, 1224000000, 1300000000 };
static struct clk gpc_clock = { 306000000 };

/* devfreq sets the lowest step while nothing runs and no program has asked for a rate. */
unsigned long clk_get_rate(struct clk *clk) { return nvgpu_clk_arb_has_active_req(judge_gpu()) ? clk->rate : steps[0]; }

int clk_set_rate(struct clk *clk, unsigned long rate)
{
	clk->rate = rate;
	return 0;
}

static int frequencies(struct device *device, unsigned long **freqs, int *count)
{
	(void)device;
	*freqs = steps;
	*count = sizeof steps / sizeof *steps;
	return 0;
}

/* The arbiter's worker does its work at once. */
int nvgpu_clk_arb_worker_init(struct gk20a *g) { (void)g; return 0; }
void nvgpu_clk_arb_worker_enqueue(struct gk20a *g, struct nvgpu_clk_arb_work_item *item) { g->ops.clk_arb.clk_arb_run_arbiter_cb(item->arb); }

int judge_boot_clocks(struct gk20a *g, struct gk20a_platform *platform)
{
	nvgpu_mutex_init(&g->clk_arb_enable_lock);
	platform->platform_chip_id = TEGRA_234;
	platform->get_clk_freqs = frequencies;
	for (u32 i = 0; i < GK20A_CLKS_MAX; i++)
		platform->clk[i] = &gpc_clock;
	nvgpu_linux_init_clk_support(g);
	return nvgpu_clk_arb_init_arbiter(g);
}

/* A write to the registers of all TPCs reaches each of them. */
static void enable_exceptions(struct gk20a *g)
{
	g->ops.gr.intr.enable_gpc_exceptions(g, g->gr->config);
	for (u32 tpc = 0; tpc < GPCS * TPCS; tpc++)
		nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_tpccs_tpc_exception_en_r(), tpc / TPCS, tpc % TPCS), nvgpu_readl(g, gr_gpcs_tpcs_tpccs_tpc_exception_en_r()));
}

/* Where the image of a context would point to that of zcull. There is no image. */
void nvgpu_gr_subctx_zcull_setup(void) { }
/* What the firmware would write to registers when it loads a context. */
void nvgpu_gr_ctx_patch_write(void) { }

/* A unit that is reset works again at once. */
void nvgpu_engine_reset(struct gk20a *g, u32 engine) { (void)g; (void)engine; }

/* While a failure is handled, every register that changes is noted, and gets its value back afterwards. */
extern bool judge_notes_registers;
void judge_raise(u32 address, u32 bits);
void judge_restore_registers(void);

/* How many entries of faults the GPU has written, and whose work its units have. */
static u32 put;
static u32 index_put(struct gk20a *g, u32 index) { (void)g; (void)index; return put; }
static struct nvgpu_channel *failed;
static u64 instance(struct gk20a *g, u32 copy) { (void)copy; return nvgpu_inst_block_addr(g, &failed->inst_block); }

/* The PBDMA that interrupts has the group; after the preemption of the recovery it has nothing. */
static bool interrupts;
static void loaded(struct gk20a *g, u32 pbdma, struct nvgpu_pbdma_status_info *status)
{
	(void)g;
	(void)pbdma;
	memset(status, 0, sizeof *status);
	status->id = failed->tsgid;
	status->id_type = PBDMA_STATUS_ID_TYPE_TSGID;
	status->chsw_status = interrupts ? NVGPU_PBDMA_CHSW_STATUS_VALID : NVGPU_PBDMA_CHSW_STATUS_INVALID;
	interrupts = false;
}

/* An entry of the buffer of faults (the format stands above gv11b_fb_copy_from_hw_fault_buf). */
static void fail_mmu(struct gk20a *g, const struct judge_failure *f)
{
	struct nvgpu_mem *buffer = &g->mm.hw_fault_buf[NVGPU_MMU_FAULT_NONREPLAY_INDX];
	u64 block = nvgpu_inst_block_addr(g, &failed->inst_block);
	u32 hub = f->words[1] >> 7 & 1, client = f->words[1] & 0x7f;
	u32 entry[] = { (u32)block & ~0xfffu, (u32)(block >> 32), (u32)f->address & ~0xfffu, (u32)(f->address >> 32), 0, 0, f->words[0],
		1u << 31 | hub << 20 | f->words[3] << 16 | client << 8 | f->words[2] };

	for (u32 i = 0; i < sizeof entry / sizeof *entry; i++)
		nvgpu_mem_wr32(g, buffer, i, entry[i]);
	put = 1;
	ga10b_fb_handle_mmu_fault(g, BIT32(NVGPU_CIC_INTR_UNIT_MMU_NON_REPLAYABLE_FAULT));
	put = 0;
}

/* The interrupt of the graphics engine, whose context is that of the channel. */
static void fail_gr(struct gk20a *g, u32 interrupt, u32 exception)
{
	nvgpu_writel(g, gr_fecs_current_ctx_r(), nvgpu_inst_block_ptr(g, &failed->inst_block) | BIT32(31));
	nvgpu_writel(g, gr_exception_r(), exception);
	/* An error of the firmware is a method that it does not have. */
	if ((interrupt & gr_intr_fecs_error_pending_f()) != 0)
		nvgpu_writel(g, gr_fecs_host_int_status_r(), gr_fecs_host_int_status_umimp_firmware_method_f(1));
	judge_raise(gr_intr_r(), interrupt);
	g->ops.gr.intr.stall_isr(g);
}

static void fail_sm(struct gk20a *g, const struct judge_failure *f)
{
	struct nvgpu_sm_info *info = nvgpu_gr_config_get_sm_info(g->gr->config, f->words[0]);
	u32 gpc = nvgpu_gr_config_get_sm_info_gpc_index(info), tpc = nvgpu_gr_config_get_sm_info_tpc_index(info);
	u32 sm = nvgpu_gr_config_get_sm_info_sm_index(info), stride = sm * proj_sm_stride_v();

	nvgpu_writel(g, gr_exception1_r(), BIT32(gpc));
	nvgpu_writel(g, IN_GPC(gr_gpc0_gpccs_gpc_exception_r(), gpc), BIT32(16 + tpc));
	nvgpu_writel(g, IN_GPC(gr_gpc0_gpm_pd_sm_id_r(tpc), gpc), nvgpu_gr_config_get_sm_info_global_tpc_index(info));
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_tpccs_tpc_exception_r(), gpc, tpc), BIT32(1));
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_sm_tpc_esr_sm_sel_r(), gpc, tpc), BIT32(sm));
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_sm0_hww_global_esr_r(), gpc, tpc) + stride, f->words[1]);
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_sm0_hww_warp_esr_r(), gpc, tpc) + stride, f->words[2]);
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_sm0_hww_warp_esr_pc_r(), gpc, tpc) + stride, (u32)f->address);
	nvgpu_writel(g, IN_TPC(gr_gpc0_tpc0_sm0_hww_warp_esr_pc_hi_r(), gpc, tpc) + stride, (u32)(f->address >> 32));
	fail_gr(g, gr_intr_exception_pending_f(), gr_exception_gpc_m());
}

/* The context of the channel's group does not leave the first engine of its runlist. */
static void fail_ctxsw(struct gk20a *g, struct nvgpu_runlist *runlist, u32 times)
{
	for (u32 i = 0; i < times && !failed->unserviceable; i++) {
		nvgpu_runlist_writel(g, runlist, runlist_engine_ctxsw_timeout_info_r(0),
			failed->tsgid | runlist_engine_ctxsw_timeout_info_ctxsw_state_save_v() << 14);
		nvgpu_runlist_writel(g, runlist, runlist_intr_0_r(), runlist_intr_0_ctxsw_timeout_eng_pending_f(0));
		ga10b_fifo_ctxsw_timeout_isr(g, runlist);
	}
}

/* The context of the group stays on each engine. */
static void stays(struct gk20a *g, u32 engine, struct nvgpu_engine_status_info *status)
{
	(void)g;
	(void)engine;
	memset(status, 0, sizeof *status);
	status->ctx_id = failed->tsgid;
	status->ctxsw_status = NVGPU_CTX_STATUS_VALID;
	status->is_busy = true;
}

static void fail_preempt(struct gk20a *g)
{
	void (*read)(struct gk20a *g, u32 engine, struct nvgpu_engine_status_info *status) = g->ops.engine_status.read_engine_status_info;
	u32 period = g->ctxsw_timeout_period_ms;

	g->ops.engine_status.read_engine_status_info = stays;
	/* The driver looks for so long. */
	g->ctxsw_timeout_period_ms = 1;
#ifdef JUDGE_R35
	int err = nvgpu_fifo_preempt_tsg(g, nvgpu_tsg_from_ch(failed));
#else
	int err = nvgpu_fifo_preempt_tsg(g, failed->runlist->id, failed->tsgid);
#endif
	if (err != -EBUSY)
		abort();
	g->ctxsw_timeout_period_ms = period;
	g->ops.engine_status.read_engine_status_info = read;
}

static void fail(struct gk20a *g, const struct judge_failure *f)
{
	struct nvgpu_runlist *runlist = failed->runlist;
	u32 pbdma = runlist->id;

	switch (f->unit) {
	case JUDGE_MMU:
		fail_mmu(g, f);
		break;
	case JUDGE_SM:
		fail_sm(g, f);
		break;
	case JUDGE_GR:
		fail_gr(g, f->words[0], f->words[1]);
		break;
	case JUDGE_PBDMA:
		judge_raise(pbdma_intr_0_r(pbdma), f->words[0]);
		judge_raise(pbdma_intr_1_r(pbdma), f->words[1]);
		interrupts = true;
		ga10b_pbdma_handle_intr(g, pbdma, true);
		interrupts = false;
		break;
	case JUDGE_CTXSW:
		fail_ctxsw(g, runlist, f->words[0]);
		break;
	case JUDGE_PREEMPT:
		fail_preempt(g);
		break;
	case JUDGE_CE:
		judge_raise(ce_intr_status_r(0), ce_intr_status_launcherr_pending_f());
		nvgpu_writel(g, ce_lce_launcherr_r(0), f->words[0]);
		nvgpu_ce_stall_isr(g, 0, 0);
		break;
	}
}

extern const struct file_operations gk20a_channel_ops;

/* Only a channel that can run has work that fails. */
int judge_fail(int fd, const struct judge_failure *failure)
{
	struct gk20a *g = judge_gpu();
	struct file *file = judge_file(fd);
	struct nvgpu_channel *channel = file == NULL || file->f_op != &gk20a_channel_ops ? NULL : ((struct nvgpu_channel **)file->private_data)[1];

	if (channel == NULL || channel->unserviceable || channel->runlist == NULL || nvgpu_tsg_from_ch(channel) == NULL)
		return -ENODEV;
	if (!nvgpu_test_bit(channel->chid, channel->runlist->domain->active_channels))
		return -ENODEV;
	failed = channel;
	judge_notes_registers = true;
	judge_listen(true);
	fail(g, failure);
	judge_listen(false);
	judge_restore_registers();
	return 0;
}

/* What the handlers of failures need. */
static int boot_failures(struct gk20a *g)
{
	/* How often a switch of contexts that does not end interrupts, in milliseconds (os/linux/driver_common.c). */
	g->ctxsw_timeout_period_ms = 100;
	/* Recovery waits until the graphics engine was initialized. */
	g->gr->initialized = true;
	/* The handler of the firmware's errors counts those of its memory. There are none. */
	g->ecc.gr.fecs_ecc_corrected_err_count = nvgpu_kzalloc(g, sizeof(struct nvgpu_ecc_stat));
	g->ecc.gr.fecs_ecc_uncorrected_err_count = nvgpu_kzalloc(g, sizeof(struct nvgpu_ecc_stat));
	g->ops.fb.read_mmu_fault_buffer_put = index_put;
	g->ops.pbdma_status.read_pbdma_status_info = loaded;
	g->ops.ce.get_inst_ptr_from_lce = instance;
	int err = g->ops.mm.mmu_fault.setup_sw(g);

	if (err == 0)
		g->ops.mm.mmu_fault.setup_hw(g);
	return err;
}

/* The tables that the driver makes when it powers the GPU on. The devices are known already. */
int judge_boot_units(struct gk20a *g)
{
	struct nvgpu_gr *gr = g->gr;
	int err;

	g->ops.fuse.fuse_status_opt_emc = memory_channels;
	g->ops.gr.falcon.ctrl_ctxsw = switching;
	g->ltc = nvgpu_kzalloc(g, sizeof *g->ltc);
	g->ops.ltc.init_fs_state(g);
	err = gk20a_comptag_allocator_init(g, &g->cbc->comp_tags, COMPTAG_LINES);
	if (err == 0)
		err = nvgpu_fbp_init_support(g);
	if (err == 0)
		err = g->ops.grmgr.init_gr_manager(g);
	if (err != 0)
		return err;
	gr->g = g;
	nvgpu_mutex_init(&gr->ctxsw_disable_mutex);
	gr->config = nvgpu_gr_config_init(g);
	if (gr->config == NULL)
		return -ENOMEM;
	err = g->ops.gr.init.sm_id_config_early(g, gr->config);
	if (err == 0)
		err = nvgpu_gr_obj_ctx_init(g, &gr->golden_image, SZ_4K);
	if (err == 0)
		err = nvgpu_gr_config_init_map_tiles(g, gr->config);
	if (err == 0)
		err = nvgpu_gr_zcull_init(g, &gr->zcull, ZCULL_SIZE, gr->config);
	if (err == 0)
		err = nvgpu_gr_zcull_init_hw(g, gr->zcull, gr->config);
	if (err == 0)
		err = nvgpu_gr_zbc_init(g, &gr->zbc);
	enable_exceptions(g);
	return err == 0 ? boot_failures(g) : err;
}

/* The tables for clears are those of a booted GPU again, and no context was made. */
void judge_rewind_units(struct gk20a *g)
{
	if (g->gr->zbc == NULL)
		return;
	g->gr->golden_image->ready = false;
	nvgpu_gr_zbc_deinit(g, g->gr->zbc);
	if (nvgpu_gr_zbc_init(g, &g->gr->zbc) != 0)
		abort();
}
