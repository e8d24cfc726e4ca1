//! State of the launch scheduler (SKED): which descriptors wait for what, and which run next
//! (docs/hardware/gpu-compute-class.md#pcas-actions).
//!
//! A real SKED caches descriptors; here a descriptor is read again from memory whenever it runs, which every
//! legal user allows. What must be remembered is only what memory does not hold: dependence counters and
//! missing SCHEDULE actions.

use super::qmd::Qmd;
use std::collections::{BTreeMap, VecDeque};
use tegrarm_abi::methods::qmd::*;

/// A descriptor that was scheduled or counted, but has not run.
#[derive(Clone, Copy, Debug)]
struct Held {
    dependence: u32,
    /// SCHEDULE actions it still needs.
    schedules: u32,
    /// A copying action loaded it.
    copied: bool,
}

/// Scheduler state of a context.
#[derive(Debug)]
pub(crate) struct Sked {
    held: BTreeMap<u64, Held>,
    /// CWD reference counters.
    pub(crate) counters: [u32; 64],
    /// Whether check 18 is on.
    pub(crate) checks_l1: bool,
}

impl Default for Sked {
    fn default() -> Sked {
        Sked { held: BTreeMap::new(), counters: [0; 64], checks_l1: true }
    }
}

/// What an action does to a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// One SCHEDULE; `fresh` reloads the descriptor first.
    Schedule { fresh: bool },
    /// Load, and hold until one more SCHEDULE.
    Hold,
    /// Count a dependence down.
    Decrement,
    /// Count a dependence up.
    Increment,
}

impl Sked {
    /// Drops everything held (INVALIDATE_SKED_CACHES).
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }

    /// Drops one descriptor (PCAS action INVALIDATE).
    pub(super) fn invalidate(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// Applies an action; the launch, when the descriptor runs now. `None`: its dependence counter was zero already.
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
        // A descriptor whose last dependence goes runs although nobody scheduled it: that is what the counter is
        // for. One that asks for SCHEDULE waits for it.
        let scheduled = held.schedules == 0 || action == Action::Decrement && !qmd.flag(REQUIRE_SCHEDULING_PCAS);
        if held.dependence != 0 || !scheduled || action == Action::Increment {
            return Some(None);
        }
        let copied = held.copied;
        self.held.remove(&at);
        Some(Some(Scheduled { qmd: at, copied }))
    }
}

/// A descriptor whose time has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    pub(crate) qmd: u64,
    /// A copying action loaded it.
    pub(crate) copied: bool,
}

/// Descriptors that run next, in order.
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
