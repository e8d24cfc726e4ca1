//! Groups (docs/hardware/nvgpu-tsg.md#tsg).

use crate::support::*;

#[test]
fn rule_6_1_bind_channel_ex_checks_in_order() {
    let board = Board::new();
    let (space, tsg) = (board.space(), board.tsg());
    let veid = board.subcontext(&tsg, &space).unwrap();
    let channel = board.channel();
    bind_space(&space, &channel).unwrap();
    assert_eq!(bind_tsg(&tsg, &space, veid), Err(Errno::EINVAL));
    assert_eq!(bind_tsg(&tsg, &channel, 64), Err(Errno::EINVAL));
    assert_eq!(bind_tsg(&tsg, &channel, 2), Err(Errno::EINVAL));
    bind_tsg(&tsg, &channel, veid).unwrap();
    assert_eq!(bind_tsg(&tsg, &channel, veid), Err(Errno::EINVAL));
    let stranger = board.channel();
    bind_space(&board.space(), &stranger).unwrap();
    assert_eq!(bind_tsg(&tsg, &stranger, veid), Err(Errno::EINVAL));
}

#[test]
fn rule_6_1_veid_0_is_made_implicitly() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    bind_space(&space, &channel).unwrap();
    bind_tsg(&tsg, &channel, 0).unwrap();
    let other = board.channel();
    bind_space(&board.space(), &other).unwrap();
    assert_eq!(bind_tsg(&tsg, &other, 0), Err(Errno::EINVAL));
    let mut sync = args::<nvgpu_tsg_create_subcontext_args>(|a| a.as_fd = space.raw());
    assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut sync), Err(Errno::ENOSPC));
}

#[test]
fn rule_6_1_a_channel_without_space_meets_an_unmade_veid() {
    let board = Board::new();
    let tsg = board.tsg();
    assert_eq!(bind_tsg(&tsg, &board.channel(), 5), Ok(()));
    assert_eq!(bind_tsg(&tsg, &board.channel(), 0), Ok(()));
}

#[test]
fn rule_6_1_a_group_takes_128_channels() {
    let board = Board::new();
    let (space, tsg) = (board.space(), board.tsg());
    let channels: Vec<_> = (0..128).map(|_| board.bound_channel(&space, &tsg, 0)).collect();
    let more = board.channel();
    bind_space(&space, &more).unwrap();
    assert_eq!(bind_tsg(&tsg, &more, 0), Err(Errno::EINVAL));
    drop(channels);
    assert_eq!(bind_tsg(&tsg, &more, 0), Ok(()));
}

#[test]
fn rule_6_2_veids_are_the_lowest_free_then_0() {
    let board = Board::new();
    let (space, tsg) = (board.space(), board.tsg());
    for veid in 1..64 {
        assert_eq!(board.subcontext(&tsg, &space), Ok(veid));
    }
    let delete = |veid| {
        let mut delete = args::<nvgpu_tsg_delete_subcontext_args>(|a| a.veid = veid);
        tsg.ioctl(NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT, &mut delete)
    };
    assert_eq!((delete(7), delete(3), delete(3), delete(64)), (Ok(()), Ok(()), Ok(()), Err(Errno::EINVAL)));
    assert_eq!(board.subcontext(&tsg, &space), Ok(3));
    assert_eq!(board.subcontext(&tsg, &space), Ok(7));
    assert_eq!(board.subcontext(&tsg, &space), Ok(0));
    assert_eq!(board.subcontext(&tsg, &space), Err(Errno::ENOSPC));
    let channel = board.bound_channel(&space, &tsg, 9);
    assert_eq!(delete(9), Err(Errno::EINVAL));
    drop(channel);
    assert_eq!(delete(9), Ok(()));
    let mut bad = args::<nvgpu_tsg_create_subcontext_args>(|a| (a.type_, a.as_fd) = (2, space.raw()));
    assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut bad), Err(Errno::EINVAL));
}

#[test]
fn rule_6_unbind_makes_a_channel_unserviceable() {
    let board = Board::new();
    let rig = board.rig();
    assert_eq!(timedout(&rig.channel), 0);
    let unbind = |tsg: &File| board.raw(tsg, NVGPU_TSG_IOCTL_UNBIND_CHANNEL, &mut rig.channel.raw().to_le_bytes());
    assert_eq!(unbind(&board.tsg()), Err(Errno::EINVAL));
    assert_eq!(unbind(&rig.tsg), Ok(0));
    assert_eq!(timedout(&rig.channel), 1);
    assert_eq!(unbind(&rig.tsg), Err(Errno::EINVAL));
    // The subcontext stays.
    bind_tsg(&rig.tsg, &rig.channel, rig.veid).unwrap();
    assert_eq!(timedout(&rig.channel), 0);
}

