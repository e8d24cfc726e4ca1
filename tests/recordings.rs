//! Tests that a program of the runtime that was recorded on the virtual Orin runs again with its recording alone. It
//! finds the same results.
#![cfg(feature = "sim")]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::Cache;
use tegrarm::status::RmResult;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::NV_ERR_NOT_SUPPORTED;
use tegrarm_kmd::{Kmd, Recorded, Replayed};

const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
const N: u32 = 256;

/// Computes three sums on the GPU. Each sum uses the one before it and is read after a wait.
fn program(kmd: Arc<dyn Kmd>) -> RmResult<Vec<f32>> {
    let rm = Arc::new(Rm::new(kmd, CacheMode::WriteCombine));
    let device = Device::open(&rm, 0)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin/vecadd.nvrtc.cubin");
    let kernel = device.load(&std::fs::read(path).expect("a cubin"))?.kernel("vecadd")?;
    let [a, b, c] = [(); 3].map(|()| device.alloc(u64::from(N) * 4, Cache::Cached));
    let (a, b, c) = (a?, b?, c?);
    let ones: Vec<u8> = (0..N).flat_map(|i| (i as f32).to_le_bytes()).collect();
    a.write(0, &ones)?;
    b.write(0, &ones)?;
    let mut found = Vec::new();
    for _ in 0..3 {
        let [pa, pb, pc] = [&a, &b, &c].map(|b| b.address().to_le_bytes());
        let block = params::pack(kernel.kernel(), &[&pa, &pb, &pc, &N.to_le_bytes()]).expect("four arguments");
        let launch = Launch { grid: Dim3::new(2, 1, 1), block: Dim3::new(128, 1, 1), dynamic_shared: 0 };
        device.wait(device.launch(&kernel, &launch, &block)?, DEADLINE)?;
        let mut bytes = vec![0; 4 * N as usize];
        c.read(0, &mut bytes)?;
        // The program overwrites what it read before the next wait. Therefore each wait has its own results.
        a.write(0, &bytes)?;
        c.write(0, &vec![0; bytes.len()])?;
        found.extend(bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes"))));
    }
    Ok(found)
}

/// Lets one test at a time use addresses. All boards choose the same ones. A program that finds an address taken by another test maps its
/// memory elsewhere, with one call more, and then it is not the program that was recorded.
fn addresses() -> MutexGuard<'static, ()> {
    static ADDRESSES: Mutex<()> = Mutex::new(());
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a recording of the program. The result is the recording and what the program found.
fn recording(name: &str) -> (PathBuf, Vec<f32>) {
    let path = std::env::temp_dir().join(format!("tegrarm-recordings-{}-{name}.jsonl", std::process::id()));
    let board = common::board(common::default_release());
    let recorded = Recorded::create(board, &path).expect("a file");
    let found = program(Arc::new(recorded)).expect("the program runs");
    (path, found)
}

#[test]
fn a_recorded_program_finds_the_same_results_without_a_gpu() {
    let _addresses = addresses();
    let (path, found) = recording("same");
    let expected: Vec<f32> = (2..5).flat_map(|n| (0..N).map(move |i| (n * i) as f32)).collect();
    assert_eq!(found, expected);
    let replayed = Arc::new(Replayed::open(&path).expect("a recording"));
    assert_eq!(program(replayed.clone()).expect("as recorded"), expected);
    assert_eq!((replayed.first_difference(), replayed.remaining()), (None, 0));
    std::fs::remove_file(path).expect("a file");
}

/// A recording of an earlier version has no memory, and a recording that was cut off has too little.
#[test]
fn a_wait_that_would_never_end_says_so_at_once() {
    let _addresses = addresses();
    let (path, _) = recording("none");
    let text = std::fs::read_to_string(&path).expect("a recording");
    let memory: Vec<usize> =
        text.lines().enumerate().filter(|(_, l)| l.contains("\"call\":\"memory\"")).map(|(at, _)| at).collect();
    assert!(memory.len() >= 4, "one for the set-up of the queue, one for each launch");
    for kept in [0, 2] {
        let mut file = std::fs::File::create(&path).expect("a file");
        for (at, line) in text.lines().enumerate() {
            if memory.iter().position(|m| *m == at).is_none_or(|n| n < kept) {
                writeln!(file, "{line}").expect("written");
            }
        }
        let replayed = Arc::new(Replayed::open(&path).expect("a recording"));
        let refused = program(replayed.clone()).expect_err("it waits in vain");
        assert_eq!(refused.status, NV_ERR_NOT_SUPPORTED);
        assert!(replayed.first_difference().expect("a difference").contains("nothing more of what the GPU wrote"));
    }
    std::fs::remove_file(path).expect("a file");
}

/// What a recording says of the GPU's size decides about memory of the program that is replayed.
#[test]
fn a_gpu_that_is_too_large_is_refused_with_its_size() {
    let _addresses = addresses();
    let (path, _) = recording("large");
    let text = std::fs::read_to_string(&path).expect("a recording");
    std::fs::remove_file(&path).expect("a file");
    for (name, bytes, sentence) in [
        ("NVGPU_GPU_IOCTL_NUM_VSMS", "e803000000000000", "1000 SMs where at most 256 can be"),
        ("NVGPU_GPU_IOCTL_NUM_VSMS", "ffffffff00000000", "4294967295 SMs where at most 256 can be"),
    ] {
        let altered = text.lines().map(|line| {
            let mut call: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if call["name"] == name {
                call["out"]["bytes"] = bytes.into();
            }
            format!("{call}\n")
        });
        let replayed = Replayed::new(altered.collect::<String>().as_bytes()).expect("a recording");
        let refused = program(Arc::new(replayed.ignoring_inputs())).expect_err("no GPU is as large");
        assert!(refused.to_string().contains(sentence), "{refused}");
    }
}
