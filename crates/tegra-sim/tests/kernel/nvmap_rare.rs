//! Rare uses of nvmap: protected memory (docs/hardware/nvmap.md#alloc, docs/hardware/nvmap.md#read-write,
//! docs/hardware/nvmap.md#dmabuf-mmap, docs/hardware/nvgpu-channel.md#set-error-notifier), pages of the program, and
//! calls that exist for other operating systems (docs/hardware/nvmap.md#ioctls).

use crate::support::running::view;
use crate::support::*;
use tegrarm_abi::nvgpu::debugger::*;

/// A buffer in the protected region.
fn protected(board: &Board, size: u32) -> Buffer {
    let handle = board.create(size);
    board.alloc_with(handle, |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_VPR | NVMAP_HEAP_IOVMM).unwrap();
    Buffer { handle, fd: board.get_fd(handle).unwrap() }
}

#[test]
fn rule_3_3_protected_memory_is_tried_first_and_uncached() {
    let board = Board::new();
    let buffer = protected(&board, 8192);
    let mut parameters = args::<nvmap_handle_parameters>(|a| a.handle = buffer.handle);
    board.nvmap.ioctl(NVMAP_IOC_PARAMETERS, &mut parameters).unwrap();
    assert_eq!((parameters.heap, parameters.coherency), (u64::from(NVMAP_HEAP_CARVEOUT_VPR), 0));
    let mut size = args::<nvmap_heap_size>(|a| a.heap = NVMAP_HEAP_CARVEOUT_VPR);
    board.nvmap.ioctl(NVMAP_IOC_GET_HEAP_SIZE, &mut size).unwrap();
    // When the protected region is full, system memory is used.
    let (all, more) = (board.create((size.size - 8192) as u32), board.create(4096));
    board.alloc_with(all, |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_VPR).unwrap();
    assert_eq!(board.alloc_with(more, |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_VPR), Err(Errno::ENOMEM));
    board.alloc_with(more, |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_VPR | NVMAP_HEAP_IOVMM).unwrap();
    parameters = args::<nvmap_handle_parameters>(|a| a.handle = more);
    board.nvmap.ioctl(NVMAP_IOC_PARAMETERS, &mut parameters).unwrap();
    assert_eq!((parameters.heap, parameters.coherency), (u64::from(NVMAP_HEAP_IOVMM), 0), "uncached all the same");
}

#[test]
fn rule_3_7_the_cpu_does_not_see_protected_memory_and_the_gpu_does() {
    let board = Board::new();
    let buffer = protected(&board, 4096);
    assert_eq!(buffer.fd.mmap(Placement::Anywhere, 4096, Prot::Read, 0).err(), Some(Errno::EPERM));
    let mut word = [0_u8; 8];
    let mut rw = args::<nvmap_rw_handle>(|a| {
        (a.addr, a.handle, a.count) = (word.as_mut_ptr() as u64, buffer.handle, 1);
        (a.elem_size, a.hmem_stride, a.user_stride) = (8, 8, 8);
    });
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_READ, &mut rw), Err(Errno::EPERM));
    rw.count = 1;
    board.nvmap.ioctl(NVMAP_IOC_WRITE, &mut rw).unwrap();
    let rig = board.rig();
    let va = map(&rig.space, &buffer).unwrap();
    assert_ne!(va, 0);
    let mut notifier = args::<nvgpu_set_error_notifier>(|a| (a.size, a.mem) = (16, buffer.raw() as u32));
    assert_eq!(rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut notifier), Err(Errno::ENOMEM));
    // A debugger cannot read it either.
    let session = File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap();
    let mut bind = args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = rig.channel.raw() as u32);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut bind).unwrap();
    let op = args::<nvgpu_dbg_gpu_va_access_entry>(|a| (a.gpu_va, a.data, a.size) = (va, word.as_mut_ptr() as u64, 8));
    let mut access =
        args::<nvgpu_dbg_gpu_va_access_args>(|a| (a.ops_buf, a.count, a.cmd) = (&raw const op as u64, 1, 1));
    assert_eq!(session.ioctl(NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, &mut access), Err(Errno::ENOMEM));
}

