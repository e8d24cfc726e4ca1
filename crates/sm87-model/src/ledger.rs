//! What is noted of each instruction of a launch, for a profile. A launch without a profile notes nothing.

use super::machine::Unit;
use super::memory;
use super::segment::Segments;
use super::step::{Kind, Step};
use super::table::SECTOR;
use sm87::Word;
use sm87::isa::memory::{Shape, Space};
use sm87::observe::access::Access;
use std::collections::BTreeMap;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// What a warp waited for before it could issue an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stall {
    /// The result of another instruction that takes a time of its own, such as a special function.
    #[default]
    Unit,
    /// Global or local memory.
    Memory,
    /// Shared memory.
    Shared,
    /// Copies from global to shared memory.
    Copies,
    /// Other warps at a barrier.
    Barrier,
}

impl Stall {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Stall; 5] = [Stall::Unit, Stall::Memory, Stall::Shared, Stall::Copies, Stall::Barrier];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Stall::Unit => "unit",
            Stall::Memory => "memory",
            Stall::Shared => "shared",
            Stall::Copies => "copies",
            Stall::Barrier => "barrier",
        }
    }

    /// What those wait for who wait for the result of an instruction.
    pub(super) fn behind(step: &Step) -> Stall {
        match step.kind {
            Kind::Access(Shape { space: Space::Shared | Space::Rows, .. }) => Stall::Shared,
            Kind::Access(Shape { space: Space::Copy, .. }) | Kind::Group | Kind::Depends { .. } => Stall::Copies,
            Kind::Access(_) => Stall::Memory,
            Kind::Plain | Kind::Barrier => Stall::Unit,
        }
    }
}

/// Cycles by what was waited for.
pub(super) type Waited = [u64; Stall::ALL.len()];

/// Accesses of warps to one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The instructions of a warp that accessed it.
    pub requests: u64,
    /// What they took: sectors of global memory, passes through the banks of shared memory, lines of local memory.
    pub taken: u64,
    /// The least that their bytes can take.
    pub least: u64,
}

/// What is noted of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often it was issued, counted once per warp.
    pub issued: u64,
    /// The lanes with which it was issued, added up. The guard of an instruction counts for accesses to memory alone.
    pub lanes: u64,
    /// The cycles for which warps waited before it, by [`Stall`].
    pub waited: Waited,
    /// Its accesses to global, shared and local memory.
    pub global: Accesses,
    /// The same of shared memory.
    pub shared: Accesses,
    /// The same of local memory.
    pub local: Accesses,
    /// The bytes that it asked the L2 cache for.
    pub l2_bytes: u64,
    /// The bytes that the DRAM moved for it.
    pub dram_bytes: u64,
}

impl Accesses {
    fn add(&mut self, more: &Accesses) {
        self.requests += more.requests;
        self.taken += more.taken;
        self.least += more.least;
    }
}

impl Counters {
    /// Adds what was noted elsewhere.
    pub fn add(&mut self, more: &Counters) {
        self.issued += more.issued;
        self.lanes += more.lanes;
        self.waited.iter_mut().zip(&more.waited).for_each(|(sum, more)| *sum += more);
        self.global.add(&more.global);
        self.shared.add(&more.shared);
        self.local.add(&more.local);
        self.l2_bytes += more.l2_bytes;
        self.dram_bytes += more.dram_bytes;
    }
}

/// An instruction, as a profile lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its place, in instructions from the entry point.
    pub place: i64,
    /// Its word.
    pub word: u128,
    /// The unit that it uses.
    pub unit: Unit,
    /// The cycles after it until its warp may issue another one.
    pub stall: u8,
}

impl Listed {
    pub(super) fn new(place: i64, word: Word, step: &Step) -> Listed {
        let unit = if let Kind::Access(_) = step.kind { Unit::LoadStore } else { step.unit };
        Listed { place, word: word.0, unit, stall: step.stall }
    }
}

/// Every instruction that a launch has executed, by its place.
pub type Rows = BTreeMap<i64, (Listed, Counters)>;

/// What the CTAs at one place of an SM have done.
pub(super) struct Ledger {
    all: Arc<Mutex<Rows>>,
    segments: Arc<Segments>,
    /// How often each segment was executed, and with how many lanes.
    runs: Vec<[u64; 2]>,
    /// For how long each event was waited for.
    pub(super) waited: Vec<Waited>,
    /// What is known of the first instruction of each segment alone.
    firsts: Vec<Counters>,
}

