//! Fences as files: those that a submit makes and those that it waits for (docs/hardware/nvgpu-channel.md#fences), and
//! Linux's own ioctls of such files.

#![allow(unsafe_code)] // descriptors in structures

use crate::support::running::*;
use crate::support::*;
use std::os::fd::BorrowedFd;
use tegrarm_abi::host1x::*;
use tegrarm_abi::sync_file::*;
use tegrarm_kmd::DeviceMem;

/// Makes a kernel-mode channel. Its page has an acquire of a word at 64, and then a release of 77 to the start of the
/// page.
fn kernel_mode(board: &Board) -> (Rig, DeviceMem, [u64; 2]) {
    let (rig, page) = (board.rig(), board.buffer(4096));
    let (va, memory) = (map(&rig.space, &page).unwrap(), view(&page.fd, 4096));
    setup_bind(&rig.channel, &page, &page, |a| (a.flags, a.num_gpfifo_entries) = (0, 8)).unwrap();
    let operation = |at: usize, va: u64, payload, execute| {
        for (i, word) in [0x2005_0017, va as u32, (va >> 32) as u32, payload, 0, execute].into_iter().enumerate() {
            memory.write_u32(at + 4 * i, word);
        }
        ((va & !0xfff) + at as u64) | 6 << 42
    };
    let entries = [operation(256, va + 64, 5, 0), operation(288, va, 77, 1)];
    (rig, memory, entries)
}

fn submit(channel: &File, entries: &[u64], flags: u32, fence: u32) -> Result<u32, Errno> {
    let mut submit = args::<nvgpu_submit_gpfifo_args>(|a| {
        (a.gpfifo, a.num_entries, a.flags) = (entries.as_ptr() as u64, entries.len() as u32, flags);
        a.fence.id = fence;
    });
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, &mut submit).map(|()| submit.fence.id)
}

fn signalled(fd: i32) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    // SAFETY: the kernel gave this descriptor, and the test never closes it.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() > 0
}

#[test]
fn rule_7_10_fences_can_be_files() {
    let board = Board::new();
    let (one, memory, entries) = kernel_mode(&board);
    let (two, other, theirs) = kernel_mode(&board);
    let (get, wait) = (NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET, NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT);
    let file = NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE;
    let fence = submit(&one.channel, &entries, get | file, 0).unwrap();
    assert!(!signalled(fence as i32));
    // The other channel waits for the fence on the GPU.
    let mine = [theirs[1]];
    let after = submit(&two.channel, &mine, wait | get | file, fence).unwrap();
    assert_eq!(other.read_u32(0), 0);
    memory.write_u32(64, 5);
    until("the first fence", || signalled(fence as i32));
    until("the second fence", || signalled(after as i32));
    assert_eq!((memory.read_u32(0), other.read_u32(0)), (77, 77));
    // A submit does not wait for a fence that has passed. A file that is no fence is EINVAL.
    submit(&two.channel, &mine, wait | file, fence).unwrap();
    assert_eq!(submit(&two.channel, &mine, wait | file, two.channel.raw() as u32), Err(Errno::EINVAL));
    assert_eq!(submit(&two.channel, &mine, wait | file, 9999), Err(Errno::EINVAL));
    // The fences of a channel pass when the channel ends.
    memory.write_u32(64, 0);
    let last = submit(&one.channel, &entries, get | file, 0).unwrap();
    assert!(!signalled(last as i32));
    drop(one);
    assert!(signalled(last as i32));
}

fn ioctl<T: AbiStruct>(board: &Board, fd: i32, request: u32, args: &mut T) -> Result<i32, Errno> {
    // SAFETY: the kernel gave this descriptor, and the test never closes it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    board.kmd.ioctl(fd, Node::SyncFile, request, Arg::Bytes(args.as_mut_bytes()))
}

fn named(name: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end_matches('\0')
}

fn merge(board: &Board, fd: i32, other: i32, name: &str) -> Result<i32, Errno> {
    let mut merge = args::<sync_merge_data>(|a| (a.name, a.fd2) = (named(name), other));
    ioctl(board, fd, SYNC_IOC_MERGE, &mut merge).map(|_| merge.fence)
}

/// The name of a file, its state and its fences.
fn info(board: &Board, fd: i32, room: usize) -> Result<(String, i32, u32, Vec<sync_fence_info>), Errno> {
    let mut list = vec![sync_fence_info::new_zeroed(); room];
    let mut info = args::<sync_file_info>(|a| {
        (a.num_fences, a.sync_fence_info) = (room as u32, if room > 0 { list.as_mut_ptr() as u64 } else { 8 });
    });
    ioctl(board, fd, SYNC_IOC_FILE_INFO, &mut info)?;
    list.truncate(info.num_fences as usize);
    Ok((text(&info.name).to_owned(), info.status, info.num_fences, list))
}

