//! nvmap (docs/hardware/nvmap.md#nvmap).
#![allow(unsafe_code)]

use crate::support::*;
use std::os::fd::BorrowedFd;
use tegrarm_abi::nvgpu::r35::*;

fn from_va(board: &Board, va: u64, fill: impl FnOnce(&mut nvmap_create_handle_from_va)) -> Result<u32, Errno> {
    let mut from = args::<nvmap_create_handle_from_va>(|a| {
        a.va = va;
        fill(a);
    });
    board.nvmap.ioctl(NVMAP_IOC_FROM_VA, &mut from)?;
    Ok(from.size64 as u32)
}

/// Anonymous pages of this process.
fn pages(len: usize, shared: bool) -> tegrarm_kmd::Mapping {
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
    let kind = if shared { MapFlags::MAP_SHARED } else { MapFlags::MAP_PRIVATE };
    let rw = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the pages are new and anonymous, and the result owns them.
    unsafe {
        let at = mmap_anonymous(None, len.try_into().unwrap(), rw, kind).unwrap();
        tegrarm_kmd::Mapping::from_raw(at.cast(), len)
    }
}

fn rw(board: &Board, request: u32, rw: &mut nvmap_rw_handle) -> Result<(), Errno> {
    board.nvmap.ioctl(request, rw)
}

#[test]
fn rule_3_1_unknown_ioctls_are_enotty_and_the_node_is_not_mapped() {
    let board = Board::new();
    for request in [0xc008_4e02, 0xc010_4e08, 0xc008_4e0d, 0xc008_4e7f, 0xc008_4700, 0xc004_4e00] {
        assert_eq!(board.raw(&board.nvmap, request, &mut [0; 64]), Err(Errno::ENOTTY), "{request:#x}");
    }
    assert_eq!(board.nvmap.mmap(Placement::Anywhere, 4096, Prot::Read, 0).unwrap_err(), Errno::EPERM);
}

#[test]
fn rule_3_1_ids_count_up_for_ever_and_opens_share_them() {
    let board = Board::new();
    assert_eq!([board.create(1), board.create(1)], [0x7fff_ffff, 0x8000_0000]);
    board.free(0x8000_0000);
    assert_eq!(board.create(1), 0x8000_0001);
    let second = File::open(&board.kmd, Node::Nvmap, "/dev/nvmap").unwrap();
    let mut get = args::<nvmap_create_handle>(|a| a.handle = 0x7fff_ffff);
    assert_eq!(second.ioctl(NVMAP_IOC_GET_FD, &mut get), Ok(()));
    drop(board.file(Node::Dmabuf, get.size as i32));
}

#[test]
fn rule_e3_r35_ids_are_the_lowest_free_of_each_open() {
    let board = Board::r35();
    assert_eq!([board.create(1), board.create(1), board.create(1)], [0x7fff_ffff, 0x8000_0000, 0x8000_0001]);
    board.free(0x8000_0000);
    assert_eq!(board.create(1), 0x8000_0000);
    let second = File::open(&board.kmd, Node::Nvmap, "/dev/nvmap").unwrap();
    let mut get = args::<nvmap_create_handle>(|a| a.handle = 0x7fff_ffff);
    assert_eq!(second.ioctl(NVMAP_IOC_GET_FD, &mut get), Err(Errno::EBADF));
}

#[test]
fn rule_3_1_a_dmabuf_descriptor_is_no_handle() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    assert_eq!(board.alloc(buffer.raw() as u32), Err(Errno::EINVAL));
    assert_eq!(board.get_fd(buffer.raw() as u32).err(), Some(Errno::EINVAL));
}

#[test]
fn rule_3_2_create_rounds_up_and_refuses_nothing() {
    let board = Board::new();
    let mut create = args::<nvmap_create_handle>(|_| ());
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_CREATE, &mut create), Err(Errno::EINVAL));
    let fd = board.get_fd(board.create(1)).unwrap();
    assert_eq!(nix::sys::stat::fstat(&fd).unwrap().st_size, 4096);
}

