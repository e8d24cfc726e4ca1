//! The state machine of a working compute channel (docs/hardware/nvgpu-overview.md#bring-up).

use crate::support::*;

#[test]
fn rule_1_a_channel_without_space_or_group_cannot_be_set_up() {
    let board = Board::new();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    let channel = board.channel();
    wdt(&channel, NVGPU_IOCTL_CHANNEL_DISABLE_WDT).unwrap();
    assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), Err(Errno::EINVAL));
    bind_space(&board.space(), &channel).unwrap();
    assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), Err(Errno::EINVAL));
}

#[test]
fn rule_1_the_space_comes_before_the_group_when_the_veid_has_one() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    let veid = board.subcontext(&tsg, &space).unwrap();
    assert_eq!(bind_tsg(&tsg, &channel, veid), Err(Errno::EINVAL));
    bind_space(&space, &channel).unwrap();
    assert_eq!(bind_tsg(&tsg, &channel, veid), Ok(()));
}

#[test]
fn rule_1_the_subcontext_comes_before_the_bind() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    bind_space(&space, &channel).unwrap();
    assert_eq!(bind_tsg(&tsg, &channel, 1), Err(Errno::EINVAL));
}

#[test]
fn rule_1_the_watchdog_is_off_before_a_deterministic_setup() {
    let board = Board::new();
    let (space, tsg) = (board.space(), board.tsg());
    let veid = board.subcontext(&tsg, &space).unwrap();
    let channel = board.channel();
    bind_space(&space, &channel).unwrap();
    bind_tsg(&tsg, &channel, veid).unwrap();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), Err(Errno::EINVAL));
    wdt(&channel, NVGPU_IOCTL_CHANNEL_DISABLE_WDT).unwrap();
    assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), Ok(511));
}

#[test]
fn rule_1_the_class_comes_before_the_preemption_mode() {
    let board = Board::new();
    let rig = board.rig();
    let mut mode = args::<nvgpu_preemption_mode_args>(|a| a.compute_preempt_mode = NVGPU_COMPUTE_PREEMPTION_MODE_CILP);
    let set = |mode: &mut _| rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE, mode);
    assert_eq!(set(&mut mode), Err(Errno::EINVAL));
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!(set(&mut mode), Ok(()));
}

#[test]
fn rule_1_memory_comes_before_the_mapping() {
    let board = Board::new();
    let space = board.space();
    let handle = board.create(4096);
    let fd = board.get_fd(handle).unwrap();
    assert_eq!(map_with(&space, fd.raw(), |_| ()), Err(Errno::ENOMEM));
    board.alloc(handle).unwrap();
    assert!(map_with(&space, fd.raw(), |_| ()).is_ok());
}

#[test]
fn rule_1_setup_and_context_come_in_either_order() {
    let board = Board::new();
    let rig = board.rig();
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    board.setup(&rig.channel);
    alloc_obj_ctx(&rig.channel, 0xc7b5).unwrap();
}

#[test]
fn rule_2_2_a_mapping_outlives_its_descriptor_and_its_handle() {
    let board = Board::new();
    let space = board.space();
    let buffer = board.buffer(1 << 20);
    let va = map(&space, &buffer).unwrap();
    board.free(buffer.handle);
    drop(buffer);
    assert_eq!(board.sim.kernel().census().memory, 1 << 20);
    unmap(&space, va);
    assert_eq!(board.sim.kernel().census().memory, 0);
}

#[test]
fn rule_2_2_a_space_outlives_its_descriptor_while_a_channel_is_bound() {
    let board = Board::new();
    let Rig { space, channel, tsg, .. } = board.rig();
    let buffer = board.buffer(4096);
    map(&space, &buffer).unwrap();
    board.free(buffer.handle);
    drop((buffer, space));
    assert_eq!(board.sim.kernel().census().memory, 4096);
    drop(channel);
    assert_eq!(board.sim.kernel().census().memory, 0);
    drop(tsg);
}
