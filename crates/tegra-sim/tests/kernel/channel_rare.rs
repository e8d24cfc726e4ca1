//! Rare uses of channels: other ways to open and to set them up, their flags, and calls that a dead channel still
//! answers (docs/hardware/nvgpu-ctrl.md#open-tsg, docs/hardware/nvgpu-channel.md#channel,
//! docs/hardware/nvgpu-faults.md#faults).

use crate::support::running::view;
use crate::support::*;

fn notifier(channel: &File, buffer: &Buffer) {
    let mut set = args::<nvgpu_set_error_notifier>(|a| (a.size, a.mem) = (16, buffer.raw() as u32));
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut set).unwrap();
}

fn force_reset(channel: &File) {
    channel.ioctl_value(NVGPU_IOCTL_CHANNEL_FORCE_RESET, 0).unwrap();
}

#[test]
fn rule_4_8_channels_open_channels_and_so_does_their_node() {
    for board in [Board::new(), Board::r35()] {
        let first = board.channel();
        let mut open = args::<nvgpu_channel_open_args>(|_| ());
        first.ioctl(NVGPU_IOCTL_CHANNEL_OPEN, &mut open).unwrap();
        let second = board.file(Node::Channel, open.channel_fd);
        let third = File::open(&board.kmd, Node::Channel, "/dev/nvgpu/igpu0/channel").unwrap();
        assert_eq!([&first, &second, &third].map(timedout), [1; 3], "unbound");
        assert_eq!(board.sim.kernel().census().channels, 3);
    }
}

#[test]
fn rule_4_8_runlists_are_named_or_numbered() {
    let board = Board::new();
    for (runlist, result) in [
        (-1, Ok(())),
        (0, Ok(())),
        (1, Ok(())),
        (2, Err(Errno::EINVAL)),
        (7, Err(Errno::EINVAL)),
        (-2, Err(Errno::EINVAL)),
    ] {
        let mut open = args::<nvgpu_gpu_open_channel_args>(|a| a.channel_fd = runlist);
        let opened = board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut open);
        assert_eq!(opened.map(|()| drop(board.file(Node::Channel, open.channel_fd))), result, "{runlist}");
    }
}

#[test]
fn rule_7_9_the_old_setup_is_of_the_kernels_mode() {
    let board = Board::new();
    let rig = board.rig();
    let setup = |entries, flags| {
        let mut setup = args::<nvgpu_alloc_gpfifo_ex_args>(|a| (a.num_entries, a.flags) = (entries, flags));
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX, &mut setup)
    };
    assert_eq!([setup(2, 0), setup(6, 0)], [Err(Errno::EINVAL); 2]);
    wdt(&rig.channel, NVGPU_IOCTL_CHANNEL_ENABLE_WDT).unwrap();
    assert_eq!(setup(8, NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC), Err(Errno::EINVAL), "watched");
    assert_eq!(setup(8, 0), Ok(()));
    assert_eq!(setup(8, 0), Err(Errno::EEXIST));
    let buffer = board.buffer(8192);
    assert_eq!(setup_bind(&rig.channel, &buffer, &buffer, |_| ()), Err(Errno::EEXIST), "in either mode");
    let mut submit = args::<nvgpu_submit_gpfifo_args>(|_| ());
    assert_eq!(rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit), Ok(()));
}

#[test]
fn rule_7_1_timeouts_are_not_looked_at() {
    let board = Board::new();
    let channel = board.channel();
    for (timeout, flags) in [(0, 0), (u32::MAX, 1), (5000, u32::MAX)] {
        let mut set = args::<nvgpu_set_timeout_ex_args>(|a| (a.timeout, a.flags) = (timeout, flags));
        assert_eq!(channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_TIMEOUT_EX, &mut set), Ok(()));
    }
}

