//! The kernel and the GPU together: work that is executed, work that faults, and what a program sees of both.

#![allow(unsafe_code)] // descriptors in structures

use crate::support::running::*;
use crate::support::*;
use tegra_sim::{Chip, SimConfig};

#[test]
fn rule_1_row_16_a_doorbell_runs_the_ring() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 64 << 10);
    let mut channel = Running::new(&board);
    let va = channel.page_va;
    channel.semaphore(&doorbell, va, 0xcafe, 1);
    until("the release", || channel.page.read_u32(0) == 0xcafe);
    until("GP_GET", || channel.userd.read_u32(GP_GET) == 1);
}

#[test]
fn rule_8_5_an_unmapped_address_is_notifier_31_and_releases_nothing() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let (mut channel, mut other) = (Running::new(&board), Running::new(&board));
    let notifier = board.buffer(4096);
    let mut set = args::<nvgpu_set_error_notifier>(|a| (a.size, a.mem) = (16, notifier.raw() as u32));
    channel.rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut set).unwrap();
    let memory = view(&notifier.fd, 4096);
    channel.semaphore(&doorbell, 0x10_0000_0000, 1, 1);
    until("death", || timedout(&channel.rig.channel) == 1);
    assert_eq!((memory.read_u32(8), memory.read_u32(12) >> 16), (31, 0xffff));
    let va = channel.page_va;
    channel.semaphore(&doorbell, va, 1, 1);
    // Another group continues. After that the dead group has had its chance to continue as well.
    let va = other.page_va;
    other.semaphore(&doorbell, va, 2, 1);
    until("the other group's release", || other.page.read_u32(0) == 2);
    assert_eq!(channel.page.read_u32(0), 0);
}

#[test]
fn rule_5_6_an_unmapped_buffer_faults_the_gpu() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let mut channel = Running::new(&board);
    let target = board.buffer(4096);
    let va = map(&channel.rig.space, &target).unwrap();
    channel.semaphore(&doorbell, va, 7, 1);
    let memory = view(&target.fd, 4096);
    until("the release", || memory.read_u32(0) == 7);
    unmap(&channel.rig.space, va);
    channel.semaphore(&doorbell, va, 8, 1);
    until("death", || timedout(&channel.rig.channel) == 1);
    assert_eq!(memory.read_u32(0), 7);
}

#[test]
fn rule_5_5_a_read_only_mapping_is_not_written() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let mut channel = Running::new(&board);
    let target = board.buffer(4096);
    let va = map_with(&channel.rig.space, target.raw(), |a| a.flags |= 1 << 10).unwrap();
    channel.semaphore(&doorbell, va, 7, 1);
    until("death", || timedout(&channel.rig.channel) == 1);
    assert_eq!(view(&target.fd, 4096).read_u32(0), 0);
}

#[test]
fn rule_5_4_sparse_pages_swallow_writes() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let mut channel = Running::new(&board);
    let sparse = alloc_space(&channel.rig.space, 1 << 20, NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE, 0).unwrap();
    channel.semaphore(&doorbell, sparse + 0x4000, 7, 1);
    let va = channel.page_va;
    channel.semaphore(&doorbell, va, 9, 1);
    until("the release", || channel.page.read_u32(0) == 9);
    assert_eq!(timedout(&channel.rig.channel), 0);
}

#[test]
fn rule_7_7_a_release_at_its_address_increments_the_syncpoint() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let mut channel = Running::new(&board);
    let get = |channel: &Running| {
        let mut get = args::<nvgpu_get_user_syncpoint_args>(|_| ());
        channel.rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut get).unwrap();
        (get.gpu_va, get.syncpoint_max)
    };
    let (va, before) = get(&channel);
    channel.semaphore(&doorbell, va, 1234, 1);
    until("the increment", || get(&channel).1 == before + 1);
}

#[test]
fn rule_2_2_a_closed_ctrl_open_still_rings_while_its_page_is_mapped() {
    let board = Board::new();
    let second = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    let doorbell = view(&second, 4096);
    let mut channel = Running::new(&board);
    drop(second);
    let va = channel.page_va;
    channel.semaphore(&doorbell, va, 5, 1);
    until("the release", || channel.page.read_u32(0) == 5);
    drop(channel);
    assert_eq!(board.sim.kernel().census().doorbells, 1);
}

/// A program that keeps a channel, while others come and go, does not make the GPU watch their pages.
#[test]
fn a_page_that_nobody_maps_is_not_watched_while_a_channel_lives() {
    let board = Board::new();
    let _channel = Running::new(&board);
    for round in 0..20 {
        let other = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
        let page = view(&other, 4096);
        drop(other);
        assert_eq!(board.sim.kernel().census().doorbells, 2, "round {round}: the page is mapped");
        drop(page);
    }
    drop(File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap());
    assert_eq!(board.sim.kernel().census().doorbells, 1);
}

