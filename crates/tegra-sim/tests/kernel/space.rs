//! GPU address spaces (docs/hardware/nvgpu-address-space.md#address-space), and their entries in the list of traps
//! (E1).

use crate::support::*;
use std::os::fd::AsRawFd;

/// The sizes in the test vectors of docs/hardware/nvgpu-address-space.md#va-picker-vectors.
const SIZES: [u32; 6] = [4 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];

fn map_sizes(board: &Board, space: &File, sizes: &[u32]) -> Vec<u64> {
    sizes.iter().map(|size| map(space, &board.buffer(*size)).unwrap()).collect()
}

#[test]
fn rule_5_1_alloc_as_checks_the_range() {
    let board = Board::new();
    for (start, end) in [(0, END), (START, 0), (0x1000, END), (START, END + 0x1000), (END, START), (START, START)] {
        assert_eq!(board.alloc_as(start, end).err(), Some(Errno::EINVAL), "{start:#x}..{end:#x}");
    }
    assert_eq!(board.alloc_as(START, (1 << 49) - (4 << 30)).err(), None);
    assert_eq!(board.alloc_as(START, (1 << 49) - (2 << 30)).err(), Some(Errno::ENOMEM));
}

#[test]
fn rule_5_1_alloc_as_checks_big_pages_and_split() {
    let board = Board::new();
    let alloc = |fill: &dyn Fn(&mut nvgpu_alloc_as_args)| {
        let mut alloc = args::<nvgpu_alloc_as_args>(|a| {
            (a.va_range_start, a.va_range_end) = (START, END);
            fill(a);
        });
        let result = board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc);
        result.map(|()| drop(board.file(Node::As, alloc.as_fd)))
    };
    assert_eq!(alloc(&|a| a.big_page_size = 64 << 10), Err(Errno::EINVAL));
    assert_eq!(alloc(&|a| a.va_range_split = 4 << 20), Err(Errno::EINVAL));
    assert_eq!(alloc(&|a| a.flags = 0xffff_fffd), Ok(()));
    assert_eq!(alloc(&|a| a.reserved = 7), Ok(()));
}

#[test]
fn rule_5_1_opening_the_as_node_fails_without_big_pages() {
    let board = Board::new();
    assert_eq!(board.kmd.open("/dev/nvgpu/igpu0/as").unwrap_err(), Errno::EINVAL);
    let xavier = Board::with(tegra_sim::SimConfig::new(tegra_sim::Chip::Gv11b));
    assert!(File::open(&xavier.kmd, Node::As, "/dev/nvgpu/igpu0/as").is_ok());
}

#[test]
fn rule_5_2_vector_observed_range() {
    let board = Board::observed();
    let space = board.alloc_as(START, OBSERVED_END).unwrap();
    let expected = [0xff_ffa0_0000, 0xff_ffa0_1000, 0xff_ffa1_0000, 0xff_ffb0_0000, 0xff_fe20_0000, 0xff_f820_0000];
    assert_eq!(map_sizes(&board, &space, &SIZES), expected);
}

#[test]
fn rule_5_2_vector_lifo_reuse() {
    let board = Board::observed();
    let space = board.alloc_as(START, OBSERVED_END).unwrap();
    let six = map_sizes(&board, &space, &[4096; 6]);
    unmap(&space, six[1]);
    unmap(&space, six[3]);
    assert_eq!(map_sizes(&board, &space, &[4096; 3]), [0xff_ffa0_3000, 0xff_ffa0_1000, 0xff_ffa0_6000]);
}

#[test]
fn rule_5_2_vector_after_fixed_windows() {
    let board = Board::new();
    let space = board.alloc_as(START, OBSERVED_END).unwrap();
    reserve(&space, 0xfd_0000_0000, 1 << 30).unwrap();
    reserve(&space, 0xfe_0000_0000, 1 << 30).unwrap();
    let expected = [0xfe_4000_0000, 0xfe_4000_1000, 0xfe_4001_0000, 0xfe_4010_0000, 0xfd_fe20_0000, 0xfd_f820_0000];
    assert_eq!(map_sizes(&board, &space, &SIZES), expected);
}

