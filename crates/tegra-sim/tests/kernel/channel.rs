//! Channels, and what a fault changes about them (docs/hardware/nvgpu-channel.md#channel,
//! docs/hardware/nvgpu-faults.md#faults).

use crate::support::*;
use tegra_sim::{Chip, SimConfig};
use tegrarm_kmd::DeviceMem;

fn force_reset(channel: &File) {
    channel.ioctl_value(NVGPU_IOCTL_CHANNEL_FORCE_RESET, 0).unwrap();
}

fn set_notifier(channel: &File, fd: i32, offset: u64) -> Result<(), Errno> {
    let mut set = args::<nvgpu_set_error_notifier>(|a| (a.offset, a.size, a.mem) = (offset, 16, fd as u32));
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut set)
}

/// The CPU's view of a buffer.
fn view(buffer: &Buffer, len: usize) -> DeviceMem {
    DeviceMem::new(buffer.fd.mmap(Placement::Anywhere, len, Prot::ReadWrite, 0).unwrap())
}

/// The code and the status of the notification at `offset`.
fn notification(memory: &DeviceMem, offset: usize) -> (u32, u32) {
    (memory.read_u32(offset + 8), memory.read_u32(offset + 12) >> 16)
}

#[test]
fn rule_7_1_small_controls() {
    let board = Board::new();
    let rig = board.rig();
    let call = |request: u32, bytes: &mut [u8]| board.raw(&rig.channel, request, bytes);
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD, &mut [0; 4]), Ok(0));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_SET_TIMEOUT, &mut [0xff; 4]), Ok(0));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX, &mut [0; 8]), Err(Errno::EINVAL));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_ENABLE, &mut []), Ok(0));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_DISABLE, &mut []), Ok(0));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_PREEMPT, &mut []), Ok(0));
    assert_eq!(call(NVGPU_IOCTL_CHANNEL_ZCULL_BIND, &mut [0; 16]), Ok(0));
    let loose = board.channel();
    assert_eq!(board.raw(&loose, NVGPU_IOCTL_CHANNEL_PREEMPT, &mut []), Err(Errno::EINVAL));
    assert_eq!(board.raw(&loose, NVGPU_IOCTL_CHANNEL_ZCULL_BIND, &mut [0; 16]), Err(Errno::EINVAL));
    assert_eq!(board.raw(&loose, NVGPU_IOCTL_CHANNEL_FORCE_RESET, &mut []), Ok(0));
    let reschedule = call(NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST, &mut [0; 4]);
    assert!(matches!(reschedule, Err(Errno::EPERM | Errno::ENOSYS)));
}

#[test]
fn rule_7_2_setup_bind_checks_in_order() {
    let board = Board::new();
    let rig = board.rig();
    let (ring, userd, small) = (board.buffer(8192), board.buffer(4096), board.buffer(4096));
    let bare = {
        let handle = board.create(8192);
        Buffer { handle, fd: board.get_fd(handle).unwrap() }
    };
    let try_with = |fill: &dyn Fn(&mut nvgpu_channel_setup_bind_args)| setup_bind(&rig.channel, &ring, &userd, fill);
    for entries in [0, 1, 3, 1000, 1 << 30] {
        assert_eq!(try_with(&|a| a.num_gpfifo_entries = entries), Err(Errno::EINVAL), "{entries}");
    }
    assert_eq!(try_with(&|a| a.flags = NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_fd = 0), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.userd_dmabuf_fd = 0), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.userd_dmabuf_offset = 4096), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_offset = 8), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_fd = 99_999), Err(Errno::EBADF));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_fd = board.ctrl.raw()), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_fd = bare.raw()), Err(Errno::ENOMEM));
    assert_eq!(try_with(&|a| a.gpfifo_dmabuf_fd = small.raw()), Err(Errno::EINVAL));
    assert_eq!(try_with(&|a| a.userd_dmabuf_fd = 99_999), Err(Errno::EBADF));
    // A channel that was refused may try again, and nothing is left of the attempts.
    assert_eq!(try_with(&|_| ()), Ok(511));
    assert_eq!(try_with(&|_| ()), Err(Errno::EEXIST));
    assert_eq!(try_with(&|a| a.num_gpfifo_entries = 3), Err(Errno::EINVAL));
}

