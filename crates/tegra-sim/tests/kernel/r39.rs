//! Every rule in which r39 differs from r36 (docs/hardware/nvgpu-r39.md). No board with r39 was seen, and
//! docs/validated-on.md lists what is inferred.

use crate::support::*;
use tegra_sim::{Chip, L4t, SimConfig};
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use zerocopy::{FromBytes, IntoBytes};

const MIB: u64 = 1 << 20;

fn characteristics(board: &Board, room: usize) -> (Vec<u8>, u64) {
    let mut bytes = vec![0xee; room];
    let mut get = args::<nvgpu_gpu_get_characteristics>(|a| {
        (a.gpu_characteristics_buf_size, a.gpu_characteristics_buf_addr) = (room as u64, bytes.as_mut_ptr() as u64);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut get).unwrap();
    (bytes, get.gpu_characteristics_buf_size)
}

#[test]
fn rule_e4_r39_characteristics_have_336_bytes_with_a_third_page_size() {
    let (new, size) = characteristics(&Board::r39(), 1024);
    assert_eq!(size, 336);
    assert!(new[336..].iter().all(|b| *b == 0xee), "bytes behind the structure are the caller's");
    // The offsets are those of the chapter.
    let word = |at: usize| u32::from_le_bytes(new[at..at + 4].try_into().unwrap());
    assert_eq!((word(52), word(56), word(60)), (0, 64 << 10, 47), "huge and compression pages, bits of a PDE");
    assert_eq!((word(80), word(84), word(88)), (0x902d, 0xc797, 0xc7c0));
    assert_eq!((word(92), word(96), word(100), new[130]), (0xc76f, 0xa140, 0xc7b5, 40));
    assert_eq!(&new[168..176], b"ga10b\0\0\0");
    assert_eq!((word(316), word(328)), (1 << 28, 1), "entries of a ring, instance");
    let new = nvgpu_gpu_characteristics_r39::read_from_bytes(&new[..336]).unwrap();
    let old = nvgpu_gpu_characteristics::read_from_bytes(&characteristics(&Board::new(), 328).0).unwrap();
    assert_eq!((new.arch, new.flags, new.max_freq), (old.arch, old.flags, old.max_freq));
}

#[test]
fn rule_e4_r39_characteristics_are_cut_to_the_callers_room() {
    let board = Board::r39();
    let (whole, _) = characteristics(&board, 336);
    for room in [0, 1, 168, 328, 335] {
        let (cut, size) = characteristics(&board, room);
        assert_eq!((size, &cut[..]), (336, &whole[..room]));
    }
}

#[test]
fn rule_e4_r39_last_numbers_and_largest_arguments() {
    let board = Board::r39();
    let c = nvgpu_gpu_characteristics_r39::read_from_bytes(&characteristics(&board, 336).0).unwrap();
    let last = [c.gpu_ioctl_nr_last, c.tsg_ioctl_nr_last, c.dbg_gpu_ioctl_nr_last, c.ioctl_channel_nr_last];
    assert_eq!(last, [48, 21, 34, 128]);
    assert_eq!([c.as_ioctl_nr_last, c.prof_ioctl_nr_last], [15, 16]);
    let space = board.space();
    // No ioctl of an address space has more than 72 bytes, and the number after the last one does not exist.
    assert_eq!(board.raw(&space, 0x8049_4101, &mut [0; 73]), Err(Errno::EINVAL));
    assert_eq!(board.raw(&space, 0x8048_4110, &mut [0; 72]), Err(Errno::EINVAL));
    assert_eq!(board.raw(&board.ctrl, 0xc010_4731, &mut [0; 16]), Err(Errno::EINVAL));
}

#[test]
fn rule_e4_r39_new_optional_ioctls_are_enotty_and_einval_before() {
    for (board, errno) in [(Board::r39(), Errno::ENOTTY), (Board::new(), Errno::EINVAL)] {
        let dbg = File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap();
        let prof = File::open(&board.kmd, Node::Profiler, "/dev/nvgpu/igpu0/prof-dev").unwrap();
        for (file, request, size) in [
            (&board.ctrl, NVGPU_GPU_IOCTL_GET_PPC_MASKS, 16),
            (&board.ctrl, NVGPU_GPU_IOCTL_GET_ROP_MASKS, 16),
            (&board.ctrl, NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_PHYSICAL_MAP, 16),
            (&board.ctrl, NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_LOGICAL_MAP, 16),
            (&dbg, NVGPU_DBG_GPU_IOCTL_SET_SM_DBGR_CTRL_SINGLE_STEP_MODE, 8),
            (&prof, NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO, 16),
            (&prof, NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_HS_CREDIT, 24),
            (&prof, NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT, 24),
        ] {
            assert_eq!(board.raw(file, request, &mut vec![0; size]), Err(errno), "{request:#x}");
        }
    }
}

#[test]
fn rule_e4_r39_nvmap_alloc_is_the_command_of_32_bytes_alone() {
    let board = Board::r39();
    let handle = board.create(4096);
    let refused = [
        board.nvmap.ioctl(NVMAP_IOC_ALLOC, &mut args::<nvmap_alloc_handle>(|a| a.handle = handle)),
        board.nvmap.ioctl(NVMAP_IOC_ALLOC_R35, &mut args::<nvmap_alloc_handle_r35>(|a| a.handle = handle)),
    ];
    assert_eq!(refused, [Err(Errno::ENOTTY); 2]);
    // This call tells releases apart. The release that knows it finds no handle 0, and changes nothing.
    let mut nothing = args::<nvmap_alloc_handle_r39>(|_| ());
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_ALLOC_R39, &mut nothing), Err(Errno::EINVAL));
    board.alloc(handle).unwrap();
    assert_eq!(board.alloc(handle), Err(Errno::EEXIST));
    for (other, known) in [(Board::new(), NVMAP_IOC_ALLOC), (Board::r35(), NVMAP_IOC_ALLOC_R35)] {
        assert_eq!(other.nvmap.ioctl(NVMAP_IOC_ALLOC_R39, &mut nothing), Err(Errno::ENOTTY));
        let zeros = &mut vec![0; (known >> 16 & 0x3fff) as usize];
        assert_eq!(other.raw(&other.nvmap, known, zeros), Err(Errno::EINVAL));
    }
}

