//! The ctrl node (docs/hardware/nvgpu-ctrl.md#ctrl).

use crate::support::*;
use tegra_sim::{Chip, L4t, SimConfig};
use zerocopy::IntoBytes;

fn characteristics(board: &Board, size: usize) -> (Vec<u8>, u64) {
    let mut bytes = vec![0xee; 512];
    let mut get = args::<nvgpu_gpu_get_characteristics>(|a| {
        a.gpu_characteristics_buf_size = size as u64;
        a.gpu_characteristics_buf_addr = bytes.as_mut_ptr() as u64;
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut get).unwrap();
    (bytes, get.gpu_characteristics_buf_size)
}

fn r36(board: &Board) -> nvgpu_gpu_characteristics {
    let mut c = nvgpu_gpu_characteristics::new_zeroed();
    let (bytes, size) = characteristics(board, 512);
    c.as_mut_bytes().copy_from_slice(&bytes[..size as usize]);
    c
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

#[test]
fn rule_4_2_characteristics_are_cut_to_the_buffer_and_never_too_small() {
    let board = Board::new();
    let (whole, size) = characteristics(&board, 512);
    assert_eq!(size, 328);
    assert_eq!(whole[328..], [0xee; 184]);
    let (cut, size) = characteristics(&board, 6);
    assert_eq!((size, &cut[..6], cut[6]), (328, &whole[..6], 0xee));
    let (none, size) = characteristics(&board, 0);
    assert_eq!((size, none[0]), (328, 0xee));
}

#[test]
fn rule_4_1_every_open_has_an_instance_of_its_own() {
    let board = Board::new();
    assert_eq!(r36(&board).device_instance_id, 1);
    let second = File::open(&board.kmd, Node::Ctrl, "/dev/nvhost-ctrl-gpu").unwrap();
    let mut c = nvgpu_gpu_characteristics::new_zeroed();
    let mut get = args::<nvgpu_gpu_get_characteristics>(|a| {
        (a.gpu_characteristics_buf_size, a.gpu_characteristics_buf_addr) = (328, &raw mut c as u64);
    });
    second.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut get).unwrap();
    assert_eq!(c.device_instance_id, 2);
}

#[test]
fn rule_e3_characteristics_of_r35() {
    let board = Board::r35();
    let (c, size) = characteristics(&board, 512);
    assert_eq!(size, 312);
    assert_eq!(u32_at(&c, 16), 4_194_304, "L2");
    assert_eq!(u32_at(&c, 72), 0xc7c0, "compute class");
    assert_eq!((u32_at(&c, 88), u32_at(&c, 92)), (3, 0x807), "GPC mask, SM version");
    assert_eq!(u32_at(&c, 192), 1_300_000_000, "clock");
    assert_eq!(u32_at(&c, 300), 1 << 28, "ring entries");
    assert_eq!((u32_at(&c, 124), &c[148..153]), (1, &b"ga10b"[..]), "LTCs per FBP, name");
    assert_eq!(u32_at(&c, 56) >> 23 & 1, 1, "direct kind control");
    let shifted = Board::with(SimConfig::new(Chip::AgxOrin).on(L4t::R35_4));
    let (c, size) = characteristics(&shifted, 512);
    assert_eq!((size, u32_at(&c, 124), u32_at(&c, 128)), (312, 0xf, 1));
    assert_eq!((&c[152..157], u32_at(&c, 192)), (&b"ga10b"[..], 1_300_000_000));
}

#[test]
fn rule_4_1_the_doorbell_page_is_mapped_once_per_open() {
    let board = Board::new();
    let map = |len, offset| board.ctrl.mmap(Placement::Anywhere, len, Prot::ReadWrite, offset);
    assert_eq!(map(128 << 10, 0).unwrap_err(), Errno::EINVAL);
    assert_eq!(map(4096, 4096).unwrap_err(), Errno::EINVAL);
    let first = map(64 << 10, 0).unwrap();
    // EBUSY is checked before the other errors.
    assert_eq!(map(128 << 10, 0).unwrap_err(), Errno::EBUSY);
    let second = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    assert!(second.mmap(Placement::Anywhere, 4096, Prot::ReadWrite, 0).is_ok());
    drop(first);
    assert!(map(4096, 0).is_ok());
}

#[test]
fn rule_4_3_masks_tell_their_whole_size() {
    let board = Board::observed();
    let mut masks = [0xee_u32; 2];
    let mut get = args::<nvgpu_gpu_get_tpc_masks_args>(|a| {
        (a.mask_buf_size, a.mask_buf_addr) = (4, masks.as_mut_ptr() as u64);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_TPC_MASKS, &mut get).unwrap();
    assert_eq!((get.mask_buf_size, masks), (8, [0xf, 0xee]));
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_TPC_MASKS, &mut get).unwrap();
    assert_eq!(masks, [0xf, 0]);
    let mut fbp = args::<nvgpu_gpu_get_fbp_l2_masks_args>(|a| {
        (a.mask_buf_size, a.mask_buf_addr) = (8, masks.as_mut_ptr() as u64);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS, &mut fbp).unwrap();
    assert_eq!((fbp.mask_buf_size, masks), (8, [1, 1]), "each FBP has one L2 cache");
}

#[test]
fn rule_4_3_gpc_maps_want_their_exact_size() {
    let board = Board::new();
    // The two structures are alike, and both GPCs of this chip are at the index of their own number.
    for request in [NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP, NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP] {
        let mut map = [9_u32; 2];
        let mut get = args::<nvgpu_gpu_get_gpc_logical_map_args>(|a| {
            (a.map_buf_size, a.logical_gpc_buf_addr) = (4, map.as_mut_ptr() as u64);
        });
        assert_eq!(board.ctrl.ioctl(request, &mut get), Err(Errno::EINVAL));
        get.map_buf_size = 8;
        assert_eq!(board.ctrl.ioctl(request, &mut get), Ok(()));
        assert_eq!(map, [0, 1]);
        get.logical_gpc_buf_addr = 8;
        assert_eq!(board.ctrl.ioctl(request, &mut get), Err(Errno::EFAULT));
    }
}

/// What CUDA printed of published boards (docs/hardware/nvgpu-observed.md#observed-modules). The second FBP of an NX and of a Nano is gated.
#[test]
fn the_l2_cache_belongs_to_the_module_not_to_its_mode() {
    for (chip, mode, bytes, caches) in [
        (Chip::AgxOrin, "MAXN", 4_194_304, 2),
        (Chip::AgxOrin, "MODE_30W", 4_194_304, 2),
        (Chip::OrinNx, "MAXN", 2_097_152, 1),
        (Chip::OrinNx, "10W", 2_097_152, 1),
        (Chip::OrinNxSuper, "MAXN_SUPER", 2_097_152, 1),
        (Chip::OrinNano, "15W", 2_097_152, 1),
        (Chip::OrinNano4, "10W", 2_097_152, 1),
    ] {
        let config = SimConfig::new(chip).powered(mode).unwrap();
        let board = Board::with(config);
        let c = r36(&board);
        assert_eq!(
            (c.L2_cache_size, c.num_ltc, c.fbp_en_mask.count_ones()),
            (bytes, caches, caches),
            "{chip:?} {mode}"
        );
        let speeds = tegra_sim::Kernel::speeds(&config);
        assert_eq!((speeds.l2_bytes, speeds.l2_slices), (bytes, 4 * caches), "{chip:?} {mode}");
        let mut masks = [0xee_u32; 2];
        let mut get = args::<nvgpu_gpu_get_fbp_l2_masks_args>(|a| {
            (a.mask_buf_size, a.mask_buf_addr) = (8, masks.as_mut_ptr() as u64);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS, &mut get).unwrap();
        assert_eq!(masks.map(u32::count_ones), [1, caches - 1], "{chip:?} {mode}");
    }
}

#[test]
fn rule_4_3_sms_of_every_module() {
    for (chip, sms) in [
        (Chip::AgxOrin, 16),
        (Chip::AgxOrinPowerGated, 8),
        (Chip::OrinNx8, 8),
        (Chip::OrinNx8Super, 8),
        (Chip::OrinNano4, 4),
        (Chip::OrinNano4Super, 4),
        (Chip::OrinNx, 8),
        (Chip::OrinNxSuper, 8),
        (Chip::OrinNano, 8),
        (Chip::OrinNanoSuper, 8),
        (Chip::Gv11b, 8),
    ] {
        let board = Board::with(SimConfig::new(chip));
        let mut count = args::<nvgpu_gpu_num_vsms>(|_| ());
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut count).unwrap();
        assert_eq!(count.num_vsms, sms, "{chip:?}");
        let mut entries = vec![0xee_u8; 6 * sms as usize + 1];
        let mut get = args::<nvgpu_gpu_vsms_mapping>(|a| a.vsms_map_buf_addr = entries.as_mut_ptr() as u64);
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut get).unwrap();
        assert_eq!(entries.pop(), Some(0xee));
        // The SMs of a TPC follow each other, TPCs take turns between GPCs, and no GPC is a virtual one.
        let places = entries.chunks(6).map(|e| (e[0], e[2], e[3], e[4], e[1]));
        let local = if sms == 4 { [1, 0, 0, 0] } else { [3, 1, 2, 0] };
        let (two, sms) = (sms == 16, 0..sms as u8);
        let expected = sms.map(|sm| {
            let tpc = sm / 2;
            if two {
                (1 - tpc % 2, local[tpc as usize / 2], tpc, sm % 2, 0)
            } else {
                (0, local[tpc as usize], tpc, sm % 2, 0)
            }
        });
        assert!(places.eq(expected), "{chip:?} {entries:?}");
        // Every (GPC, TPC, SM) occurs once, and the migratable index equals the local one.
        let mut seen: Vec<_> = entries.chunks(6).map(|e| (e[0], e[2], e[4])).collect();
        assert!(entries.chunks(6).all(|e| e[5] == e[2]));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count.num_vsms as usize);
    }
}

