//! The nodes that are not needed for work: scheduling control, scheduling domains and the trace of context switches.
//! docs/hardware/nvgpu-scheduling.md#scheduling names them, and their behaviour is that of the driver.

use crate::support::*;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use tegrarm_abi::nvgpu::ctxsw::*;
use tegrarm_abi::nvgpu::nvsched::*;
use tegrarm_abi::nvgpu::sched::*;
use tegrarm_kmd::DeviceMem;

fn open(board: &Board, node: Node, name: &str) -> Result<File, Errno> {
    File::open(&board.kmd, node, &format!("/dev/nvgpu/igpu0/{name}"))
}

fn sched(board: &Board) -> File {
    open(board, Node::Sched, "sched").unwrap()
}

/// The ids that are set in the bitmap that a request fills.
fn ids(file: &File, request: u32) -> Vec<u32> {
    let mut bitmap = [0_u8; 64];
    let mut get = args::<nvgpu_sched_get_tsgs_args>(|a| (a.size, a.buffer) = (64, bitmap.as_mut_ptr() as u64));
    file.ioctl(request, &mut get).unwrap();
    (0..512).filter(|id| bitmap[*id as usize / 8] >> (id % 8) & 1 == 1).collect()
}

fn readable(file: impl AsFd) -> bool {
    poll(&mut [PollFd::new(file.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() > 0
}

#[test]
fn rule_9_1_sched_has_one_manager_who_sees_every_group() {
    let board = Board::new();
    let early = board.tsg();
    let node = sched(&board);
    assert_eq!(open(&board, Node::Sched, "sched").err(), Some(Errno::EBUSY));
    assert_eq!(File::open(&board.kmd, Node::Sched, "/dev/nvhost-sched-gpu").err(), Some(Errno::EBUSY));
    let late = board.tsg();
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_TSGS), [0, 1]);
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_RECENT_TSGS), [0, 1]);
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_RECENT_TSGS), [0_u32; 0]);
    drop(early);
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_TSGS), [1]);
    let mut bitmap = [0_u8; 64];
    let mut by_pid = args::<nvgpu_sched_get_tsgs_by_pid_args>(|a| {
        (a.pid, a.size, a.buffer) = (u64::from(std::process::id()), 64, bitmap.as_mut_ptr() as u64);
    });
    node.ioctl(NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID, &mut by_pid).unwrap();
    assert_eq!(bitmap[0], 2);
    by_pid.pid = 1;
    node.ioctl(NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID, &mut by_pid).unwrap();
    assert_eq!(bitmap, [0; 64]);
    let mut version = args::<nvgpu_sched_api_version_args>(|_| ());
    node.ioctl(NVGPU_SCHED_IOCTL_GET_API_VERSION, &mut version).unwrap();
    assert_eq!(version.version, NVGPU_SCHED_API_VERSION);
    drop((late, node));
    sched(&board);
}

#[test]
fn rule_9_1_sched_says_how_large_the_bitmap_is_although_it_fails() {
    let board = Board::new();
    let node = sched(&board);
    let mut get = args::<nvgpu_sched_get_tsgs_args>(|a| (a.size, a.buffer) = (63, 0x1000));
    assert_eq!(node.ioctl(NVGPU_SCHED_IOCTL_GET_TSGS, &mut get), Err(Errno::ENOSPC));
    assert_eq!(get.size, 64);
    get.buffer = 0;
    assert_eq!(node.ioctl(NVGPU_SCHED_IOCTL_GET_RECENT_TSGS, &mut get), Err(Errno::ENOSPC));
    get.buffer = 8;
    assert_eq!(node.ioctl(NVGPU_SCHED_IOCTL_GET_TSGS, &mut get), Err(Errno::EFAULT));
}

