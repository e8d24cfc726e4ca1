//! Segments: instructions that are executed one after another, and accounted for together.
//!
//! A segment begins where control may enter, and at each instruction whose cost depends on what it does: accesses to memory, and
//! barriers. Only one instruction of a segment gets another handler, so that the others are executed as fast as always.

use super::ledger::Listed;
use super::machine::Unit;
use super::step::{Kind, NONE, Step};
use sm87::Word;
use sm87::observe::{Image, Pred};
use std::collections::BTreeSet;
use std::ops::Range;

/// The cycles for which each unit is busy.
pub(super) type Units = [u64; Unit::ALL.len()];

/// An instruction that waits for a scoreboard or sets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The cycles from the last event, or from the beginning, until it may be issued.
    pub delay: u32,
    pub waits: u8,
    pub writes: u8,
    pub reads: u8,
    pub latency: u16,
    pub operands: u16,
}

/// A segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its instructions.
    pub at: Range<u32>,
    /// The first one, if its cost depends on what it does. The rest is about the others.
    pub first: Option<Step>,
    pub events: Range<u32>,
    /// The cycles from the last event to the end.
    pub tail: u32,
    pub units: Units,
    /// Whether control continues with the next segment, as far as is known.
    pub falls_through: bool,
}

/// The segments of a program, in order, and their events.
#[derive(Clone, Default)]
pub(super) struct Segments {
    pub all: Vec<Segment>,
    pub events: Vec<Event>,
    /// The segment of each instruction.
    pub of: Vec<u32>,
    /// The instruction of each event.
    pub event_at: Vec<u32>,
    /// Every instruction as a profile lists it. Without a profile there is none.
    pub listed: Vec<Option<Listed>>,
}

impl Segments {
    /// Divides a program. `enters` are the places where control may enter besides the ones after branches. Segments in `free` take no time.
    pub(super) fn new(steps: &[Step], enters: &BTreeSet<u32>, free: Range<u32>) -> Segments {
        let mut segments = Segments::default();
        let mut start = 0;
        for at in 1..=steps.len() as u32 {
            let ends = at as usize == steps.len()
                || steps[at as usize - 1].transfers
                || enters.contains(&at)
                || steps[at as usize].kind != Kind::Plain;
            if ends {
                let is_free = free.start <= start && at <= free.end;
                segments.add(start..at, if is_free { &[] } else { &steps[start as usize..at as usize] });
                start = at;
            }
        }
        segments
    }

    fn add(&mut self, at: Range<u32>, steps: &[Step]) {
        let first = steps.first().copied().filter(|step| step.kind != Kind::Plain);
        let (mut delay, mut units, begun) = (0, Units::default(), self.events.len() as u32);
        for (step, place) in steps.iter().zip(at.clone()).skip(usize::from(first.is_some())) {
            units[Unit::Issue as usize] += 1;
            if step.unit != Unit::Issue {
                units[step.unit as usize] += u64::from(step.cost);
            }
            let Step { waits, writes, reads, latency, operands, .. } = *step;
            if waits != 0 || writes != NONE || reads != NONE {
                self.events.push(Event { delay, waits, writes, reads, latency, operands });
                self.event_at.push(place);
                delay = 0;
            }
            delay += u32::from(step.stall);
        }
        let falls_through = steps.last().is_none_or(|step| !step.transfers);
        self.of.extend(at.clone().map(|_| self.all.len() as u32));
        let events = begun..self.events.len() as u32;
        self.all.push(Segment { at, first, events, tail: delay, units, falls_through });
    }

    /// The events of a segment.
    #[inline(always)]
    pub(super) fn events_of(&self, segment: &Segment) -> &[Event] {
        &self.events[segment.events.start as usize..segment.events.end as usize]
    }

    /// The instruction of each segment that gets another handler. It is one that is always executed, if there is one.
    pub(super) fn heads(&self, guard: impl Fn(u32) -> Pred) -> Vec<bool> {
        let mut heads = vec![false; self.of.len()];
        for segment in &self.all {
            let mut plain = segment.at.clone().filter(|_| segment.first.is_none());
            let head = plain.find(|&at| guard(at).is_always_true()).unwrap_or(segment.at.start);
            heads[head as usize] = true;
        }
        heads
    }
}

/// ISETP.NE.U32.AND P0, PT, RZ, UR2, PT.
const IS_FRESH: Word = Word::new(0x0000_0002_ff00_7c0c, 0x000f_da00_0bf0_5070);

/// The instructions with which ptxas lets a warp of sm_87 begin if UR2 is zero, and which set UR2. On a board UR2 is what an earlier warp has left
/// there: of the published numbers of instructions of `reduceInteger` none is of these (python/tegrarm/validate/data/published.json).
pub(super) fn prologue(image: &Image) -> Range<u32> {
    let entry = image.entry();
    if image.word(entry) != IS_FRESH.unscheduled().0 {
        return 0..0;
    }
    entry + 2..image.jumps_to(entry + 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Step = Step { stall: 2, ..Step::PLAIN };

    #[test]
    fn a_program_is_divided_at_barriers_branches_and_places_that_are_jumped_to() {
        let waits = Step { waits: 1, ..PLAIN };
        let barrier = Step { kind: Kind::Barrier, ..PLAIN };
        let branch = Step { transfers: true, unit: Unit::Issue, ..PLAIN };
        let steps = [PLAIN, PLAIN, waits, PLAIN, barrier, PLAIN, branch, PLAIN];
        let segments = Segments::new(&steps, &BTreeSet::from([1]), 0..0);
        let at: Vec<_> = segments.all.iter().map(|segment| segment.at.clone()).collect();
        assert_eq!(at, [0..1, 1..4, 4..7, 7..8]);
        assert_eq!(segments.of, [0, 1, 1, 1, 2, 2, 2, 3]);
        let free = Segments::new(&steps, &BTreeSet::from([1]), 1..4);
        let times =
            |segments: &Segments| segments.all.iter().map(|s| (s.tail, s.units[0..2].to_vec())).collect::<Vec<_>>();
        assert_eq!((free.all[1].tail, free.all[1].units, free.all[1].events.len()), (0, Default::default(), 0));
        assert_eq!(times(&free)[2..], times(&segments)[2..], "the others take as long as before");
        let second = &segments.all[1];
        let event = Event { delay: 2, waits: 1, writes: NONE, reads: NONE, latency: 4, operands: 12 };
        assert_eq!(segments.events[second.events.start as usize..second.events.end as usize], [event]);
        assert_eq!((second.tail, second.units[Unit::Single as usize], second.units[Unit::Issue as usize]), (4, 3, 3));
        let third = &segments.all[2];
        assert!(third.first.is_some() && !third.falls_through && second.falls_through);
        assert_eq!((third.units[Unit::Single as usize], third.units[Unit::Issue as usize]), (1, 2));
    }
}