#[test]
fn rule_7_2_ring_and_userd_stay_until_the_channel_is_freed() {
    let board = Board::new();
    let rig = board.rig();
    let (ring, userd, _) = board.setup(&rig.channel);
    board.free(ring.handle);
    board.free(userd.handle);
    drop((ring, userd));
    assert_eq!(board.sim.kernel().census().memory, 8192 + 4096);
    drop(rig.channel);
    assert_eq!(board.sim.kernel().census().memory, 0);
}

#[test]
fn rule_7_4_alloc_obj_ctx_knows_its_classes() {
    let board = Board::new();
    let rig = board.rig();
    for class in [0xc7c0, 0xc7b5, 0xc76f, 0xa140, 0x902d, 0xc5c0, 0xb0b5] {
        assert_eq!(alloc_obj_ctx(&rig.channel, class), Ok(()), "{class:#x}");
    }
    // The classes are an unknown one, one of desktop GPUs, and graphics in a VEID other than 0.
    for class in [0, 0xc6c0, 0xc9c0, 0xc797] {
        assert_eq!(alloc_obj_ctx(&rig.channel, class), Err(Errno::EINVAL), "{class:#x}");
    }
    assert_eq!(alloc_obj_ctx(&board.channel(), 0xc7c0), Err(Errno::EINVAL));
    let mut alloc = args::<nvgpu_alloc_obj_ctx_args>(|a| (a.class_num, a.obj_id) = (0xc7c0, 77));
    rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &mut alloc).unwrap();
    assert_eq!(alloc.obj_id, 77);
}

#[test]
fn rule_7_5_watchdog() {
    let board = Board::new();
    let rig = board.rig();
    for (status, result) in [(0, Err(Errno::EINVAL)), (3, Err(Errno::EINVAL)), (2, Ok(())), (1 | 4 | 8, Ok(()))] {
        assert_eq!(wdt(&rig.channel, status), result, "{status}");
    }
    board.setup(&rig.channel);
    assert_eq!(wdt(&rig.channel, 2), Err(Errno::EINVAL));
    assert_eq!(wdt(&rig.channel, 1), Ok(()));
}

#[test]
fn rule_7_6_error_notifier() {
    let board = Board::new();
    let (channel, buffer) = (board.channel(), board.buffer(4096));
    let memory = view(&buffer, 4096);
    memory.write_u64(4080, u64::MAX);
    memory.write_u64(4088, u64::MAX);
    assert_eq!(set_notifier(&channel, 0, 0), Err(Errno::EINVAL));
    assert_eq!(set_notifier(&channel, 99_999, 0), Err(Errno::EINVAL));
    assert_eq!(set_notifier(&channel, buffer.raw(), 4081), Err(Errno::EINVAL));
    assert_eq!(set_notifier(&channel, buffer.raw(), u64::MAX - 8), Err(Errno::EINVAL));
    let bare = board.get_fd(board.create(4096)).unwrap();
    assert_eq!(set_notifier(&channel, bare.raw(), 0), Err(Errno::ENOMEM));
    assert_eq!(memory.read_u64(4080), u64::MAX);
    assert_eq!(set_notifier(&channel, buffer.raw(), 4080), Ok(()));
    assert_eq!((memory.read_u64(4080), memory.read_u64(4088)), (0, 0));
}

#[test]
fn rule_7_6_a_failed_call_drops_the_old_notifier() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    set_notifier(&rig.channel, buffer.raw(), 0).unwrap();
    assert_eq!(set_notifier(&rig.channel, 99_999, 0), Err(Errno::EINVAL));
    force_reset(&rig.channel);
    assert_eq!(notification(&view(&buffer, 4096), 0), (0, 0));
}

#[test]
fn rule_7_7_a_channel_has_one_syncpoint() {
    let board = Board::new();
    let rig = board.rig();
    let get = |channel: &File| {
        let mut get = args::<nvgpu_get_user_syncpoint_args>(|_| ());
        channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut get).unwrap();
        (get.gpu_va, get.syncpoint_id, get.syncpoint_max)
    };
    let first = get(&rig.channel);
    assert_eq!((first, first.1), (get(&rig.channel), 17));
    let other = board.bound_channel(&rig.space, &rig.tsg, rig.veid);
    assert_eq!(get(&other).1, 18);
    drop(rig.channel);
    assert_eq!(board.sim.kernel().census().syncpoints, 1);
    let next = board.bound_channel(&rig.space, &rig.tsg, rig.veid);
    assert_eq!(get(&next).1, 17);
}