#[test]
fn rule_5_2_vector_recommended_range() {
    let board = Board::new();
    let expected = [0xfe_ffe0_0000, 0xfe_ffe0_1000, 0xfe_ffe1_0000, 0xfe_fff0_0000, 0xfe_fe20_0000, 0xfe_f820_0000];
    assert_eq!(map_sizes(&board, &board.space(), &SIZES), expected);
}

#[test]
fn rule_5_3_a_channel_binds_once() {
    let board = Board::new();
    let (space, other, channel) = (board.space(), board.space(), board.channel());
    bind_space(&space, &channel).unwrap();
    assert_eq!(bind_space(&space, &channel), Err(Errno::EINVAL));
    assert_eq!(bind_space(&other, &channel), Err(Errno::EINVAL));
    assert_eq!(bind_space(&space, &board.ctrl), Err(Errno::EINVAL));
}

#[test]
fn rule_5_3_get_va_regions_writes_whole_entries() {
    let board = Board::new();
    let space = board.space();
    let mut region = args::<nvgpu_as_va_region>(|_| ());
    let mut get = args::<nvgpu_as_get_va_regions_args>(|a| {
        a.buf_addr = &raw mut region as u64;
        a.buf_size = 23;
    });
    space.ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut get).unwrap();
    assert_eq!((get.buf_size, region.pages), (24, 0));
    space.ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut get).unwrap();
    assert_eq!((region.offset, region.page_size, region.pages), (START, 4096, (END - START) / 4096));
    let mut bad = args::<nvgpu_as_get_va_regions_args>(|a| (a.buf_addr, a.buf_size) = (8, 24));
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut bad), Err(Errno::EFAULT));
}

#[test]
fn rule_5_3_get_sync_ro_map_maps_once() {
    let board = Board::new();
    let space = board.space();
    let mut get = args::<nvgpu_as_get_sync_ro_map_args>(|_| ());
    space.ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &mut get).unwrap();
    assert_eq!((get.sync_size, get.num_syncpoints), (0x10000, 1024));
    let first = get.base_gpuva;
    assert!(first >= END);
    space.ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &mut get).unwrap();
    assert_eq!(get.base_gpuva, first);
}

#[test]
fn rule_5_4_alloc_space_refusals() {
    let board = Board::new();
    let space = board.space();
    let mut bad = args::<nvgpu_as_alloc_space_args>(|a| (a.pages, a.page_size) = (1, 65536));
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_ALLOC_SPACE, &mut bad), Err(Errno::EINVAL));
    assert_eq!(alloc_space(&space, 0, 0, 0), Err(Errno::ENOMEM));
    assert_eq!(reserve(&space, START + 0x800, 4096), Err(Errno::ENOMEM));
    assert_eq!(reserve(&space, END, 4096), Err(Errno::ENOMEM));
    assert_eq!(reserve(&space, END - 4096, 8192), Err(Errno::ENOMEM));
    assert_eq!(reserve(&space, 0x10_0000_0000, 1 << 20), Ok(0x10_0000_0000));
    assert_eq!(reserve(&space, 0x10_0000_1000, 4096), Err(Errno::ENOMEM));
    assert_eq!(alloc_space(&space, !4095, 0, 0), Err(Errno::ENOMEM));
}

#[test]
fn rule_5_4_the_32_bit_form_is_the_same() {
    let board = Board::new();
    let space = board.space();
    let mut alloc = args::<nvgpu32_as_alloc_space_args>(|a| {
        (a.pages, a.page_size, a.flags, a.o_a_offset) = (16, 4096, 1, 0x10_0000_0000);
    });
    space.ioctl(NVGPU32_AS_IOCTL_ALLOC_SPACE, &mut alloc).unwrap();
    assert_eq!(alloc.o_a_offset, 0x10_0000_0000);
    assert_eq!(space.ioctl(NVGPU32_AS_IOCTL_ALLOC_SPACE, &mut alloc), Err(Errno::ENOMEM));
}