#[test]
fn rule_7_10_a_fences_file_tells_its_state() {
    let board = Board::new();
    let (rig, memory, entries) = kernel_mode(&board);
    let flags = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET | NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE;
    let fence = submit(&rig.channel, &entries, flags, 0).unwrap() as i32;
    let (name, status, count, _) = info(&board, fence, 0).unwrap();
    assert!(name.starts_with("host1x-syncpoint") && name.ends_with("-0"), "{name}");
    assert_eq!((status, count), (0, 1));
    let (_, status, _, list) = info(&board, fence, 2).unwrap();
    assert_eq!((text(&list[0].obj_name), text(&list[0].driver_name)), ("syncpoint", "host1x"));
    assert_eq!((status, list.len(), list[0].status, list[0].timestamp_ns), (0, 1, 0, 0));
    memory.write_u32(64, 5);
    until("the fence", || signalled(fence));
    let (_, status, _, list) = info(&board, fence, 1).unwrap();
    assert_eq!((status, list[0].status), (1, 1));
    assert_ne!(list[0].timestamp_ns, 0, "when it passed");
    assert_eq!(info(&board, fence, 1).unwrap().3[0].timestamp_ns, list[0].timestamp_ns);
}

#[test]
fn rule_7_10_merged_fences_pass_together() {
    let board = Board::new();
    let (one, memory, entries) = kernel_mode(&board);
    let (two, other, theirs) = kernel_mode(&board);
    let (three, last, mine) = kernel_mode(&board);
    let (get, wait) = (NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET, NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT);
    let file = NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE;
    let a = submit(&one.channel, &entries, get | file, 0).unwrap() as i32;
    let b = submit(&two.channel, &theirs, get | file, 0).unwrap() as i32;
    let both = merge(&board, a, b, "both").unwrap();
    let same = merge(&board, both, a, "").unwrap();
    assert_eq!(info(&board, both, 0).map(|i| (i.0, i.1, i.2)), Ok(("both".to_owned(), 0, 2)));
    let unnamed = info(&board, same, 0).unwrap();
    assert!(unnamed.0.starts_with("dma_fence_array-unbound"), "{}", unnamed.0);
    assert_eq!(unnamed.2, 2, "each fence once");
    // A third channel waits on the GPU for both fences.
    let after = submit(&three.channel, &mine[1..], wait | get | file, both as u32).unwrap() as i32;
    memory.write_u32(64, 5);
    until("the first fence", || signalled(a));
    assert_eq!(info(&board, both, 2).map(|i| (i.1, i.3[0].status, i.3[1].status)), Ok((0, 1, 0)));
    assert!(!signalled(both) && !signalled(after));
    other.write_u32(64, 5);
    until("the fence behind both", || signalled(after));
    assert!(signalled(both) && signalled(same));
    assert_eq!(last.read_u32(0), 77);
    // Fences that have passed are merged into one.
    let passed = merge(&board, a, b, "passed").unwrap();
    assert_eq!(info(&board, passed, 0).map(|i| (i.1, i.2)), Ok((1, 1)));
    assert!(signalled(passed));
}

#[test]
fn rule_7_10_a_fences_file_checks_its_arguments() {
    let board = Board::new();
    let (rig, _memory, entries) = kernel_mode(&board);
    let flags = NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET | NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE;
    let a = submit(&rig.channel, &entries, flags, 0).unwrap() as i32;
    let b = submit(&rig.channel, &entries, flags, 0).unwrap() as i32;
    assert_eq!(
        (merge(&board, a, -1, ""), merge(&board, a, rig.tsg.raw(), "")),
        (Err(Errno::ENOENT), Err(Errno::ENOENT))
    );
    for (flags, pad) in [(1, 0), (0, 1)] {
        let mut merge = args::<sync_merge_data>(|m| (m.fd2, m.flags, m.pad) = (b, flags, pad));
        assert_eq!(ioctl(&board, a, SYNC_IOC_MERGE, &mut merge), Err(Errno::EINVAL));
        let mut info = args::<sync_file_info>(|i| (i.flags, i.pad) = (flags, pad));
        assert_eq!(ioctl(&board, a, SYNC_IOC_FILE_INFO, &mut info), Err(Errno::EINVAL));
    }
    let both = merge(&board, a, b, &"a name of more than the thirty-one bytes"[..32]).unwrap();
    assert_eq!(info(&board, both, 0).map(|i| (i.0.len(), i.2)), Ok((31, 2)));
    assert_eq!(info(&board, both, 1).err(), Some(Errno::EINVAL));
    let mut nowhere = args::<sync_file_info>(|i| (i.num_fences, i.sync_fence_info) = (2, 8));
    assert_eq!(ioctl(&board, both, SYNC_IOC_FILE_INFO, &mut nowhere), Err(Errno::EFAULT));
    assert_eq!(ioctl(&board, both, 0xc030_3e02, &mut nowhere), Err(Errno::ENOTTY));
    assert_eq!(ioctl(&board, both, NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, &mut nowhere), Err(Errno::ENOTTY));
}

