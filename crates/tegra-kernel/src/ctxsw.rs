//! The context switch trace node: a ring of time stamps, mapped by one reader.
//!
//! The rules file names it only; what its ioctls do is nvgpu's `os/linux/fecs_trace_linux.c`. A switch is four entries:
//! the host's request and the end of saving, of the group that had the engine; the start of restoring and of the
//! context, of the one that gets it. The entries' context id is the group's id.

use super::Kernel;
use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::Object;
use super::sched::Scheduling;
use crate::process::FileId;
use crate::release::PerRelease;
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use tegra_hw::SwitchLog;
use tegra_mm::{Backing, memfd};
use tegrarm_abi::nvgpu::ctxsw::*;
use tegrarm_kmd::Errno;
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

/// Largest ring, bytes.
pub(super) const MAX_RING: u64 = 128 * PAGE;
const PAGE: u64 = 4096;
const HEADER: u64 = size_of::<nvgpu_ctxsw_ring_header>() as u64;
const ENTRY: u64 = size_of::<nvgpu_ctxsw_trace_entry>() as u64;
/// Records of the engine's own ring times the time stamps of one: the size an open begins with.
const DEFAULT_ENTRIES: u64 = 1024 * 13;
/// Bytes of the filter that the driver copies (it means 256 bits and copies 4 bytes' worth of words).
const FILTER_BYTES: usize = NVGPU_CTXSW_FILTER_SIZE.div_ceil(64) as usize;

/// Words of the ring's header, in bytes.
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

/// What the reader has asked of the ring.
#[derive(Debug)]
struct RingSettings {
    size: u64,
    enabled: bool,
    filter: [u8; 32],
}

impl RingSettings {
    /// Entries that the ring has room for.
    fn entries(&self) -> u32 {
        (self.size.saturating_sub(HEADER) / ENTRY) as u32
    }
}

/// The one reader there may be.
#[derive(Debug, Default)]
pub(super) struct Tracer(Mutex<Weak<TraceFile>>);

impl Tracer {
    /// Opens the node: its file is the ring. `EBUSY` while it is open.
    pub(super) fn open(&self, kernel: &Arc<Kernel>) -> Result<OwnedFd, Errno> {
        let mut reader = self.0.lock();
        if reader.strong_count() > 0 {
            return Err(Errno::EBUSY);
        }
        let fd = memfd::create("nvhost-ctxsw", MAX_RING)?;
        let ring = Backing::from_memfd(memfd::stow(memfd::duplicate(&fd)?)?, MAX_RING as usize)?;
        let state = RingSettings { size: 0, enabled: false, filter: [0xff; 32] };
        let file = FileId::of(&fd)?;
        let trace = Arc::new(TraceFile { ring, file, state: Mutex::new(state), scheduling: kernel.scheduling.clone() });
        trace.resize(&mut trace.state.lock(), HEADER + DEFAULT_ENTRIES * ENTRY)?;
        *reader = Arc::downgrade(&trace);
        kernel.hw.switches.log_to(&trace);
        kernel.enter(file, Object::Ctxsw(trace));
        Ok(fd)
    }
}

impl TraceFile {
    /// Bytes that can be mapped.
    pub(super) fn size(&self) -> u64 {
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

    /// Appends an entry, unless the filter keeps it out; counts it as dropped when there is no room.
    fn put(&self, state: &RingSettings, tag: u32, group: u32, time_ns: u64) {
        let seqno = self.ring.fetch_add_u32(WRITE_SEQNO, 1).unwrap_or(0);
        // The header is the reader's to scribble on.
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

/// A new ring: `EINVAL` when too large, `EBUSY` while it is written or mapped.
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

/// Fetches what the engine has buffered: nothing, entries are written when they happen.
fn poll(_: &Call<'_>, _: &Arc<TraceFile>, _: &mut ()) -> Reply {
    Ok(())
}
