//! Files that stand for the files of a recording. They are real files with as much memory as the recording mapped.

use crate::Errno;
use crate::entry::Call;
use crate::written::Written;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_output::say;

/// The largest size in which the doorbell page of the ctrl node is mapped.
pub(crate) const DOORBELL_WINDOW: u64 = 64 << 10;

/// Makes a stand-in at least as long as the part of it that the program maps. A recording that somebody has altered, or a
/// program whose sizes differ, can map more than was recorded; memory after the end of a file ends the program.
///
/// # Errors
/// The errno of asking for the size or of changing it.
pub(crate) fn reach(fd: BorrowedFd<'_>, offset: u64, len: usize) -> Result<(), Errno> {
    let end = offset.checked_add(len as u64).and_then(|end| i64::try_from(end).ok()).ok_or(Errno::EINVAL)?;
    if nix::sys::stat::fstat(fd)?.st_size < end {
        nix::unistd::ftruncate(fd, end)?;
    }
    Ok(())
}

/// The files, and the memory behind them that a replay writes.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    sizes: HashMap<String, u64>,
    /// The memory of buffers, by label, and by nvmap handle: descriptors of one handle share it.
    memory: HashMap<String, Arc<OwnedFd>>,
    by_handle: HashMap<u64, Arc<OwnedFd>>,
}

impl StandIns {
    /// Notes the sizes of a call's files. A stand-in must be as large as the file was, and as large as the parts of it
    /// that were mapped.
    pub(crate) fn note_sizes(&mut self, call: &Call) {
        let mut at_least = |label: &str, size: u64| {
            let known = self.sizes.entry(label.to_owned()).or_insert(0);
            *known = size.max(*known);
        };
        match call {
            Call::Open { path, result: Ok(made) } => {
                at_least(&made.label, made.size);
                if path.ends_with("/ctrl") {
                    at_least(&made.label, DOORBELL_WINDOW);
                }
            }
            Call::Ioctl(i) => i.made.iter().for_each(|made| at_least(&made.label, made.size)),
            Call::Mmap { on, len, offset, result: Ok(()), .. } => at_least(on, offset.saturating_add(*len as u64)),
            _ => {}
        }
    }

    /// Makes a file that stands for the recording's `label`.
    pub(crate) fn make(&self, label: &str) -> Result<OwnedFd, Errno> {
        let fd = memfd_create(label, MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, self.sizes.get(label).copied().unwrap_or(0) as i64)?;
        Ok(fd)
    }

    /// Makes a descriptor of an nvmap handle. Descriptors of one handle show the same memory.
    pub(crate) fn make_of(&mut self, handle: u64, label: &str) -> Result<OwnedFd, Errno> {
        let memory = match self.by_handle.get(&handle) {
            Some(memory) => memory.clone(),
            None => Arc::new(self.make(label)?),
        };
        let fd = memory.try_clone().map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EMFILE)))?;
        self.by_handle.insert(handle, memory.clone());
        self.memory.insert(label.to_owned(), memory);
        Ok(fd)
    }

    /// Notes that an nvmap handle was freed. The same number may be used again.
    pub(crate) fn freed(&mut self, handle: u64) {
        if let Some(memory) = self.by_handle.remove(&handle) {
            self.memory.retain(|_, other| !Arc::ptr_eq(other, &memory));
        }
    }

    /// Writes to the memory what the GPU wrote.
    pub(crate) fn show(&self, written: &Written) {
        for run in &written.runs {
            let Some(memory) = self.memory.get(&run.on) else { continue };
            // This write succeeds, because the file is in memory and is as large as the recording says.
            if let Err(e) = nix::sys::uio::pwrite(memory, &run.bytes, run.offset as i64) {
                tracing::error!(target: "tegrarm::kmd", "{} at {:#x}: {e}", run.on, run.offset);
            }
        }
        if written.cut {
            say(
                "the recording left out some of what the GPU wrote, because it was more than 16 MiB: results will differ",
            );
        }
    }
}
