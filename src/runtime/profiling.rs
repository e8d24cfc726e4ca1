//! Who is told what a device did, and when.

use super::base::Base;
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
    /// 0x63 when somebody is told already; what RM says when it is asked for memory.
    pub fn start(&self, base: &Base, lane: &Lane, report: Arc<Report>) -> RmResult<()> {
        let mut now = self.report.lock();
        if now.is_some() {
            fail!(NV_ERR_STATE_IN_USE, "the device is profiled already: call tegrarm_profile_stop first");
        }
        lane.record(base, true)?;
        *now = Some(report);
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether somebody is told.
    ///
    /// # Errors
    /// 0x40 when nobody is.
    pub fn check_on(&self) -> RmResult<()> {
        if !self.on.load(Ordering::Acquire) {
            fail!(NV_ERR_INVALID_STATE, "the device is not profiled: tegrarm_profile_start was not called");
        }
        Ok(())
    }

    /// Tells the last of it. From now on nobody is told.
    ///
    /// # Errors
    /// 0x40 when nobody is told already.
    pub fn stop(&self, base: &Base, lane: &Lane) -> RmResult<()> {
        self.deliver(lane);
        let last = self.report.lock().take();
        self.on.store(false, Ordering::Release);
        lane.record(base, false)?;
        match last {
            Some(_) => Ok(()),
            None => self.check_on(),
        }
    }

    /// Tells what has finished since the last time. No lock is held meanwhile, so that who is told may use the device.
    pub fn deliver(&self, lane: &Lane) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let Some(report) = self.report.lock().clone() else { return };
        for record in lane.recorded() {
            report(&record);
        }
    }
}