impl Ledger {
    /// Nothing was executed yet. What was will be added to `all`.
    pub(super) fn new(all: &Arc<Mutex<Rows>>) -> Box<Ledger> {
        let segments = Arc::default();
        Box::new(Ledger { all: all.clone(), segments, runs: Vec::new(), waited: Vec::new(), firsts: Vec::new() })
    }

    /// Notes what the first instruction of a segment accesses: so many sectors of global memory, of which it wants so many bytes, and `others`. So many
    /// bytes come from the L2 cache and from the DRAM for it.
    #[inline(never)]
    pub(super) fn accessed(
        &mut self,
        number: u32,
        others: &[Access],
        (sectors, wanted): (u64, u64),
        (filled, moved): (u64, u64),
    ) {
        let Some(first) = self.first(number) else { return };
        let mut add = |to: fn(&mut Counters) -> &mut Accesses, taken: u64, least: u64| {
            if taken > 0 {
                let accesses = to(first);
                (accesses.requests, accesses.taken) = (accesses.requests + 1, accesses.taken + taken);
                accesses.least += least.min(taken);
            }
        };
        add(|c| &mut c.global, sectors, wanted.div_ceil(SECTOR));
        add(|c| &mut c.shared, memory::conflicts(others), memory::phases(others));
        let local = memory::local(others, 0).busy;
        add(|c| &mut c.local, local, local);
        (first.l2_bytes, first.dram_bytes) = (first.l2_bytes + filled, first.dram_bytes + moved);
    }

    /// Goes on with a program, which may be another one than before.
    pub(super) fn turn_to(&mut self, segments: &Arc<Segments>) {
        if Arc::ptr_eq(&self.segments, segments) {
            return;
        }
        self.flush();
        self.segments = segments.clone();
        self.runs = vec![[0; 2]; segments.all.len()];
        self.waited = vec![Waited::default(); segments.events.len()];
        self.firsts = vec![Counters::default(); segments.all.len()];
    }

    /// A warp executes a segment.
    pub(super) fn ran(&mut self, number: u32, lanes: u32) {
        if let Some([times, sum]) = self.runs.get_mut(number as usize) {
            *times += 1;
            *sum += u64::from(lanes.count_ones());
        }
    }

    /// What is noted of the first instruction of a segment alone.
    pub(super) fn first(&mut self, number: u32) -> Option<&mut Counters> {
        self.firsts.get_mut(number as usize)
    }

    /// Adds everything to the rows of the launch.
    fn flush(&mut self) {
        let mut all = self.all.lock();
        let segments = self.segments.clone();
        let mut add = |at: u32, counters: &Counters| {
            if let Some(listed) = segments.listed.get(at as usize).copied().flatten() {
                all.entry(listed.place).or_insert((listed, Counters::default())).1.add(counters);
            }
        };
        for (number, &[issued, lanes]) in self.runs.iter().enumerate().filter(|(_, [times, _])| *times > 0) {
            let segment = &segments.all[number];
            for at in segment.at.clone() {
                let is_first = at == segment.at.start && segment.first.is_some();
                let plain = Counters { issued, lanes, ..Counters::default() };
                add(at, &if is_first { Counters { issued, ..self.firsts[number] } } else { plain });
            }
        }
        for (&at, &waited) in
            segments.event_at.iter().zip(&self.waited).filter(|(_, waited)| **waited != Waited::default())
        {
            add(at, &Counters { waited, ..Counters::default() });
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_by_their_numbers() {
        assert!(Stall::ALL.into_iter().enumerate().all(|(number, stall)| stall as usize == number));
    }

    #[test]
    fn what_segments_did_is_known_of_each_instruction() {
        let plain = Step::PLAIN;
        let steps = [Step { kind: Kind::Barrier, ..plain }, plain, Step { waits: 1, ..plain }];
        let listed = (0..3).map(|at| Some(Listed::new(i64::from(at), Word::default(), &plain))).collect();
        let segments = Arc::new(Segments { listed, ..Segments::new(&steps, &Default::default(), 0..0) });
        let all = Arc::default();
        let mut ledger = Ledger::new(&all);
        ledger.turn_to(&segments);
        ledger.ran(0, 0xff);
        ledger.ran(0, 0x1);
        ledger.first(0).unwrap().lanes = 3;
        ledger.waited[0][Stall::Memory as usize] = 40;
        drop(ledger);
        let rows = all.lock();
        let of =
            |place: i64| (rows[&place].1.issued, rows[&place].1.lanes, rows[&place].1.waited[Stall::Memory as usize]);
        assert_eq!([of(0), of(1), of(2)], [(2, 3, 0), (2, 9, 0), (2, 9, 40)]);
    }
}
