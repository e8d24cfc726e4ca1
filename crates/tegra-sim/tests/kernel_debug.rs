//! The debugger's and the profiler's nodes: sessions, records, reservations. The rules file names them (nvgpu-rules
//! §9.1, §8.4); the order of the checks is the driver's.

mod kernel_support;

use kernel_support::*;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::sched::NVGPU_SCHED_IOCTL_LOCK_CONTROL;

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
    assert_eq!((get(&one), get(&two)), (Ok(0), Ok(1)));
    set(&one, NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE).unwrap();
    assert_eq!(get(&one), Ok(1));
}

fn choose(profiler: &File, fd: i32) -> Result<(), Errno> {
    let mut bind = args::<nvgpu_profiler_bind_context_args>(|a| a.tsg_fd = fd);
    profiler.ioctl(NVGPU_PROFILER_IOCTL_BIND_CONTEXT, &mut bind)
}

fn reserve(profiler: &File, resource: u32, flags: u32) -> Result<(), Errno> {
    let mut reserve = args::<nvgpu_profiler_reserve_pm_resource_args>(|a| (a.resource, a.flags) = (resource, flags));
    profiler.ioctl(NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE, &mut reserve)
}

fn release(profiler: &File, resource: u32) -> Result<(), Errno> {
    let mut release = args::<nvgpu_profiler_release_pm_resource_args>(|a| a.resource = resource);
    profiler.ioctl(NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE, &mut release)
}

#[test]
fn rule_9_1_a_profiler_chooses_its_context_once() {
    let board = Board::new();
    let (one, two) = (board.tsg(), board.tsg());
    let (context, device) = (open(&board, Node::Profiler, "prof-ctx"), open(&board, Node::Profiler, "prof-dev"));
    assert_eq!(reserve(&context, 0, 0), Err(Errno::EINVAL), "no context yet");
    assert_eq!(choose(&context, -1), Err(Errno::EINVAL));
    assert_eq!(choose(&context, board.ctrl.raw()), Err(Errno::EINVAL));
    choose(&context, one.raw()).unwrap();
    assert_eq!(choose(&context, two.raw()), Err(Errno::EINVAL));
    assert_eq!(choose(&device, one.raw()), Err(Errno::EINVAL), "somebody profiles it");
    choose(&device, -1).unwrap();
    assert_eq!(context.ioctl_value(NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT, 0), Ok(()));
    assert_eq!(context.ioctl_value(NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT, 0), Err(Errno::EINVAL));
    choose(&context, two.raw()).unwrap();
}

#[test]
fn rule_9_1_counters_are_shared_by_contexts_and_not_with_the_device() {
    const CTXSW: u32 = NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW;
    let board = Board::new();
    let (one, two) = (board.tsg(), board.tsg());
    let (a, b) = (open(&board, Node::Profiler, "prof-ctx"), open(&board, Node::Profiler, "prof-ctx"));
    let device = open(&board, Node::Profiler, "prof-dev");
    choose(&a, one.raw()).unwrap();
    choose(&b, two.raw()).unwrap();
    choose(&device, -1).unwrap();
    assert_eq!(reserve(&a, 3, 0), Err(Errno::EINVAL));
    reserve(&a, 0, 0).unwrap();
    reserve(&b, 0, 0).unwrap();
    assert_eq!(reserve(&a, 0, 0), Err(Errno::EEXIST));
    assert_eq!(reserve(&device, 0, 0), Err(Errno::EBUSY));
    assert_eq!((reserve(&device, 1, CTXSW), reserve(&device, 2, 0)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    reserve(&device, 1, 0).unwrap();
    assert_eq!(reserve(&a, 1, 0), Err(Errno::EBUSY));
    release(&a, 0).unwrap();
    assert_eq!(release(&a, 0), Err(Errno::EINVAL));
    drop(b);
    reserve(&device, 0, 0).unwrap();
}

#[test]
fn rule_9_1_counters_are_bound_after_they_are_reserved() {
    let board = Board::new();
    let tsg = board.tsg();
    let profiler = open(&board, Node::Profiler, "prof-ctx");
    let (bind, unbind) = (NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES, NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES);
    choose(&profiler, tsg.raw()).unwrap();
    assert_eq!(profiler.ioctl_value(bind, 0), Err(Errno::EINVAL));
    reserve(&profiler, NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER, 0).unwrap();
    assert_eq!(profiler.ioctl_value(bind, 0), Err(Errno::EINVAL), "the sampler is no counter");
    reserve(&profiler, NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC, 0).unwrap();
    assert_eq!(profiler.ioctl_value(unbind, 0), Err(Errno::EINVAL));
    profiler.ioctl_value(bind, 0).unwrap();
    assert_eq!(profiler.ioctl_value(bind, 0), Err(Errno::EINVAL));
    assert_eq!(reserve(&profiler, 0, 0), Err(Errno::EEXIST), "bound already");
    release(&profiler, NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC).unwrap();
    assert_eq!(profiler.ioctl_value(unbind, 0), Err(Errno::EINVAL), "unbound by the release");
}
