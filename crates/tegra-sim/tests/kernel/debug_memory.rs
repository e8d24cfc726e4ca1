//! GPU memory through the debugger's node: its mappings and its contents. The rule is
//! docs/hardware/nvgpu-debugger.md#get-mappings, and the order of the checks is that of the driver.

use crate::support::running::view;
use crate::support::*;
use std::os::fd::AsFd;
use tegrarm_abi::nvgpu::debugger::*;

fn open(board: &Board) -> File {
    File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap()
}

fn bind(session: &File, fd: i32) -> Result<(), Errno> {
    let mut bind = args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = fd as u32);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut bind)
}

/// The entries, their number, and whether there may be more.
type Listed = (Vec<(u64, u64)>, u32, u8);

fn mappings(session: &File, lo: u64, hi: u64, room: usize) -> Result<Listed, Errno> {
    let mut list = vec![nvgpu_dbg_gpu_get_mappings_entry { gpu_va: 0, size: 0 }; room];
    let mut get = args::<nvgpu_dbg_gpu_get_mappings_args>(|a| {
        (a.va_lo, a.va_hi, a.count) = (lo, hi, room as u32);
        a.ops_buffer = if room > 0 { list.as_mut_ptr() as u64 } else { 0 };
    });
    session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, &mut get)?;
    Ok((list.iter().map(|m| (m.gpu_va, m.size)).collect(), get.count, get.has_more))
}

#[test]
fn rule_9_1_a_debugger_lists_the_mappings_of_its_channels_space() {
    const AT: u64 = 0x4000_0000;
    let board = Board::new();
    let session = open(&board);
    assert_eq!(mappings(&session, 0, 1, 0), Err(Errno::EINVAL), "no channel");
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    assert_eq!(mappings(&session, 0, u64::MAX, 0), Ok((vec![], 0, 0)));
    reserve(&rig.space, AT, 1 << 20).unwrap();
    let buffers = [8192, 4096, 4096].map(|size| board.buffer(size));
    map_fixed(&rig.space, &buffers[0], AT).unwrap();
    map_fixed(&rig.space, &buffers[1], AT + 8192).unwrap();
    map_fixed(&rig.space, &buffers[2], AT + 0x8000).unwrap();
    let all = [(AT, 12288), (AT + 0x8000, 4096)];
    assert_eq!(mappings(&session, 0, u64::MAX, 0), Ok((vec![], 2, 0)), "neighbours are one");
    assert_eq!(mappings(&session, 0, u64::MAX, 3), Ok((vec![all[0], all[1], (0, 0)], 2, 0)));
    assert_eq!(mappings(&session, 0, u64::MAX, 2), Ok((all.to_vec(), 2, 1)), "full, so there may be more");
    assert_eq!(
        mappings(&session, AT + 4096, AT + 0x8800, 3).unwrap().0[..2],
        [(AT + 4096, 8192), (AT + 0x8000, 0x800)]
    );
    // A mapping that ends where the range begins is listed as an empty one.
    assert_eq!(mappings(&session, AT + 12288, AT + 0x8000, 2).unwrap().0[0], (AT + 12288, 0));
    assert_eq!(mappings(&session, 2, 1, 0), Err(Errno::EINVAL));
    let mut nowhere = args::<nvgpu_dbg_gpu_get_mappings_args>(|a| (a.va_hi, a.count) = (u64::MAX, 1));
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, &mut nowhere), Err(Errno::EINVAL));
    nowhere.ops_buffer = 8;
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, &mut nowhere), Err(Errno::EFAULT));
    nowhere.count = 1 << 20;
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, &mut nowhere), Err(Errno::ENOMEM));
}

fn access(session: &File, cmd: u32, va: u64, data: &mut [u8]) -> Result<(), Errno> {
    let op = nvgpu_dbg_gpu_va_access_entry {
        gpu_va: va,
        data: data.as_mut_ptr() as u64,
        size: data.len() as u32,
        valid: 0,
        reserved: [0; 3],
    };
    let mut access = args::<nvgpu_dbg_gpu_va_access_args>(|a| {
        (a.ops_buf, a.count, a.cmd) = (&raw const op as u64, 1, cmd as u8);
    });
    session.ioctl(NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, &mut access)
}