#[test]
fn rule_7_10_kernel_mode_submits_run_and_fence() {
    let board = Board::new();
    let rig = board.rig();
    let page = board.buffer(4096);
    let va = map(&rig.space, &page).unwrap();
    let memory = view(&page.fd, 4096);
    setup_bind(&rig.channel, &page, &page, |a| (a.flags, a.num_gpfifo_entries) = (0, 8)).unwrap();
    for (i, word) in [0x2005_0017, va as u32, (va >> 32) as u32, 77, 0, 1].into_iter().enumerate() {
        memory.write_u32(256 + 4 * i, word);
    }
    let entry = [(va + 256) | 6 << 42];
    let submit = |flags, fence: (u32, u32)| {
        let mut submit = args::<nvgpu_submit_gpfifo_args>(|a| {
            (a.gpfifo, a.num_entries, a.flags) = (entry.as_ptr() as u64, 1, flags);
            (a.fence.id, a.fence.value) = fence;
        });
        rig.channel
            .ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit)
            .map(|()| (submit.fence.id, submit.fence.value))
    };
    let first = submit(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET, (0, 0)).unwrap();
    until("the release", || memory.read_u32(0) == 77);
    // A fence that has passed is not waited for, and the next fence is one higher.
    memory.write_u32(0, 0);
    let both = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET | NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT;
    let second = submit(both, first).unwrap();
    until("the release after the wait", || memory.read_u32(0) == 77);
    assert_eq!(second, (first.0, first.1 + 1));
    assert_eq!(submit(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT, (5000, 0)), Err(Errno::EINVAL));
}

fn submit(channel: &File, fill: impl FnOnce(&mut nvgpu_submit_gpfifo_args)) -> Result<(u32, u32), Errno> {
    let mut submit = args::<nvgpu_submit_gpfifo_args>(fill);
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit).map(|()| (submit.fence.id, submit.fence.value))
}

#[test]
fn rule_7_10_a_full_ring_is_eagain() {
    let board = Board::with(SimConfig { step: true, ..SimConfig::new(Chip::AgxOrin) });
    let rig = board.rig();
    let nothing = board.buffer(4096);
    setup_bind(&rig.channel, &nothing, &nothing, |a| (a.flags, a.num_gpfifo_entries) = (0, 4)).unwrap();
    let entries = [0_u64; 2];
    let put = |num, flags| {
        submit(&rig.channel, |a| (a.gpfifo, a.num_entries, a.flags) = (entries.as_ptr() as u64, num, flags)).map(|_| ())
    };
    assert_eq!([put(2, 0), put(2, 0), put(1, 0), put(1, 0)], [Ok(()), Err(Errno::EAGAIN), Ok(()), Err(Errno::EAGAIN)]);
    while board.sim.gpu().step() {}
    assert_eq!(put(2, 0), Ok(()));
    // A fence uses an entry too, and the ring has three.
    while board.sim.gpu().step() {}
    let both = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET | NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT;
    assert_eq!(put(2, both), Err(Errno::ENOMEM));
}

#[test]
fn rule_7_10_a_submit_may_be_nothing_but_a_fence() {
    let board = Board::new();
    let rig = board.rig();
    let nothing = board.buffer(4096);
    setup_bind(&rig.channel, &nothing, &nothing, |a| (a.flags, a.num_gpfifo_entries) = (0, 8)).unwrap();
    let first = submit(&rig.channel, |a| a.flags = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET).unwrap();
    let second = submit(&rig.channel, |a| {
        a.flags = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET | NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT;
        (a.fence.id, a.fence.value) = first;
    });
    assert_eq!(second, Ok((first.0, first.1 + 1)));
}

#[test]
fn rule_7_10_deterministic_channels_submit_untracked_only() {
    let board = Board::new();
    let rig = board.rig();
    let nothing = board.buffer(4096);
    let deterministic = NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC;
    setup_bind(&rig.channel, &nothing, &nothing, |a| (a.flags, a.num_gpfifo_entries) = (deterministic, 8)).unwrap();
    let (untracked, get) = (NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING, NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET);
    let put = |flags| submit(&rig.channel, |a| a.flags = flags).map(|_| ());
    assert_eq!(put(0), Err(Errno::EINVAL));
    assert_eq!(put(untracked | get | NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE), Err(Errno::EINVAL));
    assert_eq!(put(untracked | get), Ok(()));
    let railgating = |flags| {
        let fd = rig.channel.raw();
        let mut opts = args::<nvgpu_gpu_set_deterministic_opts_args>(|a| {
            (a.num_channels, a.flags, a.channels) = (1, flags, &raw const fd as u64);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS, &mut opts).unwrap();
    };
    railgating(NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_ALLOW_RAILGATING);
    assert_eq!(put(untracked), Err(Errno::EINVAL), "the GPU may be off");
    railgating(NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_DISALLOW_RAILGATING);
    assert_eq!(put(untracked), Ok(()));
}

/// The events that a descriptor is ready for.
fn ready(fd: i32) -> nix::poll::PollFlags {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    // SAFETY: the test has it open.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN | PollFlags::POLLPRI)];
    poll(&mut fds, PollTimeout::ZERO).unwrap();
    fds[0].revents().unwrap()
}

/// Whether this host can make a socket ready for POLLPRI.
fn host_has_priority_data() -> bool {
    use nix::sys::socket::*;
    let (_theirs, ours) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty()).unwrap();
    send(std::os::fd::AsRawFd::as_raw_fd(&ours), &[1], MsgFlags::MSG_OOB).is_ok()
}