/// The end of a channel in a group lets all waiters for its syncpoint continue although there was no fault, and the next
/// owner of the syncpoint begins with the value that is left. The driver adds to it when the channel leaves its group,
/// and once more if the channel was alive. A channel that is in no group adds nothing.
#[test]
fn rule_7_7_a_closed_channels_syncpoint_moves_on() {
    let max = |channel: &File| {
        let mut get = args::<nvgpu_get_user_syncpoint_args>(|_| ());
        channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut get).unwrap();
        (get.syncpoint_id, get.syncpoint_max)
    };
    for (board, step) in [(Board::r35(), 0x10000), (Board::new(), 1000), (Board::r39(), 1000)] {
        let space = board.space();
        let tsg = File::open(&board.kmd, Node::Tsg, "/dev/nvgpu/igpu0/tsg").unwrap();
        for turn in 0..3 {
            let channel = board.bound_channel(&space, &tsg, 0);
            assert_eq!(max(&channel), (17, turn * 2 * step));
        }
        // Neither a channel in no group nor a syncpoint that no program asked for changes the value.
        for _ in 0..2 {
            let channel = board.channel();
            bind_space(&space, &channel).unwrap();
            assert_eq!(max(&channel), (17, 6 * step));
        }
        drop(board.channel());
        assert_eq!(max(&board.bound_channel(&space, &tsg, 0)), (17, 6 * step));
    }
    let board = Board::new();
    let rig = board.rig();
    assert_eq!(max(&rig.channel), (17, 0));
    force_reset(&rig.channel);
    assert_eq!(max(&rig.channel), (17, 1000));
    drop(rig.channel);
    let veid = board.subcontext(&rig.tsg, &rig.space).unwrap();
    assert_eq!((veid, max(&board.bound_channel(&rig.space, &rig.tsg, veid))), (rig.veid, (17, 2000)));
}

/// Variant D of test_channel_variants: a ring of 3 MiB froze a board whose kernel has a range that begins 2 MiB below
/// 2^40.
#[test]
fn rule_7_2_strict_refuses_a_ring_above_2_40() {
    for (strict, end, expected) in
        [(true, OBSERVED_END, Err(Errno::EFAULT)), (false, OBSERVED_END, Ok(511)), (true, END, Ok(511))]
    {
        let board = Board::with(SimConfig { strict, ..SimConfig::new(Chip::AgxOrin) });
        let (space, tsg) = (board.alloc_as(START, end).unwrap(), board.tsg());
        let veid = board.subcontext(&tsg, &space).unwrap();
        let channel = board.bound_channel(&space, &tsg, veid);
        let (ring, userd) = (board.buffer(3 << 20), board.buffer(4096));
        assert_eq!(setup_bind(&channel, &ring, &userd, |_| ()), expected, "{strict} {end:#x}");
        if expected.is_err() {
            // Nothing is left of the attempt: a ring that fits works on the same channel.
            assert_eq!(setup_bind(&channel, &board.buffer(8192), &userd, |_| ()), Ok(511));
        }
    }
}

#[test]
fn rule_7_8_preemption_modes_only_rise() {
    let board = Board::new();
    let rig = board.rig();
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    let set = |graphics, compute| {
        let mut set = args::<nvgpu_preemption_mode_args>(|a| {
            (a.graphics_preempt_mode, a.compute_preempt_mode) = (graphics, compute);
        });
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE, &mut set)
    };
    assert_eq!(set(1, 1), Ok(()));
    assert_eq!(set(0, 3), Err(Errno::EINVAL));
    assert_eq!(set(2, 4), Err(Errno::EINVAL));
    assert_eq!(set(0, 2), Ok(()));
    assert_eq!(set(0, 1), Err(Errno::EINVAL));
    assert_eq!(set(0, 4), Ok(()));
    assert_eq!(set(2, 0), Err(Errno::EINVAL));
}