#[test]
fn rule_4_3_engine_info_writes_whole_items() {
    let board = Board::new();
    let mut items = [0xee_u8; 64];
    let mut get = args::<nvgpu_gpu_get_engine_info_args>(|a| {
        (a.engine_info_buf_size, a.engine_info_buf_addr) = (31, items.as_mut_ptr() as u64);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_ENGINE_INFO, &mut get).unwrap();
    assert_eq!(get.engine_info_buf_size % 16, 0);
    assert_eq!((u32_at(&items, 0), u32_at(&items, 8)), (NVGPU_GPU_ENGINE_ID_GR, 0));
    assert_eq!(items[16..], [0xee; 48]);
}

#[test]
fn rule_4_3_time_runs_and_correlates() {
    let board = Board::new();
    let now = || {
        let mut get = args::<nvgpu_gpu_get_gpu_time_args>(|_| ());
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_GPU_TIME, &mut get).unwrap();
        get.gpu_timestamp
    };
    let before = now();
    let correlate = |count, source| {
        let mut get =
            args::<nvgpu_gpu_get_cpu_time_correlation_info_args>(|a| (a.count, a.source_id) = (count, source));
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO, &mut get).map(|()| get)
    };
    let samples = correlate(16, 2).unwrap().samples;
    // The time of the system is counted in microseconds since 1970, here to the year 2255.
    assert!(samples.iter().all(|s| (1_500_000_000_000_000..9_000_000_000_000_000).contains(&s.cpu_timestamp)));
    assert!(samples.windows(2).all(|s| s[0].gpu_timestamp <= s[1].gpu_timestamp));
    assert!(before <= samples[0].gpu_timestamp && samples[15].gpu_timestamp <= now());
    assert_eq!(correlate(17, 1).err(), Some(Errno::EINVAL));
    assert_eq!(correlate(1, 0).err(), Some(Errno::EINVAL));
    assert_eq!(correlate(1, 3).err(), Some(Errno::EINVAL));
}