#[test]
fn rule_9_1_sched_reads_and_sets_a_groups_parameters() {
    let board = Board::new();
    let (node, rig) = (sched(&board), board.rig());
    let params = |tsgid| {
        let mut get = args::<nvgpu_sched_tsg_get_params_args>(|a| a.tsgid = tsgid);
        node.ioctl(NVGPU_SCHED_IOCTL_TSG_GET_PARAMS, &mut get).map(|()| get)
    };
    assert_eq!(params(512).err(), Some(Errno::EINVAL));
    assert_eq!(params(1).err(), Some(Errno::ENXIO));
    let fresh = params(0).unwrap();
    assert_eq!((fresh.timeslice, fresh.runlist_interleave, fresh.compute_preempt_mode), (1024, 0, 0));
    assert_eq!(fresh.pid, u64::from(std::process::id()));
    let mut slice = args::<nvgpu_sched_tsg_timeslice_args>(|a| a.timeslice = 999);
    assert_eq!(node.ioctl(NVGPU_SCHED_IOCTL_TSG_SET_TIMESLICE, &mut slice), Err(Errno::EINVAL));
    slice.timeslice = 5000;
    node.ioctl(NVGPU_SCHED_IOCTL_TSG_SET_TIMESLICE, &mut slice).unwrap();
    let mut level = args::<nvgpu_sched_tsg_runlist_interleave_args>(|a| a.runlist_interleave = 3);
    assert_eq!(node.ioctl(NVGPU_SCHED_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &mut level), Err(Errno::EINVAL));
    level.runlist_interleave = 2;
    node.ioctl(NVGPU_SCHED_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &mut level).unwrap();
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    let now = params(0).unwrap();
    let modes = (now.graphics_preempt_mode, now.compute_preempt_mode);
    assert_eq!((now.timeslice, now.runlist_interleave, modes), (5000, 2, (1, 1)));
    let mut theirs = args::<nvgpu_timeslice_args>(|_| ());
    rig.tsg.ioctl(NVGPU_IOCTL_TSG_GET_TIMESLICE, &mut theirs).unwrap();
    assert_eq!(theirs.timeslice_us, 5000);
}

#[test]
fn rule_6_locked_controls_are_the_managers() {
    let board = Board::new();
    let node = sched(&board);
    node.ioctl_value(NVGPU_SCHED_IOCTL_LOCK_CONTROL, 0).unwrap();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    bind_space(&space, &channel).unwrap();
    let set_slice =
        || tsg.ioctl(NVGPU_IOCTL_TSG_SET_TIMESLICE, &mut args::<nvgpu_timeslice_args>(|a| a.timeslice_us = 0));
    let set_level = || {
        tsg.ioctl(NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &mut args::<nvgpu_runlist_interleave_args>(|a| a.level = 9))
    };
    // The lock is checked before everything else, and the old form of binding ignores it.
    assert_eq!((set_slice(), set_level()), (Err(Errno::EPERM), Err(Errno::EPERM)));
    assert_eq!(bind_tsg(&tsg, &space, 99), Err(Errno::EPERM));
    let mut fd = channel.raw().to_ne_bytes();
    assert_eq!(board.raw(&tsg, NVGPU_TSG_IOCTL_BIND_CHANNEL, &mut fd), Ok(0));
    node.ioctl_value(NVGPU_SCHED_IOCTL_UNLOCK_CONTROL, 0).unwrap();
    assert_eq!((set_slice(), set_level()), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    node.ioctl_value(NVGPU_SCHED_IOCTL_LOCK_CONTROL, 0).unwrap();
    drop(node);
    assert_eq!(set_slice(), Err(Errno::EINVAL), "the lock goes with its holder");
}

#[test]
fn rule_9_1_sched_keeps_groups_and_tells_of_new_ones() {
    let board = Board::new();
    let node = sched(&board);
    assert!(!readable(&node));
    let tsg = board.tsg();
    assert!(readable(&node));
    let second = board.tsg();
    let mut event = [0_u8; 32];
    assert_eq!(nix::unistd::read(node.as_fd(), &mut event).unwrap(), 16, "both are one event");
    assert_eq!(u64::from_le_bytes(event[8..16].try_into().unwrap()), u64::from(NVGPU_SCHED_STATUS_TSG_OPEN));
    assert!(!readable(&node));
    let hold = |request, tsgid| node.ioctl(request, &mut args::<nvgpu_sched_tsg_refcount_args>(|a| a.tsgid = tsgid));
    hold(NVGPU_SCHED_IOCTL_GET_TSG, 0).unwrap();
    assert_eq!(hold(NVGPU_SCHED_IOCTL_GET_TSG, 0), Err(Errno::ENXIO));
    assert_eq!(hold(NVGPU_SCHED_IOCTL_GET_TSG, 512), Err(Errno::EINVAL));
    drop((tsg, second));
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_TSGS), [0]);
    hold(NVGPU_SCHED_IOCTL_PUT_TSG, 0).unwrap();
    assert_eq!(hold(NVGPU_SCHED_IOCTL_PUT_TSG, 0), Err(Errno::ENXIO));
    assert_eq!(ids(&node, NVGPU_SCHED_IOCTL_GET_TSGS), [0_u32; 0]);
    let _tsg = board.tsg();
    hold(NVGPU_SCHED_IOCTL_GET_TSG, 0).unwrap();
    drop(_tsg);
    drop(node);
    assert_eq!(board.sim.kernel().census().tsgs, 0, "what the manager held goes with it");
    assert!(readable(sched(&board)), "nobody has read of the last group");
}