#[test]
fn rule_6_timeslice_and_interleave() {
    let board = Board::new();
    let tsg = board.tsg();
    let mut slice = args::<nvgpu_timeslice_args>(|_| ());
    tsg.ioctl(NVGPU_IOCTL_TSG_GET_TIMESLICE, &mut slice).unwrap();
    assert_eq!(slice.timeslice_us, 1024);
    for (us, result) in [(999, Err(Errno::EINVAL)), (1000, Ok(())), (50_000, Ok(())), (50_001, Err(Errno::EINVAL))] {
        slice.timeslice_us = us;
        assert_eq!(tsg.ioctl(NVGPU_IOCTL_TSG_SET_TIMESLICE, &mut slice), result);
    }
    for (level, result) in [(0, Ok(())), (2, Ok(())), (3, Err(Errno::EINVAL))] {
        let mut interleave = args::<nvgpu_runlist_interleave_args>(|a| a.level = level);
        assert_eq!(tsg.ioctl(NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &mut interleave), result);
    }
}

#[test]
fn rule_6_l2_ways_need_a_context_and_promotion_a_known_flag() {
    let board = Board::new();
    let rig = board.rig();
    let ways = |ways| {
        let mut set = args::<nvgpu_tsg_l2_max_ways_evict_last_args>(|a| a.max_ways = ways);
        rig.tsg.ioctl(NVGPU_TSG_IOCTL_SET_L2_MAX_WAYS_EVICT_LAST, &mut set)
    };
    assert_eq!(ways(4), Err(Errno::EINVAL));
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!((ways(16), ways(17)), (Ok(()), Err(Errno::EINVAL)));
    for (flag, result) in [(0, Err(Errno::EINVAL)), (1, Ok(())), (2, Ok(())), (3, Err(Errno::EINVAL)), (4, Ok(()))] {
        let mut set = args::<nvgpu_tsg_set_l2_sector_promotion_args>(|a| a.promotion_flag = flag);
        assert_eq!(rig.tsg.ioctl(NVGPU_TSG_IOCTL_SET_L2_SECTOR_PROMOTION, &mut set), result);
    }
}

#[test]
fn rule_6_3_event_ids() {
    let board = Board::new();
    let tsg = board.tsg();
    let control = |cmd, id| {
        let mut control = args::<nvgpu_event_id_ctrl_args>(|a| (a.cmd, a.event_id) = (cmd, id));
        tsg.ioctl(NVGPU_IOCTL_TSG_EVENT_ID_CTRL, &mut control).map(|()| board.file(Node::Tsg, control.event_fd))
    };
    assert_eq!(control(1, 6).err(), Some(Errno::EINVAL));
    assert_eq!(control(0, 2).err(), Some(Errno::EINVAL));
    let (first, second) = (control(1, 2).unwrap(), control(1, 2).unwrap());
    assert_ne!(first.raw(), second.raw());
}

#[test]
fn rule_6_1_what_a_refused_bind_leaves_on_the_channel() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    bind_space(&space, &channel).unwrap();
    assert_eq!(bind_tsg(&tsg, &channel, 3), Err(Errno::EINVAL), "no such subcontext");
    bind_tsg(&tsg, &channel, 0).unwrap();
    // The run queue is that of the failed attempt: compute works, and graphics does not.
    assert_eq!((alloc_obj_ctx(&channel, 0xc7c0), alloc_obj_ctx(&channel, 0xc797)), (Ok(()), Err(Errno::EINVAL)));
}

#[test]
fn rule_6_the_old_bind_is_veid_0() {
    let board = Board::new();
    let (space, tsg, channel) = (board.space(), board.tsg(), board.channel());
    bind_space(&space, &channel).unwrap();
    let old = |fd: i32| board.raw(&tsg, NVGPU_TSG_IOCTL_BIND_CHANNEL, &mut fd.to_le_bytes());
    assert_eq!((old(-1), old(space.raw())), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!((old(channel.raw()), timedout(&channel)), (Ok(0), 0));
    assert_eq!(old(channel.raw()), Err(Errno::EINVAL));
    assert_eq!(alloc_obj_ctx(&channel, 0xc797), Ok(()), "graphics lives there");
}

#[test]
fn rule_6_a_group_is_stopped_and_started() {
    let board = Board::new();
    let tsg = board.tsg();
    for request in [NVGPU_IOCTL_TSG_DISABLE, NVGPU_IOCTL_TSG_ENABLE, NVGPU_IOCTL_TSG_PREEMPT] {
        assert_eq!(board.raw(&tsg, request, &mut []), Ok(0), "{request:#x}");
    }
}

#[test]
fn rule_6_l2_ways_are_told() {
    let board = Board::new();
    let rig = board.rig();
    let get = || {
        let mut get = args::<nvgpu_tsg_l2_max_ways_evict_last_args>(|_| ());
        rig.tsg.ioctl(NVGPU_TSG_IOCTL_GET_L2_MAX_WAYS_EVICT_LAST, &mut get).map(|()| get.max_ways)
    };
    assert_eq!(get(), Err(Errno::EINVAL));
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    let mut set = args::<nvgpu_tsg_l2_max_ways_evict_last_args>(|a| a.max_ways = 5);
    rig.tsg.ioctl(NVGPU_TSG_IOCTL_SET_L2_MAX_WAYS_EVICT_LAST, &mut set).unwrap();
    assert_eq!(get(), Ok(5));
}
