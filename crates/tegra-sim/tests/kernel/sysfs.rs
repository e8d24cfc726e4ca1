//! The attributes of the GPU's device in sysfs (docs/hardware/nvgpu-nodes.md#device-attributes).

use crate::support::*;
use tegra_sim::{Chip, SimConfig};

/// The path of an attribute.
fn at(board: &Board, name: &str) -> String {
    let gpu = board.kmd.read_text("/sys/class/devfreq").unwrap();
    format!("/sys/class/devfreq/{}/device/{name}", gpu.trim())
}

fn read(board: &Board, name: &str) -> String {
    board.kmd.read_text(&at(board, name)).unwrap().trim_end().to_owned()
}

fn write(board: &Board, name: &str, text: &str) -> Result<(), Errno> {
    board.kmd.write_text(&at(board, name), text)
}

#[test]
fn rule_9_2_the_device_tells_its_state() {
    for board in [Board::new(), Board::r35()] {
        let values =
            ["gpu_powered_on", "railgate_enable", "railgate_delay", "is_railgated", "load"].map(|n| read(&board, n));
        assert_eq!(values, ["on", "1", "500", "no", "0"]);
        let masks = ["gpc_fs_mask", "fbp_fs_mask", "tpc_fs_mask", "tpc_pg_mask"].map(|n| read(&board, n));
        assert_eq!(masks, ["3", "0x3", "0xff", "0"]);
        assert_eq!(write(&board, "load", "1"), Err(Errno::EACCES));
        assert_eq!(board.kmd.read_text(&at(&board, "nonsense")), Err(Errno::ENOENT));
    }
    let smaller = Board::with(SimConfig::new(Chip::AgxOrinPowerGated));
    assert_eq!((read(&smaller, "gpc_fs_mask"), read(&smaller, "tpc_fs_mask")), ("1".into(), "0xf".into()));
}

#[test]
fn rule_9_2_railgating_is_set_and_means_nothing() {
    let board = Board::new();
    assert_eq!(write(&board, "railgate_delay", "30\n"), Ok(()));
    assert_eq!((write(&board, "railgate_delay", "soon"), read(&board, "railgate_delay")), (Ok(()), "30".into()));
    assert_eq!(write(&board, "railgate_enable", "never"), Err(Errno::EINVAL));
    assert_eq!((write(&board, "railgate_enable", "0\n"), read(&board, "railgate_enable")), (Ok(()), "0".into()));
    assert_eq!((write(&board, "railgate_delay", "40"), read(&board, "railgate_delay")), (Ok(()), "30".into()));
}

#[test]
fn rule_9_2_tpcs_are_not_gated_once_a_context_exists() {
    let board = Board::new();
    assert_eq!(read(&board, "golden_img_status"), "0");
    assert_eq!((write(&board, "tpc_pg_mask", "0\n"), write(&board, "tpc_pg_mask", "x")), (Ok(()), Err(Errno::EINVAL)));
    assert_eq!(write(&board, "tpc_pg_mask", "8"), Err(Errno::EINVAL), "other modules have other TPCs");
    let rig = board.rig();
    alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
    assert_eq!(read(&board, "golden_img_status"), "1");
    assert_eq!((write(&board, "tpc_pg_mask", "0"), write(&board, "tpc_pg_mask", "8")), (Ok(()), Err(Errno::EBUSY)));
}

#[test]
fn rule_9_2_timeslices_have_tunable_limits() {
    let board = Board::new();
    let (shortest, longest) = ("tsg_timeslice_min_us", "tsg_timeslice_max_us");
    assert_eq!((read(&board, shortest), read(&board, longest)), ("1000".into(), "50000".into()));
    assert_eq!([write(&board, shortest, "50001"), write(&board, longest, "999")], [Err(Errno::EINVAL); 2]);
    assert_eq!([write(&board, shortest, "500\n"), write(&board, longest, "2000\n")], [Ok(()); 2]);
    let tsg = board.tsg();
    for (us, result) in [(499, Err(Errno::EINVAL)), (500, Ok(())), (2000, Ok(())), (2001, Err(Errno::EINVAL))] {
        let mut slice = args::<nvgpu_timeslice_args>(|a| a.timeslice_us = us);
        assert_eq!(tsg.ioctl(NVGPU_IOCTL_TSG_SET_TIMESLICE, &mut slice), result, "{us}");
    }
}

#[test]
fn programs_tell_the_names_of_their_code() {
    let board = Board::new();
    assert_eq!(read(&board, "tegra_sim_names"), "functions");
    let told = "module\t0x10000\t0x1000\nfunction\t0x10100\t0x80\tsum\n";
    assert_eq!(write(&board, "tegra_sim_names", told), Ok(()));
    assert_eq!(write(&board, "tegra_sim_names", "gone\t0x10000\n"), Ok(()));
    for bad in ["sum", "function\t0x10100\t0x80\tsum\n"] {
        assert_eq!(write(&board, "tegra_sim_names", bad), Err(Errno::EINVAL), "{bad}");
    }
    let profiled = Board::with(SimConfig { profiled: true, ..SimConfig::new(Chip::AgxOrin) });
    assert_eq!(read(&profiled, "tegra_sim_names"), "functions lines ranges queues");
}
