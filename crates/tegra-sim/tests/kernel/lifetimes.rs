//! What all descriptors have in common, and which objects keep others alive
//! (docs/hardware/nvgpu-overview.md#dispatcher, docs/hardware/nvgpu-overview.md#lifetimes).

use crate::support::*;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use std::cell::RefCell;
use std::os::fd::AsFd;

#[test]
fn rule_2_1_descriptors_are_close_on_exec_and_for_both_directions() {
    for board in [Board::new(), Board::r35()] {
        let (space, channel) = (board.space(), board.channel());
        let tsg = File::open(&board.kmd, Node::Tsg, "/dev/nvgpu/igpu0/tsg").unwrap();
        let handle = board.create(4096);
        board.alloc(handle).unwrap();
        let dmabuf = board.get_fd(handle).unwrap();
        for file in [&space, &channel, &tsg, &dmabuf] {
            let flags = FdFlag::from_bits_truncate(fcntl(file.as_fd(), FcntlArg::F_GETFD).unwrap());
            let mode = OFlag::from_bits_truncate(fcntl(file.as_fd(), FcntlArg::F_GETFL).unwrap());
            assert!(flags.contains(FdFlag::FD_CLOEXEC), "{:?}", file.node());
            assert_eq!(mode & OFlag::O_ACCMODE, OFlag::O_RDWR, "{:?}", file.node());
        }
    }
}

#[test]
fn rule_2_1_reserved_fields_are_not_looked_at() {
    let board = Board::new();
    let mut alloc = args::<nvgpu_alloc_as_args>(|a| {
        (a.flags, a.va_range_start, a.va_range_end) = (0xffff_fffe, START, END);
        (a.reserved, a.padding) = (7, [7; 6]);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc).unwrap();
    let space = board.file(Node::As, alloc.as_fd);
    let mut area = args::<nvgpu_as_alloc_space_args>(|a| {
        (a.pages, a.page_size, a.flags, a.padding) = (16, 4096, 0xffff_fffc, [7; 2]);
    });
    space.ioctl(NVGPU_AS_IOCTL_ALLOC_SPACE, &mut area).unwrap();
    let mut free = args::<nvgpu_as_free_space_args>(|a| {
        (a.offset, a.pages, a.page_size, a.padding) = (area.o_a_offset, 99, 3, [7; 3]);
    });
    space.ioctl(NVGPU_AS_IOCTL_FREE_SPACE, &mut free).unwrap();
    let mut regions = args::<nvgpu_as_get_va_regions_args>(|a| a.reserved = 7);
    space.ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut regions).unwrap();
    let (tsg, channel) = (board.tsg(), board.channel());
    let mut create = args::<nvgpu_tsg_create_subcontext_args>(|a| {
        (a.type_, a.as_fd, a.reserved) = (NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC, space.raw(), 7);
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut create).unwrap();
    bind_space(&space, &channel).unwrap();
    let mut bind = args::<nvgpu_tsg_bind_channel_ex_args>(|a| {
        (a.channel_fd, a.subcontext_id, a.reserved) = (channel.raw(), create.veid, [7; 16]);
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &mut bind).unwrap();
    wdt(&channel, NVGPU_IOCTL_CHANNEL_DISABLE_WDT).unwrap();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    setup_bind(&channel, &ring, &userd, |a| (a.reserved, a.num_inflight_jobs) = ([7; 9], 7)).unwrap();
    let mut notifier = args::<nvgpu_set_error_notifier>(|a| (a.size, a.mem, a.padding) = (3, userd.raw() as u32, 7));
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut notifier).unwrap();
    let mut register = args::<nvgpu_gpu_register_buffer_args>(|a| {
        (a.dmabuf_fd, a.reserved0, a.reserved1) = (ring.raw(), 7, 7);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_REGISTER_BUFFER, &mut register).unwrap();
    let mut masks = args::<nvgpu_gpu_get_tpc_masks_args>(|a| a.reserved = 7);
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_TPC_MASKS, &mut masks).unwrap();
}

/// A clock request counts until its ctrl node ends. On r36 that lives as long as a group that was opened through it. Then the arbiter
/// goes back to the highest rate, and devfreq takes over when the request's descriptor is closed.
#[test]
fn rule_2_2_a_groups_file_keeps_its_ctrl_open_on_r36() {
    for (board, file, kept) in [(Board::new(), "17000000.gpu", true), (Board::r35(), "17000000.ga10b", false)] {
        let clock = || board.kmd.read_text(&format!("/sys/class/devfreq/{file}/cur_freq")).unwrap();
        let idle = clock();
        let session = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
        let mut info = args::<nvgpu_gpu_clk_info>(|a| (a.clk_domain, a.freq_hz) = (1, 900_000_000));
        let mut set = args::<nvgpu_gpu_clk_set_info_args>(|a| {
            (a.num_entries, a.clk_info_entries) = (1, &raw mut info as u64);
        });
        session.ioctl(NVGPU_GPU_IOCTL_CLK_SET_INFO, &mut set).unwrap();
        let request = board.file(Node::Ctrl, set.completion_fd);
        let tsg = if kept {
            let mut open = args::<nvgpu_gpu_open_tsg_args>(|_| ());
            session.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open).unwrap();
            board.file(Node::Tsg, open.tsg_fd as i32)
        } else {
            use tegrarm_abi::nvgpu::r35::*;
            let mut open = args::<nvgpu_gpu_open_tsg_args_r35>(|_| ());
            session.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG_R35, &mut open).unwrap();
            board.file(Node::Tsg, open.tsg_fd as i32)
        };
        assert_eq!(clock(), "918000000\n");
        drop(session);
        assert_eq!(clock() == "918000000\n", kept);
        drop(tsg);
        assert_eq!(clock(), "1300000000\n");
        drop(request);
        assert_eq!(clock(), idle);
    }
}

#[test]
fn rule_2_2_a_channel_keeps_its_group_and_its_space() {
    let board = Board::new();
    let rig = board.rig();
    let (buffer, va) = {
        let buffer = board.buffer(4096);
        let va = map(&rig.space, &buffer).unwrap();
        (buffer, va)
    };
    board.free(buffer.handle);
    drop(buffer);
    let census = || board.sim.kernel().census();
    drop((rig.space, rig.tsg));
    assert_ne!(va, 0);
    assert_eq!((census().tsgs, census().memory), (1, 4096));
    drop(rig.channel);
    assert_eq!((census().tsgs, census().memory), (0, 0));
}

/// A variable of a thread that uses its board once more when the thread ends.
struct AtEnd(RefCell<Option<Board>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let board = self.0.take().expect("the thread gave it a board");
        assert_eq!(board.alloc(1 << 20).unwrap_err(), Errno::EINVAL, "a handle that does not exist");
        let rig = board.rig();
        assert_eq!(bind_space(&rig.space, &rig.channel).unwrap_err(), Errno::EINVAL, "it is bound");
        drop((rig, board));
    }
}

thread_local! {
    static AT_END: AtEnd = const { AtEnd(RefCell::new(None)) };
}

/// Memory that a thread holds until its end is freed when the variables of the thread end, the kernel's own among them.
#[test]
fn a_thread_that_ends_can_call_and_close() {
    let ended = std::thread::spawn(|| {
        // The variable is used before the kernel's, so that it ends after them.
        AT_END.with(|kept| assert!(kept.0.borrow().is_none()));
        let board = Board::new();
        let held = board.buffer(4096);
        assert!(board.alloc(held.handle).is_err(), "it has memory");
        AT_END.with(|kept| kept.0.replace(Some(board)));
    });
    ended.join().expect("the thread ends without a panic");
}