#[test]
fn rule_5_4_free_space_takes_any_address_inside_and_drops_mappings() {
    let board = Board::new();
    let space = board.space();
    let area = reserve(&space, 0x10_0000_0000, 1 << 20).unwrap();
    let buffer = board.buffer(8192);
    map_fixed(&space, &buffer, area + 0x4000).unwrap();
    board.free(buffer.handle);
    drop(buffer);
    free_space(&space, 0x20_0000_0000);
    assert_eq!(board.sim.kernel().census().memory, 8192);
    free_space(&space, area + 0x8123);
    assert_eq!(board.sim.kernel().census().memory, 0);
    assert_eq!(reserve(&space, area, 1 << 20), Ok(area));
}

#[test]
fn rule_5_4_an_area_takes_one_reference_of_its_mappings() {
    let board = Board::new();
    let space = board.space();
    let (buffer, other) = (board.buffer(4096), board.buffer(4096));
    let va = reserve(&space, 0x1000_0000, 8192).unwrap();
    assert_eq!([map_fixed(&space, &buffer, va), map_fixed(&space, &buffer, va)], [Ok(va); 2]);
    free_space(&space, va);
    // The second reference still exists, so that others cannot have the range.
    reserve(&space, va, 8192).unwrap();
    assert_eq!(map_fixed(&space, &other, va), Err(Errno::EINVAL));
    unmap(&space, va);
    assert_eq!(map_fixed(&space, &other, va), Ok(va));
}

#[test]
fn map_buffer_ex_rule_1_needs_a_dmabuf() {
    let board = Board::new();
    let space = board.space();
    assert_eq!(map_with(&space, -1, |_| ()), Err(Errno::EBADF));
    assert_eq!(map_with(&space, 999_999, |_| ()), Err(Errno::EBADF));
    assert_eq!(map_with(&space, space.raw(), |_| ()), Err(Errno::EINVAL));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(map_with(&space, file.as_raw_fd(), |_| ()), Err(Errno::EINVAL));
}

#[test]
fn map_buffer_ex_rules_2_and_3_dynamic_maps_take_no_place() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    let refused = |fill: fn(&mut nvgpu_as_map_buffer_ex_args)| map_with(&space, buffer.raw(), fill).unwrap_err();
    assert_eq!(refused(|a| a.offset = 0x10_0000_0000), Errno::EINVAL);
    assert_eq!(refused(|a| a.buffer_offset = 4096), Errno::EINVAL);
    assert_eq!(refused(|a| a.mapping_size = 4096), Errno::EINVAL);
}

#[test]
fn map_buffer_ex_rule_4_stays_inside_the_buffer() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    let area = reserve(&space, 0x10_0000_0000, 1 << 20).unwrap();
    for (offset, size) in [(0, 12288), (8192, 4096), (4096, 8192), (u64::MAX, 1)] {
        let result = map_with(&space, buffer.raw(), |a| {
            a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
            (a.offset, a.buffer_offset, a.mapping_size) = (area, offset, size);
        });
        assert_eq!(result, Err(Errno::EINVAL), "{offset:#x}+{size:#x}");
    }
}

#[test]
fn map_buffer_ex_rules_5_to_7_flags() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    // The flags are access 3, TEGRA_RAW, and those that r35 called IO_COHERENT and DIRECT_KIND_CTRL.
    for flags in [3 << 10, NVGPU_AS_MAP_BUFFER_FLAGS_TEGRA_RAW, 1 << 4, 1 << 8, 1 << 31] {
        assert_eq!(map_with(&space, buffer.raw(), |a| a.flags = flags), Err(Errno::EINVAL), "{flags:#x}");
    }
    // The flags are UNMAPPED_PTE, MAPPABLE_COMPBITS, L3_ALLOC and SYSTEM_COHERENT.
    for flags in [0, 1 << 5, 1 << 6, 1 << 7, 1 << 9, 1 << 10, 2 << 10] {
        assert!(map_with(&space, buffer.raw(), |a| a.flags = flags).is_ok(), "{flags:#x}");
    }
}

