//! The state of the launch scheduler (SKED): which descriptors wait for which events, and which run next
//! (docs/hardware/gpu-compute-class.md#pcas-actions).
//!
//! A real SKED caches descriptors. Here a descriptor is read from memory again whenever it runs, which makes no
//! difference to a legal program. The scheduler remembers only what memory does not hold: dependence counters and
//! missing SCHEDULE actions.

use super::qmd::Qmd;
use std::collections::{BTreeMap, VecDeque};
use tegrarm_abi::methods::qmd::*;

/// A descriptor that was scheduled or counted but has not run yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    dependence: u32,
    /// The number of SCHEDULE actions that it still needs.
    schedules: u32,
    /// True if a copying action loaded it.
    copied: bool,
}

/// The scheduler's state for one context.
#[derive(Debug)]
pub(crate) struct Sked {
    held: BTreeMap<u64, Held>,
    /// The CWD reference counters.
    pub(crate) counters: [u32; 64],
    /// Whether check 18 is on.
    pub(crate) checks_l1: bool,
}

impl Default for Sked {
    fn default() -> Sked {
        Sked { held: BTreeMap::new(), counters: [0; 64], checks_l1: true }
    }
}

/// The effect of an action on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Counts one SCHEDULE. With `fresh`, the descriptor is loaded again first.
    Schedule { fresh: bool },
    /// Loads the descriptor and holds it until one more SCHEDULE.
    Hold,
    /// Counts the dependences down by one.
    Decrement,
    /// Counts the dependences up by one.
    Increment,
}

impl Sked {
    /// Drops every descriptor that is held (INVALIDATE_SKED_CACHES).
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }

    /// Drops one descriptor (the PCAS action INVALIDATE).
    pub(super) fn invalidate(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// Applies an action. Returns the launch if the descriptor runs now. The result is `None` if its dependence counter
    /// was zero already.
    pub(super) fn apply(&mut self, at: u64, qmd: &Qmd, action: Action) -> Option<Option<Scheduled>> {
        let copies = matches!(action, Action::Schedule { fresh: true } | Action::Hold);
        if copies {
            self.held.remove(&at);
        }
        let held = self.held.entry(at).or_insert(Held {
            dependence: qmd.field(DEPENDENCE_COUNTER) as u32,
            schedules: 1 + u32::from(qmd.flag(REQUIRE_SCHEDULING_PCAS)),
            copied: copies,
        });
        match action {
            Action::Schedule { .. } => held.schedules = held.schedules.saturating_sub(1),
            Action::Hold => held.schedules = 1,
            Action::Decrement => held.dependence = held.dependence.checked_sub(1)?,
            Action::Increment => held.dependence += 1,
        }
        // The purpose of the counter is that a descriptor runs when its last dependence is gone, although nobody has
        // scheduled it. A descriptor that asks for SCHEDULE still waits for it.
        let scheduled = held.schedules == 0 || action == Action::Decrement && !qmd.flag(REQUIRE_SCHEDULING_PCAS);
        if held.dependence != 0 || !scheduled || action == Action::Increment {
            return Some(None);
        }
        let copied = held.copied;
        self.held.remove(&at);
        Some(Some(Scheduled { qmd: at, copied }))
    }
}

/// A descriptor that runs now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    pub(crate) qmd: u64,
    /// True if a copying action loaded it.
    pub(crate) copied: bool,
}

/// The descriptors that run next, in order.
#[derive(Debug, Default)]
pub(crate) struct Launches(VecDeque<Scheduled>);

impl Launches {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, launch: Scheduled) {
        self.0.push_back(launch);
    }

    pub(crate) fn next(&self) -> Option<Scheduled> {
        self.0.front().copied()
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop_front();
    }
}
