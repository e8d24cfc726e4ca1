//! Which value is in which vector register, and where the others are.

use crate::graph::{Graph, Node, Place, Value};
use crate::order::Step;

/// The number of values that the stack has room for.
pub(crate) const SLOTS: usize = 48;

/// Where a value can be loaded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Row(u32),
    Constant(u32),
    Word(u32),
    Lanes(u8),
    Slot(usize),
}

/// What has to be done before a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Load(usize, Value, Home),
    Spill(usize, usize),
}

/// The values have no room on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

pub(crate) struct Registers {
    held: Vec<Option<Value>>,
    homes: Vec<Option<Home>>,
    /// For each value the steps that need it, the last one first.
    uses: Vec<Vec<u32>>,
    slots: [bool; SLOTS],
    /// Slots whose values the step at hand reads for the last time.
    ended: Vec<usize>,
    pub moves: Vec<Move>,
}

impl Registers {
    pub(crate) fn new(graph: &Graph, steps: &[Step], count: usize) -> Registers {
        let mut uses = vec![Vec::new(); graph.nodes.len()];
        for (at, step) in steps.iter().enumerate().rev() {
            for value in step.operands(graph) {
                uses[value.0 as usize].push(at as u32);
            }
        }
        let home = |node: &Node| match *node {
            Node::Row(offset) => Some(Home::Row(offset)),
            Node::Constant(offset) => Some(Home::Constant(offset)),
            Node::Word(x) => Some(Home::Word(x)),
            Node::Lanes(index) => Some(Home::Lanes(index)),
            _ => None,
        };
        let homes = graph.nodes.iter().map(home).collect();
        Registers { held: vec![None; count], homes, uses, slots: [false; SLOTS], ended: Vec::new(), moves: Vec::new() }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self) {
        self.ended.drain(..).for_each(|slot| self.slots[slot] = false);
    }

    /// The register that holds a value.
    pub(crate) fn find(&self, value: Value) -> Option<usize> {
        self.held.iter().position(|held| *held == Some(value))
    }

    /// Where a value is in memory as a whole vector.
    pub(crate) fn in_memory(&self, value: Value) -> Option<Home> {
        self.homes[value.0 as usize].filter(|home| !matches!(home, Home::Lanes(_)))
    }

    /// How often the value is still needed.
    pub(crate) fn left(&self, value: Value) -> usize {
        self.uses[value.0 as usize].len()
    }

    /// Puts a value into a register, unless it is in one. Those of `kept` stay where they are.
    pub(crate) fn bring(&mut self, value: Value, kept: &[Value]) -> Result<usize, TooLarge> {
        if let Some(at) = self.find(value) {
            return Ok(at);
        }
        let at = self.room(kept)?;
        // A value that is neither in a register nor in memory was not made yet, which the order of the steps excludes.
        let home = self.homes[value.0 as usize].ok_or(TooLarge)?;
        self.moves.push(Move::Load(at, value, home));
        self.held[at] = Some(value);
        Ok(at)
    }

    /// Makes sure that a value is in memory, and stays there.
    pub(crate) fn keep(&mut self, value: Value) -> Result<Home, TooLarge> {
        if let Some(home) = self.in_memory(value) {
            return Ok(home);
        }
        let at = self.bring(value, &[value])?;
        self.save(at, value)?;
        self.in_memory(value).ok_or(TooLarge)
    }

    /// A register for a value that a step makes.
    pub(crate) fn make(&mut self, value: Value, kept: &[Value]) -> Result<usize, TooLarge> {
        let at = self.room(kept)?;
        self.held[at] = Some(value);
        Ok(at)
    }

    /// The value that a register holds becomes another one.
    pub(crate) fn becomes(&mut self, at: usize, value: Value) {
        self.held[at] = Some(value);
    }

    /// A register that is free, or that of the value that is needed last.
    fn room(&mut self, kept: &[Value]) -> Result<usize, TooLarge> {
        if let Some(free) = self.held.iter().position(Option::is_none) {
            return Ok(free);
        }
        let last = |value: Value| self.uses[value.0 as usize].last().copied().unwrap_or(u32::MAX);
        let candidates = self.held.iter().enumerate().filter_map(|(at, held)| Some((at, (*held)?)));
        let candidates = candidates.filter(|(_, value)| !kept.contains(value));
        let (at, value) = candidates.max_by_key(|(_, value)| last(*value)).ok_or(TooLarge)?;
        self.save(at, value)?;
        self.held[at] = None;
        Ok(at)
    }

    /// Makes sure that a value can be loaded again.
    fn save(&mut self, at: usize, value: Value) -> Result<(), TooLarge> {
        if self.homes[value.0 as usize].is_none() && self.left(value) > 0 {
            let slot = self.slots.iter().position(|used| !used).ok_or(TooLarge)?;
            self.slots[slot] = true;
            self.homes[value.0 as usize] = Some(Home::Slot(slot));
            self.moves.push(Move::Spill(at, slot));
        }
        Ok(())
    }

    /// Notes that a step has used its operands. Values that nobody needs any more make room.
    pub(crate) fn used(&mut self, operands: &[Value]) {
        for value in operands {
            self.uses[value.0 as usize].pop();
            if self.uses[value.0 as usize].is_empty() {
                self.held.iter_mut().filter(|held| **held == Some(*value)).for_each(|held| *held = None);
                if let Some(Home::Slot(slot)) = self.homes[value.0 as usize] {
                    self.ended.push(slot);
                }
            }
        }
    }

    /// Brings what stands at a place into a register, because the place is about to be overwritten with `by` and the value is needed later.
    pub(crate) fn rescue(&mut self, graph: &Graph, place: Place, by: Value) -> Result<(), TooLarge> {
        let home = match place {
            Place::Row(offset) => Home::Row(offset),
            Place::Lanes(index) => Home::Lanes(index),
        };
        if let Some(old) = graph.standing_at(place)
            && self.homes[old.0 as usize] == Some(home)
            && old != by
        {
            if self.left(old) > 0 {
                self.bring(old, &[by])?;
            }
            self.homes[old.0 as usize] = None;
        }
        Ok(())
    }

    /// Notes that a value now stands in a row.
    pub(crate) fn stands_in(&mut self, value: Value, offset: u32) {
        self.homes[value.0 as usize].get_or_insert(Home::Row(offset));
    }
}