#[test]
fn rule_6_3_blocking_sync_is_posted_on_non_stall_interrupts_only() {
    use nix::poll::PollFlags;
    let board = Board::with(SimConfig { step: true, ..SimConfig::new(Chip::AgxOrin) });
    let doorbell = view(&board.ctrl, 65536);
    let mut running = Running::new(&board);
    let listen = |id| {
        let mut control = args::<nvgpu_event_id_ctrl_args>(|a| (a.cmd, a.event_id) = (1, id));
        running.rig.tsg.ioctl(NVGPU_IOCTL_TSG_EVENT_ID_CTRL, &mut control).unwrap();
        board.file(Node::Tsg, control.event_fd)
    };
    let (sync, other) = (listen(NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC), listen(0));
    let va = running.page_va;
    running.semaphore(&doorbell, va, 1, 1);
    while board.sim.gpu().step() {}
    assert_eq!(ready(sync.raw()), PollFlags::empty(), "a release alone is no interrupt");
    // These words are a NON_STALL_INTERRUPT, in place of the first words of the release.
    let words = running.page_va + 256 + 32 * u64::from(running.put);
    running.semaphore(&doorbell, va, 2, 1);
    running.page.write_u32((words - va) as usize, 0x2001_0008);
    running.page.write_u32((words - va) as usize + 4, 0);
    running.ring.write_u64((running.put as usize - 1) * 8, words | 2 << 42 | 1 << 41);
    while board.sim.gpu().step() {}
    let both = PollFlags::POLLIN | PollFlags::POLLPRI;
    assert_eq!(ready(sync.raw()), if host_has_priority_data() { both } else { PollFlags::POLLIN });
    assert_eq!(ready(other.raw()), PollFlags::empty());
    // A fault posts no event.
    running.semaphore(&doorbell, 0x10_0000_0000, 1, 1);
    while board.sim.gpu().step() {}
    assert_eq!((timedout(&running.rig.channel), ready(other.raw())), (1, PollFlags::empty()));
}

/// Switches between groups write their tags to the trace ring.
#[test]
fn rule_9_1_context_switches_are_traced() {
    use tegrarm_abi::nvgpu::ctxsw::*;
    let board = Board::with(SimConfig { step: true, ..SimConfig::new(Chip::AgxOrin) });
    let node = File::open(&board.kmd, Node::Ctxsw, "/dev/nvgpu/igpu0/ctxsw").unwrap();
    let ring = view(&node, 8192);
    let doorbell = view(&board.ctrl, 65536);
    let (mut one, mut two) = (Running::new(&board), Running::new(&board));
    let run = |running: &mut Running| {
        let va = running.page_va;
        running.semaphore(&doorbell, va, 1, 1);
        while board.sim.gpu().step() {}
    };
    run(&mut one);
    assert_eq!(ring.read_u32(24), 0, "not enabled");
    node.ioctl_value(NVGPU_CTXSW_IOCTL_TRACE_ENABLE, 0).unwrap();
    run(&mut two);
    run(&mut one);
    let entries: Vec<(u32, u32)> = (0..ring.read_u32(24) as usize)
        .map(|i| (ring.read_u32(32 + 24 * i) & 0xff, ring.read_u32(36 + 24 * i)))
        .collect();
    let tags = [
        NVGPU_CTXSW_TAG_CTXSW_REQ_BY_HOST,
        NVGPU_CTXSW_TAG_SAVE_END,
        NVGPU_CTXSW_TAG_RESTORE_START,
        NVGPU_CTXSW_TAG_CONTEXT_START,
    ];
    let switch = |from, to| [(tags[0], from), (tags[1], from), (tags[2], to), (tags[3], to)];
    assert_eq!(entries, [switch(0, 1), switch(1, 0)].concat());
    assert_eq!(ring.read_u32(40), std::process::id());
    assert!(ring.read_u64(48) > 0);
}
