//! The driver as one more kernel under the library: its nodes are NVIDIA's code, and nvmap, the files of sysfs and every other node
//! are the virtual Orin's. What the library asked of the virtual Orin is then asked of it, call by call.

use crate::driver::{Descriptors, Driver};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tegra_sim::SimKmd;
use tegrarm_abi::nvmap::{NVMAP_IOC_FROM_VA, NVMAP_IOC_GET_FD};
use tegrarm_kmd::{Arg, Difference, Errno, Kmd, Mapping, Node, PerformedAll, Placement, Prot, perform_all};

const DOORBELL: i64 = 64 << 10;

/// The nodes of the driver, by the paths of both generations.
const NODES: [(&str, &str); 8] = [
    ("/dev/nvgpu/igpu0/as", "as"),
    ("/dev/nvgpu/igpu0/channel", "channel"),
    ("/dev/nvgpu/igpu0/ctrl", "ctrl"),
    ("/dev/nvgpu/igpu0/tsg", "tsg"),
    ("/dev/nvhost-as-gpu", "as"),
    ("/dev/nvhost-gpu", "channel"),
    ("/dev/nvhost-ctrl-gpu", "ctrl"),
    ("/dev/nvhost-tsg-gpu", "tsg"),
];

/// The driver, and a virtual Orin for what is not in it.
struct DriverKmd {
    driver: Descriptors,
    others: SimKmd,
    /// The sizes of the handles that are pages of the program, in page-whole bytes. Their dmabufs do not tell one.
    pages: Mutex<BTreeMap<u32, u64>>,
}

/// Calls that may end in another way, in fields that begin so, and why.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("NVGPU_PROFILER_IOCTL_", "", "the node of profilers is not built"),
    ("NVGPU_DBG_GPU_IOCTL_", "", "the node of debuggers is not built"),
    ("NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE", "recorded Err(ENOSYS)", "the virtual Orin refuses it"),
    ("NVMAP_IOC_FROM_VA", "", "the pages are those of this program"),
    ("HOST1X_IOCTL_CREATE_FENCE", "", "host1x is another driver, and does not know this one's syncpoints"),
    ("NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT", "syncpoint_max: ", "no GPU counts the syncpoint"),
];

/// The same for recordings of tests whose threads make calls at once: these stand in the order in which they ended.
const AT_ONCE: [(&str, &str, &str); 2] = [
    ("NVGPU_AS_IOCTL_MAP_BUFFER_EX", "offset: ", "several threads took addresses at once"),
    ("NVMAP_IOC_CREATE", "handle: ", "several threads made handles at once"),
];

/// The bytes of a number in an argument.
fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a field of the argument")
}

impl DriverKmd {
    fn is_drivers(&self, fd: BorrowedFd<'_>) -> bool {
        self.driver.knows(fd.as_raw_fd())
    }

    /// Tells the driver of a dma-buf that nvmap made. Other descriptors stay unknown to it.
    fn tell(&self, fd: RawFd, handle: u32) {
        // SAFETY: all bytes of a `stat` may be zero, and fstat fills it.
        let (result, stat) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &mut stat), stat)
        };
        if result == 0 {
            let pages = self.pages.lock().expect("nobody panicked").get(&handle).copied();
            self.driver.tell(fd, pages.unwrap_or(stat.st_size as u64).next_multiple_of(4096));
        }
    }
}

impl Kmd for DriverKmd {
    fn name(&self) -> &str {
        "NVIDIA's driver in user space"
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let Some((_, node)) = NODES.iter().find(|(name, _)| *name == path) else { return self.others.open(path) };
        let fd = self.driver.open(node).map_err(Errno::from_raw)?;
        if *node == "ctrl" {
            // The doorbell page is memory.
            // SAFETY: the descriptor is a memfd.
            unsafe { libc::ftruncate(fd.as_raw_fd(), DOORBELL) };
        }
        Ok(fd)
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        if !self.is_drivers(fd) {
            let mut arg = arg;
            let size = match &arg {
                Arg::Bytes(bytes) if request == NVMAP_IOC_FROM_VA => u64::from_le_bytes(word(bytes, 16)),
                _ => 0,
            };
            let result = self.others.ioctl(fd, node, request, arg.reborrow())?;
            match &arg {
                Arg::Bytes(bytes) if node == Node::Nvmap && request == NVMAP_IOC_GET_FD => {
                    self.tell(i32::from_le_bytes(word(bytes, 0)), u32::from_le_bytes(word(bytes, 4)));
                }
                Arg::Bytes(bytes) if node == Node::Nvmap && request == NVMAP_IOC_FROM_VA => {
                    let handle = u32::from_le_bytes(word(bytes, 16));
                    self.pages.lock().expect("nobody panicked").insert(handle, size);
                }
                _ => {}
            }
            return Ok(result);
        }
        let result = match arg {
            Arg::Bytes(bytes) => self.driver.ioctl(fd.as_raw_fd(), request, bytes.as_mut_ptr()),
            Arg::Value(value) => self.driver.ioctl(fd.as_raw_fd(), request, value as *mut u8),
        };
        if result < 0 { Err(Errno::from_raw(-result)) } else { Ok(result) }
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        if self.is_drivers(fd) {
            Mapping::new(fd, at, len, prot, offset)
        } else {
            self.others.mmap(fd, at, len, prot, offset)
        }
    }

