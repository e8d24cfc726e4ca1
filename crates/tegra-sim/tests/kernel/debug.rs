//! The debugger's node: sessions, registers, contexts and memory. The rules name it
//! (docs/hardware/nvgpu-debugger.md#debugger, docs/hardware/nvgpu-faults.md#sm-error-records), and the order of the
//! checks is that of the driver.

use crate::support::running::*;
use crate::support::*;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use tegra_sim::{Chip, L4t, SimConfig};
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::sched::NVGPU_SCHED_IOCTL_LOCK_CONTROL;
use tegrarm_kmd::DeviceMem;

fn open(board: &Board, node: Node, name: &str) -> File {
    File::open(&board.kmd, node, &format!("/dev/nvgpu/igpu0/{name}")).unwrap()
}

fn bind(session: &File, fd: i32) -> Result<(), Errno> {
    session.ioctl(
        NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL,
        &mut args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = fd as u32),
    )
}

fn unbind(session: &File, fd: i32) -> Result<(), Errno> {
    let mut unbind = args::<nvgpu_dbg_gpu_unbind_channel_args>(|a| a.channel_fd = fd as u32);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL, &mut unbind)
}

fn read_record(session: &File, sm: u32, size: u64, at: &mut [u8; 24]) -> Result<u64, Errno> {
    let mut read = args::<nvgpu_dbg_gpu_read_single_sm_error_state_args>(|a| {
        (a.sm_id, a.sm_error_state_record_size, a.sm_error_state_record_mem) = (sm, size, at.as_mut_ptr() as u64);
    });
    session.ioctl(NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read).map(|()| read.sm_error_state_record_size)
}

#[test]
fn rule_9_1_a_debugger_keeps_the_channels_it_is_bound_to() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let rig = board.rig();
    assert_eq!(bind(&session, -1), Err(Errno::ENODEV));
    assert_eq!(bind(&session, 987), Err(Errno::ENODEV));
    assert_eq!(bind(&session, rig.tsg.raw()), Err(Errno::EINVAL));
    bind(&session, rig.channel.raw()).unwrap();
    bind(&session, rig.channel.raw()).unwrap();
    assert_eq!(unbind(&session, rig.tsg.raw()), Err(Errno::EINVAL));
    unbind(&session, rig.channel.raw()).unwrap();
    let Rig { space, tsg, channel, .. } = rig;
    drop(channel);
    assert_eq!(board.sim.kernel().census().channels, 1, "its file is open while it is bound");
    let mut slice = args::<nvgpu_timeslice_args>(|a| a.timeslice_us = 1);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_TSG_GET_TIMESLICE, &mut slice).unwrap();
    assert_eq!(slice.timeslice_us, 1024);
    drop(session);
    assert_eq!(board.sim.kernel().census().channels, 0);
    drop((space, tsg));
}

#[test]
fn rule_9_1_a_debugger_without_a_channel_or_group_is_refused() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let mut slice = args::<nvgpu_timeslice_args>(|a| a.timeslice_us = 2000);
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE, &mut slice), Err(Errno::EINVAL));
    assert_eq!(read_record(&session, 0, 24, &mut [0; 24]), Err(Errno::EINVAL));
    let loose = board.channel();
    bind(&session, loose.raw()).unwrap();
    assert_eq!(read_record(&session, 0, 24, &mut [0; 24]), Err(Errno::EINVAL));
    assert_eq!(unbind(&session, board.channel().raw()), Err(Errno::EINVAL));
}

#[test]
fn rule_8_4_sm_records_are_read_and_cleared_through_the_debugger() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    let mut record = [0xff; 24];
    assert_eq!(read_record(&session, 16, 24, &mut record), Err(Errno::EINVAL));
    assert_eq!(read_record(&session, 15, 0, &mut record), Ok(0));
    assert_eq!(record, [0xff; 24]);
    assert_eq!(read_record(&session, 0, 8, &mut record), Ok(8));
    assert_eq!(record[..9], [0, 0, 0, 0, 0, 0, 0, 0, 0xff]);
    assert_eq!(read_record(&session, 0, 1000, &mut record), Ok(24));
    let clear = |sm_id| {
        let mut clear = args::<nvgpu_dbg_gpu_clear_single_sm_error_state_args>(|a| a.sm_id = sm_id);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE, &mut clear)
    };
    assert_eq!((clear(16), clear(15)), (Err(Errno::EINVAL), Ok(())));
}

