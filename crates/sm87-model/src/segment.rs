//! Segments: instructions that are executed one after another, and accounted for together.
//!
//! A segment begins where control may enter, and at each instruction whose cost depends on what it does: accesses to memory, and
//! barriers. Only one instruction of a segment gets another handler, so that the others are executed as fast as always.

use super::ledger::Listed;
use super::machine::Unit;
use super::step::{Kind, NONE, Step};
use sm87::Word;
use sm87::isa::memory::{Shape, Space};
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

/// Of so many segments it is known how the lanes lay when they last accessed memory.
pub(super) const SEEN: usize = 256;

/// The most segments that are accounted for with another one. What is known of one of them is not replaced by what is known of another.
const MOST_JOINED: u32 = 64;
const _: () = assert!(MOST_JOINED as usize <= SEEN);

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
    /// The number of segments behind it that are accounted for when it is: see [`Segments::join`].
    pub joined: u32,
    /// An earlier one of those whose first instruction accesses memory with the same address registers.
    pub alike: Option<u32>,
}

impl Segment {
    /// What its first instruction accesses.
    fn access(&self) -> Option<&Shape> {
        match &self.first {
            Some(Step { kind: Kind::Access(shape), .. }) => Some(shape),
            _ => None,
        }
    }

    /// Whether the next segment can be accounted for with it.
    fn leads(&self, is_always: impl Fn(u32) -> bool) -> bool {
        let has_head = match self.first {
            None => self.at.clone().any(&is_always),
            Some(_) => self.access().is_some_and(|shape| !shape.strong) && is_always(self.at.start),
        };
        has_head && self.falls_through
    }
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
        let (joined, alike) = (0, None);
        self.all.push(Segment { at, first, events, tail: delay, units, falls_through, joined, alike });
    }

    /// Accounts for accesses to memory together with the segments before them, which takes less time. That can be done if control comes from nowhere
    /// else, if all lanes that execute one execute all, and if the address registers hold at the head of the first segment what they hold at the
    /// access. `origin` says which these are, and since when.
    pub(super) fn join<Origin: Copy + PartialEq>(
        &mut self,
        enters: &BTreeSet<u32>,
        origin: impl Fn(u32) -> Option<(Origin, u32)>,
        is_always: impl Fn(u32) -> bool,
    ) {
        let mut known: Vec<(Origin, u32)> = Vec::new();
        let mut head = 0;
        for number in 0..self.all.len() as u32 {
            let segment = &self.all[number as usize];
            let shape = segment.access().copied().filter(|_| is_always(segment.at.start));
            let origin = origin(segment.at.start);
            let joins = shape.is_some_and(|shape| shape.space != Space::Copy && !shape.strong)
                && origin.is_some_and(|(_, since)| since <= self.all[head as usize].at.start)
                && (1..MOST_JOINED).contains(&(number - head))
                && !enters.contains(&segment.at.start)
                && self.all[number as usize - 1].leads(&is_always);
            if joins {
                let units = std::mem::take(&mut self.all[number as usize].units);
                let head = &mut self.all[head as usize];
                head.joined += 1;
                head.units.iter_mut().zip(&units).for_each(|(sum, more)| *sum += more);
            } else {
                head = number;
                known.clear();
            }
            if let Some((origin, _)) = origin.filter(|_| shape.is_some_and(|shape| shape.space == Space::Global)) {
                let alike = known.iter().find(|(other, _)| *other == origin).map(|(_, number)| *number);
                known.push((origin, alike.unwrap_or(number)));
                self.all[number as usize].alike = alike;
            }
        }
    }

    /// The events of a segment.
    #[inline(always)]
    pub(super) fn events_of(&self, segment: &Segment) -> &[Event] {
        &self.events[segment.events.start as usize..segment.events.end as usize]
    }

    /// The instruction of each segment that gets another handler. It is one that is always executed, if there is one.
    pub(super) fn heads(&self, guard: impl Fn(u32) -> Pred) -> Vec<bool> {
        let mut heads = vec![false; self.of.len()];
        let mut joined = 0..0;
        for (number, segment) in (0..).zip(&self.all) {
            if joined.contains(&number) {
                continue;
            }
            joined = number..number + 1 + segment.joined;
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
    use sm87::isa::memory::{Access, Memory, Size};

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

    /// An access to global memory.
    fn access(strong: bool) -> Step {
        let memory = Memory { space: Space::Global, access: Access::Load, size: Size::Bytes(4), order: None };
        Step { kind: Kind::Access(Shape { strong, ..memory.shape(Word::default()) }), ..PLAIN }
    }

    #[test]
    fn accesses_are_joined_if_all_lanes_come_from_the_head_and_their_registers_are_those_of_the_head() {
        let (load, strong, branch) = (access(false), access(true), Step { transfers: true, ..PLAIN });
        let joined = |steps: &[Step], enters: &[u32], since: &[u32], guarded: u32| {
            let mut segments = Segments::new(steps, &BTreeSet::from_iter(enters.iter().copied()), 0..0);
            let origin = |at: u32| Some((at % 2, since.get(at as usize).copied().unwrap_or(0)));
            segments.join(&BTreeSet::from_iter(enters.iter().copied()), origin, |at| at != guarded);
            segments.all.iter().map(|segment| (segment.joined, segment.alike)).collect::<Vec<_>>()
        };
        let steps = [PLAIN, load, load, load, load];
        assert_eq!(joined(&steps, &[], &[], 9)[..], [(4, None), (0, None), (0, None), (0, Some(1)), (0, Some(2))]);
        assert_eq!(joined(&steps, &[3], &[], 9)[..], [(2, None), (0, None), (0, None), (1, None), (0, None)]);
        assert_eq!(
            joined(&steps, &[], &[0, 0, 2, 0, 0], 9)[..2],
            [(1, None), (0, None)],
            "written before the second load"
        );
        assert_eq!(joined(&steps, &[], &[0, 0, 2, 2, 2], 9)[2], (2, None), "which is a head then");
        assert_eq!(
            joined(&steps, &[], &[], 2).iter().map(|of| of.0).collect::<Vec<_>>(),
            [1, 0, 0, 1, 0],
            "the second load has a guard"
        );
        assert_eq!(
            joined(&steps, &[], &[], 0).iter().map(|of| of.0).collect::<Vec<_>>(),
            [0, 3, 0, 0, 0],
            "nothing of the first is always executed"
        );
        let others = [load, branch, load, strong, load];
        assert_eq!(
            joined(&others, &[], &[], 9).iter().map(|of| of.0).collect::<Vec<_>>(),
            [0, 0, 0, 0],
            "control goes elsewhere, or others are waited for"
        );
        let units = |joins: bool| {
            let mut segments = Segments::new(&[load, PLAIN, load, PLAIN, PLAIN], &BTreeSet::new(), 0..0);
            segments.join(&BTreeSet::new(), |_| joins.then_some(((), 0)), |_| true);
            segments.all.iter().map(|segment| segment.units[Unit::Issue as usize]).collect::<Vec<_>>()
        };
        assert_eq!([units(false), units(true)], [[1, 2], [3, 0]]);
    }
}
