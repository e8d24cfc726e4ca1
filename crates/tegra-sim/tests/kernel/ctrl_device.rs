//! Calls of the ctrl node about the device: graphics tables, exceptions and clocks
//! (docs/hardware/nvgpu-ctrl.md#topology, docs/hardware/nvgpu-ctrl.md#cache-debug-suspend), registered buffers
//! (docs/hardware/nvgpu-ctrl.md#register-buffer) and shared groups (docs/hardware/nvgpu-ctrl.md#open-channel).

use crate::support::*;

#[test]
fn rule_4_3_graphics_tables() {
    let board = Board::new();
    let mut info = args::<nvgpu_gpu_zcull_get_info_args>(|a| a.width_align_pixels = 9);
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_ZCULL_GET_INFO, &mut info).unwrap();
    assert_eq!((info.width_align_pixels, info.pixel_squares_by_aliquots), (128, 2048), "eight TPCs, in two GPCs");
    let set = |kind, value| {
        let mut set = args::<nvgpu_gpu_zbc_set_table_args>(|a| (a.type_, a.format) = (kind, 1));
        (set.depth, set.stencil, set.color_l2) = (value, value, [value; 4]);
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_ZBC_SET_TABLE, &mut set)
    };
    let query = |kind, index| {
        let mut query = args::<nvgpu_gpu_zbc_query_table_args>(|a| (a.type_, a.index_size) = (kind, index));
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE, &mut query).map(|()| query)
    };
    // The GPU boots with three colors, two depths and three stencils.
    for (kind, used, room) in [(1, 3, 30), (2, 2, 15), (3, 3, 15)] {
        assert_eq!((query(kind, 0).err(), query(kind, room + 1).err()), (Some(Errno::EINVAL), Some(Errno::EINVAL)));
        assert_eq!((query(kind, used).unwrap().ref_cnt, query(kind, used + 1).unwrap().ref_cnt), (1, 0), "{kind}");
        (used..room).for_each(|n| assert_eq!(set(kind, 0x100 + n), Ok(()), "{kind} {n}"));
        assert_eq!(set(kind, 0x200), Err(Errno::ENOSPC), "{kind}");
        assert_eq!(set(kind, 0x100 + used), Ok(()), "what is there needs no room");
        assert_eq!(query(kind, used + 1).unwrap().ref_cnt, 2, "{kind}");
    }
    assert_eq!(query(2, 15).unwrap().depth, 0x10e);
    assert_eq!(set(0, 0), Err(Errno::EINVAL));
    assert_eq!(query(0, 0).unwrap().index_size, 30, "type 0 asks for the length");
    assert_eq!((set(4, 0), query(4, 1).err()), (Err(Errno::EINVAL), Some(Errno::EINVAL)));
}

#[test]
fn rule_4_3_every_sm_reports_exceptions() {
    for (board, sms) in [(Board::new(), 16), (Board::observed(), 8), (Board::r35(), 16)] {
        let mut get = args::<nvgpu_gpu_tpc_exception_en_status_args>(|_| ());
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS, &mut get).unwrap();
        assert_eq!(get.tpc_exception_en_sm_mask, (1 << sms) - 1);
    }
}

#[test]
fn rule_4_3_there_is_no_video_memory() {
    let board = Board::new();
    let mut alloc = args::<nvgpu_gpu_alloc_vidmem_args>(|a| a.in_size = 4096);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_VIDMEM, &mut alloc), Err(Errno::ENOSYS));
    let mut state = args::<nvgpu_gpu_get_memory_state_args>(|_| ());
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_MEMORY_STATE, &mut state), Err(Errno::EINVAL));
}