#[test]
fn rule_3_2_create_64_answers_at_offset_0() {
    let board = Board::new();
    let mut bytes = (5_u64 << 30).to_le_bytes();
    board.raw(&board.nvmap, NVMAP_IOC_CREATE_64, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()), 0x7fff_ffff);
    assert_eq!(board.raw(&board.nvmap, NVMAP_IOC_CREATE_64, &mut [0; 8]), Err(Errno::EINVAL));
}

#[test]
fn rule_3_2_get_fd_makes_a_new_descriptor_of_one_dmabuf() {
    let board = Board::new();
    let handle = board.create(4096);
    let (a, b) = (board.get_fd(handle).unwrap(), board.get_fd(handle).unwrap());
    assert_ne!(a.raw(), b.raw());
    assert_eq!(nix::sys::stat::fstat(&a).unwrap().st_ino, nix::sys::stat::fstat(&b).unwrap().st_ino);
    assert_eq!(board.get_fd(12345).err(), Some(Errno::EBADF));
}

#[test]
fn rule_3_2_from_fd_gives_another_id_of_the_same_handle() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    let mut from = args::<nvmap_create_handle>(|a| a.size = buffer.raw() as u32);
    board.nvmap.ioctl(NVMAP_IOC_FROM_FD, &mut from).unwrap();
    assert_ne!(from.handle, buffer.handle);
    assert_eq!(board.alloc(from.handle), Err(Errno::EEXIST));
    from.size = 99_999;
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_FROM_FD, &mut from), Err(Errno::EBADF));
}

#[test]
fn rule_3_2_free_never_fails_and_closes_descriptors() {
    let board = Board::new();
    board.free(0);
    board.free(77);
    let buffer = board.buffer(4096);
    let extra = board.get_fd(buffer.handle).unwrap();
    // No other test that runs beside this one gets so high a number after it was freed.
    // SAFETY: `extra` keeps the descriptor open.
    let open = unsafe { BorrowedFd::borrow_raw(extra.raw()) };
    let raw = nix::fcntl::fcntl(open, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(900)).expect("a free number");
    drop(extra);
    board.free(raw as u32);
    let mut from = args::<nvmap_create_handle>(|a| a.size = raw as u32);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_FROM_FD, &mut from), Err(Errno::EBADF));
}

#[test]
fn rule_3_3_alloc_checks_in_order() {
    let board = Board::new();
    let handle = board.create(4096);
    let with = |fill: &dyn Fn(&mut nvmap_alloc_handle)| board.alloc_with(handle, fill);
    assert_eq!(with(&|a| a.align = 3), Err(Errno::EINVAL));
    assert_eq!(with(&|a| a.handle = 0), Err(Errno::EINVAL));
    assert_eq!(with(&|a| a.numa_nid = 1000), Err(Errno::EINVAL));
    assert_eq!(with(&|a| a.numa_nid = -2), Err(Errno::EINVAL));
    assert_eq!(with(&|a| a.handle = 5), Err(Errno::EINVAL));
    assert_eq!(with(&|a| a.heap_mask = 0), Err(Errno::ENOMEM));
    assert_eq!(with(&|a| a.heap_mask = 1 << 31), Err(Errno::ENOMEM));
    assert_eq!(with(&|a| a.heap_mask = NVMAP_HEAP_CARVEOUT_GENERIC), Err(Errno::ENOMEM));
    assert_eq!(with(&|a| a.heap_mask |= NVMAP_HEAP_CARVEOUT_IVM), Err(Errno::EINVAL));
    assert_eq!(with(&|a| (a.align, a.numa_nid) = (0, -1)), Ok(()));
    // Whether the heaps exist is checked before "already allocated", and that before heaps that may only be used alone.
    assert_eq!(with(&|a| a.heap_mask = 0), Err(Errno::ENOMEM));
    assert_eq!(with(&|a| a.heap_mask |= NVMAP_HEAP_CARVEOUT_IVM), Err(Errno::EEXIST));
}

