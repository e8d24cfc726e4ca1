//! Events: points in the work of a queue, and the GPU's time when it reached them.

use crate::runtime::channel::stamps::Stamp;
use crate::runtime::device::Device;
use crate::runtime::device::queue::{Queue, split};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use tegrarm_abi::rm::ctrl_2080::{NV2080_CTRL_CMD_TIMER_GET_TIME, NV2080_CTRL_TIMER_GET_TIME_PARAMS};
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::{During, RmResult, fail};
use zerocopy::FromZeros;

/// An event, which can be set again and again.
pub struct Event {
    device: Arc<Device>,
    at: Mutex<Point>,
}

/// The place at which an event was set last.
struct Point {
    stamp: Stamp,
    fence: Option<u64>,
}

impl Event {
    /// Makes an event that is not set.
    ///
    /// # Errors
    /// An error that RM gives if there is no memory.
    pub fn new(device: &Arc<Device>) -> RmResult<Arc<Event>> {
        let stamp = device.with_retry(|| device.stamps().take(|fence| device.has_passed(fence)))?;
        Ok(Arc::new(Event { device: device.clone(), at: Mutex::new(Point { stamp, fence: None }) }))
    }

    /// The device that the event belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Sets the event after all work that a queue of its device has so far. Returns the fence.
    ///
    /// # Errors
    /// The channel's fault, `NV_ERR_TIMEOUT` if the ring stays full, and an error that RM gives if there is no memory.
    pub fn record(&self, queue: &Queue) -> RmResult<u64> {
        let mut at = self.at.lock();
        // Another queue may not have reached the event's earlier place yet, and would write its time to the same
        // memory.
        if at.fence.is_some_and(|fence| split(fence).0 != queue.number() && !self.device.has_passed(fence)) {
            at.stamp = self.device.stamps().take(|fence| self.device.has_passed(fence))?;
        }
        let place = at.stamp.va();
        let submission = queue.submit(|commands| {
            commands.stamp(place, 0);
        })?;
        let fence = queue.fence_of(submission);
        at.stamp.written_by(fence);
        at.fence = Some(fence);
        Ok(fence)
    }

    /// The time at which the GPU reached the event, in nanoseconds of its clock.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if the event was never set, `NV_ERR_NOT_READY` if the GPU has not reached it yet, and the
    /// channel's fault.
    pub fn time(&self) -> RmResult<u64> {
        let at = self.at.lock();
        let Some(fence) = at.fence else { fail!(NV_ERR_INVALID_STATE, "the event was never recorded") };
        if !self.device.query(fence)? {
            fail!(NV_ERR_NOT_READY, "the GPU has not reached the event: wait for its fence, {fence:#x}, first");
        }
        Ok(at.stamp.time())
    }
}

/// The values of two clocks at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correlation {
    /// The GPU's clock in nanoseconds.
    pub gpu: u64,
    /// CLOCK_MONOTONIC at about the same time, in nanoseconds.
    pub cpu: u64,
    /// The largest error of that relation, in both directions.
    pub off: u64,
}

/// The number of times that the clocks are read. The reading that took the shortest time is used.
const LOOKS: usize = 8;

impl Device {
    /// The values of the GPU's clock and of CLOCK_MONOTONIC at the same time.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn time(&self) -> RmResult<Correlation> {
        let mut best = self.look_at_clocks()?;
        for _ in 1..LOOKS {
            let found = self.look_at_clocks()?;
            if found.off < best.off {
                best = found;
            }
        }
        Ok(best)
    }

    fn look_at_clocks(&self) -> RmResult<Correlation> {
        let mut p = NV2080_CTRL_TIMER_GET_TIME_PARAMS::new_zeroed();
        let before = monotonic()?;
        self.session().control(self.session().subdevice, NV2080_CTRL_CMD_TIMER_GET_TIME, &mut p)?;
        let took = monotonic()? - before;
        Ok(Correlation { gpu: p.time_nsec, cpu: before + took / 2, off: took.div_ceil(2) })
    }
}

fn monotonic() -> RmResult<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|errno| {
        let text = format!("reading CLOCK_MONOTONIC: {errno}");
        tegrarm_rm::status::RmError::new(NV_ERR_OPERATING_SYSTEM, text)
    });
    now.during(|| "looking at the clocks").map(|now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
