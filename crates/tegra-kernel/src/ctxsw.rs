//! The node for traces of context switches: a ring of time stamps, which one reader maps.
//!
//! What its ioctls do comes from nvgpu's `os/linux/fecs_trace_linux.c`, because the rules file only names this node. A
//! switch has four entries. The first two are the host's request and the end of saving, for the group that had the
//! engine. The other two are the start of restoring and the start of the context, for the group that gets the engine.
//! The context id in an entry is the group's id.

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{Files, Mmap, OpenFile};
use super::sched::Scheduling;
use crate::process::FileId;
use crate::release::PerRelease;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use tegra_hw::SwitchLog;
use tegra_mm::{Backing, memfd};
use tegrarm_abi::nvgpu::ctxsw::*;
use tegrarm_kmd::{Arg, Errno, Node};
use tegrarm_lock::Mutex;
use zerocopy::IntoBytes;

pub(super) static TABLE: Table<TraceFile> = Table {
    magic: NVGPU_CTXSW_IOCTL_MAGIC as u8,
    last: PerRelease::same(NVGPU_CTXSW_IOCTL_LAST),
    max_arg: PerRelease::same(NVGPU_CTXSW_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_CTXSW_IOCTL_TRACE_ENABLE => enable;
        ALL NVGPU_CTXSW_IOCTL_TRACE_DISABLE => disable;
        ALL NVGPU_CTXSW_IOCTL_RING_SETUP => ring_setup;
        ALL NVGPU_CTXSW_IOCTL_SET_FILTER => set_filter;
        ALL NVGPU_CTXSW_IOCTL_GET_FILTER => get_filter;
        ALL NVGPU_CTXSW_IOCTL_POLL => poll;
    },
};

/// The largest size of the ring in bytes.
pub(crate) const MAX_RING: u64 = 128 * PAGE;
const PAGE: u64 = 4096;
const HEADER: u64 = size_of::<nvgpu_ctxsw_ring_header>() as u64;
const ENTRY: u64 = size_of::<nvgpu_ctxsw_trace_entry>() as u64;
/// The number of entries with which a node is opened: the records of the engine's own ring times the time stamps of one
/// record.
const DEFAULT_ENTRIES: u64 = 1024 * 13;
/// The number of bytes of the filter that the driver copies. The filter has 256 bits, but the driver copies 4 bytes.
const FILTER_BYTES: usize = NVGPU_CTXSW_FILTER_SIZE.div_ceil(64) as usize;

/// Offsets of words in the ring's header, in bytes.
const NUM_ENTS: usize = 8;
const DROP_COUNT: usize = 16;
const WRITE_SEQNO: usize = 20;
const WRITE_IDX: usize = 24;
const READ_IDX: usize = 28;

/// The open node.
#[derive(Debug)]
pub(super) struct TraceFile {
    ring: Backing,
    file: FileId,
    state: Mutex<RingSettings>,
    scheduling: Arc<Scheduling>,
}