/// The published characteristics say that protected channels are supported (flag 27).
#[test]
fn rule_7_2_a_channel_can_be_protected() {
    let board = Board::new();
    let rig = board.rig();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    let setup = setup_bind(&rig.channel, &ring, &userd, |a| a.flags |= NVGPU_CHANNEL_SETUP_BIND_FLAGS_VPR_ENABLED);
    assert_eq!(setup, Ok(511));
}

#[test]
fn rule_3_2_gup_test_compares_a_mappings_pages_with_a_handles() {
    let board = Board::new();
    let (buffer, other) = (board.buffer(8192), board.buffer(8192));
    let own = buffer.fd.mmap(Placement::Anywhere, 8192, Prot::ReadWrite, 0).unwrap();
    // Adjacent mappings of one file would be one area, so another mapping is made in between.
    let _between = board.ctrl.mmap(Placement::Anywhere, 4096, Prot::Read, 0).unwrap();
    let theirs = other.fd.mmap(Placement::Anywhere, 8192, Prot::ReadWrite, 0).unwrap();
    let gup = |va: u64, handle| {
        let mut test = args::<nvmap_gup_test>(|a| (a.va, a.handle, a.result) = (va, handle, 7));
        board.nvmap.ioctl(NVMAP_IOC_GUP_TEST, &mut test).map(|()| test.result)
    };
    assert_eq!(gup(own.as_ptr() as u64, buffer.handle), Ok(1));
    assert_eq!(gup(theirs.as_ptr() as u64, buffer.handle), Ok(0));
    assert_eq!(gup(own.as_ptr() as u64, 5), Err(Errno::EINVAL));
    assert_eq!(gup(8, buffer.handle), Err(Errno::EINVAL));
    assert_eq!(gup(own.as_ptr() as u64, board.buffer(4096).handle), Err(Errno::EINVAL), "another size");
    assert_eq!(gup(own.as_ptr() as u64, protected(&board, 8192).handle), Err(Errno::EINVAL));
}

#[test]
fn rule_3_2_a_range_of_several_handles_is_checked_and_refused() {
    let board = Board::new();
    let (a, b) = (board.buffer(8192), board.buffer(4096));
    let range = |handles: &[u32], offset, size| {
        let mut range = args::<nvmap_fd_for_range_from_list>(|r| {
            (r.handles, r.num_handles) = (handles.as_ptr() as u64, handles.len() as u32);
            (r.offset, r.size, r.fd) = (offset, size, 7);
        });
        (board.nvmap.ioctl(NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, &mut range), range.fd)
    };
    let both = [a.handle, b.handle];
    assert_eq!(range(&both, 4096, 8192), (Err(Errno::ENOMEM), 7), "nothing can show both");
    let uncached = board.create(4096);
    board.alloc_with(uncached, |x| x.flags = 0).unwrap();
    let (vpr, empty) = (protected(&board, 4096).handle, board.create(4096));
    for (handles, offset, size) in [
        (&[][..], 0, 4096),
        (&both, 0, 0),
        (&both, 4096, 8193),
        (&both, u64::MAX, 4096),
        (&[a.handle, 5], 0, 4096),
        (&[a.handle, uncached], 0, 4096),
        (&[a.handle, vpr], 0, 4096),
        (&[a.handle, empty], 0, 4096),
    ] {
        assert_eq!(range(handles, offset, size).0, Err(Errno::EINVAL), "{handles:?} {offset} {size}");
    }
    let mut nowhere = args::<nvmap_fd_for_range_from_list>(|r| (r.handles, r.num_handles, r.size) = (8, 1, 4096));
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, &mut nowhere), Err(Errno::EFAULT));
    nowhere.num_handles = 1 << 20;
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, &mut nowhere), Err(Errno::ENOMEM));
    assert_eq!(Board::r35().nvmap.ioctl(NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, &mut nowhere), Err(Errno::ENOTTY));
}