#[test]
fn rule_3_3_absent_heaps_beside_iovmm_are_harmless() {
    let board = Board::new();
    let handle = board.create(4096);
    assert_eq!(board.alloc_with(handle, |a| a.heap_mask |= NVMAP_HEAP_CARVEOUT_TSEC), Ok(()));
}

#[test]
fn rule_3_3_memory_is_accounted_and_zero() {
    let config = tegra_sim::SimConfig { mem_total: 1 << 20, ..tegra_sim::SimConfig::new(tegra_sim::Chip::OrinNano) };
    let board = Board::with(config);
    let big = board.create(2 << 20);
    assert_eq!(board.alloc(big), Err(Errno::ENOMEM));
    let (first, second) = (board.create(768 << 10), board.create(512 << 10));
    board.alloc(first).unwrap();
    assert_eq!(board.alloc(second), Err(Errno::ENOMEM));
    board.free(first);
    board.alloc(second).unwrap();
    let map = board.get_fd(second).unwrap().mmap(Placement::Anywhere, 4096, Prot::ReadWrite, 0).unwrap();
    assert_eq!(tegrarm_kmd::DeviceMem::new(map).read_u64(0), 0);
}

#[test]
fn large_buffers_are_refused_although_memory_is_free() {
    use tegra_sim::{Chip, L4t, Refusals, SimConfig};
    const MIB: u32 = 1 << 20;
    let small = SimConfig { mem_total: 1 << 30, ..SimConfig::new(Chip::OrinNano) };
    let fixed = small.refusing(Refusals::Cve202533177).unwrap();
    let r35 = small.on(L4t::R35_4).refusing(Refusals::Cve202533177).unwrap();
    let fragmented = small.refusing(Refusals::Fragmented).unwrap();
    let release = |board: &Board| board.kmd.read_text("/etc/nv_tegra_release").unwrap();
    assert!(release(&Board::with(r35)).starts_with("# R35 (release), REVISION: 6.3,"));
    for (config, most, then, revision) in [(fixed, 640, 240, "4.7"), (fragmented, 64, 64, "4.3")] {
        let board = Board::with(config);
        assert!(release(&board).starts_with(&format!("# R36 (release), REVISION: {revision},")));
        let large = board.create(most * MIB + 4096);
        assert_eq!(board.alloc(large), Err(Errno::ENOMEM));
        let fits = board.create(most * MIB);
        board.alloc(fits).unwrap();
        // What is left is divided anew by the fix, and as before on a board whose memory is in pieces.
        let next = board.create(then * MIB + 4096);
        assert_eq!(board.alloc(next), Err(Errno::ENOMEM));
        let next = board.create(then * MIB);
        board.alloc(next).unwrap();
    }
}

#[test]
fn rule_3_4_read_and_write_copy_strided_elements() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    let data: Vec<u8> = (0..64).collect();
    let mut write = args::<nvmap_rw_handle>(|a| {
        (a.addr, a.handle, a.offset) = (data.as_ptr() as u64, buffer.handle, 100);
        (a.elem_size, a.hmem_stride, a.user_stride, a.count) = (4, 8, 16, 4);
    });
    rw(&board, NVMAP_IOC_WRITE, &mut write).unwrap();
    assert_eq!(write.count, 16);
    let mut back = [0xee_u8; 32];
    let mut read = args::<nvmap_rw_handle>(|a| {
        (a.addr, a.handle, a.offset) = (back.as_mut_ptr() as u64, buffer.handle, 100);
        (a.elem_size, a.hmem_stride, a.user_stride, a.count) = (4, 4, 4, 8);
    });
    rw(&board, NVMAP_IOC_READ, &mut read).unwrap();
    assert_eq!(read.count, 32);
    assert_eq!(back[..8], [0, 1, 2, 3, 0, 0, 0, 0]);
    assert_eq!(back[8..16], [16, 17, 18, 19, 0, 0, 0, 0]);
}