#[test]
fn rule_9_1_a_debuggers_timeslice_is_longer_but_the_managers_lock_holds() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    let set = |us| {
        session.ioctl(NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE, &mut args::<nvgpu_timeslice_args>(|a| a.timeslice_us = us))
    };
    assert_eq!((set(999), set(4_000_001)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    set(4_000_000).unwrap();
    let manager = open(&board, Node::Sched, "sched");
    manager.ioctl_value(NVGPU_SCHED_IOCTL_LOCK_CONTROL, 0).unwrap();
    assert_eq!(set(2000), Err(Errno::EPERM));
}

#[test]
fn rule_9_1_timeouts_are_off_while_any_debugger_wants() {
    let board = Board::new();
    let (one, two) = (open(&board, Node::Debugger, "dbg"), open(&board, Node::Debugger, "prof"));
    let set = |session: &File, enable| {
        session.ioctl(NVGPU_DBG_GPU_IOCTL_TIMEOUT, &mut args::<nvgpu_dbg_gpu_timeout_args>(|a| a.enable = enable))
    };
    let get = |session: &File| {
        let mut get = args::<nvgpu_dbg_gpu_timeout_args>(|_| ());
        session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT, &mut get).map(|()| get.enable)
    };
    assert_eq!(set(&one, 2), Err(Errno::EINVAL));
    set(&one, NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE).unwrap();
    set(&one, NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE).unwrap();
    assert_eq!((get(&one), get(&two)), (Ok(0), Ok(0)), "of the GPU, not of the session");
    set(&two, NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE).unwrap();
    assert_eq!(get(&two), Ok(0));
    drop(one);
    assert_eq!(get(&two), Ok(1), "a session that ends takes its wish with it");
}

const READ: u8 = NVGPU_DBG_GPU_REG_OP_READ_32 as u8;
const GLOBAL: u8 = NVGPU_DBG_GPU_REG_OP_TYPE_GLOBAL as u8;
const GR_CTX: u8 = NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX as u8;

fn op(op: u8, kind: u8, offset: u32) -> nvgpu_dbg_gpu_reg_op {
    args(|a: &mut nvgpu_dbg_gpu_reg_op| (a.op, a.type_, a.offset, a.status) = (op, kind, offset, 0xee))
}

fn reg_ops(session: &File, ops: &mut [nvgpu_dbg_gpu_reg_op]) -> Result<u32, Errno> {
    let mut exec = args::<nvgpu_dbg_gpu_exec_reg_ops_args>(|a| {
        (a.ops, a.num_ops, a.gr_ctx_resident) = (ops.as_mut_ptr() as u64, ops.len() as u32, 77);
    });
    session.ioctl(NVGPU_DBG_GPU_IOCTL_REG_OPS, &mut exec).map(|()| exec.gr_ctx_resident)
}

#[test]
fn rule_9_1_register_operations_read_what_this_gpu_has() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "prof");
    let mut topology = [0x22430, 0x22434, 0x22438, 0x22450, 0x2245c].map(|offset| op(READ, GLOBAL, offset));
    assert_eq!(reg_ops(&session, &mut topology), Ok(0));
    assert_eq!(topology.map(|op| (op.status, op.value_lo, op.value_hi)), [2, 4, 2, 1, 4].map(|value| (0, value, 0)));
    let mut pair = [op(NVGPU_DBG_GPU_REG_OP_READ_64 as u8, GLOBAL, 0x22430)];
    reg_ops(&session, &mut pair).unwrap();
    assert_eq!((pair[0].value_lo, pair[0].value_hi), (2, 4));
    let time = |session: &File| {
        let mut halves = [op(READ, GLOBAL, 0x9410), op(READ, GLOBAL, 0x9400), op(READ, GLOBAL, 0x9410)];
        reg_ops(session, &mut halves).unwrap();
        assert_eq!(halves[1].value_lo & 0x1f, 0, "steps of 32 ns");
        u64::from(halves[0].value_lo) << 32 | u64::from(halves[1].value_lo)
    };
    let (before, now) = (time(&session), time(&session));
    // If the low half overflows between the two reads, the result is 4 s too small.
    assert!(now >= before || before - now < 1 << 33, "{before} {now}");
    // These are more operations than the driver copies at a time.
    let mut many = vec![op(READ, GLOBAL, 0x22434); 300];
    reg_ops(&session, &mut many).unwrap();
    assert!(many.iter().all(|op| op.value_lo == 4 && op.status == 0));
}