#[test]
fn rule_e4_r39_nvmap_alloc_checks_come_in_the_order_of_r36() {
    let board = Board::r39();
    let handle = board.create(4096);
    let alloc = |fill: fn(&mut nvmap_alloc_handle)| board.alloc_with(handle, fill);
    assert_eq!(alloc(|a| a.align = 3), Err(Errno::EINVAL));
    assert_eq!(alloc(|a| a.numa_nid = 99), Err(Errno::EINVAL));
    assert_eq!(alloc(|a| a.handle = 0x1234_5678), Err(Errno::EINVAL));
    assert_eq!(alloc(|a| a.heap_mask = NVMAP_HEAP_CARVEOUT_IVM), Err(Errno::ENOMEM));
    assert_eq!(alloc(|a| a.heap_mask = NVMAP_HEAP_CARVEOUT_GPU), Err(Errno::ENOMEM), "huge pages: K22");
    assert_eq!(alloc(|a| a.numa_nid = -1), Ok(()));
}

/// r36 begins with every heap in which an allocation could fit if the board was empty. r39 looks at what is left.
#[test]
fn rule_e4_r39_nvmap_compares_with_the_memory_that_is_free() {
    for l4t in [L4t::R36, L4t::R39] {
        let config = SimConfig { mem_total: 64 * MIB, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
        let board = Board::with(config);
        // All of the memory but less than a thousandth: 64 KiB of 64 MiB are 0.98 thousandths.
        let nearly = board.create((64 * MIB - (64 << 10)) as u32);
        let expected = if l4t == L4t::R39 { Err(Errno::ENOMEM) } else { Ok(()) };
        assert_eq!(board.alloc(nearly), expected, "{l4t:?}");
        let less = board.create((63 * MIB) as u32);
        assert_eq!(board.alloc(less), if l4t == L4t::R39 { Ok(()) } else { Err(Errno::ENOMEM) }, "{l4t:?}");
    }
}

/// VPR (256 MiB, of which all but 6 MiB are in use) and FSI (16 MiB) in one mask: before it begins, r36 looks only at
/// the heap with the higher bit.
#[test]
fn rule_e4_r39_nvmap_skips_a_carveout_that_is_too_small() {
    for (board, expected) in [(Board::new(), Err(Errno::ENOMEM)), (Board::r39(), Ok(()))] {
        board.alloc_with(board.create(250 << 20), |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_VPR).unwrap();
        let both = NVMAP_HEAP_CARVEOUT_VPR | NVMAP_HEAP_CARVEOUT_FSI;
        assert_eq!(board.alloc_with(board.create(10 << 20), |a| a.heap_mask = both), expected);
    }
}

#[test]
fn rule_e4_r39_nvmap_lost_cache_lists_labels_and_heap_sizes() {
    for (board, known) in [(Board::new(), true), (Board::r39(), false)] {
        for request in [NVMAP_IOC_CACHE_LIST, NVMAP_IOC_SET_TAG_LABEL, NVMAP_IOC_GET_HEAP_SIZE] {
            let zeros = &mut vec![0; (request >> 16 & 0x3fff) as usize];
            assert_eq!(board.raw(&board.nvmap, request, zeros) != Err(Errno::ENOTTY), known, "{request:#x}");
        }
    }
}

#[test]
fn rule_e4_r39_nvmap_heaps_are_asked_about_one_by_one() {
    let board = Board::r39();
    let query = |request, fill: fn(&mut nvmap_query_heap_params_r39)| {
        let mut a = args::<nvmap_query_heap_params_r39>(fill);
        let result = board.raw(&board.nvmap, request, a.as_mut_bytes());
        result.map(|_| (a.total, a.largest_free_block, a.granule_size, a.contig))
    };
    let (all, numa) = (NVMAP_IOC_QUERY_HEAP_PARAMS, NVMAP_IOC_QUERY_HEAP_PARAMS_NUMA);
    for request in [all, numa] {
        let two = |a: &mut nvmap_query_heap_params_r39| a.heap_mask = NVMAP_HEAP_IOVMM | NVMAP_HEAP_CARVEOUT_VPR;
        assert_eq!(query(request, two), Err(Errno::EINVAL));
        assert!(query(request, |a| a.heap_mask = NVMAP_HEAP_IOVMM).unwrap().0 > 0);
        let huge = query(request, |a| a.heap_mask = NVMAP_HEAP_CARVEOUT_GPU);
        assert_eq!(huge, Ok((0, 2 << 20, 2 << 20, 0)));
    }
    let elsewhere = |a: &mut nvmap_query_heap_params_r39| (a.heap_mask, a.numa_id) = (NVMAP_HEAP_IOVMM, 1);
    assert!(query(all, elsewhere).is_ok(), "the old number does not look at the node");
    assert_eq!(query(numa, elsewhere), Err(Errno::EINVAL));
    let zeros = &mut [0; 48];
    assert_eq!(Board::new().raw(&Board::new().nvmap, numa, zeros), Err(Errno::ENOTTY));
}

#[test]
fn rule_e4_r39_nvmap_strides_that_overflow_say_so() {
    for (board, errno) in [(Board::new(), Errno::EINVAL), (Board::r39(), Errno::EOVERFLOW)] {
        let buffer = board.buffer(4096);
        let mut bytes = [0u8; 8];
        let mut read = args::<nvmap_rw_handle>(|a| {
            (a.addr, a.handle, a.elem_size, a.count) = (bytes.as_mut_ptr() as u64, buffer.handle, 8, 3);
            (a.hmem_stride, a.user_stride) = (u64::MAX / 2 + 1, 8);
        });
        assert_eq!(board.nvmap.ioctl(NVMAP_IOC_READ, &mut read), Err(errno));
    }
}

#[test]
fn rule_e4_r39_setup_bind_tells_the_channel_of_the_hardware() {
    for board in [Board::new(), Board::r39()] {
        let rig = board.rig();
        let (ring, userd) = (board.buffer(8192), board.buffer(4096));
        let mut setup = args::<nvgpu_channel_setup_bind_args_r39>(|a| {
            a.num_gpfifo_entries = 1024;
            a.flags = NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT | NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC;
            (a.gpfifo_dmabuf_fd, a.userd_dmabuf_fd, a.hw_channel_id) = (ring.raw(), userd.raw(), 0xabcd);
        });
        rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_SETUP_BIND, &mut setup).unwrap();
        assert_eq!(setup.work_submit_token, 511);
        let expected = if board.l4t == L4t::R39 { 511 } else { 0xabcd };
        assert_eq!(setup.hw_channel_id, expected, "r36 leaves the bytes as they came");
    }
}

