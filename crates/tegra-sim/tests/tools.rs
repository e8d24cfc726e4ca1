//! `tegrarm-sim run --trace`, `replay` and `decode`, as people see them.

#[path = "../../tegra-gpu/tests/front_end/one_warp.rs"]
mod one_warp;

use one_warp::{EXIT, descriptor};
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

/// A small program that makes an address space and a channel group on the control node.
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

/// Programs that asked for JSON get it, whatever the file is.
#[test]
fn an_error_is_json_too() {
    let file = file("no-recording.jsonl", b"notes");
    for arguments in [&["replay"][..], &["replay", "--all"], &["decode", "--as", "cubin"]] {
        let out = tool(&[arguments, &["--json", file.to_str().unwrap()]].concat());
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((out.status.code(), &told["status"]), (Some(2), &2.into()), "{out:?}");
        let sentence = told["error"].as_str().unwrap();
        assert!(sentence.starts_with(file.to_str().unwrap()), "{sentence}");
        assert_eq!(String::from_utf8_lossy(&out.stderr), format!("tegrarm-sim: {sentence}\n"));
    }
}

/// Shifted to bytes, such a number would be another one.
#[test]
fn a_board_has_no_more_memory_than_there_are_addresses() {
    for mib in ["0", "16777217", "17592186044416", "-1", "8G"] {
        let out = tool(&["run", &format!("--memory={mib}"), "--", "true"]);
        assert_eq!(out.status.code(), Some(2), "{mib}: {out:?}");
    }
}

#[test]
fn every_difference_is_printed_where_all_are_asked_for() {
    let path = recording("all.jsonl");
    let (name, arguments) = (path.to_str().unwrap(), ["replay", "--all", "--chip", "orin-nano"]);
    let out = tool(&[&arguments[..], &[name]].concat());
    assert!(out.status.code() == Some(1) && text(&out).contains("1 ended differently"), "{out:?}");
    assert!(
        text(&out).contains("NVGPU_GPU_IOCTL_NUM_VSMS") && text(&out).contains("\n    num_vsms: recorded"),
        "{out:?}"
    );
    assert_eq!(out.stderr, b"", "progress is for people alone");
    let out = tool(&[&arguments[..], &["--json", name]].concat());
    let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&told["same"], told["differences"].as_array().unwrap().len()), (&false.into(), 1));
    assert!(told["differences"][0]["line"].as_u64().is_some_and(|line| line > 1), "{told}");
    let same = tool(&["replay", "--all", name]);
    assert!(same.status.success() && text(&same).contains(" 0 ended differently"), "{same:?}");
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

/// A C program that brings a channel up, runs `%WORDS%` from a page at [`PAGE`], and waits for the channel to die.
const WORKER: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
static int nvmap, ctrl;
static int buffer(uint32_t size, void *at) {
  struct { uint32_t size, handle; } create = {size, 0};
  assert(ioctl(nvmap, 0xc0084e00, &create) == 0);
  struct { uint32_t handle, heap, flags, align; int32_t nid; } alloc = {create.handle, 1u << 30, 2, 4096, 0};
  assert(ioctl(nvmap, 0x40144e03, &alloc) == 0);
  struct { int32_t fd; uint32_t handle; } get = {0, create.handle};
  assert(ioctl(nvmap, 0xc0084e0f, &get) == 0);
  *(void **)at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, get.fd, 0);
  assert(*(void **)at != MAP_FAILED);
  return get.fd;
}
int main(void) {
  static const uint32_t qmd[] = {%QMD%}, code[] = {%CODE%}, words[] = {%WORDS%};
  nvmap = open("/dev/nvmap", O_RDWR);
  ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
  struct { uint32_t big; int32_t fd; uint32_t flags, r; uint64_t start, end, split; uint32_t pad[6]; } as = {0, 0, 2, 0, 0x200000, 0xff00000000, 0, {0}};
  assert(ioctl(ctrl, 0xc0404708, &as) == 0);
  struct { uint64_t pages; uint32_t size, flags; uint64_t at; uint32_t pad[2]; } area = {16, 4096, 1, %PAGE%, {0}};
  assert(ioctl(as.fd, 0xc0204106, &area) == 0);
  uint8_t *page; volatile uint64_t *ring; volatile uint32_t *userd;
  int page_fd = buffer(65536, &page), ring_fd = buffer(8192, &ring), userd_fd = buffer(4096, &userd);
  struct { uint32_t flags; int16_t compr, incompr; uint32_t fd, size; uint64_t from, len, at; } map = {5, -1, 0, page_fd, 0, 0, 0, %PAGE%};
  assert(ioctl(as.fd, 0xc0284107, &map) == 0);
  struct { int32_t fd; uint32_t flags; uint64_t source, token; } tsg = {0};
  assert(ioctl(ctrl, 0xc0184709, &tsg) == 0);
  struct { uint32_t type; int32_t as; uint32_t veid, r; } sub = {1, as.fd, 0, 0};
  assert(ioctl(tsg.fd, 0xc0105412, &sub) == 0);
  int32_t channel = -1;
  assert(ioctl(ctrl, 0xc004470b, &channel) == 0);
  assert(ioctl(as.fd, 0xc0044101, &channel) == 0);
  struct { int32_t fd; uint32_t veid, r[4]; } bind = {channel, sub.veid, {0}};
  assert(ioctl(tsg.fd, 0xc018540b, &bind) == 0);
  uint32_t wdt[2] = {1, 0};
  assert(ioctl(channel, 0x40084877, wdt) == 0);
  struct { uint32_t entries, inflight, flags; int32_t userd, ring; uint32_t token; uint64_t rest[10]; } setup = {1024, 0, 0xa, userd_fd, ring_fd, 0, {0}};
  assert(sizeof setup == 104 && ioctl(channel, 0xc0684880, &setup) == 0);
  memcpy(page, words, sizeof words);
  memcpy(page + 0x1000, qmd, sizeof qmd);
  memcpy(page + 0x2000, code, sizeof code);
  volatile uint32_t *bell = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ctrl, 0);
  ring[0] = %PAGE% | (uint64_t)(sizeof words / 4) << 42 | 1ull << 41;
  __sync_synchronize();
  userd[0x8c / 4] = 1;
  __sync_synchronize();
  bell[0x90 / 4] = setup.token;
  uint32_t dead = 0;
  while (!dead) { usleep(1000); assert(ioctl(channel, 0x8004480c, &dead) == 0); }
  return *(volatile uint32_t *)(page + 0x3000) == 7 ? 0 : 1;
}
"#;

