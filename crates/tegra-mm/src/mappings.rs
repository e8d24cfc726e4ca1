//! How many mappings of this process back buffers. Linux gives a process a number of mappings, and ends up refusing the stacks
//! of its threads. So the last part of them is not for buffers.

use nix::errno::Errno;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicUsize, Ordering};

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The number of mappings that Linux gives a process if it does not say it.
const USUAL: usize = 65_530;

/// One mapping of the budget. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share(());

impl Share {
    /// Takes one.
    ///
    /// # Errors
    /// `ENOMEM` when seven eighths of what Linux gives a process are taken.
    pub(crate) fn take() -> Result<Share, Errno> {
        if TAKEN.fetch_add(1, Ordering::Relaxed) < most() {
            return Ok(Share(()));
        }
        TAKEN.fetch_sub(1, Ordering::Relaxed);
        tracing::warn!(
            "{} buffers are mapped, which is seven eighths of vm.max_map_count: ENOMEM for one more",
            most()
        );
        Err(Errno::ENOMEM)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of mappings of this process that buffers may have.
pub fn most() -> usize {
    static MAPPINGS: OnceBox<usize> = OnceBox::new();
    *MAPPINGS.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
        Box::new(text.trim().parse().unwrap_or(USUAL) / 8 * 7)
    })
}