#[test]
fn rule_7_10_submit_is_refused_on_usermode_channels() {
    let board = Board::new();
    let rig = board.rig();
    let submit = |channel: &File, num| {
        let mut submit = args::<nvgpu_submit_gpfifo_args>(|a| {
            (a.num_entries, a.flags) = (num, NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING);
        });
        channel.ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit)
    };
    assert_eq!(submit(&board.channel(), 1), Err(Errno::ETIMEDOUT));
    assert_eq!(submit(&rig.channel, 1), Err(Errno::ENOMEM));
    board.setup(&rig.channel);
    assert_eq!(submit(&rig.channel, 1), Err(Errno::EINVAL));
    force_reset(&rig.channel);
    assert_eq!(submit(&rig.channel, 1), Err(Errno::ETIMEDOUT));
}

#[test]
fn rule_7_9_kernel_mode_rings_take_entries() {
    let board = Board::new();
    let rig = board.rig();
    let nothing = board.buffer(4096);
    let kernel_mode = |a: &mut nvgpu_channel_setup_bind_args| (a.flags, a.num_gpfifo_entries) = (0, 2);
    assert_eq!(setup_bind(&rig.channel, &nothing, &nothing, kernel_mode), Err(Errno::EINVAL));
    setup_bind(&rig.channel, &nothing, &nothing, |a| (a.flags, a.num_gpfifo_entries) = (0, 4)).unwrap();
    let entries = [[0_u32; 2]; 4];
    let submit = |num, at| {
        let mut submit = args::<nvgpu_submit_gpfifo_args>(|a| (a.num_entries, a.gpfifo) = (num, at));
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit)
    };
    assert_eq!(submit(4, entries.as_ptr() as u64), Err(Errno::ENOMEM));
    assert_eq!(submit(1, 8), Err(Errno::EFAULT));
    // These are control entries with opcode 0, which the host consumes.
    assert_eq!(submit(1, entries.as_ptr() as u64), Ok(()));
}

#[test]
fn rule_7_11_wait() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    let wait = |fill: &dyn Fn(&mut nvgpu_wait_args)| {
        let mut wait = args::<nvgpu_wait_args>(|a| {
            (a.timeout, a.condition_notifier_dmabuf_fd) = (1, buffer.raw() as u32);
            fill(a);
        });
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_WAIT, &mut wait)
    };
    assert_eq!(wait(&|a| a.type_ = 2), Err(Errno::EINVAL));
    assert_eq!(wait(&|a| a.condition_notifier_dmabuf_fd = 99_999), Err(Errno::EINVAL));
    assert_eq!(wait(&|a| a.condition_notifier_offset = 4090), Err(Errno::EINVAL));
    assert_eq!(wait(&|a| (a.type_, a.condition_notifier_offset) = (1, 2)), Err(Errno::EINVAL));
    let memory = view(&buffer, 4096);
    // Status 0 stands for completion, so that the record is overwritten. A status that stays ends in a timeout.
    assert_eq!(wait(&|_| ()), Ok(()));
    assert_eq!((memory.read_u32(8), memory.read_u32(12) & 0xffff), (0xdead_beef, 511));
    memory.write_u32(12, 0xffff_0000);
    assert_eq!(wait(&|_| ()), Err(Errno::EINTR));
    let semaphore = |payload| {
        wait(&|a| {
            (a.type_, a.condition_notifier_offset, a.condition_notifier_padding1) = (1, 64, payload);
        })
    };
    memory.write_u32(64, 5);
    assert_eq!(semaphore(5), Ok(()));
    assert_eq!(semaphore(6), Err(Errno::ETIMEDOUT));
    force_reset(&rig.channel);
    assert_eq!(semaphore(5), Err(Errno::ETIMEDOUT));
}

#[test]
fn rule_7_11_death_wakes_a_waiter() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut wait = args::<nvgpu_wait_args>(|a| {
                (a.type_, a.condition_notifier_dmabuf_fd, a.condition_notifier_padding1) = (1, buffer.raw() as u32, 1);
            });
            rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_WAIT, &mut wait)
        });
        while !waiter.is_finished() {
            force_reset(&rig.channel);
            std::thread::yield_now();
        }
        // A waiter that slept when the channel died gets 0. A waiter that did not sleep yet gets -ETIMEDOUT.
        assert!(matches!(waiter.join().unwrap(), Ok(()) | Err(Errno::ETIMEDOUT)));
    });
}

