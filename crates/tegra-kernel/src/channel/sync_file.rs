//! Fences as files. SUBMIT_GPFIFO gives and takes them with SYNC_FENCE (docs/hardware/nvgpu-channel.md#sync-files), and
//! Linux lets a program use them (`drivers/dma-buf/sync_file.c`, `drivers/gpu/host1x/fence.c`).

use crate::dispatch::{self, Call, Reply, Row, rows};
use crate::event::EventFd;
use crate::files::OpenFile;
use crate::process::FileId;
use nix::time::{ClockId, clock_gettime};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tegra_hw::{Expectation, Syncpoint};
use tegrarm_abi::nvgpu::channel::nvgpu_fence;
use tegrarm_abi::sync_file::*;
use tegrarm_kmd::{Arg, Errno, Node};
use zerocopy::{FromZeros, IntoBytes};

pub static ROWS: &[Row<SyncFile>] = rows! {
    ALL SYNC_IOC_MERGE => merge;
    ALL SYNC_IOC_FILE_INFO => file_info;
};

/// The driver and the timeline of a fence, by name.
const DRIVER: &str = "host1x";
const TIMELINE: &str = "syncpoint";
/// The same names for an array of several fences.
const ARRAY: &str = "dma_fence_array";
const UNBOUND: &str = "unbound";

/// A fence, which passes when a syncpoint reaches a value or when the syncpoint's channel ends.
#[derive(Debug)]
struct Fence {
    point: Weak<Syncpoint>,
    value: u32,
    /// A number that no other fence has. It is used in names.
    context: u64,
    /// The time at which the fence was seen to have passed, in nanoseconds of CLOCK_MONOTONIC.
    passed_at: OnceLock<u64>,
}

/// Fences behind one descriptor, which becomes readable when all of them have passed.
#[derive(Debug)]
pub(crate) struct SyncFile {
    /// The fences. The list is never empty.
    fences: Vec<Arc<Fence>>,
    /// The name that MERGE gave it.
    name: [u8; 32],
    /// The number of the fences as one fence.
    context: u64,
    event: EventFd,
}

fn next_context() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Fence {
    fn pending(&self) -> Option<nvgpu_fence> {
        let point = self.point.upgrade().filter(|point| point.value().wrapping_sub(self.value).cast_signed() < 0);
        if point.is_none() {
            self.passed_at.get_or_init(|| {
                let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from);
                now.map_or(0, |now| now.as_nanos() as u64)
            });
        }
        point.map(|point| nvgpu_fence { id: point.id, value: self.value })
    }

    /// The syncpoint and the value. `None` if the syncpoint no longer belongs to a channel.
    fn place(&self) -> Option<nvgpu_fence> {
        self.point.upgrade().map(|point| nvgpu_fence { id: point.id, value: self.value })
    }

    fn info(&self) -> sync_fence_info {
        let passed = self.pending().is_none();
        let mut info = sync_fence_info::new_zeroed();
        (info.obj_name, info.driver_name) = (terminated(TIMELINE.as_bytes()), terminated(DRIVER.as_bytes()));
        info.status = i32::from(passed);
        info.timestamp_ns = self.passed_at.get().copied().unwrap_or(0);
        info
    }
}

impl SyncFile {
    /// Puts a fence into a new file in the caller's descriptor table.
    pub(super) fn install(call: &Call<'_>, point: &Arc<Syncpoint>, value: u32) -> Result<RawFd, Errno> {
        let context = next_context();
        let fence = Fence { point: Arc::downgrade(point), value, context, passed_at: OnceLock::new() };
        SyncFile::enter(call, vec![Arc::new(fence)], [0; 32], context)
    }

    fn enter(call: &Call<'_>, fences: Vec<Arc<Fence>>, name: [u8; 32], context: u64) -> Result<RawFd, Errno> {
        let (event, fd) = EventFd::new(0)?;
        let file = Arc::new(SyncFile { fences, name, context, event });
        call.files.enter(FileId::of(&fd)?, file.clone());
        call.board.hw.interrupts.expect(&file);
        call.process.install(fd)
    }

