//! Fences as files: what SUBMIT_GPFIFO gives and takes with SYNC_FENCE (nvgpu-rules §7.10).

use crate::kernel::dispatch::Call;
use crate::kernel::event::EventFd;
use crate::kernel::files::Object;
use crate::kernel::hw::{Expectation, Syncpoint};
use crate::process::FileId;
use std::os::fd::RawFd;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::channel::nvgpu_fence;
use tegrarm_kmd::Errno;

/// A fence with a descriptor that becomes readable when the syncpoint has reached a value. Its channel's end lets it
/// pass.
#[derive(Debug)]
pub(in crate::kernel) struct SyncFile {
    point: Weak<Syncpoint>,
    value: u32,
    event: EventFd,
}

impl SyncFile {
    /// A new one, in the caller's descriptor table.
    pub(super) fn install(call: &Call<'_>, point: &Arc<Syncpoint>, value: u32) -> Result<RawFd, Errno> {
        let (event, fd) = EventFd::new(0)?;
        let file = Arc::new(SyncFile { point: Arc::downgrade(point), value, event });
        call.kernel.enter(FileId::of(&fd)?, Object::SyncFile(file.clone()));
        call.kernel.interrupts.expect(&file);
        call.process.install(fd)
    }

    /// The fence behind a descriptor of the caller; `None` when it has passed. `EINVAL` for anything else.
    pub(super) fn pending(call: &Call<'_>, fd: RawFd) -> Result<Option<nvgpu_fence>, Errno> {
        let Ok(Object::SyncFile(file)) = call.kernel.object(call.process, fd) else { return Err(Errno::EINVAL) };
        Ok(file.open_fence())
    }

    fn open_fence(&self) -> Option<nvgpu_fence> {
        let point = self.point.upgrade()?;
        let reached = point.value().wrapping_sub(self.value).cast_signed() >= 0;
        (!reached).then_some(nvgpu_fence { id: point.id, value: self.value })
    }
}

impl Expectation for SyncFile {
    fn met(&self) -> bool {
        let passed = self.open_fence().is_none();
        if passed {
            self.event.post();
        }
        passed
    }
}
