//! What the checker looks for, and what it found. A launch that names a [`Checker`] is executed with a copy of its
//! program in which the instructions that matter are looked at. Other launches know nothing of it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_lock::Mutex;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Accesses outside of buffers, shared memory and local frames.
    pub memory: bool,
    /// Values that come from memory or registers that were never written.
    pub init: bool,
    /// Accesses to one place that nothing orders.
    pub race: bool,
    /// All of them that PTX's memory model has, lane by lane.
    pub strict: bool,
    /// Misuse of barriers.
    pub sync: bool,
    /// Whether races of kernels are only followed, and not reported, because what the processor does is compared with them.
    pub silent: bool,
}

/// The kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An access outside of what it may reach.
    Memory,
    /// A value that was never written.
    Init,
    /// Two accesses that nothing orders.
    Race,
    /// A barrier that is used in a wrong way.
    Sync,
    /// A result that depends on the order of CTAs and warps.
    Order,
    /// An access of the processor to what a launch or a copy still uses.
    Cpu,
}

impl Kind {
    /// Every kind, in the order in which they are counted.
    pub const ALL: [Kind; 6] = [Kind::Memory, Kind::Init, Kind::Race, Kind::Sync, Kind::Order, Kind::Cpu];

    /// The name by which the kind is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::Init => "init",
            Kind::Race => "race",
            Kind::Sync => "sync",
            Kind::Order => "order",
            Kind::Cpu => "cpu",
        }
    }
}

/// A thread at an instruction, or work that is no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// What it does there.
    pub what: String,
    /// The address of the instruction, or 0.
    pub pc: u64,
    /// The word of the instruction.
    pub word: u128,
    /// The CTA, and the thread in it, if they are known.
    pub threads: Option<([u32; 3], [u32; 3])>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its kind.
    pub kind: Kind,
    /// What is wrong, in a sentence.
    pub title: String,
    /// Who took part. The first one is the thread that was executed when it was found.
    pub parties: Vec<Party>,
}

/// The place in a program that a report is about: it is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub kind: Kind,
    /// The program, by a number made of its code: another one may come to the same address.
    pub program: u64,
    /// The addresses of the instructions.
    pub at: [u64; 2],
    /// Tells reports of one place apart.
    pub which: u8,
}

/// The most reports about one program. Those behind them are only counted.
const MOST_REPORTS: usize = 100;

/// The checker of a GPU: what it looks for, and all that it has found.
#[derive(Debug)]
pub struct Checker {
    checks: Checks,
    /// The places of each program that are known.
    known: Mutex<HashMap<u64, HashSet<Place>>>,
    found: Mutex<Vec<Report>>,
    counts: [AtomicU64; Kind::ALL.len()],
    /// The most bytes of the host that were needed for the accesses of a launch.
    took: AtomicU64,
}

impl Checker {
    /// A checker that has found nothing yet.
    pub fn new(checks: Checks) -> Checker {
        let (known, found) = (Mutex::default(), Mutex::default());
        Checker { checks, known, found, counts: Default::default(), took: AtomicU64::new(0) }
    }

    /// What it looks for.
    pub fn checks(&self) -> Checks {
        self.checks
    }

    /// Whether nothing was reported of this place yet, and something is to be reported now.
    pub(crate) fn is_new(&self, place: Place) -> bool {
        if self.checks.silent && place.kind == Kind::Race {
            return false;
        }
        let mut known = self.known.lock();
        let of = known.entry(place.program).or_default();
        of.insert(place) && of.len() <= MOST_REPORTS
    }

    /// How many reports were left out because there were so many about their programs, and the number of these programs.
    pub fn left_out(&self) -> (usize, usize) {
        let known = self.known.lock();
        let more = known.values().map(|of| of.len().saturating_sub(MOST_REPORTS)).filter(|more| *more > 0);
        more.fold((0, 0), |(all, programs), more| (all + more, programs + 1))
    }

    /// Adds a report.
    pub(crate) fn add(&self, report: Report) {
        self.counts[report.kind as usize].fetch_add(1, Ordering::Relaxed);
        self.found.lock().push(report);
    }

    /// A launch took so many bytes of the host for what was accessed.
    pub(crate) fn took(&self, bytes: u64) {
        self.took.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The most bytes of the host that a launch took for what it accessed.
    pub fn most_bytes(&self) -> u64 {
        self.took.load(Ordering::Relaxed)
    }

    /// The reports since the last call.
    pub fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *self.found.lock())
    }

    /// How many reports of each kind there were.
    pub fn counts(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.into_iter().map(|kind| (kind, self.counts[kind as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reported_once_and_counted() {
        let checker = Checker::new(Checks { memory: true, ..Checks::default() });
        let place = Place { kind: Kind::Memory, program: 1, at: [16; 2], which: 0 };
        assert!(checker.is_new(place) && !checker.is_new(place));
        assert!(checker.is_new(Place { which: 1, ..place }) && checker.is_new(Place { program: 2, ..place }));
        (1..=120)
            .for_each(|n| assert_eq!(checker.is_new(Place { at: [16, 16 * n], program: 3, ..place }), n <= 100, "{n}"));
        assert!(!checker.is_new(Place { at: [16, 1920], program: 3, ..place }));
        assert_eq!(checker.left_out(), (20, 1));
        checker.add(Report { kind: Kind::Memory, title: String::new(), parties: Vec::new() });
        assert_eq!(checker.take().len(), 1);
        assert!(checker.take().is_empty());
        let counts =
            [(Kind::Memory, 1), (Kind::Init, 0), (Kind::Race, 0), (Kind::Sync, 0), (Kind::Order, 0), (Kind::Cpu, 0)];
        assert_eq!(checker.counts().collect::<Vec<_>>(), counts);
        let silent = Checker::new(Checks { race: true, silent: true, ..Checks::default() });
        assert!(
            !silent.is_new(Place { kind: Kind::Race, ..place }) && silent.is_new(Place { kind: Kind::Cpu, ..place })
        );
    }
}