#[test]
fn rule_4_3_absent_sensors_are_einval() {
    let board = Board::new();
    for request in [
        NVGPU_GPU_IOCTL_GET_VOLTAGE,
        NVGPU_GPU_IOCTL_GET_CURRENT,
        NVGPU_GPU_IOCTL_GET_POWER,
        NVGPU_GPU_IOCTL_GET_TEMPERATURE,
        NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT,
        NVGPU_GPU_IOCTL_GET_EVENT_FD,
    ] {
        assert_eq!(board.raw(&board.ctrl, request, &mut [0; 64]), Err(Errno::EINVAL), "{request:#x}");
    }
}

#[test]
fn rule_4_4_clock_domains_and_entries() {
    let board = Board::new();
    let mut range = args::<nvgpu_gpu_clk_range_args>(|_| ());
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_RANGE, &mut range).unwrap();
    assert_eq!(range.num_entries, 1);
    let mut entry = vec![args::<nvgpu_gpu_clk_range>(|_| ())];
    range.clk_range_entries = entry.as_mut_ptr() as u64;
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_RANGE, &mut range).unwrap();
    assert_eq!((entry[0].clk_domain, entry[0].min_hz, entry[0].max_hz), (1, 306_000_000, 1_300_000_000));
    (range.flags, range.num_entries) = (1, 2);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_RANGE, &mut range), Err(Errno::EINVAL));
    (range.num_entries, entry[0].clk_domain) = (1, 0);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_RANGE, &mut range), Err(Errno::EINVAL));
    range.flags = 2;
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_RANGE, &mut range), Err(Errno::EINVAL));
}