fn domain(board: &Board, name: &str) -> Result<u64, Errno> {
    let node = open(board, Node::Nvsched, "nvsched").unwrap();
    let mut create = args::<nvgpu_nvs_ioctl_create_domain>(|a| {
        a.domain_params.name[..name.len()].copy_from_slice(name.as_bytes());
        (a.domain_params.timeslice_ns, a.domain_params.preempt_grace_ns) = (2_000_000, 1000);
    });
    node.ioctl(NVGPU_NVS_IOCTL_CREATE_DOMAIN, &mut create)?;
    Ok(create.domain_params.dom_id)
}

#[test]
fn rule_9_1_nvsched_makes_lists_and_removes_domains() {
    let board = Board::new();
    let node = open(&board, Node::Nvsched, "nvsched").unwrap();
    assert_eq!((domain(&board, "one"), domain(&board, "two-2_B")), (Ok(1), Ok(2)));
    assert_eq!(domain(&board, "one"), Err(Errno::EEXIST));
    assert_eq!(domain(&board, "a b"), Err(Errno::EINVAL));
    assert_eq!(domain(&board, "0123456789abcdef0123456789abcdef"), Err(Errno::EPERM));
    let mut taken = args::<nvgpu_nvs_ioctl_create_domain>(|a| a.domain_params.dom_id = 9);
    assert_eq!(node.ioctl(NVGPU_NVS_IOCTL_CREATE_DOMAIN, &mut taken), Err(Errno::EINVAL));
    let mut list = [const { [0_u8; 80] }; 2];
    let mut query = args::<nvgpu_nvs_ioctl_query_domains>(|_| ());
    node.ioctl(NVGPU_NVS_IOCTL_QUERY_DOMAINS, &mut query).unwrap();
    assert_eq!(query.nr, 2);
    (query.domains, query.nr) = (list.as_mut_ptr() as u64, 1);
    node.ioctl(NVGPU_NVS_IOCTL_QUERY_DOMAINS, &mut query).unwrap();
    assert_eq!((query.nr, &list[0][..4], list[1]), (2, b"one\0".as_slice(), [0; 80]));
    assert_eq!(u64::from_le_bytes(list[0][56..64].try_into().unwrap()), 1);
    let remove = |dom_id| {
        node.ioctl(NVGPU_NVS_IOCTL_REMOVE_DOMAIN, &mut args::<nvgpu_nvs_ioctl_remove_domain>(|a| a.dom_id = dom_id))
    };
    assert_eq!(remove(3), Err(Errno::ENOENT));
    let held = open(&board, Node::Nvsched, "nvsched-one").unwrap();
    assert_eq!(remove(1), Err(Errno::EBUSY));
    drop(held);
    remove(1).unwrap();
    assert_eq!(open(&board, Node::Nvsched, "nvsched-one").err(), Some(Errno::ENOENT));
}

#[test]
fn rule_6_a_group_goes_into_a_domain_before_its_first_channel() {
    let board = Board::new();
    domain(&board, "batch").unwrap();
    let node = open(&board, Node::Nvsched, "nvsched-batch").unwrap();
    let rig = board.rig();
    let bind = |tsg: &File, fd, reserved| {
        let mut bind = args::<nvgpu_tsg_bind_scheduling_domain_args>(|a| (a.domain_fd, a.reserved[2]) = (fd, reserved));
        tsg.ioctl(NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN, &mut bind)
    };
    assert_eq!(bind(&rig.tsg, node.raw(), 0), Err(Errno::EINVAL));
    let tsg = board.tsg();
    assert_eq!(bind(&tsg, node.raw(), 1), Err(Errno::EINVAL));
    assert_eq!(bind(&tsg, board.ctrl.raw(), 0), Err(Errno::ENOENT));
    assert_eq!(bind(&tsg, -1, 0), Err(Errno::ENOENT));
    bind(&tsg, node.raw(), 0).unwrap();
    drop(node);
    let nvsched = open(&board, Node::Nvsched, "nvsched").unwrap();
    let mut remove = args::<nvgpu_nvs_ioctl_remove_domain>(|a| a.dom_id = 1);
    assert_eq!(nvsched.ioctl(NVGPU_NVS_IOCTL_REMOVE_DOMAIN, &mut remove), Err(Errno::EBUSY));
    drop(tsg);
    nvsched.ioctl(NVGPU_NVS_IOCTL_REMOVE_DOMAIN, &mut remove).unwrap();
}