#[test]
fn rule_4_4_clock_info() {
    let board = Board::new();
    let mut info = [args::<nvgpu_gpu_clk_info>(|_| ()); 4];
    let at = info.as_mut_ptr() as u64;
    let get = |flags, kind, count, at| {
        let mut get = args::<nvgpu_gpu_clk_get_info_args>(|a| {
            (a.flags, a.clk_type, a.num_entries, a.clk_info_entries) = (flags, kind, count, at);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_INFO, &mut get).map(|()| get.num_entries)
    };
    assert_eq!(get(0, 0, 0, 8), Ok(1), "only the count is asked for");
    for (kind, result) in [(0, Err(Errno::EINVAL)), (1, Ok(1)), (2, Ok(1)), (3, Ok(1)), (4, Err(Errno::EINVAL))] {
        assert_eq!(get(0, kind, 1, at), result, "{kind}");
    }
    assert_eq!((get(2, 1, 1, at), get(0, 1, 1, 8)), (Err(Errno::EINVAL), Err(Errno::EFAULT)));
    // At most three domains can be listed, and each must be GPCCLK.
    assert_eq!(get(NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS, 1, 4, at), Err(Errno::EINVAL));
    assert_eq!(get(NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS, 1, 1, at), Ok(1), "the type is the entry's");
    for (i, entry) in info.iter_mut().enumerate() {
        *entry = args::<nvgpu_gpu_clk_info>(|a| (a.clk_domain, a.clk_type) = (1, i as u16 + 1));
    }
    assert_eq!(get(NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS, 0, 3, at), Ok(3));
    assert_eq!(info.map(|entry| entry.freq_hz), [0, 1_300_000_000, 306_000_000, 0], "wished, decided, measured");
    let mut memory_clock = args::<nvgpu_gpu_clk_info>(|_| ());
    let at = &raw mut memory_clock as u64;
    assert_eq!(get(NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS, 1, 1, at), Err(Errno::EINVAL));
}

#[test]
fn rule_4_4_what_a_clock_request_may_ask_for() {
    let board = Board::new();
    let set = |flags, domain, count, bad: bool| {
        let mut info =
            args::<nvgpu_gpu_clk_info>(|a| (a.clk_domain, a.clk_type, a.freq_hz) = (domain, 77, 900_000_000));
        let mut set = args::<nvgpu_gpu_clk_set_info_args>(|a| {
            (a.flags, a.num_entries) = (flags, count);
            a.clk_info_entries = if bad { 8 } else { &raw mut info as u64 };
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_SET_INFO, &mut set)?;
        Ok(board.file(Node::Ctrl, set.completion_fd))
    };
    assert_eq!(set(1, 1, 1, false).err(), Some(Errno::EINVAL));
    assert_eq!(set(0, 1, 0, false).err(), Some(Errno::EINVAL));
    assert_eq!(set(0, 0, 1, false).err(), Some(Errno::EINVAL));
    assert_eq!(set(0, 1, 1, true).err(), Some(Errno::EFAULT));
    assert!(set(0, 1, 1, false).is_ok(), "the type is not looked at");
}

#[test]
fn rule_4_5_debug_modes() {
    let board = Board::new();
    let mmu = |state| {
        let mut set = args::<nvgpu_gpu_mmu_debug_mode_args>(|a| a.state = state);
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE, &mut set)
    };
    assert_eq!([mmu(0), mmu(1), mmu(2)], [Ok(()), Err(Errno::ENOSYS), Ok(())], "only 1 is on");
    let channel = board.channel();
    let sms = |fd, enable, sms| {
        let mut set = args::<nvgpu_gpu_sm_debug_mode_args>(|a| (a.channel_fd, a.enable, a.sms) = (fd, enable, sms));
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE, &mut set)
    };
    let sm = |fd, enable| sms(fd, enable, 1);
    assert_eq!((sm(-1, 0), sm(board.ctrl.raw(), 0)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!(sm(channel.raw(), 0), Err(Errno::EINVAL), "the channel has no group");
    let rig = board.rig();
    board.setup(&rig.channel);
    let channel = rig.channel.raw();
    assert_eq!((sm(channel, 0), sms(channel, 1, 1 << 16)), (Err(Errno::ENODEV), Ok(())), "there is no 17th SM");
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!((sm(channel, 0), sm(channel, 1)), (Ok(()), Err(Errno::ENOSYS)));
}

#[test]
fn rule_4_5_errors_of_sms_are_cleared_in_the_hardware_only() {
    let board = Board::new();
    let tsg = board.tsg();
    assert_eq!(board.raw(&board.ctrl, NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS, &mut []), Ok(0));
    let mut record = [0_u8; 24];
    let mut read = args::<nvgpu_tsg_read_single_sm_error_state_args>(|a| {
        (a.record_mem, a.record_size) = (record.as_mut_ptr() as u64, 24);
    });
    assert_eq!(tsg.ioctl(NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut read), Ok(()));
}

/// The path of a firmware that decompresses buffers for displays.
#[test]
fn rule_4_5_there_is_no_compression_to_prepare() {
    let board = Board::new();
    let mut prepare = args::<nvgpu_gpu_prepare_compressible_read_args>(|_| ());
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ, &mut prepare), Err(Errno::EINVAL));
    let mut mark = args::<nvgpu_gpu_mark_compressible_write_args>(|_| ());
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE, &mut mark), Err(Errno::EINVAL));
}