    /// The fences behind a descriptor of the caller that have not passed yet. The error is `EINVAL` if the descriptor
    /// does not belong to a fence.
    pub(super) fn pending(call: &Call<'_>, fd: RawFd) -> Result<Vec<nvgpu_fence>, Errno> {
        let file: Arc<SyncFile> = call.file(fd).ok_or(Errno::EINVAL)?;
        Ok(file.fences.iter().filter_map(|fence| fence.pending()).collect())
    }

    /// The syncpoints and values of the sync file behind a descriptor of the caller. Fences that have passed are included as long as
    /// their syncpoint belongs to a channel. The error is `EINVAL` if the descriptor is not a sync file.
    pub(super) fn points(call: &Call<'_>, fd: RawFd) -> Result<Vec<nvgpu_fence>, Errno> {
        let file: Arc<SyncFile> = call.file(fd).ok_or(Errno::EINVAL)?;
        Ok(file.fences.iter().filter_map(|fence| fence.place()).collect())
    }

    fn passed(&self) -> bool {
        self.fences.iter().all(|fence| fence.pending().is_none())
    }

    /// The name that MERGE gave, or else a name made of the driver and the fence's number.
    fn name(&self) -> [u8; 32] {
        if self.name[0] != 0 {
            return self.name;
        }
        let text = match self.fences.as_slice() {
            [fence] => format!("{DRIVER}-{TIMELINE}{}-0", fence.context),
            _ => format!("{ARRAY}-{UNBOUND}{}-1", self.context),
        };
        terminated(text.as_bytes())
    }
}

impl OpenFile for SyncFile {
    fn node(&self) -> Option<Node> {
        Some(Node::SyncFile)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        dispatch::answer(ROWS, call, &self, request, arg)
    }

    fn our_end(&self) -> Option<OwnedFd> {
        self.event.our_end()
    }
}

/// At most 31 bytes of a text, and a zero.
fn terminated(text: &[u8]) -> [u8; 32] {
    let mut name = [0; 32];
    let len = text.iter().position(|c| *c == 0).unwrap_or(text.len()).min(name.len() - 1);
    name[..len].copy_from_slice(&text[..len]);
    name
}

/// Makes a file that waits for both files. It has the fences that have not passed, each of them once.
fn merge(call: &Call<'_>, file: &Arc<SyncFile>, args: &mut sync_merge_data) -> Reply {
    if args.flags != 0 || args.pad != 0 {
        return Err(Errno::EINVAL.into());
    }
    let other: Arc<SyncFile> = call.file(args.fd2).ok_or(Errno::ENOENT)?;
    let mut fences: Vec<_> =
        file.fences.iter().chain(&other.fences).filter(|fence| fence.pending().is_some()).cloned().collect();
    fences.sort_by_key(|fence| fence.context);
    fences.dedup_by_key(|fence| fence.context);
    if fences.is_empty() {
        fences.push(file.fences[0].clone());
    }
    let context = if let [fence] = fences.as_slice() { fence.context } else { next_context() };
    args.name = terminated(&args.name);
    args.fence = SyncFile::enter(call, fences, args.name, context)?;
    Ok(())
}

/// Returns name and state, and the fences if the caller has room for them.
fn file_info(call: &Call<'_>, file: &Arc<SyncFile>, args: &mut sync_file_info) -> Reply {
    if args.flags != 0 || args.pad != 0 {
        return Err(Errno::EINVAL.into());
    }
    let count = file.fences.len() as u32;
    if args.num_fences == 0 {
        args.status = i32::from(file.passed());
    } else if args.num_fences < count {
        return Err(Errno::EINVAL.into());
    } else {
        let infos: Vec<sync_fence_info> = file.fences.iter().map(|fence| fence.info()).collect();
        args.status = i32::from(infos.iter().all(|info| info.status == 1));
        call.copy_out(args.sync_fence_info, infos.as_bytes())?;
    }
    args.name = file.name();
    args.num_fences = count;
    Ok(())
}

impl Expectation for SyncFile {
    fn met(&self) -> bool {
        let passed = self.passed();
        if passed {
            self.event.post();
        }
        passed
    }
}