#[test]
fn rule_9_1_a_debugger_reads_and_writes_gpu_memory() {
    const AT: u64 = 0x4000_0000;
    let read = NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_READ;
    let write = NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_WRITE;
    let board = Board::new();
    let session = open(&board);
    assert_eq!(access(&session, read, AT, &mut [0; 4]), Err(Errno::EINVAL), "no channel");
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    let (buffer, next) = (board.buffer(8192), board.buffer(4096));
    let memory = view(&buffer.fd, 8192);
    reserve(&rig.space, AT, 1 << 20).unwrap();
    map_fixed(&rig.space, &buffer, AT).unwrap();
    map_fixed(&rig.space, &next, AT + 8192).unwrap();
    access(&session, write, AT + 100, &mut [1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    assert_eq!((memory.read_u32(100), memory.read_u32(104)), (0x0403_0201, 0x0807_0605));
    let mut back = [0; 8];
    access(&session, read, AT + 100, &mut back).unwrap();
    assert_eq!(back, [1, 2, 3, 4, 5, 6, 7, 8]);
    // In an access across two mappings the driver begins each part at the start of the program's buffer.
    memory.write_u32(8188, 0xaaaa_aaaa);
    view(&next.fd, 4096).write_u32(0, 0xbbbb_bbbb);
    access(&session, read, AT + 8188, &mut back).unwrap();
    assert_eq!(back, [0xbb, 0xbb, 0xbb, 0xbb, 0, 0, 0, 0]);
    for (cmd, va, size) in [(read, AT + 2, 4), (read, AT, 3), (read, AT, 0), (3, AT, 4), (read, AT + 12288, 4)] {
        assert_eq!(access(&session, cmd, va, &mut vec![0; size]), Err(Errno::EINVAL), "{cmd} {va:#x} {size}");
    }
    assert_eq!(access(&session, write, AT + 12284, &mut [9; 8]), Err(Errno::EINVAL), "it ends within");
    let mut none = args::<nvgpu_dbg_gpu_va_access_args>(|a| a.cmd = 1);
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, &mut none), Err(Errno::EINVAL));
    (none.count, none.ops_buf) = (1, 8);
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, &mut none), Err(Errno::EFAULT));
}

#[test]
fn rule_9_1_a_debuggers_window_into_a_mapping_begins_at_the_buffer() {
    const AT: u64 = 0x4000_0000;
    let board = Board::new();
    let session = open(&board);
    let rig = board.rig();
    bind(&session, rig.channel.raw()).unwrap();
    let buffer = board.buffer(8192);
    let memory = view(&buffer.fd, 8192);
    reserve(&rig.space, AT, 4096).unwrap();
    map_with(&rig.space, buffer.raw(), |a| {
        a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        (a.offset, a.buffer_offset, a.mapping_size) = (AT, 4096, 4096);
    })
    .unwrap();
    memory.write_u32(0, 1);
    memory.write_u32(4096, 2);
    let mut word = [0; 4];
    access(&session, NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_READ, AT, &mut word).unwrap();
    // The GPU sees 2 there, because the driver does not add the offset in the buffer at which the mapping begins.
    assert_eq!(u32::from_le_bytes(word), 1);
}

#[test]
fn rule_9_1_there_is_no_video_memory_to_read() {
    let board = Board::new();
    let session = open(&board);
    let buffer = board.buffer(4096);
    let mut data = [0_u8; 16];
    let call = |fd, cmd, offset, size, at| {
        let mut access = args::<nvgpu_dbg_gpu_access_fb_memory_args>(|a| {
            (a.dmabuf_fd, a.cmd, a.offset, a.size, a.buffer) = (fd, cmd, offset, size, at);
        });
        let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut access);
        board.kmd.ioctl(session.as_fd(), Node::Debugger, NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY, Arg::Bytes(bytes))
    };
    let at = data.as_mut_ptr() as u64;
    for (fd, offset, size) in [
        (buffer.raw(), 2, 4),
        (buffer.raw(), 0, 0),
        (buffer.raw(), 0, 6),
        (-1, 0, 4),
        (buffer.raw(), 4096, 4),
        (buffer.raw(), 0, 16),
    ] {
        assert_eq!(call(fd, 1, offset, size, at), Err(Errno::EINVAL), "{fd} {offset} {size}");
    }
    // For a bad pointer of the program the result is positive: the number of bytes that were not copied.
    assert_eq!(call(buffer.raw(), 2, 0, 16, 8), Ok(16));
    assert_eq!(call(buffer.raw(), 2, 0, 16, at), Err(Errno::EINVAL));
}