    fn own_view(&self, fd: BorrowedFd<'_>) -> Option<usize> {
        self.others.own_view(fd)
    }

    fn close(&self, fd: OwnedFd) {
        if self.is_drivers(fd.as_fd()) {
            return self.driver.close(fd);
        }
        if let Ok(copy) = fd.try_clone() {
            // The driver forgets its name for a dma-buf.
            self.driver.close(copy);
        }
        self.others.close(fd);
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        self.others.read_text(path)
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        self.others.write_text(path, text)
    }
}

/// Shows what differs, by call. Returns how many calls differ without a reason.
fn unexplained(outcome: &PerformedAll, at_once: bool) -> usize {
    let reasons = || ELSEWHERE.iter().chain(AT_ONCE.iter().filter(|_| at_once));
    let mut by_call: BTreeMap<&str, Vec<&Difference>> = BTreeMap::new();
    for difference in &outcome.differences {
        by_call.entry(difference.call.split(' ').next().unwrap_or_default()).or_default().push(difference);
    }
    let mut without_reason = 0;
    for (call, differences) in by_call {
        let first = format!("the first at line {}: {}", differences[0].line, differences[0].fields.join("; "));
        let fields = || differences.iter().flat_map(|difference| &difference.fields);
        let may = |(name, field, _): &&(&str, &str, &str)| {
            call.starts_with(name) && fields().all(|text| text.starts_with(field))
        };
        let reason = reasons().find(may).map(|(_, _, reason)| *reason);
        without_reason += if reason.is_some() { 0 } else { differences.len() };
        println!("    {call}: {} differ, {}", differences.len(), reason.unwrap_or(&first));
    }
    without_reason
}

/// Rows of a table (program, calls, equal, left out, different without a reason): makes the calls of recordings of the library
/// on the driver. Returns whether every answer is as recorded, or has a reason not to be.
pub fn perform(driver: Driver, others: SimKmd, recordings: &[&str]) -> Result<bool, String> {
    let kernel = Arc::new(DriverKmd { driver: driver.descriptors(), others, pages: Mutex::default() });
    let mut left = 0;
    for path in recordings {
        let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
        let outcome =
            perform_all(BufReader::new(file), kernel.clone(), |_, _| ()).map_err(|e| format!("{path}: {e}"))?;
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
        let unexplained = unexplained(&outcome, name.starts_with("threads,"));
        let equal = outcome.made.saturating_sub(outcome.differences.len());
        println!("{name:24} {:6} {equal:6} {:8} {unexplained:9}", outcome.made, outcome.left_out);
        left += unexplained;
    }
    Ok(left == 0)
}

/// The sums of a suite: its tests, how many of them have no call that differs without a reason, and their calls.
#[derive(Default)]
struct Sums {
    /// The tests, and whether all their calls are explained.
    tests: BTreeMap<String, bool>,
    made: usize,
    equal: usize,
    left_out: usize,
    unexplained: usize,
}

/// A row of a suite: makes the calls of each of its boards on a driver that was booted for it alone. The names of the recordings
/// are those of tests/common/board.rs: suite, test, release and number, divided by commas.
pub fn suites(library: &str, board: &str, release: &str, folder: &Path) -> Result<bool, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut names: Vec<_> =
        std::fs::read_dir(folder).map_err(|e| e.to_string())?.filter_map(|e| Some(e.ok()?.path())).collect();
    names.sort();
    let mut suites: BTreeMap<String, Sums> = BTreeMap::new();
    for path in names {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let words: Vec<&str> = stem.split(',').collect();
        let [suite, test, of, _] = words.as_slice() else { continue };
        if *of != release {
            continue;
        }
        let args = [library, &format!("{board}:{release}"), "perform", &path.to_string_lossy()];
        let output = std::process::Command::new(&own).args(args).output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let row = text.lines().last().and_then(|row| numbers(row.strip_prefix(&stem)?));
        let sums = suites.entry((*suite).to_owned()).or_default();
        let [made, equal, left_out, unexplained] = row.unwrap_or_else(|| {
            println!("{stem}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
            [0, 0, 0, 1]
        });
        if unexplained > 0 {
            println!("{stem}:\n{text}");
        }
        *sums.tests.entry((*test).to_owned()).or_insert(true) &= unexplained == 0;
        sums.made += made;
        sums.equal += equal;
        sums.left_out += left_out;
        sums.unexplained += unexplained;
    }
    for (suite, Sums { tests, made, equal, left_out, unexplained }) in &suites {
        let well = tests.values().filter(|well| **well).count();
        println!("{suite:16} {release:6} {:5} {well:5} {made:7} {equal:7} {left_out:8} {unexplained:9}", tests.len());
    }
    Ok(suites.values().all(|sums| sums.unexplained == 0))
}

/// The numbers in a row of `perform`.
fn numbers(row: &str) -> Option<[usize; 4]> {
    let numbers: Vec<usize> = row.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}
