//! Behaviour of other releases and chips that differs (docs/hardware/nvgpu-releases.md#releases,
//! docs/hardware/nvgpu-nodes.md#chips).

use crate::support::*;
use tegra_sim::{Chip, L4t, SimConfig};
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_kmd::DeviceMem;

/// Makes a group on r35.
fn tsg(board: &Board) -> File {
    let mut open = args::<nvgpu_gpu_open_tsg_args_r35>(|_| ());
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG_R35, &mut open).unwrap();
    board.file(Node::Tsg, open.tsg_fd as i32)
}

/// Makes a buffer on r35.
fn buffer(board: &Board, size: u32) -> Buffer {
    let handle = board.create(size);
    let mut alloc = args::<nvmap_alloc_handle_r35>(|a| (a.handle, a.heap_mask) = (handle, NVMAP_HEAP_IOVMM));
    board.nvmap.ioctl(NVMAP_IOC_ALLOC_R35, &mut alloc).unwrap();
    Buffer { handle, fd: board.get_fd(handle).unwrap() }
}

fn channel(board: &Board, space: &File, tsg: &File, veid: u32) -> File {
    board.bound_channel(space, tsg, veid)
}

#[test]
fn rule_e3_r35_any_veid_and_any_space_may_be_bound() {
    let board = Board::r35();
    let tsg = tsg(&board);
    let (one, two) = (board.space(), board.space());
    let _kept = [channel(&board, &one, &tsg, 63), channel(&board, &two, &tsg, 0), channel(&board, &one, &tsg, 63)];
    let late = board.channel();
    assert_eq!(bind_tsg(&tsg, &late, 64), Err(Errno::EINVAL));
}

#[test]
fn rule_e3_r35_a_group_adopts_the_space_of_its_first_context() {
    let board = Board::r35();
    let tsg = tsg(&board);
    let (one, two) = (board.space(), board.space());
    let (first, second) = (channel(&board, &one, &tsg, 1), channel(&board, &two, &tsg, 1));
    alloc_obj_ctx(&first, 0xc7c0).unwrap();
    assert_eq!(alloc_obj_ctx(&second, 0xc7c0), Err(Errno::EINVAL));
    alloc_obj_ctx(&channel(&board, &one, &tsg, 2), 0xc7b5).unwrap();
}

