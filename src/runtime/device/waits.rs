//! Waits for several fences, and notifications about one fence.

use crate::runtime::channel::backoff::Backoff;
use crate::runtime::device::Device;
use crate::runtime::memory::place::Place;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Kmd;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// How long a wait for a word looks in a loop before it sleeps, and how often it looks before it reads the clock.
const LOOKING: Duration = Duration::from_millis(1);
const LOOKS: u32 = 64;

/// Waits until a word that the GPU writes is at least `value`. `kmd` is the kernel of the GPU, if it is known.
///
/// # Errors
/// `NV_ERR_TIMEOUT`, and `NV_ERR_NOT_SUPPORTED` if the GPU will never write it.
pub fn wait_for_word(kmd: Option<&dyn Kmd>, word: &Place, value: u64, deadline: Option<Duration>) -> RmResult<()> {
    let progress = || kmd.and_then(Kmd::progress);
    let mut backoff = Backoff::new(deadline);
    loop {
        let seen = progress();
        let worked = kmd.is_some_and(Kmd::step);
        let mut found = word.read_u64();
        for _ in 0..if seen.is_none() { LOOKS } else { 0 } {
            if found >= value {
                break;
            }
            std::hint::spin_loop();
            found = word.read_u64();
        }
        if found >= value {
            return Ok(());
        }
        if let Some(why) = kmd.and_then(Kmd::waits_in_vain) {
            fail!(NV_ERR_NOT_SUPPORTED, "{why}");
        }
        if backoff.is_over() {
            let waited = backoff.waited();
            fail!(NV_ERR_TIMEOUT, "the word is {found} after {waited:?}, wanted {value}");
        }
        match kmd {
            _ if worked || seen.is_none() && backoff.waited() < LOOKING => {}
            Some(kmd) => backoff.rest(kmd, seen),
            None => std::thread::sleep(backoff.next_sleep()),
        }
    }
}

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
            let kmd = self.rm().kmd();
            let (seen, mut failure) = (kmd.progress(), None);
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
            backoff.rest(&**kmd, seen);
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