#[test]
fn rule_3_4_read_and_write_refusals() {
    let board = Board::new();
    let (buffer, bare) = (board.buffer(4096), board.create(4096));
    let mut word = [0_u8; 64];
    let addr = word.as_mut_ptr() as u64;
    let good = args::<nvmap_rw_handle>(|a| {
        (a.addr, a.handle, a.elem_size, a.hmem_stride, a.user_stride, a.count) = (addr, buffer.handle, 4, 4, 4, 1);
    });
    let read = |fill: &dyn Fn(&mut nvmap_rw_handle)| {
        let mut args = good;
        fill(&mut args);
        (rw(&board, NVMAP_IOC_READ, &mut args), args.count)
    };
    assert_eq!(read(&|_| ()), (Ok(()), 4));
    assert_eq!(read(&|a| a.addr = 0).0, Err(Errno::EINVAL));
    assert_eq!(read(&|a| a.elem_size = 0).0, Err(Errno::EINVAL));
    assert_eq!(read(&|a| a.handle = 5).0, Err(Errno::EINVAL));
    assert_eq!(read(&|a| a.handle = bare), (Err(Errno::EPERM), 0));
    assert_eq!(read(&|a| a.offset = 4096), (Err(Errno::EINVAL), 0));
    assert_eq!(read(&|a| a.offset = 4094), (Err(Errno::EINVAL), 0));
    assert_eq!(read(&|a| (a.elem_size, a.user_stride) = (8, 4)), (Err(Errno::EINVAL), 0));
    assert_eq!(read(&|a| a.count = u64::MAX), (Err(Errno::EINVAL), 0));
    assert_eq!(read(&|a| a.addr = 8), (Err(Errno::EINTR), 0));
}

#[test]
fn rule_3_5_cache_maintenance_needs_a_mapping_of_that_handle() {
    let board = Board::new();
    let (buffer, other) = (board.buffer(8192), board.buffer(8192));
    let map = buffer.fd.mmap(Placement::Anywhere, 8192, Prot::ReadWrite, 0).unwrap();
    let cache = |addr: u64, handle, len, op| {
        let mut cache = args::<nvmap_cache_op>(|a| (a.addr, a.handle, a.len, a.op) = (addr, handle, len, op));
        board.nvmap.ioctl(NVMAP_IOC_CACHE, &mut cache)
    };
    let at = map.addr() as u64;
    assert_eq!(cache(at, buffer.handle, 8192, 2), Ok(()));
    assert_eq!(cache(at + 4096, buffer.handle, 0, 0), Ok(()));
    assert_eq!(cache(0, buffer.handle, 4096, 0), Err(Errno::EINVAL));
    assert_eq!(cache(at, buffer.handle, 4096, 3), Err(Errno::EINVAL));
    assert_eq!(cache(at, 5, 4096, 0), Err(Errno::EINVAL));
    assert_eq!(cache(at, buffer.handle, 12288, 0), Err(Errno::EADDRNOTAVAIL));
    let stack = 0_u64;
    assert_eq!(cache(&raw const stack as u64, buffer.handle, 8, 0), Err(Errno::EADDRNOTAVAIL));
    assert_eq!(cache(at, other.handle, 4096, 0), Err(Errno::EFAULT));
}