#[test]
fn rule_7_4_flags_set_the_first_preemption_modes() {
    let board = Board::new();
    let preempt = |channel: &File, graphics, compute| {
        let mut set = args::<nvgpu_preemption_mode_args>(|a| {
            (a.graphics_preempt_mode, a.compute_preempt_mode) = (graphics, compute);
        });
        channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE, &mut set)
    };
    let with = |flags| {
        let rig = board.rig();
        let mut alloc = args::<nvgpu_alloc_obj_ctx_args>(|a| (a.class_num, a.flags) = (0xc7c0, flags));
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &mut alloc).unwrap();
        rig
    };
    let plain = with(0);
    assert_eq!(preempt(&plain.channel, 0, NVGPU_COMPUTE_PREEMPTION_MODE_WFI), Ok(()));
    let cilp = with(NVGPU_ALLOC_OBJ_FLAGS_CILP);
    assert_eq!(preempt(&cilp.channel, 0, NVGPU_COMPUTE_PREEMPTION_MODE_CTA), Err(Errno::EINVAL), "lower");
    assert_eq!(preempt(&cilp.channel, 0, NVGPU_COMPUTE_PREEMPTION_MODE_CILP), Ok(()));
    let gfxp = with(NVGPU_ALLOC_OBJ_FLAGS_GFXP);
    assert_eq!(preempt(&gfxp.channel, NVGPU_GRAPHICS_PREEMPTION_MODE_WFI, 0), Err(Errno::EINVAL), "lower");
    assert_eq!(preempt(&gfxp.channel, 0, NVGPU_COMPUTE_PREEMPTION_MODE_CILP), Err(Errno::EINVAL), "both");
}

#[test]
fn rule_7_6_a_notifier_keeps_its_memory_until_it_is_replaced() {
    let board = Board::new();
    let channel = board.channel();
    let memory = || board.sim.kernel().census().memory;
    let forget = |buffer: Buffer| board.free(buffer.handle);
    let first = board.buffer(4096);
    notifier(&channel, &first);
    forget(first);
    assert_eq!(memory(), 4096);
    let second = board.buffer(8192);
    notifier(&channel, &second);
    forget(second);
    assert_eq!(memory(), 8192, "the first is gone");
    drop(channel);
    assert_eq!(memory(), 0);
}

#[test]
fn rule_8_2_the_dead_are_enabled_and_stay_dead() {
    let board = Board::new();
    let rig = board.rig();
    board.setup(&rig.channel);
    force_reset(&rig.channel);
    assert_eq!(board.raw(&rig.tsg, NVGPU_IOCTL_TSG_ENABLE, &mut []), Ok(0));
    assert_eq!(board.raw(&rig.channel, NVGPU_IOCTL_CHANNEL_ENABLE, &mut []), Ok(0));
    assert_eq!(timedout(&rig.channel), 1);
    let mut point = args::<nvgpu_get_user_syncpoint_args>(|_| ());
    assert_eq!(rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut point), Ok(()));
    // A new channel can join the group.
    let other = board.channel();
    bind_space(&rig.space, &other).unwrap();
    assert_eq!(bind_tsg(&rig.tsg, &other, rig.veid), Ok(()));
    assert_eq!([&rig.channel, &other].map(timedout), [1, 0]);
}

#[test]
fn rule_8_3_a_record_says_when() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    notifier(&rig.channel, &buffer);
    let since = |epoch: std::time::SystemTime| epoch.elapsed().unwrap().as_nanos() as u64;
    let before = since(std::time::UNIX_EPOCH);
    force_reset(&rig.channel);
    let memory = view(&buffer.fd, 4096);
    let told = u64::from(memory.read_u32(4)) << 32 | u64::from(memory.read_u32(0));
    assert!((before..=since(std::time::UNIX_EPOCH)).contains(&told), "nanoseconds of the wall clock");
    assert_eq!(memory.read_u32(12) & 0xffff, 0, "info16 is never written");
}

#[test]
fn rule_8_4_a_record_that_cannot_be_written_is_a_count() {
    let board = Board::new();
    let tsg = board.tsg();
    let mut read = args::<nvgpu_tsg_read_single_sm_error_state_args>(|a| (a.record_mem, a.record_size) = (8, 24));
    let mut bytes = zerocopy::IntoBytes::as_mut_bytes(&mut read).to_vec();
    assert_eq!(board.raw(&tsg, NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut bytes), Ok(24));
}
