//! The dispatcher's checks and errnos (docs/hardware/nvgpu-overview.md#dispatcher), and calls that the releases number
//! differently (E3).

use crate::support::*;
use nix::sys::stat::fstat;
use std::os::fd::{AsFd, OwnedFd};
use tegra_sim::{Chip, L4t, SimConfig};
use tegrarm_abi::nvgpu::debugger::NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT;
use tegrarm_abi::nvgpu::r35::*;

/// _IOC(dir, magic, nr, size).
fn request(dir: u32, magic: u8, nr: u32, size: u32) -> u32 {
    dir << 30 | size << 16 | u32::from(magic) << 8 | nr
}

/// One file for each nvgpu node, with its magic, its last number and its largest argument.
fn nodes(board: &Board, r35: bool) -> Vec<(File, u8, u32, u32)> {
    let tsg = if r35 {
        let mut open = args::<nvgpu_gpu_open_tsg_args_r35>(|_| ());
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG_R35, &mut open).unwrap();
        board.file(Node::Tsg, open.tsg_fd as i32)
    } else {
        board.tsg()
    };
    let open = |node, path| File::open(&board.kmd, node, path).unwrap();
    vec![
        (open(Node::Ctrl, "/dev/nvgpu/igpu0/ctrl"), b'G', if r35 { 42 } else { 44 }, 264),
        (board.space(), b'A', 14, 40),
        (tsg, b'T', if r35 { 16 } else { 21 }, 32),
        (board.channel(), b'H', 128, if r35 { 80 } else { 104 }),
        (open(Node::Debugger, "/dev/nvgpu/igpu0/dbg"), b'D', if r35 { 32 } else { 33 }, 32),
        (open(Node::Profiler, "/dev/nvgpu/igpu0/prof-dev"), b'P', 13, 48),
    ]
}

#[test]
fn rule_2_1_magic_number_and_size_are_einval_unknown_commands_enotty() {
    for l4t in [L4t::R36, L4t::R35] {
        let board = Board::with(SimConfig::new(Chip::AgxOrin).on(l4t));
        for (file, magic, last, max) in nodes(&board, l4t == L4t::R35) {
            let call = |request| board.raw(&file, request, &mut [0; 512]);
            assert_eq!(call(request(3, b'z', 1, 4)), Err(Errno::EINVAL));
            assert_eq!(call(request(3, magic, 0, 4)), Err(Errno::EINVAL));
            assert_eq!(call(request(3, magic, last + 1, 4)), Err(Errno::EINVAL));
            assert_eq!(call(request(3, magic, 1, max + 1)), Err(Errno::EINVAL));
            assert_eq!(call(request(2, magic, last, max - 1)), Err(Errno::ENOTTY), "{}", magic as char);
        }
    }
}

#[test]
fn rule_2_1_a_bad_argument_pointer_is_efault_before_enotty() {
    let board = Board::new();
    for (file, magic, last, _) in nodes(&board, false) {
        let by_pointer = |request| board.kmd.ioctl(file.as_fd(), file.node(), request, Arg::Value(8));
        assert_eq!(by_pointer(request(1, magic, last, 31)), Err(Errno::EFAULT));
        assert_eq!(by_pointer(request(2, magic, last, 31)), Err(Errno::ENOTTY));
    }
}

#[test]
fn rule_2_1_a_failed_copy_back_is_positive_on_g_t_h_d_and_efault_on_a() {
    let board = Board::new();
    let rig = board.rig();
    let to_nowhere = |file: &File, request| board.kmd.ioctl(file.as_fd(), file.node(), request, Arg::Value(8));
    // An _IOR copies nothing in, so that the call is executed and only its answer is lost.
    assert_eq!(to_nowhere(&board.ctrl, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE), Ok(4));
    assert_eq!(to_nowhere(&rig.tsg, NVGPU_IOCTL_TSG_GET_TIMESLICE), Ok(8));
    assert_eq!(to_nowhere(&rig.channel, NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT), Ok(4));
    let debugger = File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap();
    assert_eq!(to_nowhere(&debugger, NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT), Ok(8));
    assert_eq!(to_nowhere(&rig.space, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP), Err(Errno::EFAULT));
}

#[test]
fn rule_2_1_outputs_are_untouched_on_error() {
    let board = Board::new();
    let mut alloc = args::<nvgpu_alloc_as_args>(|a| a.as_fd = 0x1234);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc), Err(Errno::EINVAL));
    assert_eq!(alloc.as_fd, 0x1234);
}

#[test]
fn rule_2_1_arguments_by_pointer_and_by_bytes_are_the_same() {
    let board = Board::new();
    let mut size = args::<nvgpu_gpu_zcull_get_ctx_size_args>(|_| ());
    let at = Arg::Value(&raw mut size as u64);
    assert_eq!(board.kmd.ioctl(board.ctrl.as_fd(), Node::Ctrl, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, at), Ok(0));
    assert_eq!(size.size, 164_352);
}