/// The address of its page. It has the pushbuffer first, then a descriptor at 0x1000, code at 0x2000, and semaphores
/// and data after that.
const PAGE: u64 = 0x10_0000_0000;

/// A method header for `data` on a subchannel, followed by the data.
fn method(subchannel: u32, address: u32, data: &[u32]) -> Vec<u32> {
    let header = 1 << 29 | (data.len() as u32) << 16 | subchannel << 13 | address >> 2;
    std::iter::once(header).chain(data.iter().copied()).collect()
}

fn pair(va: u64) -> [u32; 2] {
    [(va >> 32) as u32, va as u32]
}

/// A copy, a grid, a semaphore, and a semaphore at an address where nothing is mapped.
fn work() -> Vec<u32> {
    use tegrarm_abi::methods::compute::*;
    use tegrarm_abi::methods::copy::*;
    let release = |va: u64| method(0, 0x5c, &[va as u32, (va >> 32) as u32, 7, 0, 1]);
    let places = [pair(PAGE + 0x4000), pair(PAGE + 0x5000)].concat();
    [
        method(4, NVC6B5_OFFSET_IN_UPPER, &places),
        method(4, NVC6B5_LINE_LENGTH_IN, &[256, 1]),
        method(4, NVC6B5_LAUNCH_DMA, &[0x182]),
        method(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, &[0xfd, 0]),
        method(1, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, &[0xfe, 0]),
        method(1, NVC6C0_SEND_PCAS_A, &[((PAGE + 0x1000) >> 8) as u32]),
        method(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[9]),
        release(PAGE + 0x3010),
        release(0x20_0000_0000),
    ]
    .concat()
}

#[test]
fn a_trace_shows_what_the_gpu_did() {
    let list = |words: &[u32]| words.iter().map(|w| format!("{w:#x}")).collect::<Vec<_>>().join(",");
    let source = WORKER
        .replace("%PAGE%", &format!("{PAGE:#x}"))
        .replace("%QMD%", &list(&descriptor(PAGE + 0x2000, PAGE + 0x3000)))
        .replace("%CODE%", &list(&EXIT.map(|half| [half as u32, (half >> 32) as u32]).concat()))
        .replace("%WORDS%", &list(&work()));
    let source = file("worker.c", source.as_bytes());
    let (program, trace) = (source.with_extension(""), source.with_extension("json"));
    assert!(Command::new("cc").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    let out = tool(&["run", "--trace", trace.to_str().unwrap(), "--", program.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
    let events: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let of = |kind: &str| events.as_array().unwrap().iter().filter(|e| e["cat"] == kind).cloned().collect::<Vec<_>>();
    assert!(of("ioctl").len() > 10);
    assert_eq!(of("gpfifo")[0]["args"]["index"], 0);
    assert_eq!(
        (&of("copy")[0]["args"]["from"], &of("copy")[0]["args"]["bytes"]),
        (&"0x1000004000".into(), &256.into())
    );
    let launch = &of("launch")[0];
    assert_eq!((&launch["args"]["qmd"], &launch["args"]["warp_instructions"]), (&"0x1000001000".into(), &1.into()));
    let semaphores: Vec<String> =
        of("semaphore").iter().map(|s| s["name"].to_string() + &s["args"]["va"].to_string()).collect();
    assert_eq!(semaphores, ["\"released by a grid\"\"0x1000003000\"", "\"released\"\"0x1000003010\""]);
    let fault = of("fault")[0]["args"]["text"].to_string();
    assert!(fault.contains("0x2000000000"), "{fault}");
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

/// Each file that has no machine code for sm_87 is named. `--as` insists.
#[test]
fn decode_says_what_is_not_sm_87() {
    let cubin =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/cubin/shared.nvrtc.cubin")).unwrap();
    let edited = |at: usize, value: u8| {
        let mut copy = cubin.clone();
        copy[at] = value;
        copy
    };
    let cases: [(&[u8], &str); 7] = [
        (&edited(48, 86), "this is machine code for sm_86 and not for sm_87"),
        (&edited(18, 62), "code for machine 62 and not for a GPU"),
        (b".version 8.5\n.target sm_87\n\0", "this is text"),
        (b"__global__ void k() {} // \xc3\xbc", "`tegrarm compile FILE`"),
        (&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0], "fat binary"),
        (b"", "the file is empty"),
        (b"{}", "a recording"),
    ];
    for (bytes, said) in cases {
        let path = file("foreign.bin", bytes);
        let out = tool(&["decode", path.to_str().unwrap()]);
        assert!(out.status.code() == Some(2) && String::from_utf8_lossy(&out.stderr).contains(said), "{out:?}");
    }
    let path = file("foreign.cubin", &edited(48, 86));
    let out = tool(&["decode", "--as", "cubin", path.to_str().unwrap()]);
    assert!(out.status.success() && text(&out).contains("EXIT"), "{out:?}");
}