#[test]
fn rule_3_6_from_va_makes_an_allocated_handle() {
    let board = Board::new();
    for shared in [true, false] {
        let memory = tegrarm_kmd::DeviceMem::new(pages(8192, shared));
        memory.write_u64(4096, 0x1122_3344);
        let handle = from_va(&board, memory.mapping().addr() as u64, |a| a.size = 5000).unwrap();
        assert_eq!(board.alloc(handle), Err(Errno::EEXIST));
        let fd = board.get_fd(handle).unwrap();
        assert!(map_with(&board.space(), fd.raw(), |_| ()).is_ok());
        let mut word = 0_u64;
        let mut read = args::<nvmap_rw_handle>(|a| {
            (a.addr, a.handle, a.offset) = (&raw mut word as u64, handle, 4096);
            (a.elem_size, a.hmem_stride, a.user_stride, a.count) = (8, 8, 8, 1);
        });
        rw(&board, NVMAP_IOC_READ, &mut read).unwrap();
        assert_eq!(word, 0x1122_3344);
    }
}

#[test]
fn rule_3_6_from_va_refusals() {
    let board = Board::new();
    let memory = pages(8192, true);
    let va = memory.addr() as u64;
    assert_eq!(from_va(&board, va + 8, |a| a.size = 4096), Err(Errno::EINVAL));
    assert_eq!(from_va(&board, 1 << 60, |a| a.size = 4096), Err(Errno::EINVAL));
    assert_eq!(from_va(&board, va, |a| a.size64 = 1 << 50), Err(Errno::ENOMEM));
    let code = (rule_3_6_from_va_refusals as fn() as usize as u64) & !4095;
    assert_eq!(from_va(&board, code, |a| a.size = 4096), Err(Errno::EINVAL));
    assert!(from_va(&board, code, |a| (a.size, a.flags) = (4096, NVMAP_HANDLE_RO)).is_ok());
}

#[test]
fn rule_3_6_read_only_pages_are_mapped_read_only() {
    let board = Board::new();
    let memory = pages(4096, true);
    let handle = from_va(&board, memory.addr() as u64, |a| (a.size, a.flags) = (4096, NVMAP_HANDLE_RO | 2)).unwrap();
    let (space, fd) = (board.space(), board.get_fd(handle).unwrap());
    assert_eq!(map_with(&space, fd.raw(), |a| a.flags = 2 << 10), Err(Errno::EACCES));
    assert!(map_with(&space, fd.raw(), |a| a.flags = 1 << 10).is_ok());
}

#[test]
fn rule_3_7_a_dmabuf_is_mapped_only_with_memory_and_inside() {
    let board = Board::new();
    let handle = board.create(8192);
    let fd = board.get_fd(handle).unwrap();
    let map = |len, offset| fd.mmap(Placement::Anywhere, len, Prot::ReadWrite, offset).map(|m| m.len());
    assert_eq!(map(4096, 0), Err(Errno::EPERM));
    board.alloc(handle).unwrap();
    assert_eq!(map(8192, 0), Ok(8192));
    assert_eq!(map(4096, 4096), Ok(4096));
    assert_eq!(map(8192, 4096), Err(Errno::EINVAL));
}

#[test]
fn rule_3_2_dup_handle_only_narrows_access() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    let dup = |handle, access| {
        let mut dup = args::<nvmap_duplicate_handle>(|a| (a.handle, a.access_flags) = (handle, access));
        board.nvmap.ioctl(NVMAP_IOC_DUP_HANDLE, &mut dup).map(|()| dup.dup_handle)
    };
    let read_only = dup(buffer.handle, NVMAP_HANDLE_RO).unwrap();
    assert_eq!(dup(read_only, 0), Err(Errno::EPERM));
    assert!(dup(read_only, NVMAP_HANDLE_RO).is_ok());
    assert_eq!(dup(5, 0), Err(Errno::EINVAL));
    let fd = board.get_fd(read_only).unwrap();
    assert_eq!(fd.mmap(Placement::Anywhere, 4096, Prot::ReadWrite, 0).unwrap_err(), Errno::EACCES);
    assert!(fd.mmap(Placement::Anywhere, 4096, Prot::Read, 0).is_ok());
    let mut word = 7_u32;
    let mut write = args::<nvmap_rw_handle>(|a| {
        (a.addr, a.handle) = (&raw mut word as u64, read_only);
        (a.elem_size, a.hmem_stride, a.user_stride, a.count) = (4, 4, 4, 1);
    });
    assert_eq!(rw(&board, NVMAP_IOC_WRITE, &mut write), Err(Errno::EPERM));
}