#[test]
fn map_buffer_ex_rule_8_needs_memory_before_rules_9_to_14() {
    let board = Board::new();
    let space = board.space();
    let fd = board.get_fd(board.create(4096)).unwrap();
    let fixed_nowhere = |a: &mut nvgpu_as_map_buffer_ex_args| {
        a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        a.offset = 0x10_0000_0000;
    };
    assert_eq!(map_with(&space, fd.raw(), fixed_nowhere), Err(Errno::ENOMEM));
}

#[test]
fn map_buffer_ex_rule_9_read_only_dmabufs_are_not_mapped_writable() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let mut dup = args::<nvmap_duplicate_handle>(|a| {
        (a.handle, a.access_flags) = (buffer.handle, NVMAP_HANDLE_RO);
    });
    board.nvmap.ioctl(NVMAP_IOC_DUP_HANDLE, &mut dup).unwrap();
    let fd = board.get_fd(dup.dup_handle).unwrap();
    assert_eq!(map_with(&space, fd.raw(), |a| a.flags = 2 << 10), Err(Errno::EINVAL));
    assert!(map_with(&space, fd.raw(), |a| a.flags = 1 << 10).is_ok());
    assert!(map_with(&space, fd.raw(), |a| a.flags = 0).is_ok());
}

#[test]
fn map_buffer_ex_rule_10_a_buffer_offset_needs_a_size() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    let area = reserve(&space, 0x10_0000_0000, 1 << 20).unwrap();
    let result = map_with(&space, buffer.raw(), |a| {
        a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        (a.offset, a.buffer_offset) = (area, 4096);
    });
    assert_eq!(result, Err(Errno::EINVAL));
}

#[test]
fn map_buffer_ex_rule_11_fixed_needs_an_area() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    assert_eq!(map_fixed(&space, &buffer, 0x10_0000_0000), Err(Errno::EINVAL));
    let area = reserve(&space, 0x10_0000_0000, 16384).unwrap();
    assert_eq!(map_fixed(&space, &buffer, area + 0x800), Err(Errno::EINVAL));
    assert_eq!(map_fixed(&space, &buffer, area + 12288), Err(Errno::EINVAL));
    assert_eq!(map_fixed(&space, &buffer, area + 4096), Ok(area + 4096));
    let other = board.buffer(8192);
    for at in [area, area + 4096, area + 8192] {
        assert_eq!(map_fixed(&space, &other, at), Err(Errno::EINVAL), "{at:#x}");
    }
    unmap(&space, area + 4096);
    assert_eq!(map_fixed(&space, &other, area + 8192), Ok(area + 8192));
}

#[test]
fn map_buffer_ex_rules_12_and_13_kinds() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let kinds = |compr, incompr| {
        map_with(&space, buffer.raw(), |a| (a.compr_kind, a.incompr_kind) = (compr, incompr)).map(|_| ())
    };
    assert_eq!(kinds(0, -1), Err(Errno::EINVAL));
    assert_eq!(kinds(-1, -1), Err(Errno::ENOMEM));
    assert_eq!(kinds(-1, 256), Err(Errno::ENOMEM));
    assert_eq!(kinds(0, 0), Ok(()));
    assert_eq!(kinds(-1, 0), Ok(()));
}

#[test]
fn map_buffer_ex_rule_14_a_misaligned_buffer_offset_is_enomem() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(16384));
    let area = reserve(&space, 0x10_0000_0000, 1 << 20).unwrap();
    let result = map_with(&space, buffer.raw(), |a| {
        a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        (a.offset, a.buffer_offset, a.mapping_size) = (area, 0x800, 4096);
    });
    assert_eq!(result, Err(Errno::ENOMEM));
    let small = board.alloc_as(START, START + (2 << 20)).unwrap();
    assert_eq!(map(&small, &board.buffer(4 << 20)), Err(Errno::ENOMEM));
}