fn host1x(board: &Board) -> File {
    File::open(&board.kmd, Node::Host1x, "/dev/host1x-fence").unwrap()
}

/// The points of a sync file, of which at most `room` are returned, and the number of all points.
fn extract(node: &File, fd: i32, room: usize) -> Result<(Vec<(u32, u32)>, u32), Errno> {
    let mut list = vec![host1x_fence_extract_fence::new_zeroed(); room];
    let mut extract = args::<host1x_fence_extract>(|a| {
        (a.fence_fd, a.num_fences, a.fences_ptr) = (fd, room as u32, list.as_mut_ptr() as u64);
    });
    node.ioctl(HOST1X_IOCTL_FENCE_EXTRACT, &mut extract)?;
    Ok((list.iter().map(|f| (f.id, f.threshold)).collect(), extract.num_fences))
}

#[test]
fn host1x_makes_sync_files_of_syncpoints_and_takes_them_apart() {
    let board = Board::new();
    let (rig, memory, entries) = kernel_mode(&board);
    let node = host1x(&board);
    let fence = submit(&rig.channel, &entries, NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET, 0).unwrap();
    let mut create = args::<host1x_create_fence>(|a| (a.id, a.threshold) = (fence, 1));
    node.ioctl(HOST1X_IOCTL_CREATE_FENCE, &mut create).unwrap();
    let first = create.fence_fd;
    create.threshold = 2;
    node.ioctl(HOST1X_IOCTL_CREATE_FENCE, &mut create).unwrap();
    let both = merge(&board, first, create.fence_fd, "both").unwrap();
    assert!(!signalled(first));
    assert_eq!(extract(&node, both, 2), Ok((vec![(fence, 1), (fence, 2)], 2)));
    assert_eq!(extract(&node, both, 1), Ok((vec![(fence, 1)], 2)), "the points that fit, and the number of all");
    memory.write_u32(64, 5);
    until("the first", || signalled(first));
    assert!(!signalled(both), "the second value is not there yet");
    assert_eq!(extract(&node, first, 1), Ok((vec![(fence, 1)], 1)), "a fence that has passed is returned too");
    // The end of the channel lets every fence pass. Its syncpoint then belongs to no channel.
    drop(rig);
    until("both", || signalled(both));
    assert_eq!(extract(&node, both, 2).map(|(_, count)| count), Ok(0));
}

#[test]
fn host1x_refuses_what_is_no_syncpoint_and_no_fence() {
    let board = Board::new();
    let node = host1x(&board);
    let create = |id, reserved| {
        let mut create = args::<host1x_create_fence>(|a| (a.id, a.reserved) = (id, reserved));
        node.ioctl(HOST1X_IOCTL_CREATE_FENCE, &mut create)
    };
    let (rig, _, entries) = kernel_mode(&board);
    let fence = submit(&rig.channel, &entries, NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET, 0).unwrap();
    assert_eq!(create(fence, 1), Err(Errno::EINVAL));
    assert_eq!(create(fence + 1, 0), Err(Errno::EINVAL), "the syncpoint belongs to no channel");
    assert_eq!(create(1 << 20, 0), Err(Errno::EINVAL));
    assert_eq!(extract(&node, node.raw(), 1), Err(Errno::EINVAL));
    assert_eq!(extract(&node, 9999, 1), Err(Errno::EINVAL));
    let mut reserved = args::<host1x_fence_extract>(|a| a.reserved = [0, 1]);
    assert_eq!(node.ioctl(HOST1X_IOCTL_FENCE_EXTRACT, &mut reserved), Err(Errno::EINVAL));
    assert_eq!(node.ioctl_value(0x5899, 0), Err(Errno::ENOTTY));
}