#[test]
fn rule_4_4_vf_points() {
    let board = Board::new();
    let mut points = [0_u64; 16];
    let mut get = args::<nvgpu_gpu_clk_vf_points_args>(|a| {
        (a.clk_domain, a.clk_vf_point_entries) = (1, points.as_mut_ptr() as u64);
    });
    let call = |get: &mut _| board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS, get);
    call(&mut get).unwrap();
    assert_eq!(get.max_entries, 11);
    call(&mut get).unwrap();
    assert_eq!((get.num_entries, points[0], points[10]), (11, 306_000_000, 1_300_000_000));
    get.max_entries = 10;
    assert_eq!(call(&mut get), Err(Errno::EINVAL));
    (get.max_entries, get.clk_domain) = (0, 0);
    assert_eq!(call(&mut get), Err(Errno::EINVAL));
}

#[test]
fn rule_4_4_a_clock_request_overrides_devfreq_until_its_descriptor_closes() {
    let board = Board::new();
    let session = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    let mut info = args::<nvgpu_gpu_clk_info>(|a| (a.clk_domain, a.freq_hz) = (1, 900_999_999));
    let mut set = args::<nvgpu_gpu_clk_set_info_args>(|a| {
        (a.num_entries, a.clk_info_entries) = (1, &raw mut info as u64);
    });
    session.ioctl(NVGPU_GPU_IOCTL_CLK_SET_INFO, &mut set).unwrap();
    let request = board.file(Node::Ctrl, set.completion_fd);
    let current = || board.kmd.read_text("/sys/class/devfreq/17000000.gpu/cur_freq").unwrap();
    assert_eq!(current(), "918000000\n");
    // A lower wish of another session changes nothing.
    let mut lower = args::<nvgpu_gpu_clk_info>(|a| (a.clk_domain, a.freq_hz) = (1, 400_000_000));
    set.clk_info_entries = &raw mut lower as u64;
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_SET_INFO, &mut set).unwrap();
    let other = board.file(Node::Ctrl, set.completion_fd);
    assert_eq!(current(), "918000000\n");
    drop((other, session));
    assert_eq!(current(), "408000000\n");
    drop(request);
    assert_eq!(current(), "306000000\n");
    set.num_entries = 2;
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_CLK_SET_INFO, &mut set), Err(Errno::EINVAL));
}

#[test]
fn rule_4_5_flush_l2_wants_a_flush() {
    let board = Board::new();
    let flush = |flags: u8| {
        let mut flush = args::<nvgpu_gpu_l2_fb_args>(|a| a._flags = flags);
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_FLUSH_L2, &mut flush)
    };
    for (flags, legal) in [(0, false), (1, true), (2, false), (3, true), (4, true), (5, true), (6, false), (7, true)] {
        assert_eq!(flush(flags), if legal { Ok(()) } else { Err(Errno::EINVAL) }, "{flags}");
    }
}

#[test]
fn rule_4_6_deterministic_options_want_deterministic_channels() {
    let board = Board::new();
    let rig = board.rig();
    let opts = |fds: &[i32], flags| {
        let mut opts = args::<nvgpu_gpu_set_deterministic_opts_args>(|a| {
            (a.num_channels, a.flags, a.channels) = (fds.len() as u32, flags, fds.as_ptr() as u64);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS, &mut opts).map(|()| opts.num_channels)
    };
    assert_eq!(opts(&[rig.channel.raw()], 1), Err(Errno::EINVAL));
    board.setup(&rig.channel);
    assert_eq!(opts(&[rig.channel.raw()], 1), Ok(1));
    assert_eq!(opts(&[rig.channel.raw()], 3), Err(Errno::EINVAL));
    assert_eq!(opts(&[-1], 1), Err(Errno::EINVAL));
    assert_eq!(opts(&vec![rig.channel.raw(); 513], 1), Err(Errno::EINVAL));
    let mut bad = args::<nvgpu_gpu_set_deterministic_opts_args>(|a| (a.num_channels, a.flags, a.channels) = (1, 1, 8));
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS, &mut bad), Err(Errno::EFAULT));
}

