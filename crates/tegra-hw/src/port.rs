//! The requests of the kernel to the GPU.

use crate::{HwChannel, HwTsg, Place};
use std::io;
use std::sync::Arc;

/// The requests of the kernel to the GPU.
pub trait GpuPort: Send + Sync + std::fmt::Debug {
    /// Puts a channel on the runlist.
    ///
    /// # Errors
    /// The reason why the GPU cannot run the channel: the system gives it no thread. The channel is not on the runlist
    /// then.
    fn add_channel(&self, channel: Arc<HwChannel>) -> io::Result<()>;

    /// Removes a channel from the runlist. When the call returns, the GPU uses nothing of the channel any more.
    fn remove_channel(&self, id: u32);

    /// Forgets a group that has ended; its channels have ended before. The state that the engines keep for its
    /// subcontexts is dropped, and another group may get its id from now on.
    fn forget_group(&self, id: u32);

    /// Watches a doorbell page. A work submit token that is stored at offset 0x90 schedules its channel.
    fn watch_doorbell(&self, page: Place);

    /// Stops watching a page. When the call returns, the GPU does not use the page any more.
    fn unwatch_doorbell(&self, page: &Place);

    /// Schedules a channel as its doorbell would, for kernel-mode submit, H.ENABLE and T.ENABLE.
    fn ring(&self, id: u32);

    /// Stops everything that runs for the group, and returns when it has stopped (FORCE_RESET and recovery). The kernel
    /// calls this after every channel of the group became unserviceable.
    fn reset(&self, tsg: &HwTsg);

    /// Waits until nothing of the group executes (preempt), but not for ever. Its channels may run again right after. The result is false
    /// if something still executes.
    #[must_use]
    fn preempt(&self, tsg: &HwTsg) -> bool;

    /// The GPU's time (PTIMER) in nanoseconds.
    fn time_ns(&self) -> u64;
}
