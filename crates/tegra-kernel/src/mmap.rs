//! The rules for mapping the kernel's files (docs/hardware/nvmap.md#dmabuf-mmap,
//! docs/hardware/nvgpu-ctrl.md#doorbell-page).

use super::Kernel;
use super::ctrl::DOORBELL_SIZE;
use super::ctrl_fifo::QUEUE_SIZE;
use super::files::Object;
use crate::process::Process;
use crate::rule::{self, Because};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::nvmap::NVMAP_HEAP_CARVEOUT_VPR;
use tegrarm_kmd::Errno;

impl Kernel {
    /// The address at which the kernel itself has mapped the memory behind one of the caller's descriptors. This
    /// matters when the caller is this process, because the two share an address space then.
    pub fn own_view(&self, process: &dyn Process, fd: RawFd) -> Option<usize> {
        rule::forget();
        match self.object(process, fd).ok()? {
            Object::Ctrl(ctrl) => Some(ctrl.doorbell.backing.as_ptr() as usize),
            Object::Dmabuf(buffer) => Some(buffer.pages().ok()?.as_ptr() as usize),
            _ => None,
        }
    }

    /// Checks an `mmap(2)` of one of the caller's descriptors. The caller makes the mapping itself, because the
    /// kernel's files are real files.
    ///
    /// # Errors
    /// The errno that a board gives.
    pub fn check_mmap(
        self: &Arc<Self>,
        process: &dyn Process,
        fd: RawFd,
        len: usize,
        write: bool,
        offset: u64,
    ) -> Result<(), Errno> {
        match self.object(process, fd).map_err(|e| if e == Errno::EINVAL { Errno::ENODEV } else { e })? {
            Object::Ctrl(ctrl) => {
                if process.maps(ctrl.file, ctrl.doorbell.backing.as_ptr() as u64) {
                    return Err(Errno::EBUSY.because("the doorbell page is mapped once for each open of the ctrl node"));
                }
                let rule = "the doorbell page has 64 KiB, and is mapped from its start";
                if len > DOORBELL_SIZE || offset != 0 { Err(Errno::EINVAL.because(rule)) } else { Ok(()) }
            }
            Object::Dmabuf(buffer) => {
                if offset.checked_add(len as u64).is_none_or(|end| end > buffer.size) {
                    return Err(Errno::EINVAL.because("the range reaches beyond the end of the buffer"));
                }
                let none = || Errno::EPERM.because("the buffer has no memory yet (NVMAP_IOC_ALLOC)");
                let allocation = buffer.allocation().ok_or_else(none)?;
                let forbidden = allocation.heap == NVMAP_HEAP_CARVEOUT_VPR || (write && buffer.read_only());
                if forbidden {
                    return Err(Errno::EPERM.because("the buffer is protected memory, or read-only"));
                }
                if write && process.read_only(fd) { Err(Errno::EACCES) } else { Ok(()) }
            }
            Object::Queue(_) if offset != 0 || len > QUEUE_SIZE => Err(Errno::EINVAL),
            Object::Queue(_) if write && process.read_only(fd) => Err(Errno::EACCES),
            Object::Queue(_) => Ok(()),
            Object::Ctxsw(trace) if offset == 0 && len as u64 <= trace.size() => Ok(()),
            Object::Ctxsw(_) => Err(Errno::EINVAL),
            Object::Nvmap(_) => {
                Err(Errno::EPERM.because("buffers are mapped through their dmabufs (NVMAP_IOC_GET_FD)"))
            }
            _ => Err(Errno::ENODEV),
        }
    }
}