#[test]
fn rule_e3_r35_setup_bind_is_shorter_and_gives_the_token() {
    let board = Board::r35();
    let (tsg, space) = (tsg(&board), board.space());
    let channel = channel(&board, &space, &tsg, 1);
    let (ring, userd) = (buffer(&board, 8192), buffer(&board, 4096));
    let setup = |entries| {
        let mut setup = args::<nvgpu_channel_setup_bind_args_r35>(|a| {
            (a.num_gpfifo_entries, a.flags) = (entries, 0xa);
            (a.gpfifo_dmabuf_fd, a.userd_dmabuf_fd) = (ring.raw(), userd.raw());
        });
        channel.ioctl(NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, &mut setup).map(|()| setup.work_submit_token)
    };
    assert_eq!((setup(1), setup(2048)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!((setup(1024), setup(1024)), (Ok(511), Err(Errno::EEXIST)));
}

/// An invalid ring entry. The kernel of r35 recovers from it, which ends the channel. The kernel of r36 logs it, and
/// the channel continues.
#[test]
fn rule_8_5_r36_only_logs_a_bad_ring_entry() {
    for l4t in [L4t::R35, L4t::R36] {
        let board = Board::with(SimConfig { step: true, ..SimConfig::new(Chip::AgxOrin).on(l4t) });
        let (space, r35) = (board.space(), l4t.is_r35());
        let (group, ring, userd) = if r35 {
            (tsg(&board), buffer(&board, 8192), buffer(&board, 4096))
        } else {
            (board.tsg(), board.buffer(8192), board.buffer(4096))
        };
        let veid = if r35 { 0 } else { board.subcontext(&group, &space).unwrap() };
        let channel = channel(&board, &space, &group, veid);
        let token = if r35 {
            let mut setup = args::<nvgpu_channel_setup_bind_args_r35>(|a| {
                (a.num_gpfifo_entries, a.flags) = (1024, 0xa);
                (a.gpfifo_dmabuf_fd, a.userd_dmabuf_fd) = (ring.raw(), userd.raw());
            });
            channel.ioctl(NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, &mut setup).unwrap();
            setup.work_submit_token
        } else {
            setup_bind(&channel, &ring, &userd, |_| ()).unwrap()
        };
        let view =
            |file: &File, len: usize| DeviceMem::new(file.mmap(Placement::Anywhere, len, Prot::ReadWrite, 0).unwrap());
        // The entry is a control entry with the opcode ILLEGAL.
        view(&ring.fd, 8192).write_u64(0, 1 << 32);
        view(&userd.fd, 4096).write_u32(0x8c, 1);
        view(&board.ctrl, 65536).write_u32(0x90, token);
        while board.sim.gpu().step() {}
        assert!(board.sim.gpu().faults().concat().contains("(gpentry)"), "{:?}", board.sim.gpu().faults());
        assert_eq!(timedout(&channel), u32::from(r35));
    }
}

#[test]
fn rule_e3_r35_lacks_what_r36_brought() {
    let board = Board::r35();
    let tsg = tsg(&board);
    let over = |file: &File, request: u32, size: usize| board.raw(file, request, &mut vec![0; size]);
    for request in [NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, NVGPU_TSG_IOCTL_GET_SHARE_TOKEN] {
        assert_eq!(over(&tsg, request, 32), Err(Errno::EINVAL));
    }
    for request in [NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP, NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP] {
        assert_eq!(over(&board.ctrl, request, 16), Err(Errno::EINVAL));
    }
    let mut time = args::<nvgpu_gpu_get_cpu_time_correlation_info_args>(|a| (a.count, a.source_id) = (1, 2));
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO, &mut time), Err(Errno::EINVAL));
    let mut event = args::<nvgpu_event_id_ctrl_args>(|a| (a.cmd, a.event_id) = (1, 2));
    tsg.ioctl(NVGPU_IOCTL_TSG_EVENT_ID_CTRL, &mut event).unwrap();
    let _event = board.file(Node::Tsg, event.event_fd);
    assert_eq!(tsg.ioctl(NVGPU_IOCTL_TSG_EVENT_ID_CTRL, &mut event), Err(Errno::EINVAL));
    let mut entries = [0xee_u8; 40];
    let mut sms = args::<nvgpu_gpu_vsms_mapping>(|a| a.vsms_map_buf_addr = entries.as_mut_ptr() as u64);
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut sms).unwrap();
    assert!(entries[..32].iter().all(|b| *b < 8) && entries[32..] == [0xee; 8], "two bytes for each of 16 SMs");
}

/// In this release the structure has a 32-bit id of an endpoint, so that the command has another number.
#[test]
fn rule_e3_r35_sciipc_ids_are_shorter() {
    let board = Board::r35();
    let handle = buffer(&board, 4096).handle;
    let mut map = args::<nvmap_sciipc_map_r35>(|a| a.handle = handle);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID_R35, &mut map), Err(Errno::EINVAL), "no token is valid");
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_HANDLE_FROM_SCIIPCID_R35, &mut map), Err(Errno::EINVAL));
    map.handle = 5;
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID_R35, &mut map), Err(Errno::ENODEV));
    let mut longer = args::<nvmap_sciipc_map>(|a| a.handle = handle);
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_GET_SCIIPCID, &mut longer), Err(Errno::ENOTTY));
    assert_eq!(board.nvmap.ioctl(NVMAP_IOC_HANDLE_FROM_SCIIPCID, &mut longer), Err(Errno::ENOTTY));
}