#[test]
fn rule_8_1_recovery_reaches_every_channel_of_the_group_and_no_other() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    let sibling = board.bound_channel(&rig.space, &rig.tsg, rig.veid);
    let stranger = board.rig();
    for (channel, offset) in [(&rig.channel, 0), (&sibling, 16), (&stranger.channel, 32)] {
        set_notifier(channel, buffer.raw(), offset).unwrap();
    }
    board.setup(&rig.channel);
    force_reset(&sibling);
    let memory = view(&buffer, 4096);
    assert_eq!(notification(&memory, 0), (43, 0xffff));
    assert_eq!(notification(&memory, 16), (43, 0xffff));
    assert_eq!(notification(&memory, 32), (0, 0));
    assert_eq!([&rig.channel, &sibling, &stranger.channel].map(timedout), [1, 1, 0]);
    assert!(memory.read_u64(0) > 0, "time stamp");
}

#[test]
fn rule_8_3_the_first_error_wins_until_its_status_is_cleared() {
    let board = Board::new();
    let (rig, buffer) = (board.rig(), board.buffer(4096));
    set_notifier(&rig.channel, buffer.raw(), 0).unwrap();
    let memory = view(&buffer, 4096);
    memory.write_u32(8, 31);
    memory.write_u32(12, 0xffff_0000);
    force_reset(&rig.channel);
    assert_eq!(notification(&memory, 0), (31, 0xffff));
    memory.write_u32(12, 0);
    force_reset(&rig.channel);
    assert_eq!(notification(&memory, 0), (43, 0xffff));
}

#[test]
fn rule_8_2_a_dead_channel_still_answers() {
    let board = Board::new();
    let rig = board.rig();
    board.setup(&rig.channel);
    force_reset(&rig.channel);
    assert_eq!(alloc_obj_ctx(&rig.channel, 0xc7c0), Ok(()));
    assert_eq!(set_notifier(&rig.channel, board.buffer(4096).raw(), 0), Ok(()));
    let va = map(&rig.space, &board.buffer(4096)).unwrap();
    unmap(&rig.space, va);
    // The address space can be used by a new group.
    let tsg = board.tsg();
    let veid = board.subcontext(&tsg, &rig.space).unwrap();
    let channel = board.bound_channel(&rig.space, &tsg, veid);
    assert_eq!(timedout(&channel), 0);
    board.setup(&channel);
}

#[test]
fn rule_8_1_a_dead_channels_syncpoint_moves_on() {
    let board = Board::new();
    let rig = board.rig();
    let max = || {
        let mut get = args::<nvgpu_get_user_syncpoint_args>(|_| ());
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut get).unwrap();
        get.syncpoint_max
    };
    let before = max();
    force_reset(&rig.channel);
    assert_eq!(max(), before + 1000);
}

#[test]
fn rule_8_4_sm_records_are_zero_without_an_exception() {
    let board = Board::observed();
    let tsg = board.tsg();
    let mut record = [0xee_u8; 32];
    let mut read = |sm, size| {
        let mut read = args::<nvgpu_tsg_read_single_sm_error_state_args>(|a| {
            (a.sm_id, a.record_mem, a.record_size) = (sm, record.as_mut_ptr() as u64, size);
        });
        tsg.ioctl(NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read).map(|()| (read.record_size, record))
    };
    assert_eq!(read(8, 24).err(), Some(Errno::EINVAL));
    assert_eq!(read(7, 0).unwrap().1, [0xee; 32]);
    assert_eq!(read(7, 6).unwrap().1[5..8], [0, 0xee, 0xee]);
    let (size, record) = read(7, 100).unwrap();
    assert_eq!((size, &record[..24], record[24]), (24, &[0; 24][..], 0xee));
}

#[test]
fn rule_7_14_a_closed_channel_gives_its_id_back_first() {
    let board = Board::new();
    let rig = board.rig();
    let other = board.bound_channel(&rig.space, &rig.tsg, rig.veid);
    drop(rig.channel);
    let again = board.bound_channel(&rig.space, &rig.tsg, rig.veid);
    assert_eq!(board.setup(&again).2, 511);
    assert_eq!(board.setup(&other).2, 510);
}