#[test]
fn rule_3_2_heaps_list_carveouts_only() {
    let board = Board::observed();
    let mut heaps = args::<nvmap_available_heaps>(|_| ());
    board.nvmap.ioctl(NVMAP_IOC_GET_AVAILABLE_HEAPS, &mut heaps).unwrap();
    assert_eq!(heaps.heaps, 0x1000_0004);
    let mut size = args::<nvmap_heap_size>(|a| a.heap = NVMAP_HEAP_IOVMM);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_HEAP_SIZE, &mut size), Err(Errno::ENODEV));
}

#[test]
fn rule_3_2_query_heap_params() {
    let board = Board::new();
    let query = |mask| {
        let mut query = args::<nvmap_query_heap_params>(|a| a.heap_mask = mask);
        board.nvmap.ioctl(NVMAP_IOC_QUERY_HEAP_PARAMS, &mut query).map(|()| query)
    };
    let before = query(NVMAP_HEAP_IOVMM).unwrap();
    assert_eq!((before.largest_free_block, before.granule_size), (4096, 4096));
    let _buffer = board.buffer(1 << 20);
    assert_eq!(query(NVMAP_HEAP_IOVMM).unwrap().free, before.free - (1 << 20));
    assert_eq!(query(NVMAP_HEAP_CARVEOUT_TSEC).err(), Some(Errno::ENODEV));
    assert_eq!(query(1 << 31).unwrap().total, 0);
}

#[test]
fn rule_3_2_parameters() {
    let board = Board::new();
    let buffer = board.buffer(8192);
    let get = |handle| {
        let mut get = args::<nvmap_handle_parameters>(|a| a.handle = handle);
        board.nvmap.ioctl(NVMAP_IOC_PARAMETERS, &mut get).map(|()| get)
    };
    let known = get(buffer.handle).unwrap();
    assert_eq!((known.heap, known.size, known.coherency), (u64::from(NVMAP_HEAP_IOVMM), 8192, 2));
    assert_eq!(get(board.create(4096)).unwrap().heap, 0);
    assert_eq!(get(5).err(), Some(Errno::ENODEV));
}

#[test]
fn rule_e3_r35_sizes_of_alloc_query_and_parameters() {
    let board = Board::r35();
    let handle = board.create(4096);
    let mut newer = args::<nvmap_alloc_handle>(|a| (a.handle, a.heap_mask) = (handle, NVMAP_HEAP_IOVMM));
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_ALLOC, &mut newer), Err(Errno::ENOTTY));
    let mut alloc = args::<nvmap_alloc_handle_r35>(|a| (a.handle, a.heap_mask) = (handle, NVMAP_HEAP_IOVMM));
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_ALLOC_R35, &mut alloc), Ok(()));
    let mut query = args::<nvmap_query_heap_params_r35>(|a| a.heap_mask = NVMAP_HEAP_IOVMM);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_QUERY_HEAP_PARAMS_R35, &mut query), Ok(()));
    assert!(query.free < query.total);
    let mut parameters = args::<nvmap_handle_parameters_r35>(|a| a.handle = handle);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_PARAMETERS_R35, &mut parameters), Ok(()));
    assert_eq!(parameters.size, 4096);
}

/// Handles that happen to have the numbers of the simulator's own descriptors have no meaning for FREE.
#[test]
fn rule_3_2_free_leaves_the_simulators_descriptors_alone() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    for number in 4096..5096 {
        board.nvmap.ioctl_value(NVMAP_IOC_FREE, number).unwrap();
    }
    let again = board.get_fd(buffer.handle).unwrap();
    assert!(again.mmap(Placement::Anywhere, 4096, Prot::ReadWrite, 0).is_ok());
}
