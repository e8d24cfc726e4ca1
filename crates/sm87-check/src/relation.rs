//! How the access that is made now stands to those that were made before. Neighbouring words mostly have their last accesses
//! from the same instructions, so that one comparison tells it for all of them.

use super::cells::{Cell, Event, Events, Mark};
use super::order::Order;

/// How another access stands to the one that is made now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// It says the same of races.
    Like,
    /// The warp knows of it, or there was none.
    Before,
    /// Nothing orders them.
    Apart,
}

/// The access that is made now, to shared or global memory.
#[derive(Clone, Copy, Default)]
pub(super) struct Now {
    pub event: Event,
    /// The number of the event.
    pub number: u32,
    /// The number of another event for each relation, which neighbouring words probably have in common.
    like: u32,
    before: u32,
    pub apart: u32,
}

impl Now {
    pub(super) fn new(event: Event, number: u32) -> Now {
        Now { event, number, like: number, before: number, apart: number }
    }

    /// How another access stands to this one. What was apart may be known a moment later, if a lane learns something.
    #[inline(always)]
    fn relation(&mut self, order: &Order, events: &Events, other: Mark) -> Relation {
        let number = other.event();
        match () {
            () if number == self.like => Relation::Like,
            () if number == self.before => Relation::Before,
            () if number == self.apart => Relation::Apart,
            () => self.compare(order, events, number),
        }
    }

    fn compare(&mut self, order: &Order, events: &Events, number: u32) -> Relation {
        let other = events.get(number);
        let (known, relation) = match () {
            () if number == 0 => return Relation::Before,
            () if other.is_like(&self.event) => (&mut self.like, Relation::Like),
            () if before(order, other, &self.event) => (&mut self.before, Relation::Before),
            () => (&mut self.apart, Relation::Apart),
        };
        *known = number;
        relation
    }

    /// Notes a read of a word. The result is false if the warp reads again what it has read: it learns nothing new of races.
    #[inline(always)]
    pub(super) fn reads(&mut self, cell: &mut Cell, order: &Order, events: &Events, mark: Mark) -> bool {
        let last = cell.reads[0];
        match self.relation(order, events, last) {
            Relation::Like if last.bytes() & mark.bytes() == mark.bytes() => return false,
            Relation::Apart => cell.reads[1] = last,
            _ => {}
        }
        cell.reads[0] = mark;
        true
    }

    /// Notes a plain access of some words that races with nothing. The result is false if one of them must be looked at
    /// more closely, and then nothing, or some of the words, were noted.
    #[inline(always)]
    pub(super) fn passes(
        &mut self,
        cells: &mut [Cell],
        order: &Order,
        events: &Events,
        mark: Mark,
        writes: bool,
    ) -> bool {
        for cell in cells {
            let write = cell.write();
            let mut is_apart = |other| self.relation(order, events, other) == Relation::Apart;
            if cell.tells() || is_apart(write) {
                return false;
            }
            if !writes {
                self.reads(cell, order, events, mark);
                continue;
            }
            // Another lane may store to the same place at once.
            if write.is_at_once(mark) || cell.reads.into_iter().any(is_apart) {
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