#[test]
fn rule_e4_r39_setup_bind_refuses_protected_memory() {
    let board = Board::r39();
    let rig = board.rig();
    let (ring, userd) = (board.buffer(8192), board.buffer(4096));
    let vpr = |a: &mut nvgpu_channel_setup_bind_args| a.flags |= NVGPU_CHANNEL_SETUP_BIND_FLAGS_VPR_ENABLED;
    assert_eq!(setup_bind(&rig.channel, &ring, &userd, vpr), Err(Errno::EINVAL));
    assert_eq!(setup_bind(&rig.channel, &ring, &userd, |_| ()), Ok(511));
}

#[test]
fn rule_e4_r39_alloc_gpfifo_ex_answers() {
    let board = Board::r39();
    let rig = board.rig();
    let mut old = args::<nvgpu_alloc_gpfifo_ex_args>(|a| a.num_entries = 64);
    assert_eq!(rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX, &mut old), Err(Errno::ENOTTY));
    let mut new = args::<nvgpu_alloc_gpfifo_ex_args_r39>(|a| a.num_entries = 64);
    rig.channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX_R39, &mut new).unwrap();
    assert_eq!(new.hw_channel_id, 511);
}

#[test]
fn rule_e4_r39_share_tokens_are_sixteen_bytes() {
    let board = Board::r39();
    let tsg = board.tsg();
    let other = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    // The board's first open node is instance 1, and this one is instance 2.
    let token = |target| {
        let mut get = args::<nvgpu_tsg_get_share_token_args_r39>(|a| a.target_device_instance_id = target);
        tsg.ioctl(NVGPU_TSG_IOCTL_GET_SHARE_TOKEN, &mut get).map(|()| get.share_token)
    };
    assert_eq!(token(0), Err(Errno::EINVAL));
    let first = token(2).unwrap();
    assert_eq!(first[..8], 1u64.to_le_bytes(), "the source comes first");
    let open = |ctrl: &File, share_token| {
        let mut open = args::<nvgpu_gpu_open_tsg_args_r39>(|a| {
            (a.flags, a.share_token) = (NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_SHARE, share_token);
        });
        ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open).map(|()| board.file(Node::Tsg, open.tsg_fd as i32))
    };
    assert_eq!(open(&board.ctrl, first).err(), Some(Errno::EINVAL), "it is for the other");
    assert!(open(&other, first).is_ok());
    assert_eq!(open(&other, first).err(), Some(Errno::EINVAL), "it is spent");
    let second = token(2).unwrap();
    let mut revoke = args::<nvgpu_tsg_revoke_share_token_args_r39>(|a| {
        (a.target_device_instance_id, a.share_token) = (2, second);
    });
    assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN, &mut revoke), Ok(()));
    assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN, &mut revoke), Err(Errno::EINVAL));
    assert_eq!(open(&other, second).err(), Some(Errno::EINVAL));
}