#[test]
fn rule_3_2_there_is_no_other_operating_system_and_no_endpoint() {
    let board = Board::new();
    let raw = |request, bytes: &mut [u8]| board.raw(&board.nvmap, request, bytes);
    let mut peers = [7; 4];
    assert_eq!((raw(NVMAP_IOC_GET_IVM_HEAPS, &mut peers), peers), (Ok(0), [0; 4]));
    assert_eq!(raw(NVMAP_IOC_VPR_FLOOR_SIZE, &mut [0; 4]), Ok(0));
    assert_eq!(raw(NVMAP_IOC_FROM_IVC_ID, &mut [0; 8]), Err(Errno::EINVAL), "no pages");
    assert_eq!(raw(NVMAP_IOC_FROM_IVC_ID, &mut [1, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::ENOMEM));
    let (buffer, empty) = (board.buffer(4096), board.create(4096));
    let id_of = |handle: u32| {
        let mut id = u64::from(handle).to_le_bytes();
        raw(NVMAP_IOC_GET_IVC_ID, &mut id).map(|_| u64::from_le_bytes(id))
    };
    assert_eq!((id_of(buffer.handle), id_of(empty), id_of(5)), (Ok(0), Err(Errno::EFAULT), Err(Errno::EINVAL)));
    let ivm = |handle, heap_mask, align| {
        let mut alloc =
            args::<nvmap_alloc_ivm_handle>(|a| (a.handle, a.heap_mask, a.align) = (handle, heap_mask, align));
        board.nvmap.ioctl(NVMAP_IOC_ALLOC_IVM, &mut alloc)
    };
    assert_eq!(
        (ivm(empty, NVMAP_HEAP_IOVMM, 3), ivm(5, NVMAP_HEAP_IOVMM, 0)),
        (Err(Errno::EINVAL), Err(Errno::EINVAL))
    );
    assert_eq!(ivm(empty, NVMAP_HEAP_CARVEOUT_IVM, 0), Err(Errno::ENOMEM), "no such heap");
    assert_eq!(ivm(empty, NVMAP_HEAP_CARVEOUT_IVM | NVMAP_HEAP_IOVMM, 0), Err(Errno::EINVAL), "not with others");
    ivm(empty, NVMAP_HEAP_IOVMM, 0).unwrap();
    assert_eq!(ivm(empty, NVMAP_HEAP_IOVMM, 0), Err(Errno::EEXIST));
    let mut map = args::<nvmap_sciipc_map>(|a| a.handle = buffer.handle);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID, &mut map), Err(Errno::EINVAL), "no token is valid");
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_HANDLE_FROM_SCIIPCID, &mut map), Err(Errno::EINVAL));
    map.handle = 5;
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID, &mut map), Err(Errno::ENODEV));
    let mut narrow = args::<nvmap_duplicate_handle>(|a| (a.handle, a.access_flags) = (buffer.handle, NVMAP_HANDLE_RO));
    board.nvmap.ioctl(NVMAP_IOC_DUP_HANDLE, &mut narrow).unwrap();
    (map.handle, map.flags) = (narrow.dup_handle, 2);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID, &mut map), Err(Errno::EPERM), "reading stays reading");
}

#[test]
fn rule_3_2_memory_of_ivm_calls_is_memory() {
    let board = Board::new();
    let handle = board.create(4096);
    let mut alloc = args::<nvmap_alloc_ivm_handle>(|a| (a.handle, a.heap_mask) = (handle, NVMAP_HEAP_IOVMM));
    board.nvmap.ioctl(NVMAP_IOC_ALLOC_IVM, &mut alloc).unwrap();
    assert_eq!(view(&board.get_fd(handle).unwrap(), 4096).read_u32(0), 0);
}