#[test]
fn rule_4_7_a_buffer_is_registered_once() {
    let board = Board::new();
    let buffer = board.buffer(4096);
    let metadata = *b"tile mode 7";
    let register = |fill: &dyn Fn(&mut nvgpu_gpu_register_buffer_args)| {
        let mut register = args::<nvgpu_gpu_register_buffer_args>(|a| {
            (a.dmabuf_fd, a.metadata_addr, a.metadata_size) = (buffer.raw(), metadata.as_ptr() as u64, 11);
            fill(a);
        });
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_REGISTER_BUFFER, &mut register)
    };
    assert_eq!(register(&|a| a.metadata_size = 257), Err(Errno::EINVAL));
    assert_eq!(register(&|a| a.comptags_alloc_control = 3), Err(Errno::EINVAL));
    assert_eq!(register(&|a| a.dmabuf_fd = -1), Err(Errno::EBADF));
    assert_eq!(register(&|a| a.metadata_addr = 8), Err(Errno::EFAULT));
    assert_eq!(register(&|_| ()), Ok(()));
    assert_eq!(register(&|_| ()), Err(Errno::EINVAL));
    assert_eq!(register(&|a| a.flags = NVGPU_GPU_REGISTER_BUFFER_FLAGS_MODIFY), Err(Errno::EINVAL));
    let mut back = [0_u8; 16];
    let mut info = args::<nvgpu_gpu_get_buffer_info_args>(|a| {
        let addr = back.as_mut_ptr() as u64;
        a.out_flags = 16 << 32 | buffer.raw() as u64;
        (a.out_metadata_size, a.out_reserved) = (addr as u32, (addr >> 32) as u32);
    });
    board.ctrl.ioctl(NVGPU_GPU_IOCTL_GET_BUFFER_INFO, &mut info).unwrap();
    assert_eq!((info.out_metadata_size, info.out_size, &back[..11]), (11, 4096, &metadata[..]));
}

#[test]
fn rule_4_8_open_tsg_shares_by_token_only() {
    let board = Board::new();
    let open = |ctrl: &File, flags, source, token| {
        let mut open = args::<nvgpu_gpu_open_tsg_args>(|a| {
            (a.flags, a.source_device_instance_id, a.share_token) = (flags, source, token);
        });
        ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open).map(|()| board.file(Node::Tsg, open.tsg_fd as i32))
    };
    let share = NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_SHARE;
    assert_eq!(open(&board.ctrl, 0, 1, 0).err(), Some(Errno::EINVAL));
    assert_eq!(open(&board.ctrl, share, 1, 0).err(), Some(Errno::EINVAL));
    assert_eq!(open(&board.ctrl, share, 1, 99).err(), Some(Errno::EINVAL));
    let other = File::open(&board.kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    let tsg = open(&board.ctrl, 0x80, 0, 0).unwrap();
    let mut get = args::<nvgpu_tsg_get_share_token_args>(|a| {
        (a.source_device_instance_id, a.target_device_instance_id) = (1, 2);
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_GET_SHARE_TOKEN, &mut get).unwrap();
    assert_eq!(open(&board.ctrl, share, 1, get.share_token).err(), Some(Errno::EINVAL));
    assert!(open(&other, share, 1, get.share_token).is_ok());
    assert_eq!(board.sim.kernel().census().tsgs, 1);
}

#[test]
fn rule_4_8_channel_ids_run_out_and_come_back() {
    let board = Board::new();
    let all: Vec<File> = (0..512).map(|_| board.channel()).collect();
    let mut open = args::<nvgpu_gpu_open_channel_args>(|a| a.channel_fd = -1);
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut open), Err(Errno::ENOMEM));
    open.channel_fd = 7;
    assert_eq!(board.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut open), Err(Errno::EINVAL));
    drop(all);
    assert_eq!(board.sim.kernel().census().channels, 0);
    drop(board.channel());
}