#[test]
fn rule_e4_r39_sm_records_have_a_word_more_and_are_cut() {
    let board = Board::r39();
    let rig = board.rig();
    for (room, filled) in [(64u64, 32), (32, 32), (24, 24), (8, 8)] {
        let mut record = [0xeeu8; 64];
        let mut read = args::<nvgpu_tsg_read_single_sm_error_state_args>(|a| {
            (a.record_mem, a.record_size) = (record.as_mut_ptr() as u64, room);
        });
        rig.tsg.ioctl(NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read).unwrap();
        assert_eq!(read.record_size, filled);
        assert_eq!(record.iter().position(|b| *b == 0xee), Some(filled as usize));
        let dbg = File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap();
        let mut bind = args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = rig.channel.raw() as u32);
        dbg.ioctl(NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut bind).unwrap();
        let mut read = args::<nvgpu_dbg_gpu_read_single_sm_error_state_args>(|a| {
            (a.sm_error_state_record_mem, a.sm_error_state_record_size) = (record.as_mut_ptr() as u64, room);
        });
        dbg.ioctl(NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read).unwrap();
        assert_eq!(read.sm_error_state_record_size, filled);
    }
}

#[test]
fn rule_e4_r39_the_syncpoint_map_has_regions() {
    let board = Board::r39();
    let space = board.space();
    let mut map = args::<nvgpu_as_get_sync_ro_map_v2_args>(|_| ());
    space.ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP_V2, &mut map).unwrap();
    assert_eq!((map.num_syncpoint_regions, map.regions[0].sync_size, map.regions[0].num_syncpoints), (1, 65536, 1024));
    let mut first = args::<nvgpu_as_get_sync_ro_map_args>(|_| ());
    space.ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &mut first).unwrap();
    assert_eq!(first.base_gpuva, map.regions[0].base_gpuva, "both forms show one mapping");
    let older = Board::new();
    assert_eq!(older.space().ioctl(NVGPU_AS_IOCTL_GET_SYNC_RO_MAP_V2, &mut map), Err(Errno::EINVAL));
}