#[test]
fn rule_5_5_mapping_again_gives_the_same_address_and_needs_as_many_unmaps() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let va = map(&space, &buffer).unwrap();
    let again = board.get_fd(buffer.handle).unwrap();
    assert_eq!(map_with(&space, again.raw(), |_| ()), Ok(va));
    // A mapping with other flags or another kind is another mapping.
    assert_ne!(map_with(&space, buffer.raw(), |a| a.flags |= 1 << 10).unwrap(), va);
    assert_ne!(map_with(&space, buffer.raw(), |a| a.incompr_kind = 6).unwrap(), va);
    unmap(&space, va);
    assert_eq!(map(&space, &buffer), Ok(va));
    unmap(&space, va);
    unmap(&space, va);
    unmap(&space, va);
    assert_eq!(map(&space, &board.buffer(4096)), Ok(va));
}

#[test]
fn rule_5_5_a_fixed_mapping_in_front_blocks_reuse() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let dynamic = map(&space, &buffer).unwrap();
    let area = reserve(&space, 0x10_0000_0000, 4096).unwrap();
    map_fixed(&space, &buffer, area).unwrap();
    assert_eq!(map_fixed(&space, &buffer, area), Ok(area));
    assert_ne!(map(&space, &buffer).unwrap(), dynamic);
}

#[test]
fn rule_5_5_only_the_offset_is_written() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let mut map = args::<nvgpu_as_map_buffer_ex_args>(|a| {
        (a.flags, a.compr_kind, a.dmabuf_fd, a.page_size) = (4, -1, buffer.raw() as u32, 12345);
    });
    space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_EX, &mut map).unwrap();
    assert_eq!((map.flags, map.page_size, map.mapping_size), (4, 12345, 0));
    // This is a trap: the address that is left in the structure makes the next call fail, and the call writes nothing.
    let va = map.offset;
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_EX, &mut map), Err(Errno::EINVAL));
    assert_eq!(map.offset, va);
}

#[test]
fn rule_5_6_unmap_of_a_wrong_address_succeeds_and_does_nothing() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    let va = map(&space, &buffer).unwrap();
    unmap(&space, va + 4096);
    unmap(&space, 0);
    assert_eq!(map(&space, &buffer), Ok(va));
}

#[test]
fn rule_5_7_a_batch_unmaps_then_maps() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(4096));
    let area = reserve(&space, 0x10_0000_0000, 8192).unwrap();
    map_fixed(&space, &buffer, area).unwrap();
    let unmaps = [args::<nvgpu_as_unmap_buffer_args>(|a| a.offset = area)];
    let other = board.buffer(8192);
    let maps = [args::<nvgpu_as_map_buffer_ex_args>(|a| {
        (a.flags, a.compr_kind, a.dmabuf_fd, a.offset) = (1, -1, other.raw() as u32, area);
    })];
    let mut batch = args::<nvgpu_as_map_buffer_batch_args>(|a| {
        (a.unmaps, a.num_unmaps) = (unmaps.as_ptr() as u64, 1);
        (a.maps, a.num_maps) = (maps.as_ptr() as u64, 1);
    });
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, &mut batch), Ok(()));
    assert_eq!(map_fixed(&space, &buffer, area + 4096), Err(Errno::EINVAL));
    batch.num_maps = 257;
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, &mut batch), Err(Errno::EINVAL));
    (batch.num_maps, batch.maps) = (1, 8);
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, &mut batch), Err(Errno::EFAULT));
}

/// One remap operation on 4 KiB pages.
fn op(buffer: Option<&Buffer>, memory: u64, at: u64, pages: u64) -> nvgpu_as_remap_op {
    args::<nvgpu_as_remap_op>(|o| {
        o.flags = NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_4K;
        (o.compr_kind, o.incompr_kind) = (-1, if buffer.is_some() { 0 } else { -1 });
        o.mem_handle = buffer.map_or(0, |b| b.raw() as u32);
        (o.mem_offset_in_pages, o.virt_offset_in_pages, o.num_pages) = (memory, at / 4096, pages);
    })
}

