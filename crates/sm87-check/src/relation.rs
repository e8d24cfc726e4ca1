//! How the access that is made now stands to those that were made before. Neighbouring words mostly have their last accesses
//! from the same instructions, so that one comparison tells it for all of them.

use super::cells::{Cell, Event, Events, Mark};
use super::lanes::Lanes;
use super::order::Order;

/// How another access stands to the one that is made now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// It says the same of races.
    Like,
    /// A lane of the same warp made it: the lane itself knows of it.
    Own,
    /// The warp knows of it, or there was none.
    Before,
    /// Nothing orders them, or not for all lanes.
    Apart,
}

/// What is known to have happened before what.
pub(super) trait Sequence {
    /// Whether the lanes of a warp are told apart.
    const BY_LANES: bool;

    /// How another access stands to the one that is made now.
    fn relation(&self, other: &Event, now: &Event) -> Relation;
}

impl Sequence for Order {
    const BY_LANES: bool = false;

    fn relation(&self, other: &Event, now: &Event) -> Relation {
        match () {
            () if other.is_like(now) => Relation::Like,
            () if before(self, other, now) => Relation::Before,
            () => Relation::Apart,
        }
    }
}

impl Sequence for Lanes {
    const BY_LANES: bool = true;

    fn relation(&self, other: &Event, now: &Event) -> Relation {
        match () {
            () if self.all_know(other, now) => Relation::Before,
            () if other.copy == 0 && (other.cta, other.warp) == (now.cta, now.warp) => Relation::Own,
            () => Relation::Apart,
        }
    }
}

/// No event has this number.
const NONE: u32 = u32::MAX;

/// The access that is made now, to shared or global memory.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub event: Event,
    /// The number of the event.
    pub number: u32,
    /// The number of another event for each relation, which neighbouring words probably have in common.
    like: u32,
    own: u32,
    before: u32,
    pub apart: u32,
}

impl Default for Now {
    fn default() -> Now {
        Now { event: Event::default(), number: 0, like: NONE, own: NONE, before: 0, apart: NONE }
    }
}

impl Now {
    pub(super) fn new<O: Sequence>(event: Event, number: u32) -> Now {
        let like = if O::BY_LANES { NONE } else { number };
        let own = if O::BY_LANES && event.copy == 0 { number } else { NONE };
        Now { event, number, like, own, ..Now::default() }
    }

    /// What was apart may be known now, because a lane has learnt something.
    pub(super) fn learns(&mut self) {
        self.apart = NONE;
    }

    /// How another access stands to this one.
    #[inline(always)]
    fn relation(&mut self, order: &impl Sequence, events: &Events, other: Mark) -> Relation {
        let number = other.event();
        match () {
            () if number == self.like => Relation::Like,
            () if number == self.own => Relation::Own,
            () if number == self.before => Relation::Before,
            () if number == self.apart => Relation::Apart,
            () => self.compare(order, events, number),
        }
    }

    fn compare(&mut self, order: &impl Sequence, events: &Events, number: u32) -> Relation {
        if number == 0 {
            return Relation::Before;
        }
        let relation = order.relation(events.get(number), &self.event);
        let known = match relation {
            Relation::Like => &mut self.like,
            Relation::Own => &mut self.own,
            Relation::Before => &mut self.before,
            Relation::Apart => &mut self.apart,
        };
        *known = number;
        relation
    }

    /// Notes a read of a word. The result is false if the thread reads again what it has read: it learns nothing new of races.
    #[inline(always)]
    pub(super) fn reads<O: Sequence>(&mut self, cell: &mut Cell, order: &O, events: &Events, mark: Mark) -> bool {
        let last = cell.reads[0];
        let covers = last.bytes() & mark.bytes() == mark.bytes();
        match self.relation(order, events, last) {
            Relation::Like if covers => return false,
            Relation::Own if last.lane() == mark.lane() => {
                cell.reads[0] = if last.event() == mark.event() { mark.with_bytes_of(last) } else { mark };
                return !covers;
            }
            Relation::Own => self.keeps(cell, order, events, last, mark),
            Relation::Apart if O::BY_LANES => self.keeps(cell, order, events, last, mark),
            Relation::Apart => cell.reads[1] = last,
            _ => {}
        }
        cell.reads[0] = mark;
        true
    }

    /// Keeps the read that is farther away from the one that is made now: the last one, or the one that was kept.
    fn keeps<O: Sequence>(&mut self, cell: &mut Cell, order: &O, events: &Events, last: Mark, mark: Mark) {
        let mut far = |other: Mark| match self.relation(order, events, other) {
            Relation::Before | Relation::Like => 0,
            Relation::Own => u32::from(other.lane() != mark.lane()),
            Relation::Apart => 2,
        };
        if far(cell.reads[1]) < far(last) {
            cell.reads[1] = last;
        }
    }

    /// Notes a plain access of some words that races with nothing. The result is false if one of them must be looked at
    /// more closely, and then nothing, or some of the words, were noted.
    #[inline(always)]
    pub(super) fn passes<O: Sequence>(
        &mut self,
        cells: &mut [Cell],
        order: &O,
        events: &Events,
        mark: Mark,
        writes: bool,
    ) -> bool {
        for cell in cells {
            let write = cell.write();
            let mut is_apart = |other: Mark| match self.relation(order, events, other) {
                Relation::Apart => true,
                Relation::Own => other.lane() != mark.lane(),
                Relation::Like | Relation::Before => false,
            };
            if cell.tells() || is_apart(write) {
                return false;
            }
            if !writes {
                self.reads(cell, order, events, mark);
                continue;
            }
            // Another lane may store to the same place at once.
            if !O::BY_LANES && write.is_at_once(mark) || cell.reads.into_iter().any(is_apart) {
                return false;
            }
            cell.written(mark);
        }
        true
    }
}

/// Whether the warp of the access `now` knows of another one.
pub(super) fn before(order: &Order, other: &Event, now: &Event) -> bool {
    if other.cta != now.cta {
        return order.others.get(&other.cta).is_some_and(|time| *time >= other.cta_time);
    }
    other.warp == now.warp || order.knows(now.warp.into(), other.warp.into(), other.time)
}
