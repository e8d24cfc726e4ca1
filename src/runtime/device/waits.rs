//! Waits for several fences, and notifications about one fence.

use crate::runtime::channel::backoff::Backoff;
use crate::runtime::device::Device;
use crate::status::{RmError, RmResult, fail};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tegrarm_abi::rm::status::*;

impl Device {
    /// Waits until all fences have passed.
    ///
    /// # Errors
    /// Those of [`Device::wait`], for the first fence in the list that fails.
    pub fn wait_all(&self, fences: &[u64], deadline: Option<Duration>) -> RmResult<()> {
        let backoff = Backoff::new(deadline);
        fences.iter().try_for_each(|fence| self.wait(*fence, backoff.left()))
    }

    /// Waits until one of the fences has passed. Returns its index in the list. If there are several, it is the first
    /// one.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for an empty list and for a fence that was never given out, a fault if no fence has
    /// passed, and `NV_ERR_TIMEOUT`.
    pub fn wait_any(&self, fences: &[u64], deadline: Option<Duration>) -> RmResult<usize> {
        if fences.is_empty() {
            fail!(NV_ERR_INVALID_ARGUMENT, "no fence to wait for");
        }
        let mut backoff = Backoff::new(deadline);
        loop {
            let mut failure = None;
            for (at, fence) in fences.iter().enumerate() {
                match self.query(*fence) {
                    Ok(true) => {
                        self.report_finished();
                        return Ok(at);
                    }
                    Ok(false) => {}
                    Err(e) => failure = failure.or(Some(e)),
                }
            }
            if let Some(e) = failure {
                return Err(e);
            }
            if backoff.is_over() {
                let (count, waited) = (fences.len(), backoff.waited());
                fail!(NV_ERR_TIMEOUT, "none of {count} fences has passed after {waited:?}");
            }
            std::thread::sleep(backoff.next_sleep());
        }
    }

    /// Makes a thread of the device call `tell` when a fence has passed or cannot pass any more.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a fence that was never given out, and `NV_ERR_INSUFFICIENT_RESOURCES` if the
    /// system gives no thread.
    pub fn notify(&self, fence: u64, tell: impl FnOnce(RmResult<()>) + Send + 'static) -> RmResult<()> {
        let probe = self.probe(fence)?;
        self.notifier_thread().start()?;
        self.notifier_thread().when(probe, Box::new(tell));
        Ok(())
    }

    /// Makes a descriptor that becomes readable when a fence has passed or cannot pass any more.
    ///
    /// # Errors
    /// Those of [`Device::notify`], and `NV_ERR_OPERATING_SYSTEM` if the process has no free descriptor.
    pub fn pollable(&self, fence: u64) -> RmResult<OwnedFd> {
        let failed = |errno| RmError::new(NV_ERR_OPERATING_SYSTEM, format!("making an eventfd: {errno}"));
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(failed)?;
        let fd: OwnedFd = event.into();
        let ours = fd.try_clone().map_err(|e| RmError::new(NV_ERR_OPERATING_SYSTEM, format!("an eventfd: {e}")))?;
        self.notify(fence, move |_| {
            // The first write to a counter that is 0 never fails.
            let _ = nix::unistd::write(&ours, &1u64.to_ne_bytes());
        })?;
        Ok(fd)
    }
}
