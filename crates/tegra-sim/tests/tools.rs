//! `tegrarm-sim run --trace`, `replay`, `decode`: what people see.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tegra_sim::{Chip, SimConfig, SimKmd};
use tegrarm_abi::layout::FromZeros;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::{File, Kmd, Node, Recorded};

fn tool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tegrarm-sim")).args(args).output().unwrap()
}

fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A little program: an address space and a channel group on the control node.
fn program(kmd: &Arc<dyn Kmd>) {
    let ctrl = File::open(kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    let mut space = nvgpu_alloc_as_args::new_zeroed();
    (space.flags, space.va_range_start) = (NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, 0x20_0000);
    (space.va_range_end, space.big_page_size) = (0xff_0000_0000, 0);
    ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut space).unwrap();
    let _space = File::from_output(kmd, Node::As, space.as_fd).unwrap();
    let mut sms = nvgpu_gpu_num_vsms::new_zeroed();
    ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut sms).unwrap();
    let mut time = nvgpu_gpu_get_gpu_time_args::new_zeroed();
    ctrl.ioctl(NVGPU_GPU_IOCTL_GET_GPU_TIME, &mut time).unwrap();
}

fn recording(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let board: Arc<dyn Kmd> = Arc::new(SimKmd::new(SimConfig::new(Chip::AgxOrin)));
    program(&(Arc::new(Recorded::create(board, &path).unwrap()) as Arc<dyn Kmd>));
    path
}

#[test]
fn a_recording_of_the_same_board_replays() {
    let path = recording("same.jsonl");
    let out = tool(&["replay", path.to_str().unwrap()]);
    assert!(out.status.success() && text(&out).contains("all as recorded"), "{out:?}");
}

#[test]
fn a_recording_of_another_board_differs_by_name() {
    let path = recording("other.jsonl");
    let out = tool(&["replay", "--chip", "orin-nano", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(text(&out).contains("NVGPU_GPU_IOCTL_NUM_VSMS on ctrl#1: num_vsms: recorded 16, now 8"), "{out:?}");
    let out = tool(&["replay", file("noise.jsonl", b"noise").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn a_trace_is_json_with_the_programs_ioctls() {
    let source = file(
        "traced.c",
        b"#include <fcntl.h>\n#include <sys/ioctl.h>\n\
          int main(void) { int c = -1; return ioctl(open(\"/dev/nvgpu/igpu0/ctrl\", O_RDWR), 0xc004470b, &c); }\n",
    );
    let (program, trace) = (source.with_extension(""), source.with_extension("json"));
    assert!(Command::new("cc").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    let out = tool(&["run", "--trace", trace.to_str().unwrap(), "--", program.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
    let events: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let ioctl = events.as_array().unwrap().iter().find(|e| e["name"] == "NVGPU_GPU_IOCTL_OPEN_CHANNEL").unwrap();
    assert_eq!((&ioctl["ph"], &ioctl["cat"]), (&"X".into(), &"ioctl".into()));
    assert!(ioctl["ts"].is_f64() && ioctl["args"]["channel_fd"].is_string(), "{ioctl}");
}

#[test]
fn decode_guesses_and_can_be_told() {
    let words: Vec<u8> = [0x2001_8000_u32, 0xc7b5, 0x2001_80c0, 0x182].iter().flat_map(|w| w.to_le_bytes()).collect();
    let path = file("words.bin", &words);
    let out = tool(&["decode", path.to_str().unwrap()]);
    assert!(out.status.success() && text(&out).contains("LAUNCH_DMA = 0x00000182"), "{out:?}");
    let out = tool(&["decode", "--as", "qmd", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("a launch descriptor has 256 bytes, not 16"), "{out:?}");
    let cubin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/cubin/shared.nvrtc.cubin");
    let out = tool(&["decode", cubin]);
    assert!(out.status.success() && text(&out).contains("EXIT") && text(&out).contains("BAR"), "{out:?}");
    assert!(!text(&out).contains("unknown"), "{out:?}");
}