#[test]
fn rule_9_1_one_bad_register_operation_refuses_all() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "prof");
    let bad = [
        op(READ, GLOBAL, 0x22432),
        op(READ, GLOBAL, 0x0100_0000),
        op(READ, GLOBAL, 0x22454),
        op(READ, GLOBAL, 0x504000),
        op(READ, NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_SM as u8, 0x22430),
        op(READ, 3, 0x22430),
        op(READ, GR_CTX, 0x22430),
        op(NVGPU_DBG_GPU_REG_OP_READ_08 as u8, GLOBAL, 0x22430),
        op(NVGPU_DBG_GPU_REG_OP_READ_64 as u8, GLOBAL, 0x9400),
        op(NVGPU_DBG_GPU_REG_OP_WRITE_32 as u8, GLOBAL, 0x22430),
        op(9, GLOBAL, 0x22430),
    ];
    for bad in bad {
        let mut ops = [op(READ, GLOBAL, 0x22430), bad];
        let text = format!("{:#x} {} {}", bad.offset, bad.op, bad.type_);
        assert_eq!(reg_ops(&session, &mut ops), Err(Errno::EINVAL), "{text}");
        assert_eq!(ops.map(|op| (op.status, op.value_lo)), [(0xee, 0); 2], "nothing is reported: {text}");
    }
    assert_eq!(reg_ops(&session, &mut []), Ok(77), "nothing to do");
    assert_eq!(reg_ops(&session, &mut vec![op(READ, GLOBAL, 0x22430); 1025]), Err(Errno::EINVAL));
    let mut nowhere = args::<nvgpu_dbg_gpu_exec_reg_ops_args>(|a| (a.ops, a.num_ops) = (8, 1));
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_REG_OPS, &mut nowhere), Err(Errno::EFAULT));
}

#[test]
fn rule_9_1_a_debuggers_register_operations_want_a_channel_in_a_group() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    assert_eq!(reg_ops(&session, &mut [op(READ, GLOBAL, 0x22430)]), Err(Errno::EINVAL));
    let loose = board.channel();
    bind(&session, loose.raw()).unwrap();
    assert_eq!(reg_ops(&session, &mut [op(READ, GLOBAL, 0x22430)]), Err(Errno::EINVAL));
    unbind(&session, loose.raw()).unwrap();
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    assert_eq!(reg_ops(&session, &mut [op(READ, GLOBAL, 0x22430)]), Ok(0));
    assert_eq!(reg_ops(&session, &mut [op(READ, GR_CTX, 0x22430)]), Err(Errno::ENODEV), "no context yet");
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!(reg_ops(&session, &mut [op(READ, GR_CTX, 0x22430)]), Err(Errno::EINVAL), "not saved with a context");
}

/// Makes a channel whose group was the last to use the engine.
fn resident(board: &Board, doorbell: &DeviceMem) -> Running {
    let mut running = Running::new(board);
    alloc_obj_ctx(&running.rig.channel, 0xc7c0).unwrap();
    let va = running.page_va;
    running.semaphore(doorbell, va, 1, 1);
    until("the release", || running.page.read_u32(0) == 1);
    running
}

fn contexts(session: &File, action: u32) -> Result<(u32, i32), Errno> {
    let mut suspend = args::<nvgpu_dbg_gpu_suspend_resume_contexts_args>(|a| {
        (a.action, a.resident_context_fd, a.is_resident_context) = (action, -7, 9);
    });
    session
        .ioctl(NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_CONTEXTS, &mut suspend)
        .map(|()| (suspend.is_resident_context, suspend.resident_context_fd))
}

#[test]
fn rule_9_1_the_context_in_the_engine_is_reached_directly() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let session = open(&board, Node::Debugger, "dbg");
    let channel = resident(&board, &doorbell);
    bind(&session, channel.rig.channel.raw()).unwrap();
    let mut ops = [op(READ, GR_CTX, 0x22434), op(READ, GLOBAL, 0x22430)];
    assert_eq!(reg_ops(&session, &mut ops), Ok(1 << 4));
    assert_eq!(ops.map(|op| op.value_lo), [4, 2]);
    assert_eq!(contexts(&session, NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS), Ok((1, channel.rig.channel.raw())));
    // Another group uses the engine, so that the context of the first one is saved.
    let _other = resident(&board, &doorbell);
    assert_eq!(reg_ops(&session, &mut ops), Err(Errno::EINVAL));
    assert_eq!(contexts(&session, NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS), Ok((0, -7)));
}

