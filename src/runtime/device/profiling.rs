//! Profiles of a device: the receiver of its records, and the delivery.

use crate::runtime::channel::profile::Record;
use crate::runtime::device::queue::Queue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::{RmResult, fail};

/// The function that gets the records.
pub type Report = dyn Fn(&Record) + Send + Sync;

/// The receiver, if there is one.
#[derive(Default)]
pub struct Profiling {
    /// Whether there is a receiver. Waits read this.
    on: AtomicBool,
    report: Mutex<Option<Arc<Report>>>,
}

impl Profiling {
    /// Sets the receiver.
    ///
    /// # Errors
    /// `NV_ERR_STATE_IN_USE` if there is one already.
    pub fn start(&self, report: Arc<Report>) -> RmResult<()> {
        let mut now = self.report.lock();
        if now.is_some() {
            fail!(NV_ERR_STATE_IN_USE, "the device is profiled already: call tegrarm_profile_stop first");
        }
        *now = Some(report);
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether there is a receiver.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Checks that there is a receiver.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if there is none.
    pub fn check_on(&self) -> RmResult<()> {
        if !self.is_on() {
            fail!(NV_ERR_INVALID_STATE, "the device is not profiled: tegrarm_profile_start was not called");
        }
        Ok(())
    }

    /// Removes the receiver.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if there is none.
    pub fn stop(&self) -> RmResult<()> {
        let last = self.report.lock().take();
        if last.is_none() {
            return self.check_on();
        }
        self.on.store(false, Ordering::Release);
        Ok(())
    }

    /// Delivers the work that a queue has finished since the last time. No lock is held meanwhile, so that the receiver
    /// may use the device.
    pub fn deliver(&self, queue: &Queue) {
        let Some(report) = self.report.lock().clone() else { return };
        for record in queue.recorded() {
            report(&record);
        }
    }
}
