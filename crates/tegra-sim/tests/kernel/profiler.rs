//! The profiler's nodes: contexts, reservations, streams of records and register operations. The rules name them
//! (docs/hardware/nvgpu-debugger.md#profiler), and the order of the checks is that of the driver.

use crate::support::running::view;
use crate::support::*;
use tegra_sim::{Chip, L4t, SimConfig};
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35;

const HWPM: u32 = NVGPU_PROFILER_PM_RESOURCE_ARG_HWPM_LEGACY;
const SMPC: u32 = NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC;
const SAMPLER: u32 = NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER;
const CTXSW: u32 = NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW;

fn open(board: &Board, node: Node, name: &str) -> File {
    File::open(&board.kmd, node, &format!("/dev/nvgpu/igpu0/{name}")).unwrap()
}

fn profiler(board: &Board) -> File {
    open(board, Node::Profiler, "prof-dev")
}

/// A debugger's session on a channel.
fn session(board: &Board, channel: &File) -> File {
    let session = open(board, Node::Debugger, "dbg");
    let mut bind = args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = channel.raw() as u32);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut bind).unwrap();
    session
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

fn bind(profiler: &File) -> Result<(), Errno> {
    profiler.ioctl_value(NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES, 0)
}

fn unbind(profiler: &File) -> Result<(), Errno> {
    profiler.ioctl_value(NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES, 0)
}

fn make_object(session: &File) -> Result<u32, Errno> {
    let mut make = args::<nvgpu_dbg_gpu_profiler_obj_mgt_args>(|a| a.profiler_handle = 99);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_PROFILER_ALLOCATE, &mut make).map(|()| make.profiler_handle)
}

fn free_object(session: &File, handle: u32) -> Result<(), Errno> {
    let mut free = args::<nvgpu_dbg_gpu_profiler_obj_mgt_args>(|a| a.profiler_handle = handle);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_PROFILER_FREE, &mut free)
}

fn object_reserve(session: &File, handle: u32, acquire: u32) -> Result<(), Errno> {
    let mut reserve =
        args::<nvgpu_dbg_gpu_profiler_reserve_args>(|a| (a.profiler_handle, a.acquire) = (handle, acquire));
    session.ioctl(NVGPU_DBG_GPU_IOCTL_PROFILER_RESERVE, &mut reserve)
}

#[test]
fn rule_9_1_profilers_of_a_context_cannot_be_opened() {
    for config in
        [SimConfig::new(Chip::AgxOrin), SimConfig::new(Chip::Gv11b), SimConfig::new(Chip::AgxOrin).on(L4t::R35)]
    {
        let board = Board::with(config);
        for path in ["/dev/nvgpu/igpu0/prof-ctx", "/dev/nvhost-prof-ctx-gpu"] {
            assert_eq!(File::open(&board.kmd, Node::Profiler, path).err(), Some(Errno::EINVAL), "{path}");
        }
    }
}

#[test]
fn rule_9_1_a_profiler_chooses_its_context_once() {
    let board = Board::new();
    let (one, two) = (board.tsg(), board.tsg());
    let (a, b) = (profiler(&board), profiler(&board));
    assert_eq!(reserve(&a, HWPM, 0), Err(Errno::EINVAL), "no context yet");
    assert_eq!(choose(&a, board.ctrl.raw()), Err(Errno::EINVAL));
    choose(&a, one.raw()).unwrap();
    assert_eq!(choose(&a, two.raw()), Err(Errno::EINVAL));
    assert_eq!(choose(&b, one.raw()), Err(Errno::EINVAL), "somebody profiles it");
    choose(&b, -1).unwrap();
    assert_eq!(a.ioctl_value(NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT, 0), Ok(()));
    assert_eq!(a.ioctl_value(NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT, 0), Err(Errno::EINVAL));
    choose(&a, two.raw()).unwrap();
    drop(a);
    let third = profiler(&board);
    choose(&third, two.raw()).unwrap();
}