#[test]
fn rule_9_1_a_suspended_context_waits_until_it_is_resumed() {
    let board = Board::new();
    let doorbell = view(&board.ctrl, 4096);
    let session = open(&board, Node::Debugger, "dbg");
    assert_eq!(contexts(&session, NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS), Ok((0, -7)), "no channel, nothing to do");
    let mut channel = Running::new(&board);
    let mut other = resident(&board, &doorbell);
    bind(&session, channel.rig.channel.raw()).unwrap();
    let suspend_sms = |session: &File, mode| {
        let mut suspend = args::<nvgpu_dbg_gpu_suspend_resume_all_sms_args>(|a| a.mode = mode);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_ALL_SMS, &mut suspend)
    };
    let none = open(&board, Node::Debugger, "dbg");
    assert_eq!(suspend_sms(&none, NVGPU_DBG_GPU_SUSPEND_ALL_SMS), Err(Errno::EINVAL));
    assert_eq!(suspend_sms(&session, 7), Ok(()), "an unknown mode does nothing");
    type Switch<'a> = Box<dyn Fn(bool) + 'a>;
    let ways: [Switch<'_>; 2] = [
        Box::new(|on| {
            let action = if on { NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS } else { NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS };
            assert_eq!(contexts(&session, action), Ok((0, -7)));
        }),
        Box::new(|on| {
            suspend_sms(&session, if on { NVGPU_DBG_GPU_SUSPEND_ALL_SMS } else { NVGPU_DBG_GPU_RESUME_ALL_SMS })
                .unwrap();
        }),
    ];
    for (payload, suspend) in (2..).zip(ways) {
        suspend(true);
        let (va, other_va) = (channel.page_va, other.page_va);
        channel.semaphore(&doorbell, va, payload, 1);
        other.semaphore(&doorbell, other_va, payload, 1);
        until("the other group's release", || other.page.read_u32(0) == payload);
        assert_ne!(channel.page.read_u32(0), payload, "suspended");
        suspend(false);
        until("the release", || channel.page.read_u32(0) == payload);
        // The context leaves the engine, so that the next round suspends it again.
        other.semaphore(&doorbell, other_va, 100 + payload, 1);
        until("the other group's release", || other.page.read_u32(0) == 100 + payload);
    }
}

#[test]
fn rule_9_1_a_channel_without_a_group_counts_as_resident_when_suspended() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let loose = board.channel();
    bind(&session, loose.raw()).unwrap();
    assert_eq!(contexts(&session, NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS), Ok((1, loose.raw())));
    assert_eq!(contexts(&session, NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS), Ok((0, -7)));
    assert_eq!(contexts(&session, 3), Ok((0, -7)));
}

#[test]
fn rule_9_1_a_session_is_never_ready_to_poll_without_an_event() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let control = |cmd| {
        session.ioctl(NVGPU_DBG_GPU_IOCTL_EVENTS_CTRL, &mut args::<nvgpu_dbg_gpu_events_ctrl_args>(|a| a.cmd = cmd))
    };
    assert_eq!(control(NVGPU_DBG_GPU_EVENTS_CTRL_CMD_ENABLE), Err(Errno::EINVAL), "no channel");
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    assert_eq!(control(3), Err(Errno::EINVAL));
    for cmd in [
        NVGPU_DBG_GPU_EVENTS_CTRL_CMD_ENABLE,
        NVGPU_DBG_GPU_EVENTS_CTRL_CMD_CLEAR,
        NVGPU_DBG_GPU_EVENTS_CTRL_CMD_DISABLE,
        NVGPU_DBG_GPU_EVENTS_CTRL_CMD_ENABLE,
    ] {
        control(cmd).unwrap();
    }
    // An error that no debugger catches ends the group, without an event (docs/hardware/nvgpu-tsg.md#no-error-events).
    rig.channel.ioctl_value(NVGPU_IOCTL_CHANNEL_FORCE_RESET, 0).unwrap();
    let mut fds = [PollFd::new(session.as_fd(), PollFlags::POLLIN | PollFlags::POLLPRI)];
    assert_eq!(poll(&mut fds, PollTimeout::ZERO), Ok(0));
}

