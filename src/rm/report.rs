//! What frontends asked for and did not get.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Something that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// A class.
    Class(u32),
    /// A control.
    Control(u32),
}

/// Refusals, counted; each is logged the first time.
#[derive(Debug, Default)]
pub struct Report {
    refused: Mutex<BTreeMap<Asked, u64>>,
}

impl Report {
    /// Counts a refusal and logs the first one of its kind.
    #[cold]
    pub fn refuse(&self, what: Asked, name: &str, why: &str) {
        let mut refused = self.refused.lock();
        let count = refused.entry(what).or_insert(0);
        *count += 1;
        if *count == 1 {
            match what {
                Asked::Class(n) => tracing::warn!("class {n:#x} ({name}) refused: {why}"),
                Asked::Control(n) => tracing::warn!("control {n:#x} ({name}) refused: {why}"),
            }
        }
    }

    /// Everything refused so far, with counts.
    pub fn refused(&self) -> Vec<(Asked, u64)> {
        self.refused.lock().iter().map(|(k, v)| (*k, *v)).collect()
    }
}