#[test]
fn rule_9_1_ctxsw_rings_have_one_reader_and_a_size() {
    let board = Board::new();
    let node = open(&board, Node::Ctxsw, "ctxsw").unwrap();
    assert_eq!(open(&board, Node::Ctxsw, "ctxsw").err(), Some(Errno::EBUSY));
    let setup = |size| {
        let mut setup = args::<nvgpu_ctxsw_ring_setup_args>(|a| a.size = size);
        node.ioctl(NVGPU_CTXSW_IOCTL_RING_SETUP, &mut setup).map(|()| setup.size)
    };
    assert_eq!(setup(128 * 4096 + 1), Err(Errno::EINVAL));
    node.ioctl_value(NVGPU_CTXSW_IOCTL_TRACE_ENABLE, 0).unwrap();
    assert_eq!(setup(4096), Err(Errno::EBUSY));
    node.ioctl_value(NVGPU_CTXSW_IOCTL_TRACE_DISABLE, 0).unwrap();
    assert_eq!(setup(5000), Ok(8192));
    assert_eq!(node.mmap(Placement::Anywhere, 3 * 4096, Prot::Read, 0).err(), Some(Errno::EINVAL));
    let ring = DeviceMem::new(node.mmap(Placement::Anywhere, 8192, Prot::ReadWrite, 0).unwrap());
    assert_eq!(setup(4096), Err(Errno::EBUSY));
    let header: Vec<u32> = (0..8).map(|i| ring.read_u32(4 * i)).collect();
    assert_eq!(header, [NVGPU_CTXSW_RING_HEADER_MAGIC, 0, (8192 - 32) / 24, 24, 0, 0, 0, 0]);
    node.ioctl_value(NVGPU_CTXSW_IOCTL_POLL, 0).unwrap();
    drop((ring, node));
    open(&board, Node::Ctxsw, "ctxsw").unwrap();
}

#[test]
fn rule_9_1_ctxsw_filters_by_tag() {
    let board = Board::new();
    let node = open(&board, Node::Ctxsw, "ctxsw").unwrap();
    let mut filter = args::<nvgpu_ctxsw_trace_filter_args>(|a| a.filter.tag_bits = [1 << 5, 2, 3, 4]);
    node.ioctl(NVGPU_CTXSW_IOCTL_SET_FILTER, &mut filter).unwrap();
    node.ioctl(NVGPU_CTXSW_IOCTL_GET_FILTER, &mut filter).unwrap();
    // The driver copies four of the thirty-two bytes in both directions. The rest of an answer is zeros.
    assert_eq!(filter.filter.tag_bits, [1 << 5, 0, 0, 0]);
}

/// Opens the same node for reading only.
fn for_reading(node: &File) -> std::os::fd::OwnedFd {
    std::fs::File::open(format!("/proc/self/fd/{}", node.raw())).unwrap().into()
}

#[test]
fn rule_9_1_who_reads_nvsched_may_not_change_domains() {
    let board = Board::new();
    let node = open(&board, Node::Nvsched, "nvsched").unwrap();
    let reader = for_reading(&node);
    let call = |request, bytes: &mut [u8]| board.kmd.ioctl(reader.as_fd(), Node::Nvsched, request, Arg::Bytes(bytes));
    assert_eq!(call(NVGPU_NVS_IOCTL_CREATE_DOMAIN, &mut [0; 88]), Err(Errno::EPERM));
    assert_eq!(call(NVGPU_NVS_IOCTL_REMOVE_DOMAIN, &mut [0; 16]), Err(Errno::EPERM));
    assert_eq!(call(NVGPU_NVS_IOCTL_QUERY_DOMAINS, &mut [0; 24]), Ok(0));
}