#[test]
fn rule_2_1_descriptor_arguments_of_the_wrong_kind_are_einval() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    for fd in [-1, 999_999, board.nvmap.raw(), channel.raw()] {
        let mut create = args::<nvgpu_tsg_create_subcontext_args>(|a| (a.type_, a.as_fd) = (1, fd));
        assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut create), Err(Errno::EINVAL));
        let mut bind = args::<nvgpu_as_bind_channel_args>(|a| a.channel_fd = fd as u32);
        let expected = if fd == channel.raw() { Ok(()) } else { Err(Errno::EINVAL) };
        assert_eq!(space.ioctl(NVGPU_AS_IOCTL_BIND_CHANNEL, &mut bind), expected);
    }
}

#[test]
fn rule_2_1_duplicates_of_a_descriptor_are_the_same_file() {
    let board = Board::new();
    let copy: OwnedFd = board.ctrl.as_fd().try_clone_to_owned().unwrap();
    let mut size = [0; 4];
    let arg = Arg::Bytes(&mut size);
    assert_eq!(board.kmd.ioctl(copy.as_fd(), Node::Ctrl, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, arg), Ok(0));
}

#[test]
fn rule_2_1_other_files_are_enotty_and_closed_ones_ebadf() {
    let board = Board::new();
    let null = std::fs::File::open("/dev/null").unwrap();
    let call = |fd| board.kmd.ioctl(fd, Node::Ctrl, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, Arg::Bytes(&mut [0; 4]));
    assert_eq!(call(null.as_fd()), Err(Errno::ENOTTY));
}

#[test]
fn rule_9_1_both_names_of_a_node_open_it_and_others_are_enoent() {
    let board = Board::new();
    for path in ["/dev/nvgpu/igpu0/ctrl", "/dev/nvhost-ctrl-gpu", "/dev/nvhost-gpu", "/dev/nvhost-prof-dev-gpu"] {
        let fd = board.kmd.open(path).unwrap_or_else(|errno| panic!("{path}: {errno}"));
        assert!(fstat(&fd).unwrap().st_ino != 0);
        board.kmd.close(fd);
    }
    for path in ["/dev/nvgpu/igpu1/ctrl", "/dev/nvgpu/igpu0/", "/dev/nvidia0", ""] {
        assert_eq!(board.kmd.open(path).unwrap_err(), Errno::ENOENT, "{path}");
    }
}

#[test]
fn rule_e1_23_header_only_ioctls_are_enotty() {
    let board = Board::new();
    let rig = board.rig();
    let call = |file: &File, request: u32| board.raw(file, request, &mut [0; 512]);
    assert_eq!(call(&rig.tsg, NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES), Err(Errno::ENOTTY));
    assert_eq!(call(&rig.channel, NVGPU_IOCTL_CHANNEL_EVENT_ID_CTRL), Err(Errno::ENOTTY));
    assert_eq!(call(&rig.channel, NVGPU_IOCTL_CHANNEL_SET_RUNLIST_INTERLEAVE), Err(Errno::ENOTTY));
    assert_eq!(call(&rig.space, NVGPU_AS_IOCTL_GET_BUFFER_COMPBITS_INFO), Err(Errno::ENOTTY));
    assert_eq!(call(&rig.space, NVGPU_AS_IOCTL_MAP_BUFFER_COMPBITS), Err(Errno::ENOTTY));
    for request in [NVGPU_GPU_IOCTL_TRIGGER_SUSPEND, NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE, NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE]
    {
        assert_eq!(call(&board.ctrl, request), Err(Errno::ENOSYS));
    }
}

#[test]
fn rule_e3_the_releases_do_not_know_each_others_sizes() {
    let (r36, r35) = (Board::new(), Board::r35());
    let call = |board: &Board, file: &File, request: u32| board.raw(file, request, &mut [0; 512]);
    // OPEN_TSG with 24 bytes is the call by which programs tell releases apart (E3).
    assert_eq!(call(&r35, &r35.ctrl, NVGPU_GPU_IOCTL_OPEN_TSG), Err(Errno::ENOTTY));
    assert_eq!(call(&r36, &r36.ctrl, NVGPU_GPU_IOCTL_OPEN_TSG_R35), Err(Errno::ENOTTY));
    let (old, new) = (r35.channel(), r36.channel());
    assert_eq!(call(&r35, &old, NVGPU_IOCTL_CHANNEL_SETUP_BIND), Err(Errno::EINVAL));
    assert_eq!(call(&r36, &new, NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35), Err(Errno::ENOTTY));
    assert_eq!(call(&r35, &r35.ctrl, NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP), Err(Errno::EINVAL));
}

#[test]
fn rule_9_1_the_power_node_takes_0_and_1() {
    for board in [Board::new(), Board::r35()] {
        let write = |text: &str| board.kmd.write_text("/dev/nvgpu/igpu0/power", text);
        assert_eq!([write("1"), write("0\n"), write("1\n")], [Ok(()); 3]);
        assert_eq!([write(""), write("2"), write("10\n")], [Err(Errno::EINVAL); 3]);
        assert_eq!(board.raw(&board.ctrl, NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS, &mut []), Ok(0), "it runs all the same");
    }
}