fn remap(space: &File, ops: &[nvgpu_as_remap_op]) -> (Result<(), Errno>, u32) {
    let mut remap = args::<nvgpu_as_remap_args>(|a| (a.ops, a.num_ops) = (ops.as_ptr() as u64, ops.len() as u32));
    let result = space.ioctl(NVGPU_AS_IOCTL_REMAP, &mut remap);
    (result, remap.num_ops)
}

#[test]
fn rule_5_8_remap_points_sparse_pages_at_buffers() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(16384));
    let flags = NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE;
    let area = alloc_space(&space, 1 << 20, flags, 0).unwrap();
    assert_eq!(remap(&space, &[op(Some(&buffer), 1, area + 8192, 2), op(None, 0, area, 1)]), (Ok(()), 2));
    assert_eq!(remap(&space, &[]), (Ok(()), 0));
}

#[test]
fn rule_5_8_remap_validates_all_before_it_does_any() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(16384));
    let area = alloc_space(&space, 1 << 20, NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE, 0).unwrap();
    let good = op(Some(&buffer), 0, area, 1);
    let bad = [
        op(Some(&buffer), 4, area, 1),
        op(Some(&buffer), 0, area + (1 << 20), 1),
        op(None, 1, area, 1),
        nvgpu_as_remap_op { flags: 0, ..good },
        nvgpu_as_remap_op { flags: good.flags | NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_64K, ..good },
        nvgpu_as_remap_op { mem_handle: 999_999, ..good },
    ];
    for bad in bad {
        assert_eq!(remap(&space, &[good, bad]), (Err(Errno::EINVAL), 0));
    }
    let plain = reserve(&space, 0x10_0000_0000, 1 << 20).unwrap();
    assert_eq!(remap(&space, &[op(Some(&buffer), 0, plain, 1)]), (Err(Errno::EINVAL), 0));
}

#[test]
fn rule_5_3_mapping_modify_checks_its_range() {
    let board = Board::new();
    let (space, buffer) = (board.space(), board.buffer(8192));
    let va = map(&space, &buffer).unwrap();
    let modify = |at, offset, size, kind| {
        let mut modify = args::<nvgpu_as_mapping_modify_args>(|a| {
            (a.compr_kind, a.incompr_kind) = (-1, kind);
            (a.buffer_offset, a.buffer_size, a.map_address) = (offset, size, at);
        });
        space.ioctl(NVGPU_AS_IOCTL_MAPPING_MODIFY, &mut modify)
    };
    assert_eq!(modify(va, 4096, 4096, 6), Ok(()));
    for (at, offset, size, kind) in
        [(va + 4096, 0, 4096, 6), (va, 0x800, 4096, 6), (va, 0, 0x800, 6), (va, 4096, 8192, 6), (va, 0, 4096, -1)]
    {
        assert_eq!(modify(at, offset, size, kind), Err(Errno::EINVAL));
    }
}

#[test]
fn rule_e3_r35_direct_kind_control_is_mandatory() {
    let board = Board::r35();
    let handle = board.create(4096);
    board
        .nvmap
        .ioctl(
            tegrarm_abi::nvgpu::r35::NVMAP_IOC_ALLOC_R35,
            &mut args::<tegrarm_abi::nvgpu::r35::nvmap_alloc_handle_r35>(|a| {
                (a.handle, a.heap_mask) = (handle, NVMAP_HEAP_IOVMM);
            }),
        )
        .unwrap();
    let (space, fd) = (board.space(), board.get_fd(handle).unwrap());
    assert_eq!(map_with(&space, fd.raw(), |a| a.flags = 4), Err(Errno::EINVAL));
    assert!(map_with(&space, fd.raw(), |a| a.flags = 4 | 1 << 8 | 1 << 4).is_ok());
}