#[test]
fn rule_9_1_modes_of_a_context_want_one() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let smpc = |session: &File| {
        let mut mode = args::<nvgpu_dbg_gpu_smpc_ctxsw_mode_args>(|a| a.mode = 1);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_SMPC_CTXSW_MODE, &mut mode)
    };
    let hwpm = |mode| {
        let mut mode = args::<nvgpu_dbg_gpu_hwpm_ctxsw_mode_args>(|a| a.mode = mode);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_HWPM_CTXSW_MODE, &mut mode)
    };
    let gate = |mode| {
        session.ioctl(NVGPU_DBG_GPU_IOCTL_POWERGATE, &mut args::<nvgpu_dbg_gpu_powergate_args>(|a| a.mode = mode))
    };
    let mask = |mask| {
        let mut mask = args::<nvgpu_dbg_gpu_set_sm_exception_type_mask_args>(|a| a.exception_type_mask = mask);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK, &mut mask)
    };
    let errbar = || {
        let mut wait = args::<nvgpu_sched_exit_wait_for_errbar_args>(|a| a.enable = 1);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR, &mut wait)
    };
    assert_eq!(smpc(&session), Ok(()), "without a channel: of all contexts");
    assert_eq!((hwpm(1), mask(1), errbar()), (Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    assert_eq!((mask(0), mask(1), mask(2)), (Ok(()), Ok(()), Err(Errno::EINVAL)));
    assert_eq!(smpc(&session), Err(Errno::EFAULT));
    assert_eq!(hwpm(1), Err(Errno::ENOSYS), "power gating is on");
    assert_eq!((gate(0), gate(3)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    gate(NVGPU_DBG_GPU_POWERGATE_MODE_DISABLE).unwrap();
    gate(NVGPU_DBG_GPU_POWERGATE_MODE_DISABLE).unwrap();
    assert_eq!((hwpm(1), errbar()), (Err(Errno::EFAULT), Err(Errno::ENODEV)));
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!((smpc(&session), errbar()), (Ok(()), Ok(())));
    assert_eq!([0, 1, 2, 3].map(hwpm), [Ok(()), Ok(()), Ok(()), Err(Errno::EINVAL)]);
    gate(NVGPU_DBG_GPU_POWERGATE_MODE_ENABLE).unwrap();
    assert_eq!(hwpm(1), Err(Errno::ENOSYS));
    // The calls that follow have no effect here: which exception stops next, and how many SMs it stops.
    let mut trigger = args::<nvgpu_dbg_gpu_set_next_stop_trigger_type_args>(|a| a.broadcast = 1);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_NEXT_STOP_TRIGGER_TYPE, &mut trigger).unwrap();
}

#[test]
fn rule_9_1_chips_differ_in_what_they_sample_and_count() {
    let xavier = Board::with(SimConfig::new(Chip::Gv11b));
    let session = open(&xavier, Node::Debugger, "dbg");
    let mut mode = args::<nvgpu_dbg_gpu_smpc_ctxsw_mode_args>(|a| a.mode = 1);
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_SMPC_CTXSW_MODE, &mut mode), Err(Errno::EINVAL));
    let mut wait = args::<nvgpu_sched_exit_wait_for_errbar_args>(|_| ());
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR, &mut wait), Err(Errno::ENOSYS));
    for board in [xavier, Board::new()] {
        let session = open(&board, Node::Debugger, "dbg");
        let channel = board.channel();
        bind(&session, channel.raw()).unwrap();
        let mut sampling = args::<nvgpu_dbg_gpu_pc_sampling_args>(|a| a.enable = 1);
        assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_PC_SAMPLING, &mut sampling), Err(Errno::EINVAL));
    }
    let older = Board::with(SimConfig::new(Chip::AgxOrin).on(L4t::R35));
    let session = open(&older, Node::Debugger, "dbg");
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR, &mut wait), Err(Errno::EINVAL));
}

#[test]
fn rule_9_1_what_cannot_be_debugged_here_is_refused_after_its_checks() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let mmu = |mode, reserved| {
        let mut mode = args::<nvgpu_dbg_gpu_set_ctx_mmu_debug_mode_args>(|a| (a.mode, a.reserved) = (mode, reserved));
        session.ioctl(NVGPU_DBG_GPU_IOCTL_SET_CTX_MMU_DEBUG_MODE, &mut mode)
    };
    let size = || {
        let mut size = args::<nvgpu_dbg_gpu_get_gr_context_size_args>(|_| ());
        session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT_SIZE, &mut size)
    };
    let stats = |fd| {
        let mut stats = args::<nvgpu_dbg_gpu_cycle_stats_snapshot_args>(|a| a.dmabuf_fd = fd);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT, &mut stats)
    };
    let mut cycles = args::<nvgpu_dbg_gpu_cycle_stats_args>(|_| ());
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_CYCLE_STATS, &mut cycles), Err(Errno::EINVAL));
    assert_eq!(
        (mmu(0, 0), size(), stats(0), stats(1)),
        (Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::EINVAL))
    );
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!((mmu(0, 0), mmu(0, 1), mmu(1, 0)), (Ok(()), Err(Errno::EINVAL), Err(Errno::ENOSYS)));
    assert_eq!((size(), stats(0), stats(1)), (Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::ENOSYS)));
    let mut image = args::<nvgpu_dbg_gpu_get_gr_context_args>(|a| a.size = 4096);
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT, &mut image), Err(Errno::EINVAL));
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_CYCLE_STATS, &mut cycles), Err(Errno::ENOSYS));
}