#[test]
fn rule_e4_r39_binding_what_is_no_channel_is_enodev() {
    for (board, errno) in [(Board::new(), Errno::EINVAL), (Board::r39(), Errno::ENODEV)] {
        let tsg = board.tsg();
        for fd in [-1, tsg.raw(), 999_999] {
            let mut bind = args::<nvgpu_tsg_bind_channel_ex_args>(|a| a.channel_fd = fd);
            assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &mut bind), Err(errno), "{fd}");
        }
    }
}

/// ga10b has no pages of 2 MiB. The regions are those of r36, and REMAP does not accept that size.
#[test]
fn rule_e4_r39_an_orin_has_no_huge_pages() {
    let board = Board::r39();
    let space = board.space();
    let mut regions = args::<nvgpu_as_get_va_regions_args>(|_| ());
    space.ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut regions).unwrap();
    let mut older = args::<nvgpu_as_get_va_regions_args>(|_| ());
    Board::new().space().ioctl(NVGPU_AS_IOCTL_GET_VA_REGIONS, &mut older).unwrap();
    assert_eq!(regions.buf_size, older.buf_size);
    let va = alloc_space(&space, 4 << 20, NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE, 4096).unwrap();
    let mut op = args::<nvgpu_as_remap_op>(|op| {
        (op.flags, op.virt_offset_in_pages, op.num_pages) = (NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_2048K, va >> 21, 1);
    });
    let mut remap = args::<nvgpu_as_remap_args>(|a| (a.num_ops, a.ops) = (1, op.as_mut_bytes().as_mut_ptr() as u64));
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_REMAP, &mut remap), Err(Errno::EINVAL));
}

#[test]
fn rule_e4_r39_names_of_nodes_and_of_devfreq_are_those_of_r36() {
    let (new, old) = (Board::r39(), Board::new());
    assert_eq!(new.sim.kernel().node_paths(), old.sim.kernel().node_paths());
    assert_eq!(new.sim.kernel().text_paths(), old.sim.kernel().text_paths());
}
