//! What the kernel asks of the GPU.

use crate::{HwChannel, HwTsg, Place};
use std::io;
use std::sync::Arc;

/// What the kernel asks of the GPU.
pub trait GpuPort: Send + Sync + std::fmt::Debug {
    /// A channel is on the runlist from now on.
    ///
    /// # Errors
    /// Why the GPU cannot run: the system gives it no thread. The channel is not on the runlist then.
    fn add_channel(&self, channel: Arc<HwChannel>) -> io::Result<()>;

    /// The channel leaves the runlist. Returns when the GPU touches nothing of it any more.
    fn remove_channel(&self, id: u32);

    /// A group has ended, its channels before it. What the engines keep for its subcontexts ends with it, and its id may
    /// name another group from now on.
    fn forget_group(&self, id: u32);

    /// Watches a doorbell page: a channel's work submit token stored at offset 0x90 schedules it.
    fn watch_doorbell(&self, page: Place);

    /// Stops watching a page. Returns when the GPU touches it no more.
    fn unwatch_doorbell(&self, page: &Place);

    /// Schedules a channel as its doorbell would (kernel-mode submit, H.ENABLE, T.ENABLE).
    fn ring(&self, id: u32);

    /// Stops whatever runs for the group and returns when it has stopped (FORCE_RESET, recovery). Called after
    /// every channel of the group became unserviceable.
    fn reset(&self, tsg: &HwTsg);

    /// Waits until nothing of the group executes (preempt). Its channels may run again right after.
    fn preempt(&self, tsg: &HwTsg);

    /// The GPU's time (PTIMER), nanoseconds.
    fn time_ns(&self) -> u64;
}