#[test]
fn rule_9_1_resources_are_reserved_by_one_device_or_by_several_contexts() {
    let board = Board::new();
    let (one, two) = (board.rig(), board.rig());
    let (device, rival) = (profiler(&board), profiler(&board));
    let (a, b) = (session(&board, &one.channel), session(&board, &two.channel));
    choose(&device, -1).unwrap();
    choose(&rival, -1).unwrap();
    assert_eq!([3, 4].map(|unknown| reserve(&device, unknown, 0)), [Err(Errno::EINVAL); 2]);
    assert_eq!((reserve(&device, SMPC, CTXSW), reserve(&device, SAMPLER, 0)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let (in_one, in_two) = (make_object(&a).unwrap(), make_object(&b).unwrap());
    object_reserve(&a, in_one, 1).unwrap();
    object_reserve(&b, in_two, 1).unwrap();
    assert_eq!(reserve(&device, HWPM, 0), Err(Errno::EBUSY), "contexts have it");
    reserve(&device, SMPC, 0).unwrap();
    assert_eq!(reserve(&device, SMPC, 0), Err(Errno::EEXIST));
    assert_eq!(reserve(&rival, SMPC, 0), Err(Errno::EBUSY));
    object_reserve(&a, in_one, 0).unwrap();
    assert_eq!(object_reserve(&a, in_one, 0), Err(Errno::EINVAL));
    drop(b);
    reserve(&device, HWPM, 0).unwrap();
    assert_eq!(object_reserve(&a, in_one, 1), Err(Errno::EBUSY), "the device has it");
    release(&device, HWPM).unwrap();
    assert_eq!(release(&device, HWPM), Err(Errno::EINVAL));
    drop(device);
    reserve(&rival, SMPC, 0).unwrap();
}

#[test]
fn rule_9_1_a_debugger_makes_profiler_objects_of_its_group() {
    let board = Board::new();
    let (rig, loose) = (board.rig(), board.channel());
    let device = profiler(&board);
    let bare = open(&board, Node::Debugger, "dbg");
    assert_eq!(make_object(&bare), Err(Errno::EINVAL), "no channel");
    let a = session(&board, &rig.channel);
    let handle = make_object(&a).unwrap();
    assert_eq!(handle, 2, "counted with the other profilers");
    assert_eq!(make_object(&session(&board, &loose)), Ok(99), "no group: no object, and no error");
    let b = session(&board, &rig.channel);
    let other = make_object(&b).unwrap();
    assert_eq!((object_reserve(&b, handle, 1), free_object(&b, handle)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    object_reserve(&a, handle, 1).unwrap();
    assert_eq!(object_reserve(&b, other, 1), Err(Errno::EINVAL), "one in a group");
    free_object(&a, handle).unwrap();
    assert_eq!(free_object(&a, handle), Err(Errno::EINVAL));
    object_reserve(&b, other, 1).unwrap();
    // Unbinding the channel frees what was reserved for its group.
    let mut unbind = args::<nvgpu_dbg_gpu_unbind_channel_args>(|x| x.channel_fd = rig.channel.raw() as u32);
    b.ioctl(NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL, &mut unbind).unwrap();
    assert_eq!(free_object(&b, other), Err(Errno::EINVAL));
    choose(&device, -1).unwrap();
    reserve(&device, HWPM, 0).unwrap();
    // The objects of the old profiler node belong to the GPU, whichever channel the node is bound to.
    let old = open(&board, Node::Debugger, "prof");
    let of_device = make_object(&old).unwrap();
    assert_eq!(object_reserve(&old, of_device, 1), Err(Errno::EBUSY));
    drop(device);
    object_reserve(&old, of_device, 1).unwrap();
}

#[test]
fn rule_9_1_counters_are_bound_after_they_are_reserved() {
    let board = Board::new();
    let rig = board.rig();
    let profiler = profiler(&board);
    choose(&profiler, rig.tsg.raw()).unwrap();
    assert_eq!(bind(&profiler), Err(Errno::EINVAL));
    reserve(&profiler, SAMPLER, 0).unwrap();
    assert_eq!(bind(&profiler), Err(Errno::EINVAL), "the sampler is no counter");
    reserve(&profiler, SMPC, CTXSW).unwrap();
    assert_eq!(bind(&profiler), Err(Errno::EFAULT), "no graphics context to switch it with");
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!(unbind(&profiler), Err(Errno::EINVAL));
    bind(&profiler).unwrap();
    unbind(&profiler).unwrap();
    assert_eq!(unbind(&profiler), Err(Errno::EINVAL), "unbound already");
    bind(&profiler).unwrap();
    assert_eq!(bind(&profiler), Err(Errno::EINVAL));
    assert_eq!(reserve(&profiler, HWPM, 0), Err(Errno::EEXIST), "bound already");
    release(&profiler, SMPC).unwrap();
    assert_eq!(unbind(&profiler), Err(Errno::EINVAL), "unbound by the release");
}

#[test]
fn rule_9_1_xavier_counts_sms_of_one_context_only() {
    let board = Board::with(SimConfig::new(Chip::Gv11b));
    let profiler = profiler(&board);
    choose(&profiler, board.tsg().raw()).unwrap();
    assert_eq!(reserve(&profiler, SMPC, 0), Err(Errno::EINVAL));
    reserve(&profiler, SMPC, CTXSW).unwrap();
}

/// The address of the unit's window, which is the fifth block of a range of 2^37 bytes without one page.
const WINDOW: u64 = 0x1e_0000_1000;

fn alloc_stream(profiler: &File, records: i32, count: i32, size: u64) -> Result<u64, Errno> {
    let mut alloc = args::<nvgpu_profiler_alloc_pma_stream_args>(|a| {
        (a.pma_buffer_fd, a.pma_bytes_available_buffer_fd, a.pma_buffer_map_size) = (records, count, size);
        (a.pma_buffer_va, a.pma_channel_id) = (7, 7);
    });
    profiler.ioctl(NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM, &mut alloc)?;
    assert_eq!(alloc.pma_channel_id == 0, alloc.pma_buffer_va != 7);
    Ok(alloc.pma_buffer_va)
}

fn free_stream(profiler: &File) -> Result<(), Errno> {
    profiler.ioctl(NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM, &mut args::<nvgpu_profiler_free_pma_stream_args>(|_| ()))
}

#[test]
fn rule_9_1_a_stream_is_of_one_profiler() {
    let board = Board::new();
    let (a, b) = (profiler(&board), profiler(&board));
    let (records, count) = (board.buffer(1 << 20), board.buffer(4096));
    let alloc = |p: &File| alloc_stream(p, records.raw(), count.raw(), 1 << 20);
    assert_eq!(free_stream(&a), Err(Errno::EINVAL));
    assert_eq!(alloc(&a), Ok(WINDOW));
    assert_eq!((alloc(&a), alloc(&b)), (Err(Errno::EINVAL), Err(Errno::EBUSY)));
    free_stream(&a).unwrap();
    assert_eq!(alloc(&b), Ok(WINDOW));
    drop(b);
    assert_eq!(alloc(&a), Ok(WINDOW));
    // The buffers exist for as long as the stream uses them.
    let held = board.sim.kernel().census().memory;
    for buffer in [records, count] {
        board.nvmap.ioctl_value(NVMAP_IOC_FREE, u64::from(buffer.handle)).unwrap();
    }
    assert_eq!(board.sim.kernel().census().memory, held);
    drop(a);
    assert_eq!(board.sim.kernel().census().memory, 0);
}

#[test]
fn rule_9_1_a_stream_that_fails_reserves_nothing() {
    let board = Board::new();
    let profiler = profiler(&board);
    let (records, count) = (board.buffer(8192), board.buffer(4096));
    let fresh = board.create(4096);
    let empty = board.get_fd(fresh).unwrap();
    for (records_fd, count_fd, size, errno) in [
        (records.raw(), -1, 8192, Errno::EBADF),
        (-1, count.raw(), 8192, Errno::EINVAL),
        (records.raw(), count.raw(), 16384, Errno::EINVAL),
        (records.raw(), empty.raw(), 8192, Errno::ENOMEM),
    ] {
        assert_eq!(alloc_stream(&profiler, records_fd, count_fd, size), Err(errno), "{records_fd} {count_fd} {size}");
    }
    assert_eq!(alloc_stream(&profiler, records.raw(), count.raw(), 0xffe0_0001), Ok(7), "no stream, and no error");
    assert_eq!(free_stream(&profiler), Err(Errno::EINVAL));
    assert_eq!(alloc_stream(&profiler, records.raw(), count.raw(), 4096), Ok(WINDOW));
}

#[test]
fn rule_9_1_a_stream_nobody_feeds_stays_empty() {
    let board = Board::new();
    let profiler = profiler(&board);
    let (records, count) = (board.buffer(1 << 20), board.buffer(4096));
    let memory = view(&count.fd, 4096);
    let update = |flags| {
        let mut update = args::<nvgpu_profiler_pma_stream_update_get_put_args>(|a| {
            (a.flags, a.bytes_available, a.put_ptr) = (flags, 7, 7);
        });
        let result = profiler.ioctl(NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT, &mut update);
        result.map(|()| (update.flags, update.bytes_available, update.put_ptr))
    };
    const UPDATE: u32 = NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_UPDATE_AVAILABLE_BYTES;
    const WAIT: u32 = NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_WAIT_FOR_UPDATE;
    const PUT: u32 = NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_RETURN_PUT_PTR;
    assert_eq!(update(UPDATE), Err(Errno::EINVAL), "no stream");
    alloc_stream(&profiler, records.raw(), count.raw(), 1 << 20).unwrap();
    assert_eq!(update(UPDATE | WAIT), Err(Errno::ETIMEDOUT), "nothing is bound");
    assert_eq!(memory.read_u32(0), u32::MAX);
    choose(&profiler, -1).unwrap();
    reserve(&profiler, HWPM, 0).unwrap();
    bind(&profiler).unwrap();
    assert_eq!(update(UPDATE), Ok((UPDATE, 7, 7)), "only who waits is told");
    assert_eq!(memory.read_u32(0), 0);
    assert_eq!(update(UPDATE | WAIT | PUT), Ok((UPDATE | WAIT | PUT, 0, WINDOW & 0xffff_ffff)));
    free_stream(&profiler).unwrap();
    assert_eq!(unbind(&profiler), Err(Errno::EINVAL), "unbound with its stream");
}

#[test]
fn rule_e3_r35_frees_a_stream_without_an_argument() {
    let board = Board::r35();
    let profiler = profiler(&board);
    let (records, count) = (board.buffer(4096), board.buffer(4096));
    let mut alloc = args::<nvgpu_profiler_alloc_pma_stream_args>(|a| {
        (a.pma_buffer_fd, a.pma_bytes_available_buffer_fd) = (records.raw(), count.raw());
        (a.pma_buffer_map_size, a.pma_channel_id) = (4096, 7);
    });
    profiler.ioctl(NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM, &mut alloc).unwrap();
    assert_eq!((alloc.pma_buffer_va, alloc.pma_channel_id), (WINDOW, 7), "no channel id in this release");
    assert_eq!(free_stream(&profiler), Err(Errno::ENOTTY));
    profiler.ioctl_value(NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35, 0).unwrap();
}

#[test]
fn rule_9_1_a_debugger_takes_the_record_buffer() {
    let board = Board::new();
    let session = open(&board, Node::Debugger, "dbg");
    let buffer = board.buffer(1 << 20);
    let map = |session: &File, fd: i32, size| {
        let mut map = args::<nvgpu_dbg_gpu_perfbuf_map_args>(|a| (a.dmabuf_fd, a.mapping_size) = (fd as u32, size));
        session.ioctl(NVGPU_DBG_GPU_IOCTL_PERFBUF_MAP, &mut map).map(|()| map.offset)
    };
    let unmap = |session: &File, offset| {
        let mut unmap = args::<nvgpu_dbg_gpu_perfbuf_unmap_args>(|a| a.offset = offset);
        session.ioctl(NVGPU_DBG_GPU_IOCTL_PERFBUF_UNMAP, &mut unmap)
    };
    assert_eq!((map(&session, -1, 4096), unmap(&session, WINDOW)), (Err(Errno::EBADF), Err(Errno::EINVAL)));
    assert_eq!(map(&session, buffer.raw(), 0xffff_f000), Ok(WINDOW), "up to the next 4 GiB");
    unmap(&session, WINDOW).unwrap();
    assert_eq!(map(&session, buffer.raw(), 0xffff_f001), Err(Errno::EINVAL));
    assert_eq!(map(&session, buffer.raw(), 1 << 20), Ok(WINDOW));
    let rival = profiler(&board);
    assert_eq!(map(&session, buffer.raw(), 1 << 20), Err(Errno::EBUSY));
    assert_eq!(alloc_stream(&rival, buffer.raw(), buffer.raw(), 4096), Err(Errno::EBUSY));
    assert_eq!(unmap(&session, WINDOW + 4096), Err(Errno::EINVAL));
    assert_eq!(unmap(&open(&board, Node::Debugger, "dbg"), WINDOW), Err(Errno::EINVAL));
    drop(session);
    assert_eq!(alloc_stream(&rival, buffer.raw(), buffer.raw(), 4096), Ok(WINDOW));
}

#[test]
fn rule_9_1_register_operations_find_no_counters() {
    let board = Board::new();
    let profiler = profiler(&board);
    let exec = |ops: &mut [nvgpu_profiler_reg_op], mode| {
        let mut exec = args::<nvgpu_profiler_exec_reg_ops_args>(|a| {
            (a.mode, a.count, a.ops) = (mode, ops.len() as u32, ops.as_mut_ptr() as u64);
        });
        profiler.ioctl(NVGPU_PROFILER_IOCTL_EXEC_REG_OPS, &mut exec).map(|()| exec.flags)
    };
    let op = |op, offset| args(|a: &mut nvgpu_profiler_reg_op| (a.op, a.offset, a.value) = (op, offset, 5));
    const ALL: u32 = NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_ALL_OR_NONE;
    const GO_ON: u32 = NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_CONTINUE_ON_ERROR;
    assert_eq!(exec(&mut [op(0, 0x180000)], GO_ON), Err(Errno::EINVAL), "nothing is bound");
    choose(&profiler, -1).unwrap();
    reserve(&profiler, HWPM, 0).unwrap();
    bind(&profiler).unwrap();
    assert_eq!(exec(&mut [], GO_ON), Err(Errno::EINVAL));
    assert_eq!(exec(&mut vec![op(0, 0); 1025], GO_ON), Err(Errno::EINVAL));
    let mut ops = vec![op(NVGPU_DBG_GPU_REG_OP_READ_32 as u8, 0x180000); 200];
    ops[199] = op(NVGPU_DBG_GPU_REG_OP_READ_08 as u8, 1);
    assert_eq!(exec(&mut ops, ALL), Err(Errno::EINVAL));
    assert_eq!((ops[0].status, ops[0].value), (0, 5), "all or none reports nothing");
    assert_eq!(exec(&mut ops, GO_ON), Ok(0), "not all passed");
    assert!(ops[..199].iter().all(|op| op.status == NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_OFFSET as u8 && op.value == 5));
    let both = NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_OFFSET | NVGPU_DBG_GPU_REG_OP_STATUS_UNSUPPORTED_OP;
    assert_eq!(u32::from(ops[199].status), both);
    let mut nowhere = args::<nvgpu_profiler_exec_reg_ops_args>(|a| (a.count, a.ops) = (1, 8));
    assert_eq!(profiler.ioctl(NVGPU_PROFILER_IOCTL_EXEC_REG_OPS, &mut nowhere), Err(Errno::EFAULT));
}

#[test]
fn rule_9_1_access_bits_of_memory_are_checked_and_refused() {
    let checkers = [args(|c: &mut nvgpu_profiler_vab_range_checker| c.granularity_shift = 16); 9];
    let reserve = |profiler: &File, count, mode, at: u64| {
        let mut reserve = args::<nvgpu_profiler_vab_reserve_args>(|a| {
            (a.num_range_checkers, a.vab_mode, a.range_checkers_ptr) = (count, mode, at);
        });
        profiler.ioctl(NVGPU_PROFILER_IOCTL_VAB_RESERVE, &mut reserve)
    };
    let flush = |profiler: &File| {
        profiler.ioctl(NVGPU_PROFILER_IOCTL_VAB_FLUSH_STATE, &mut args::<nvgpu_profiler_vab_flush_state_args>(|_| ()))
    };
    let board = Board::new();
    let orin = profiler(&board);
    let at = checkers.as_ptr() as u64;
    assert_eq!((reserve(&orin, 0, 1, at), reserve(&orin, 1, 1, 8)), (Err(Errno::EINVAL), Err(Errno::EFAULT)));
    assert_eq!((reserve(&orin, 9, 1, at), reserve(&orin, 1, 3, at)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let fine = [args(|c: &mut nvgpu_profiler_vab_range_checker| c.granularity_shift = 15)];
    assert_eq!(reserve(&orin, 1, 1, fine.as_ptr() as u64), Err(Errno::EINVAL));
    assert_eq!((reserve(&orin, 8, 1, at), flush(&orin)), (Err(Errno::ENOSYS), Err(Errno::ENOSYS)));
    assert_eq!(orin.ioctl_value(NVGPU_PROFILER_IOCTL_VAB_RELEASE, 0), Ok(()));
    let board = Board::with(SimConfig::new(Chip::Gv11b));
    let xavier = profiler(&board);
    assert_eq!((reserve(&xavier, 0, 9, 8), flush(&xavier)), (Ok(()), Ok(())), "a chip without them ignores it");
}
