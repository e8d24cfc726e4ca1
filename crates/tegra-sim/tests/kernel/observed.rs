//! The values that published logs of an AGX Orin show (docs/hardware/nvgpu-observed.md#observed-values), reproduced
//! exactly. There is one test for each row or group of rows. Two rows cannot be reproduced: times, and the freeze of a
//! board (K1). `msync` of a dmabuf is in `supervisor.rs`.

use crate::one_warp::{EXIT, descriptor};
use crate::support::*;
use tegra_sim::{Chip, SimConfig};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::CTA_THREAD_DIMENSION0;
use tegrarm_kmd::DeviceMem;

fn view(file: &File, len: usize) -> DeviceMem {
    DeviceMem::new(file.mmap(Placement::Anywhere, len, Prot::ReadWrite, 0).unwrap())
}

#[test]
fn rule_e2_characteristics_of_the_observed_board() {
    let board = Board::observed();
    let mut c = nvgpu_gpu_characteristics::new_zeroed();
    let mut get = args::<nvgpu_gpu_get_characteristics>(|a| {
        (a.gpu_characteristics_buf_size, a.gpu_characteristics_buf_addr) = (size_of_val(&c) as u64, &raw mut c as u64);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut get).unwrap();
    assert_eq!(get.gpu_characteristics_buf_size, 328);
    assert_eq!((c.arch, c.impl_, c.rev), (0x170, 0xb, 0xa1));
    assert_eq!((c.num_gpc, c.gpc_mask, c.num_tpc_per_gpc, c.max_gpc_count), (1, 1, 4, 2));
    assert_eq!((c.numa_domain_id, c.L2_cache_size, c.bus_type), (-1, 4_194_304, 32));
    assert_eq!((c.big_page_size, c.compression_page_size, c.available_big_page_sizes), (0, 65536, 0));
    assert_eq!((c.pde_coverage_bit_count, c.gpu_va_bit_count), (47, 40));
    // Bit 21 is set only for a process with CAP_SYS_NICE, which the observed process did not have.
    assert_eq!(c.flags & !(1 << 21), 0x01bf_5fff_7f5d_035d);
    assert_eq!((c.twod_class, c.threed_class, c.compute_class), (0x902d, 0xc797, 0xc7c0));
    assert_eq!((c.gpfifo_class, c.inline_to_memory_class, c.dma_copy_class), (0xc76f, 0xa140, 0xc7b5));
    assert_eq!((c.sm_arch_sm_version, c.sm_arch_spa_version, c.sm_arch_warp_count), (0x807, 0x806, 96));
    assert_eq!((c.gpu_ioctl_nr_last, c.tsg_ioctl_nr_last, c.dbg_gpu_ioctl_nr_last), (44, 21, 33));
    assert_eq!((c.ioctl_channel_nr_last, c.as_ioctl_nr_last), (128, 14));
    assert_eq!((c.max_fbps_count, c.fbp_en_mask, c.max_ltc_per_fbp), (2, 3, 1));
    assert_eq!((c.max_lts_per_ltc, c.num_ltc, c.map_buffer_batch_limit), (4, 2, 256));
    assert_eq!((c.max_gpfifo_entries, c.max_freq), (1 << 28, 1_300_000_000));
    assert_eq!((c.max_veid_count_per_tsg, &c.chipname), (64, b"ga10b\0\0\0"));
}

#[test]
fn rule_e2_zcull_context_size() {
    let mut size = args::<nvgpu_gpu_zcull_get_ctx_size_args>(|_| ());
    Board::observed().ctrl.ioctl(NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, &mut size).unwrap();
    assert_eq!(size.size, 164_352);
}

#[test]
fn rule_e2_nvmap_heaps_and_handles() {
    let board = Board::observed();
    let mut heaps = [0_u8; 8];
    assert_eq!(board.raw(&board.nvmap, NVMAP_IOC_GET_AVAILABLE_HEAPS, &mut heaps), Ok(0));
    assert_eq!(u64::from_le_bytes(heaps), 0x1000_0004);
    // The carveouts VPR and FSI are listed. System memory can be used without being listed, and there is no bit 31.
    let handles = [board.create(4096), board.create(4096), board.create(4096)];
    assert_eq!((handles[1] - handles[0], handles[2] - handles[1]), (1, 1));
    assert!(handles[0] >= 0x7fff_ffff, "{handles:?}");
    assert_eq!(board.alloc(handles[0]), Ok(()));
    assert_eq!(board.alloc_with(handles[1], |a| a.heap_mask = 1 << 31), Err(Errno::ENOMEM));
}

/// The order is that of the logs: 64K, 1M, 16M and 64M after two pages, and then two pages alone.
#[test]
fn rule_e2_dynamic_addresses() {
    let board = Board::observed();
    let space = board.alloc_as(START, OBSERVED_END).unwrap();
    let sizes = [4 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];
    let buffers = sizes.map(|size| board.buffer(size));
    let addresses: Vec<u64> = buffers.iter().map(|b| map(&space, b).unwrap()).collect();
    let observed = [0xff_ffa0_0000, 0xff_ffa0_1000, 0xff_ffa1_0000, 0xff_ffb0_0000, 0xff_fe20_0000, 0xff_f820_0000];
    assert_eq!(addresses, observed);
}

/// The sequence of docs/hardware/nvgpu-overview.md#bring-up, twice in one group. The values are those that a board
/// printed.
#[test]
fn rule_e2_bring_up_gives_the_observed_ids_and_addresses() {
    let board = Board::observed();
    let space = board.alloc_as(START, OBSERVED_END).unwrap();
    let (push, semaphore) = (board.buffer(4096), board.buffer(4096));
    assert_eq!(map(&space, &push), Ok(0xff_ffa0_0000));
    assert_eq!(map(&space, &semaphore), Ok(0xff_ffa0_1000));
    let tsg = board.tsg();
    assert_eq!(board.subcontext(&tsg, &space), Ok(1));
    for (token, syncpoint, class) in [(511, 17, 0xc7c0), (510, 18, 0xc7b5)] {
        let channel = board.bound_channel(&space, &tsg, 1);
        let (ring, userd) = (board.buffer(8192), board.buffer(4096));
        assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), Ok(token));
        alloc_obj_ctx(&channel, class).unwrap();
        let mut sync = args::<nvgpu_get_user_syncpoint_args>(|_| ());
        channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut sync).unwrap();
        assert_eq!(sync.syncpoint_id, syncpoint);
        if token == 511 {
            assert_eq!(sync.gpu_va, 0xff_ffe1_0000);
        }
        assert_eq!(timedout(&channel), 0);
        // The second channel is opened while the first one exists.
        std::mem::forget(channel);
    }
}