#[test]
fn rule_9_2_devfreq_files() {
    let board = Board::new();
    let dir = "/sys/class/devfreq/17000000.gpu";
    let read = |name: &str| board.kmd.read_text(&format!("{dir}/{name}"));
    assert_eq!(read("cur_freq").unwrap(), "306000000\n");
    assert_eq!(read("max_freq").unwrap(), "1300000000\n");
    assert!(read("available_frequencies").unwrap().starts_with("306000000 408000000 "));
    assert_eq!(read("nonsense"), Err(Errno::ENOENT));
    board.kmd.write_text(&format!("{dir}/min_freq"), "900000000\n").unwrap();
    assert_eq!((read("min_freq").unwrap(), read("cur_freq").unwrap()), ("918000000\n".into(), "918000000\n".into()));
    board.kmd.write_text(&format!("{dir}/max_freq"), "100").unwrap();
    assert_eq!(read("max_freq").unwrap(), "918000000\n");
    assert_eq!(board.kmd.write_text(&format!("{dir}/min_freq"), "fast"), Err(Errno::EINVAL));
    assert_eq!(board.kmd.write_text(&format!("{dir}/cur_freq"), "1"), Err(Errno::EACCES));
    assert_eq!(board.kmd.read_text("/sys/class/devfreq").unwrap(), "17000000.gpu\n");
    assert!(board.kmd.read_text("/proc/meminfo").unwrap().starts_with("MemTotal:       64348160 kB\n"));
    let r35 = Board::r35();
    assert_eq!(r35.kmd.read_text("/sys/class/devfreq").unwrap(), "17000000.ga10b\n");
    for (chip, hz) in [(Chip::OrinNanoSuper, 1_020_000_000), (Chip::OrinNxSuper, 1_173_000_000)] {
        let board = Board::with(SimConfig::new(chip));
        assert_eq!(board.kmd.read_text(&format!("{dir}/max_freq")).unwrap(), format!("{hz}\n"), "{chip:?}");
    }
}

/// The SMs, the clock of the GPU and the bytes of the memory that NVIDIA's table of power modes leaves each module (Jetson Linux Developer
/// Guide, "Supported Modes and Power Efficiency"). The memory moves 32, 16 or 8 bytes twice in a cycle.
#[test]
fn a_power_mode_leaves_a_part_of_the_module() {
    for (chip, mode, sms, mhz, gated, bytes) in [
        (Chip::AgxOrin, "MAXN", 16, 1300, 0, 204_800_000_000),
        (Chip::AgxOrin, "MODE_15W", 6, 408, 0xf8, 64 * 2_133_000_000),
        (Chip::AgxOrin, "MODE_30W", 8, 612, 0xf0, 204_800_000_000),
        (Chip::AgxOrin, "MODE_50W", 16, 816, 0, 204_800_000_000),
        (Chip::AgxOrin32, "MAXN", 14, 930, 0x80, 204_800_000_000),
        (Chip::AgxOrin32, "MODE_40W", 14, 816, 0x80, 204_800_000_000),
        (Chip::OrinNx, "10W", 4, 612, 0xfc, 32 * 2_133_000_000),
        (Chip::OrinNx, "25W", 8, 408, 0xf0, 102_400_000_000),
        (Chip::OrinNx8, "MAXN", 8, 765, 0xf0, 102_400_000_000),
        (Chip::OrinNx8Super, "40W", 8, 1173, 0xf0, 102_400_000_000),
        (Chip::OrinNano, "7W", 4, 408, 0xfc, 68_000_000_000),
        (Chip::OrinNanoSuper, "15W", 8, 612, 0xf0, 32 * 2_133_000_000),
        (Chip::OrinNanoSuper, "25W", 8, 918, 0xf0, 102_000_000_000),
        (Chip::OrinNano4, "7W_CPU", 4, 306, 0xfc, 34_000_000_000),
        (Chip::OrinNano4Super, "10W", 4, 612, 0xfc, 16 * 2_133_000_000),
    ] {
        let config = SimConfig::new(chip).powered(mode).unwrap();
        let (board, whole) = (Board::with(config), Board::with(SimConfig::new(chip)));
        let mut count = args::<nvgpu_gpu_num_vsms>(|_| ());
        board.ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut count).unwrap();
        assert_eq!(count.num_vsms, sms, "{chip:?} {mode}");
        let speeds = tegra_sim::Kernel::speeds(&config);
        assert_eq!((speeds.gpu_hz / 1_000_000, speeds.dram_bytes_per_second), (mhz, bytes), "{chip:?} {mode}");
        let read = |board: &Board, name: &str| {
            board.kmd.read_text(&format!("/sys/class/devfreq/17000000.gpu/{name}")).unwrap().trim_end().to_owned()
        };
        assert_eq!(read(&board, "device/tpc_pg_mask"), format!("{gated}"), "{chip:?} {mode}");
        assert_eq!(read(&board, "max_freq").parse::<u64>().unwrap() / 1_000_000, mhz, "{chip:?} {mode}");
        // What the module could do stays: the logs of a board with eight SMs have 1300 MHz.
        assert_eq!(read(&board, "available_frequencies"), read(&whole, "available_frequencies"));
        assert_eq!(r36(&board).max_freq, r36(&whole).max_freq);
    }
}