#[test]
fn rule_3_2_a_list_of_cache_work_is_looked_at_and_that_is_all() {
    let board = Board::new();
    let (one, two) = (board.buffer(4096), board.buffer(8192));
    let secure = protected(&board, 4096);
    let reserved = board.create(4096);
    board.alloc_with(reserved, |a| a.flags |= NVMAP_HANDLE_CACHE_SYNC_AT_RESERVE).unwrap();
    let zeros = [0_u64; 2];
    let list = |handles: &[u32], fill: &dyn Fn(&mut nvmap_cache_op_list)| {
        let mut list = args::<nvmap_cache_op_list>(|a| {
            (a.handles, a.nr) = (handles.as_ptr() as u64, handles.len() as u32);
            (a.offsets, a.sizes) = (zeros.as_ptr() as u64, zeros.as_ptr() as u64);
            fill(a);
        });
        board.nvmap.ioctl(NVMAP_IOC_CACHE_LIST, &mut list)
    };
    let both = [one.handle, two.handle];
    assert_eq!(list(&both, &|_| ()), Ok(()));
    assert_eq!(list(&both, &|a| a.op = i32::MIN | 2), Ok(()), "sizes of 64 bits");
    for spoil in [(|a| a.nr = 0) as fn(&mut nvmap_cache_op_list), |a| a.handles = 0, |a| a.offsets = 0, |a| a.sizes = 0]
    {
        assert_eq!(list(&both, &spoil), Err(Errno::EINVAL));
    }
    for spoil in [(|a| a.handles = 8) as fn(&mut nvmap_cache_op_list), |a| a.offsets = 8, |a| a.sizes = 8] {
        assert_eq!(list(&both, &spoil), Err(Errno::EFAULT));
    }
    assert_eq!(list(&[one.handle, 5], &|_| ()), Err(Errno::EINVAL));
    assert_eq!(list(&[one.handle, board.create(4096)], &|_| ()), Err(Errno::EPERM), "no memory");
    assert_eq!(list(&[one.handle, secure.handle], &|_| ()), Err(Errno::EPERM));
    assert_eq!(list(&[one.handle, reserved], &|_| ()), Err(Errno::EINVAL), "all reserve or none");
    assert_eq!(list(&[reserved, reserved], &|_| ()), Ok(()));
}

#[test]
fn rule_3_5_both_widths_of_cache_work() {
    let board = Board::new();
    let buffer = board.buffer(8192);
    let memory = buffer.fd.mmap(Placement::Anywhere, 8192, Prot::ReadWrite, 0).unwrap();
    let addr = memory.as_ptr() as u64;
    let wide = |addr, len, op| {
        let mut wide = args::<nvmap_cache_op_64>(|a| (a.addr, a.handle, a.len, a.op) = (addr, buffer.handle, len, op));
        board.nvmap.ioctl(NVMAP_IOC_CACHE_64, &mut wide)
    };
    assert_eq!([wide(addr, 8192, 2), wide(addr, 0, 1)], [Ok(()), Ok(())]);
    assert_eq!([wide(0, 1, 0), wide(addr, 1, 3)], [Err(Errno::EINVAL), Err(Errno::EINVAL)]);
    assert_eq!([wide(addr, 1 << 40, 0), wide(addr, u64::MAX, 0)], [Err(Errno::EADDRNOTAVAIL); 2]);
}

#[test]
fn rule_3_2_tags_have_labels() {
    let board = Board::new();
    let text = *b"textures of the tests, and what they are good for";
    let label = |len, addr| {
        let mut label = args::<nvmap_set_tag_label>(|a| (a.tag, a.len, a.addr) = (0x900, len, addr));
        board.nvmap.ioctl(NVMAP_IOC_SET_TAG_LABEL, &mut label)
    };
    assert_eq!(label(text.len() as u32, text.as_ptr() as u64), Ok(()));
    assert_eq!((label(4, 8), label(0, 8)), (Err(Errno::EFAULT), Ok(())));
}