#[test]
fn rule_e2_setup_bind_and_alloc_obj_ctx_leave_zeros() {
    let board = Board::observed();
    let rig = board.rig();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    let mut setup = args::<nvgpu_channel_setup_bind_args>(|a| {
        a.num_gpfifo_entries = 1024;
        a.flags = 0xa;
        (a.gpfifo_dmabuf_fd, a.userd_dmabuf_fd) = (ring.raw(), userd.raw());
        (a.gpfifo_gpu_va, a.userd_gpu_va, a.usermode_mmio_gpu_va) = (1, 2, 3);
    });
    rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SETUP_BIND, &mut setup).unwrap();
    assert_eq!((setup.gpfifo_gpu_va, setup.userd_gpu_va, setup.usermode_mmio_gpu_va), (0, 0, 0));
    let mut context = args::<nvgpu_alloc_obj_ctx_args>(|a| a.class_num = 0xc7c0);
    rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &mut context).unwrap();
    assert_eq!(context.obj_id, 0);
    let userd = view(&userd.fd, 4096);
    assert_eq!((userd.read_u32(0x88), userd.read_u32(0x8c)), (0, 0));
}

#[test]
fn rule_e2_syncpoint_unit() {
    let board = Board::observed();
    let mut map = args::<nvgpu_as_get_sync_ro_map_args>(|_| ());
    board.space().ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &mut map).unwrap();
    assert_eq!((map.sync_size, map.num_syncpoints), (0x1_0000, 0x400_0000 / 0x1_0000));
}

#[test]
fn rule_e2_the_as_node_is_einval() {
    let board = Board::observed();
    assert_eq!(File::open(&board.kmd, Node::As, "/dev/nvgpu/igpu0/as").err(), Some(Errno::EINVAL));
}

#[test]
fn rule_e2_channels_and_groups_run_out() {
    let board = Board::observed();
    let channels: Vec<File> = (0..512).map(|_| board.channel()).collect();
    let mut open = args::<nvgpu_gpu_open_channel_args>(|a| a.channel_fd = -1);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut open), Err(Errno::ENOMEM));
    drop(channels);
    let groups: Vec<File> = (0..512).map(|_| board.tsg()).collect();
    let mut open = args::<nvgpu_gpu_open_tsg_args>(|_| ());
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open), Err(Errno::ENOMEM));
    drop(groups);
    board.channel();
}

#[test]
fn rule_e2_devfreq_idles_at_its_lowest_step() {
    let board = Board::observed();
    let read = |file: &str| board.kmd.read_text(&format!("/sys/class/devfreq/17000000.gpu/{file}")).unwrap();
    assert_eq!((read("cur_freq").as_str(), read("max_freq").as_str()), ("306000000\n", "1300000000\n"));
}

/// A page of the GPU that contains a launch: its descriptor, words for the ring, a semaphore and a program.
struct Launch {
    board: Board,
    rig: Rig,
    va: u64,
    memory: DeviceMem,
    notifier: Buffer,
}

/// The offsets in the page.
const WORDS: u64 = 0x400;
const SEMAPHORE: u64 = 0x600;
const PROGRAM: u64 = 0x800;

