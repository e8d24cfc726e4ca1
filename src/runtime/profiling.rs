//! Who is told what a device did, and when.

use super::lane::Lane;
use super::profile::Record;
use crate::status::{RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_abi::rm::status::*;

/// Who is told.
pub type Report = dyn Fn(&Record) + Send + Sync;

/// Nobody, or somebody.
#[derive(Default)]
pub struct Profiling {
    /// Whether there is somebody: what waits look at.
    on: AtomicBool,
    report: Mutex<Option<Arc<Report>>>,
}

impl Profiling {
    /// From now on somebody is told.
    ///
    /// # Errors
    /// 0x63 when somebody is told already.
    pub fn start(&self, report: Arc<Report>) -> RmResult<()> {
        let mut now = self.report.lock();
        if now.is_some() {
            fail!(NV_ERR_STATE_IN_USE, "the device is profiled already: call tegrarm_profile_stop first");
        }
        *now = Some(report);
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether somebody is told.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Whether somebody is told.
    ///
    /// # Errors
    /// 0x40 when nobody is.
    pub fn check_on(&self) -> RmResult<()> {
        if !self.is_on() {
            fail!(NV_ERR_INVALID_STATE, "the device is not profiled: tegrarm_profile_start was not called");
        }
        Ok(())
    }

    /// From now on nobody is told.
    ///
    /// # Errors
    /// 0x40 when nobody is told already.
    pub fn stop(&self) -> RmResult<()> {
        let last = self.report.lock().take();
        if last.is_none() {
            return self.check_on();
        }
        self.on.store(false, Ordering::Release);
        Ok(())
    }

    /// Tells what a queue has finished since the last time. No lock is held meanwhile, so that who is told may use the device.
    pub fn deliver(&self, lane: &Lane) {
        let Some(report) = self.report.lock().clone() else { return };
        for record in lane.recorded() {
            report(&record);
        }
    }
}
