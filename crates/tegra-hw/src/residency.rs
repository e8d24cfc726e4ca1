//! Remembers whose context the graphics engine holds.

use std::sync::atomic::{AtomicU32, Ordering};

/// The group whose context the graphics engine holds. It is the group that used the engine last.
#[derive(Debug, Default)]
pub struct Residency {
    /// The group's id plus one. 0 means no group.
    id_plus_one: AtomicU32,
}

impl Residency {
    /// Notes that group `id` has used the engine. The engine holds the context of this group until another group uses
    /// it.
    pub fn used_by(&self, id: u32) {
        // Every turn of a channel comes here. A plain load is cheap and a store is not, so the store is made only if it
        // changes something.
        if self.id_plus_one.load(Ordering::Relaxed) != id + 1 {
            self.id_plus_one.store(id + 1, Ordering::Relaxed);
        }
    }

    /// The group whose context the engine holds.
    pub fn group(&self) -> Option<u32> {
        self.id_plus_one.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes that a group has ended, and its context with it. The context of another group stays.
    pub fn forget(&self, id: u32) {
        // An error means that the engine holds another group's context or none.
        self.id_plus_one.compare_exchange(id + 1, 0, Ordering::Relaxed, Ordering::Relaxed).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_stays_until_another_one_comes_or_its_group_ends() {
        let residency = Residency::default();
        assert_eq!(residency.group(), None);
        residency.used_by(0);
        residency.forget(1);
        assert_eq!(residency.group(), Some(0));
        residency.used_by(1);
        assert_eq!(residency.group(), Some(1));
        residency.forget(1);
        assert_eq!(residency.group(), None);
    }
}
