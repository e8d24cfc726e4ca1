//! The scheduler's side of PCAS: which descriptors wait for what, and which run next (gpu-frontend §5.2).
//!
//! A real SKED caches descriptors; here a descriptor is read again from memory whenever it runs, which every
//! legal user allows. What must be remembered is only what memory does not hold: dependence counters and
//! missing SCHEDULE actions.

use super::super::channel::Turn;
use super::super::fault;
use super::super::pbdma::{Flow, Pbdma};
use super::checks::DEPENDENCE_COUNTER_UNDERFLOW;
use super::launch;
use super::qmd::Qmd;
use crate::kernel::hw::Fault;
use std::collections::{BTreeMap, VecDeque};
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;

// What C7C0 adds to SEND_SIGNALING_PCAS2_B.
const INCREMENT_DEPENDENCE: u32 = 0xc;
const INCREMENT_CWD_REF_COUNTER: u32 = 0xd;
const SELECT: Bits = Bits { msb: 13, lsb: 8, stride: 0, count: 1 };
const OFFSET_MINUS_ONE: Bits = Bits { msb: 23, lsb: 14, stride: 0, count: 1 };

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
enum Action {
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

    /// Applies an action; the launch, when the descriptor runs now. `None`: its dependence counter was zero already.
    fn apply(&mut self, at: u64, qmd: &Qmd, action: Action) -> Option<Option<Scheduled>> {
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

/// SEND_SIGNALING_PCAS2_B; offered again while grids wait for the engine.
pub(super) fn pcas(pbdma: &mut Pbdma, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
    if pbdma.launches.is_empty() {
        start(pbdma, turn, word)?;
    }
    launch::run_pending(pbdma, turn)
}

fn start(pbdma: &mut Pbdma, turn: &Turn<'_>, word: u32) -> Result<(), Fault> {
    let at = u64::from(pbdma.context.lock().compute.get(NVC6C0_SEND_PCAS_A)) << 8;
    let action = match NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION.of(word) {
        // A prefetch only fills a cache.
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_NOP | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH => {
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE => {
            pbdma.context.lock().sked.held.remove(&at);
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_SCHEDULE
        | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH_SCHEDULE => Action::Schedule { fresh: false },
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_COPY_SCHEDULE
        | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE => {
            Action::Schedule { fresh: true }
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING => Action::Hold,
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_DECREMENT_DEPENDENCE => Action::Decrement,
        INCREMENT_DEPENDENCE => Action::Increment,
        INCREMENT_CWD_REF_COUNTER => {
            let counter = &mut pbdma.context.lock().sked.counters[SELECT.of(word) as usize];
            *counter = counter.wrapping_add(OFFSET_MINUS_ONE.of(word) + 1);
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INCREMENT_PUT => {
            let what = format!("PCAS action INCREMENT_PUT on descriptor {at:#x}: this machine has no work queues");
            return Err(fault::graphics(turn.hw(), what));
        }
        other => {
            let what = format!("PCAS action {other:#x} on descriptor {at:#x} does not exist");
            return Err(fault::graphics(turn.hw(), what));
        }
    };
    apply(pbdma, turn, at, action)
}

/// The action a finished descriptor asks for on its dependent.
pub(super) fn follow(pbdma: &mut Pbdma, turn: &Turn<'_>, at: u64, action: u32) -> Result<(), Fault> {
    let action = match action {
        DEPENDENT_QMD0_ACTION_QMD_SCHEDULE => Action::Schedule { fresh: false },
        DEPENDENT_QMD0_ACTION_QMD_INVALIDATE_COPY_SCHEDULE => Action::Schedule { fresh: true },
        DEPENDENT_QMD0_ACTION_QMD_DECREMENT_DEPENDENCE => Action::Decrement,
        other => {
            let what = format!("dependent action {other} on descriptor {at:#x}: this machine has no work queues");
            return Err(fault::graphics(turn.hw(), what));
        }
    };
    apply(pbdma, turn, at, action)
}

fn apply(pbdma: &mut Pbdma, turn: &Turn<'_>, at: u64, action: Action) -> Result<(), Fault> {
    let qmd = launch::read(turn, at)?;
    match pbdma.context.lock().sked.apply(at, &qmd, action) {
        Some(Some(launch)) => pbdma.launches.push(launch),
        Some(None) => {}
        None => {
            let esr = 1u32 << DEPENDENCE_COUNTER_UNDERFLOW;
            let what = format!("sked exception: esr {esr:#010x} (DEPENDENCE_COUNTER_UNDERFLOW), descriptor {at:#x}");
            return Err(fault::graphics(turn.hw(), what));
        }
    }
    Ok(())
}