impl OpenFile for TraceFile {
    fn node(&self) -> Option<Node> {
        Some(Node::Ctxsw)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn check_mmap(&self, _: &Call<'_>, asked: &Mmap) -> Result<(), Errno> {
        if asked.offset == 0 && asked.len as u64 <= self.size() { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

/// The reader's settings of the ring.
#[derive(Debug)]
struct RingSettings {
    size: u64,
    enabled: bool,
    filter: [u8; 32],
}

impl RingSettings {
    /// The number of entries for which the ring has room.
    fn entries(&self) -> u32 {
        (self.size.saturating_sub(HEADER) / ENTRY) as u32
    }
}

/// The only reader that there may be.
#[derive(Debug, Default)]
pub(super) struct Tracer(Mutex<Weak<TraceFile>>);

impl Tracer {
    /// Opens the node. Its file is the ring. The error is `EBUSY` while the node is open.
    pub(super) fn open(&self, files: &Files, scheduling: &Arc<Scheduling>) -> Result<OwnedFd, Errno> {
        let mut reader = self.0.lock();
        if reader.strong_count() > 0 {
            return Err(Errno::EBUSY);
        }
        let fd = memfd::create("nvhost-ctxsw", MAX_RING)?;
        let ring = Backing::from_memfd(memfd::stow(memfd::duplicate(&fd)?)?, MAX_RING as usize)?;
        let state = RingSettings { size: 0, enabled: false, filter: [0xff; 32] };
        let file = FileId::of(&fd)?;
        let trace = Arc::new(TraceFile { ring, file, state: Mutex::new(state), scheduling: scheduling.clone() });
        trace.resize(&mut trace.state.lock(), HEADER + DEFAULT_ENTRIES * ENTRY)?;
        *reader = Arc::downgrade(&trace);
        files.board.hw.switches.log_to(&trace);
        files.enter(file, trace);
        Ok(fd)
    }
}

impl TraceFile {
    /// The number of bytes that can be mapped.
    fn size(&self) -> u64 {
        self.state.lock().size
    }

    fn resize(&self, state: &mut RingSettings, size: u64) -> Result<(), Errno> {
        state.size = size.next_multiple_of(PAGE);
        let header = nvgpu_ctxsw_ring_header {
            magic: NVGPU_CTXSW_RING_HEADER_MAGIC,
            version: NVGPU_CTXSW_RING_HEADER_VERSION,
            num_ents: state.entries(),
            ent_size: ENTRY as u32,
            drop_count: 0,
            write_seqno: 0,
            write_idx: 0,
            read_idx: 0,
        };
        if self.ring.write(0, header.as_bytes()) { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Appends an entry unless the filter excludes it. If there is no room, the entry is counted as dropped.
    fn put(&self, state: &RingSettings, tag: u32, group: u32, time_ns: u64) {
        let seqno = self.ring.fetch_add_u32(WRITE_SEQNO, 1).unwrap_or(0);
        // The reader may write anything into the header.
        let word = |at| self.ring.load_u32(at).unwrap_or(0);
        let (read, write, entries) = (word(READ_IDX), word(WRITE_IDX), word(NUM_ENTS));
        let held = state.entries();
        if entries != held || write >= held || (write + 1) % held == read {
            self.ring.fetch_add_u32(DROP_COUNT, 1);
            return;
        }
        if state.filter[tag as usize / 8] >> (tag % 8) & 1 == 0 {
            return;
        }
        let entry = nvgpu_ctxsw_trace_entry {
            tag: tag as u8,
            vmid: 0,
            seqno: seqno as u16,
            context_id: group,
            pid: self.scheduling.owner(group).unwrap_or(0) as u64,
            timestamp: time_ns,
        };
        let inside = self.ring.write((HEADER + u64::from(write) * ENTRY) as usize, entry.as_bytes())
            && self.ring.store_u32(WRITE_IDX, (write + 1) % held);
        if !inside {
            self.ring.fetch_add_u32(DROP_COUNT, 1);
        }
    }
}

impl SwitchLog for TraceFile {
    fn switched(&self, from: Option<u32>, to: u32, time_ns: u64) {
        let state = self.state.lock();
        if !state.enabled {
            return;
        }
        if let Some(from) = from {
            self.put(&state, NVGPU_CTXSW_TAG_CTXSW_REQ_BY_HOST, from, time_ns);
            self.put(&state, NVGPU_CTXSW_TAG_SAVE_END, from, time_ns);
        }
        self.put(&state, NVGPU_CTXSW_TAG_RESTORE_START, to, time_ns);
        self.put(&state, NVGPU_CTXSW_TAG_CONTEXT_START, to, time_ns);
    }
}

fn enable(_: &Call<'_>, trace: &Arc<TraceFile>, _: &mut ()) -> Reply {
    trace.state.lock().enabled = true;
    Ok(())
}

fn disable(_: &Call<'_>, trace: &Arc<TraceFile>, _: &mut ()) -> Reply {
    trace.state.lock().enabled = false;
    Ok(())
}

/// Makes a new ring. The error is `EINVAL` for a ring that is too large, and `EBUSY` while the ring is written or
/// mapped.
fn ring_setup(call: &Call<'_>, trace: &Arc<TraceFile>, args: &mut nvgpu_ctxsw_ring_setup_args) -> Reply {
    if u64::from(args.size) > MAX_RING {
        return Err(Errno::EINVAL.into());
    }
    let mut state = trace.state.lock();
    if state.enabled || call.process.maps(trace.file, trace.ring.as_ptr() as u64) {
        return Err(Errno::EBUSY.into());
    }
    trace.resize(&mut state, u64::from(args.size))?;
    args.size = state.size as u32;
    Ok(())
}

fn set_filter(_: &Call<'_>, trace: &Arc<TraceFile>, args: &mut nvgpu_ctxsw_trace_filter_args) -> Reply {
    let asked = args.filter.as_bytes();
    trace.state.lock().filter[..FILTER_BYTES].copy_from_slice(&asked[..FILTER_BYTES]);
    Ok(())
}

fn get_filter(_: &Call<'_>, trace: &Arc<TraceFile>, args: &mut nvgpu_ctxsw_trace_filter_args) -> Reply {
    let state = trace.state.lock();
    args.filter.as_mut_bytes()[..FILTER_BYTES].copy_from_slice(&state.filter[..FILTER_BYTES]);
    Ok(())
}

/// Fetches the entries that the engine has buffered. There are never any, because entries are written when switches
/// happen.
fn poll(_: &Call<'_>, _: &Arc<TraceFile>, _: &mut ()) -> Reply {
    Ok(())
}