impl Launch {
    fn new(at: u64) -> Launch {
        let board = Board::with(SimConfig { step: true, ..SimConfig::new(Chip::AgxOrinPowerGated) });
        let (space, tsg) = (board.alloc_as(START, OBSERVED_END).unwrap(), board.tsg());
        let veid = board.subcontext(&tsg, &space).unwrap();
        let channel = board.bound_channel(&space, &tsg, veid);
        let (rig, page, notifier) = (Rig { space, tsg, channel, veid }, board.buffer(4096), board.buffer(4096));
        let va = reserve(&rig.space, at, 4096).and_then(|at| map_fixed(&rig.space, &page, at)).unwrap();
        let memory = view(&page.fd, 4096);
        Launch { board, rig, va, memory, notifier }
    }

    /// Runs `program` in a CTA of `threads`, after `words`. Returns how many ring entries were consumed, and the code
    /// of the notifier.
    fn run(&self, program: &[u64], threads: u64, words: &[[u32; 2]]) -> (u32, u32) {
        let mut set = args::<nvgpu_set_error_notifier>(|a| (a.size, a.mem) = (16, self.notifier.raw() as u32));
        let (ring, userd, token) = self.board.setup(&self.rig.channel);
        alloc_obj_ctx(&self.rig.channel, 0xc7c0).unwrap();
        self.rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut set).unwrap();
        let mut qmd = descriptor(self.va + PROGRAM, self.va + SEMAPHORE);
        CTA_THREAD_DIMENSION0.put_words(&mut qmd, threads);
        qmd.iter().enumerate().for_each(|(i, word)| self.memory.write_u32(4 * i, *word));
        program.iter().enumerate().for_each(|(i, half)| self.memory.write_u64(PROGRAM as usize + 8 * i, *half));
        let launch = [(NVC6C0_SEND_PCAS_A, (self.va >> 8) as u32), (NVC6C0_SEND_SIGNALING_PCAS2_B, 9)];
        let words = [words, &launch.map(|(address, data)| method(address, data))].concat().concat();
        words.iter().enumerate().for_each(|(i, word)| self.memory.write_u32(WORDS as usize + 4 * i, *word));
        let (ring, userd) = (view(&ring.fd, 8192), view(&userd.fd, 4096));
        ring.write_u64(0, (self.va + WORDS) | (words.len() as u64) << 42 | 1 << 41);
        userd.write_u32(0x8c, 1);
        view(&self.board.ctrl, 65536).write_u32(0x90, token);
        while self.board.sim.gpu().step() {}
        (userd.read_u32(0x88), view(&self.notifier.fd, 4096).read_u32(8))
    }

    fn log(&self) -> String {
        self.board.sim.gpu().faults().concat()
    }
}

/// An incrementing header of one word on the compute subchannel, and the word.
fn method(address: u32, data: u32) -> [u32; 2] {
    [1 << 29 | 1 << 16 | 1 << 13 | address >> 2, data]
}

/// A launch descriptor while both memory windows are 0. The process sees that the ring is consumed, that the semaphore
/// is never released, and code 13. The kernel's log says which exception it was.
#[test]
fn rule_e2_a_launch_with_overlapping_windows() {
    let launch = Launch::new(0xff_55a2_a000);
    assert_eq!(launch.run(&EXIT, 32, &[]), (1, 13));
    assert_eq!(launch.memory.read_u32(SEMAPHORE as usize), 0);
    assert!(launch.log().contains("sked exception: esr 0x01000000"), "{}", launch.log());
}

/// A buffer of 512 MiB was in the shared memory window, and a kernel stored to it. The exception is an invalid address
/// space, and more than one warp of the SM had it before the SM was stopped.
#[test]
fn rule_e2_a_store_into_the_shared_window() {
    const BUFFER: u64 = 0xfe_0020_0000;
    // The program is MOV R2, MOV R3, MOV R0, STG [R2.64], R0.
    let moves = [(2, BUFFER & 0xffff_ffff), (3, BUFFER >> 32), (0, 1)];
    let moves = moves.map(|(r, value)| [value << 32 | r << 16 | 0x7802, 0x000f_e400_0000_0f00]);
    let program = [&moves.concat()[..], &[0x0000_0000_0200_7986, 0x000f_e200_0c10_1904], &EXIT].concat();
    let launch = Launch::new(0xff_55a2_a000);
    let windows = [
        (NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, 0xfe),
        (NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_B, 0),
        (NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, 0xfd),
    ];
    assert_eq!(launch.run(&program, 256, &windows.map(|(address, data)| method(address, data))), (1, 13));
    let mut record = [0_u8; 24];
    let mut read = args::<nvgpu_tsg_read_single_sm_error_state_args>(|a| {
        (a.record_mem, a.record_size) = (record.as_mut_ptr() as u64, 24);
    });
    launch.rig.tsg.ioctl(NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read).unwrap();
    let word = |at: usize| u64::from_le_bytes(*record[at..].first_chunk().unwrap());
    assert_eq!((word(0), word(8)), (0x10 << 32 | 4, 0xff_55a2_a830));
    assert!(launch.log().contains("sm hww global 0x00000004 warp 0x00000010"), "{}", launch.log());
}