#[test]
fn rule_e3_r35_spaces_may_be_the_programs_own() {
    let board = Board::r35();
    let mut alloc = args::<nvgpu_alloc_as_args>(|a| {
        a.flags = NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA | NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_USERSPACE_MANAGED_R35;
        (a.va_range_start, a.va_range_end) = (START, END);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc).unwrap();
    let space = board.file(Node::As, alloc.as_fd);
    let memory = buffer(&board, 8192);
    let at = |flags: u32, va: u64| map_with(&space, memory.raw(), |a| (a.flags, a.offset) = (4 | 1 << 8 | flags, va));
    assert_eq!(at(0, 0), Err(Errno::EINVAL), "only fixed mappings");
    assert_eq!(at(1, 0x40_0000), Ok(0x40_0000), "no area needed");
    assert_eq!(at(1, 0x40_0000), Err(Errno::EINVAL), "and none is used again");
}

fn xavier() -> (Board, File) {
    let board = Board::with(SimConfig::new(Chip::Gv11b));
    let mut alloc = args::<nvgpu_alloc_as_args>(|a| {
        (a.big_page_size, a.flags) = (64 << 10, NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA);
        (a.va_range_start, a.va_range_end) = (START, END);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc).unwrap();
    let space = board.file(Node::As, alloc.as_fd);
    (board, space)
}

#[test]
fn rule_5_5_big_pages_are_compressible_and_small_ones_are_not() {
    let (board, space) = xavier();
    let (big, small) = (board.buffer(128 << 10), board.buffer(4096));
    let compressible = |b: &Buffer| map_with(&space, b.raw(), |a| (a.compr_kind, a.incompr_kind) = (6, -1));
    let va = compressible(&big).unwrap();
    assert_eq!(va % (64 << 10), 0);
    assert_eq!(compressible(&small), Err(Errno::EINVAL));
    // Small pages are not placed in a range of 2 MiB that has big pages.
    let low = map(&space, &small).unwrap();
    assert_ne!(low >> 21, va >> 21);
}

#[test]
fn rule_5_4_areas_of_big_pages_place_by_big_pages() {
    let (board, space) = xavier();
    let area = |page_size, at| {
        let mut alloc = args::<nvgpu_as_alloc_space_args>(|a| {
            (a.pages, a.page_size) = (16, page_size);
            (a.flags, a.o_a_offset) = (NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET, at);
        });
        space.ioctl(NVGPU_AS_IOCTL_ALLOC_SPACE, &mut alloc)
    };
    assert_eq!(area(128 << 10, 0x1000_0000), Err(Errno::EINVAL));
    area(64 << 10, 0x1000_0000).unwrap();
    let buffer = board.buffer(256 << 10);
    assert_eq!(map_fixed(&space, &buffer, 0x1000_1000), Err(Errno::EINVAL));
    let part = |offset| {
        map_with(&space, buffer.raw(), |a| {
            a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
            (a.offset, a.buffer_offset, a.mapping_size) = (0x1001_0000, offset, 64 << 10);
        })
    };
    assert_eq!(part(4096), Err(Errno::ENOMEM));
    assert_eq!(part(64 << 10), Ok(0x1001_0000));
}

#[test]
fn rule_9_3_xavier_has_volta_classes_and_its_own_names() {
    let (board, _space) = xavier();
    let rig = board.rig();
    for class in [0xc3c0, 0xc397, 0xc3b5, 0xc36f, 0xa140, 0x902d] {
        let on_veid_0 = class == 0xc397;
        assert_eq!(alloc_obj_ctx(&rig.channel, class), if on_veid_0 { Err(Errno::EINVAL) } else { Ok(()) });
    }
    for class in [0xc7c0, 0xc797, 0xc7b5, 0xc5c0] {
        assert_eq!(alloc_obj_ctx(&rig.channel, class), Err(Errno::EINVAL));
    }
    assert_eq!(board.setup(&rig.channel).2, 511, "the token is the channel id");
}