#[test]
fn rule_4_7_only_a_mutable_buffer_is_registered_again() {
    let board = Board::new();
    let (fixed, mutable) = (board.buffer(4096), board.buffer(4096));
    let register = |buffer: &Buffer, text: &[u8], flags, tags| {
        let mut register = args::<nvgpu_gpu_register_buffer_args>(|a| {
            (a.dmabuf_fd, a.metadata_addr, a.metadata_size) = (buffer.raw(), text.as_ptr() as u64, text.len() as u32);
            (a.flags, a.comptags_alloc_control) = (flags, tags);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_REGISTER_BUFFER, &mut register).map(|()| register.flags)
    };
    let modify = NVGPU_GPU_REGISTER_BUFFER_FLAGS_MODIFY;
    let changing = NVGPU_GPU_REGISTER_BUFFER_FLAGS_MUTABLE;
    assert_eq!(register(&fixed, b"one", 0, 1), Ok(1), "there are tags for all memory");
    assert_eq!(register(&fixed, b"two", modify, 0), Err(Errno::EINVAL));
    assert_eq!(register(&mutable, b"one", changing, 0), Ok(0));
    assert_eq!(register(&mutable, b"two", changing, 0), Err(Errno::EINVAL));
    assert_eq!(register(&mutable, b"two", modify | changing, 0), Ok(0));
    // The registration belongs to the buffer, whichever descriptor asks for it.
    let again = board.get_fd(mutable.handle).unwrap();
    let mut back = [0_u8; 8];
    let mut info = args::<nvgpu_gpu_get_buffer_info_args>(|a| {
        a.out_flags = 8 << 32 | again.raw() as u64;
        let at = back.as_mut_ptr() as u64;
        (a.out_metadata_size, a.out_reserved) = (at as u32, (at >> 32) as u32);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_BUFFER_INFO, &mut info).unwrap();
    let flags = NVGPU_GPU_BUFFER_INFO_FLAGS_METADATA_REGISTERED | NVGPU_GPU_BUFFER_INFO_FLAGS_MUTABLE_METADATA;
    assert_eq!((info.out_metadata_size, &back[..4], info.out_flags), (3, &b"two\0"[..], u64::from(flags)));
    let mut bad = args::<nvgpu_gpu_get_buffer_info_args>(|a| a.out_flags = u64::from(u32::MAX));
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_BUFFER_INFO, &mut bad), Err(Errno::EBADF));
}

fn another_ctrl(board: &Board) -> File {
    File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap()
}

fn token(tsg: &File, source: u64, target: u64) -> Result<u64, Errno> {
    let mut get = args::<nvgpu_tsg_get_share_token_args>(|a| {
        (a.source_device_instance_id, a.target_device_instance_id) = (source, target);
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_GET_SHARE_TOKEN, &mut get).map(|()| get.share_token)
}

fn revoke(tsg: &File, source: u64, target: u64, token: u64) -> Result<(), Errno> {
    let mut revoke = args::<nvgpu_tsg_revoke_share_token_args>(|a| {
        (a.source_device_instance_id, a.target_device_instance_id, a.share_token) = (source, target, token);
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN, &mut revoke)
}

fn open_shared(board: &Board, ctrl: &File, source: u64, token: u64) -> Result<File, Errno> {
    let mut open = args::<nvgpu_gpu_open_tsg_args>(|a| {
        a.flags = NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_SHARE;
        (a.source_device_instance_id, a.share_token) = (source, token);
    });
    ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open)?;
    Ok(board.file(Node::Tsg, open.tsg_fd as i32))
}

#[test]
fn rule_6_tokens_are_for_two_known_opens() {
    let board = Board::new();
    let tsg = board.tsg();
    assert_eq!(token(&tsg, 1, 2), Err(Errno::EINVAL), "there is no second open yet");
    let other = another_ctrl(&board);
    for (source, target) in [(0, 2), (1, 0), (2, 1), (3, 2), (1, 3)] {
        assert_eq!(token(&tsg, source, target), Err(Errno::EINVAL), "{source} {target}");
    }
    let first = token(&tsg, 1, 2).unwrap();
    for (source, target, token) in [(0, 2, first), (1, 0, first), (1, 2, 0), (2, 2, first), (1, 1, first), (1, 2, 9)] {
        assert_eq!(revoke(&tsg, source, target, token), Err(Errno::EINVAL), "{source} {target} {token}");
    }
    assert_eq!(revoke(&tsg, 1, 2, first), Ok(()));
    assert_eq!(revoke(&tsg, 1, 2, first), Err(Errno::EINVAL));
    assert_eq!(open_shared(&board, &other, 1, first).err(), Some(Errno::EINVAL), "revoked");
    let second = token(&tsg, 1, 2).unwrap();
    assert_eq!(second, first + 1);
    drop(open_shared(&board, &other, 1, second).unwrap());
    assert_eq!(open_shared(&board, &other, 1, second).err(), Some(Errno::EINVAL), "spent");
}

#[test]
fn rule_6_tokens_run_out_and_end_with_the_groups_file() {
    let board = Board::new();
    let (tsg, other) = (board.tsg(), another_ctrl(&board));
    let tokens: Vec<u64> = (0..63).map(|_| token(&tsg, 1, 2).unwrap()).collect();
    assert_eq!(token(&tsg, 1, 2), Err(Errno::ENOSPC));
    assert_eq!(token(&board.tsg(), 1, 2), Ok(64), "another group's own");
    revoke(&tsg, 1, 2, tokens[5]).unwrap();
    // A group that another open node has shared can only be shared by that node.
    let shared = open_shared(&board, &other, 1, tokens[0]).unwrap();
    assert_eq!(token(&shared, 2, 1), Ok(1));
    drop(tsg);
    assert_eq!(open_shared(&board, &other, 1, tokens[1]).err(), Some(Errno::EINVAL));
    assert_eq!(token(&shared, 1, 2), Err(Errno::EINVAL));
    assert!(open_shared(&board, &board.ctrl, 2, 1).is_ok());
}
