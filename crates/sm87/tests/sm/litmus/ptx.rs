//! What the memory model of PTX allows (PTX ISA manual, "Memory Consistency Model"), for tests of a few accesses. Everything that a run
//! could do is tried: which store each load finds, in which order the stores of a place follow each other, and in which order the
//! `fence.sc`. The axioms say what is no execution.
//!
//! All accesses of a test are strong, and the scope of each includes the others, so all pairs are morally strong. A reduction counts as
//! a store: only one role changes a place by reductions, and a reduction is never part of an acquire. No store depends on a load, so
//! that nothing comes out of thin air.

use super::{Access, Order};
use std::collections::BTreeSet;

/// What an instruction does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Store(u32),
    Load,
    Fence,
}

/// An instruction of a role, or the value that a place begins with.
#[derive(Clone, Copy)]
struct Event {
    /// The role. The first values have none.
    role: Option<usize>,
    does: Does,
    /// The place of an access.
    place: Option<u32>,
}

/// A relation between events: bit `j` of word `i` says that `i` precedes `j`.
#[derive(Clone)]
struct Relation(Vec<u32>);

impl Relation {
    fn of(events: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let row = |i| (0..events).filter(|&j| holds(i, j)).fold(0, |row, j| row | 1 << j);
        Relation((0..events).map(row).collect())
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.0[i] >> j & 1 != 0
    }

    /// Whether `i` precedes `j` in one step or in several.
    fn closed(mut self) -> Relation {
        for k in 0..self.0.len() {
            let behind = self.0[k];
            for row in &mut self.0 {
                *row |= if *row >> k & 1 != 0 { behind } else { 0 };
            }
        }
        self
    }

    fn has_cycle(self) -> bool {
        let closed = self.closed();
        (0..closed.0.len()).any(|i| closed.has(i, i))
    }
}

/// A test with one order of its accesses.
struct Program {
    events: Vec<Event>,
    order: Order,
}

/// What happens in a run.
struct Run<'p> {
    program: &'p Program,
    /// The store that each load finds, by event.
    from: Vec<Option<usize>>,
    /// Where each store is among those of its place, and each `fence.sc` among the others.
    number: Vec<usize>,
}

impl Program {
    fn new(roles: &[&[Access]], order: Order) -> Program {
        let first = |place| Event { role: None, does: Does::Store(0), place: Some(place) };
        let mut events = vec![first(super::X), first(super::Y)];
        for (role, accesses) in roles.iter().enumerate() {
            let role = Some(role);
            for (n, access) in accesses.iter().enumerate() {
                if n == 1 && matches!(order, Order::Fence | Order::FenceSc) {
                    events.push(Event { role, does: Does::Fence, place: None });
                }
                events.push(match *access {
                    Access::St(place, x) => Event { role, does: Does::Store(x), place: Some(place) },
                    Access::Ld(place, _) => Event { role, does: Does::Load, place: Some(place) },
                });
            }
        }
        Program { events, order }
    }

    fn which(&self, wanted: impl Fn(&Event) -> bool) -> Vec<usize> {
        (0..self.events.len()).filter(|&i| wanted(&self.events[i])).collect()
    }

    /// The stores of a place, the first value among them.
    fn stores(&self, place: u32) -> Vec<usize> {
        self.which(|e| e.place == Some(place) && matches!(e.does, Does::Store(_)))
    }

    fn program_order(&self, i: usize, j: usize) -> bool {
        let (a, b) = (self.events[i].role, self.events[j].role);
        // Everything follows the first values.
        a == b && a.is_some() && i < j || a.is_none() && b.is_some()
    }

    fn overlap(&self, i: usize, j: usize) -> bool {
        self.events[i].place.is_some() && self.events[i].place == self.events[j].place
    }
}

impl Run<'_> {
    fn does(&self, i: usize) -> Does {
        self.program.events[i].does
    }

    fn is_store(&self, i: usize) -> bool {
        matches!(self.does(i), Does::Store(_))
    }

    /// Whether one store follows another in coherence order.
    fn coherent(&self, i: usize, j: usize) -> bool {
        self.is_store(i) && self.is_store(j) && self.program.overlap(i, j) && self.number[i] < self.number[j]
    }

    /// The relation of program order and of what synchronizes, over several steps (base causality order).
    fn base(&self) -> Relation {
        let (p, n) = (self.program, self.program.events.len());
        let strong = p.order == Order::AcquireRelease;
        // A release pattern is a release, or a fence and a store behind it. An acquire pattern is an acquire, or a load and a fence behind it.
        let releases = |first: usize, store: usize| match self.does(first) {
            Does::Fence => p.program_order(first, store),
            Does::Store(_) => {
                strong
                    && p.events[first].role.is_some()
                    && (first == store || p.program_order(first, store) && p.overlap(first, store))
            }
            Does::Load => false,
        };
        let acquires = |load: usize, last: usize| match self.does(last) {
            Does::Fence => p.program_order(load, last),
            Does::Load => strong && (load == last || p.program_order(load, last) && p.overlap(load, last)),
            Does::Store(_) => false,
        };
        let found = |first, last| {
            (0..n).any(|load| self.from[load].is_some_and(|store| releases(first, store)) && acquires(load, last))
        };
        let fences = |i, j| {
            let both = self.does(i) == Does::Fence && self.does(j) == Does::Fence;
            both && p.order == Order::FenceSc && self.number[i] < self.number[j]
        };
        Relation::of(n, |i, j| p.program_order(i, j) || found(i, j) || fences(i, j)).closed()
    }

    /// Whether the axioms allow it.
    fn is_allowed(&self) -> bool {
        let (p, n) = (self.program, self.program.events.len());
        let base = self.base();
        let preserved = |i, j| p.overlap(i, j) && base.has(i, j);
        let observed = |i, j| (0..n).any(|load| self.from[load] == Some(i) && preserved(load, j));
        let causes = |i, j| preserved(i, j) || observed(i, j);
        // A load precedes the stores behind the one that it finds.
        let overtaken = |load: usize, store| self.from[load].is_some_and(|found| self.coherent(found, store));
        let communicates = |i, j: usize| self.from[j] == Some(i) || self.coherent(i, j) || overtaken(i, j);
        let pairs = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        let fences =
            |(i, j)| self.does(i) == Does::Fence && self.does(j) == Does::Fence && base.has(i, j) && base.has(j, i);
        let is_coherent =
            pairs().all(|(i, j)| !(self.is_store(i) && self.is_store(j) && causes(i, j)) || self.coherent(i, j));
        let is_causal = pairs().all(|(i, j)| {
            let reads_later = self.from[i] == Some(j) && causes(i, j);
            let reads_older = self.is_store(i) && causes(i, j) && overtaken(j, i);
            !reads_later && !reads_older
        });
        let per_location = Relation::of(n, |i, j| p.overlap(i, j) && p.program_order(i, j) || communicates(i, j));
        is_coherent && is_causal && !pairs().any(fences) && !per_location.has_cycle()
    }

    /// The results of the loads, or what the places hold in the end if there are none.
    fn outcome(&self) -> Vec<u32> {
        let value = |i: usize| if let Does::Store(x) = self.does(i) { x } else { 0 };
        let loads: Vec<_> = self.from.iter().flatten().map(|&store| value(store)).collect();
        if !loads.is_empty() {
            return loads;
        }
        let last = |place| self.program.stores(place).into_iter().max_by_key(|&i| self.number[i]);
        [super::X, super::Y].map(|place| last(place).map_or(0, value)).to_vec()
    }
}

/// All orders of some things.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    let Some((&one, rest)) = of.split_first() else { return vec![Vec::new()] };
    let with = |order: Vec<usize>| {
        (0..=order.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, one);
            order
        })
    };
    orders(rest).into_iter().flat_map(with).collect()
}

/// All ways to take one of each.
fn choices(of: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let Some((one, rest)) = of.split_last() else { return vec![Vec::new()] };
    let with = |before: Vec<usize>| one.iter().map(move |&x| [before.clone(), vec![x]].concat());
    choices(rest).into_iter().flat_map(with).collect()
}

/// The outcomes that runs of a test can have if anything may happen, and those that PTX allows.
pub(super) fn outcomes(roles: &[&[Access]], order: Order) -> (BTreeSet<Vec<u32>>, BTreeSet<Vec<u32>>) {
    let program = Program::new(roles, order);
    let loads = program.which(|e| e.does == Does::Load);
    let found: Vec<_> = loads.iter().map(|&i| program.stores(program.events[i].place.unwrap_or(0))).collect();
    let fences = if order == Order::FenceSc { program.which(|e| e.does == Does::Fence) } else { Vec::new() };
    // The first value is the first store of its place.
    let orders =
        [super::X, super::Y].map(|place| orders(&program.stores(place)[1..])).into_iter().chain([orders(&fences)]);
    let orders: Vec<_> = orders.collect();
    let (mut all, mut allowed) = (BTreeSet::new(), BTreeSet::new());
    for from in choices(&found) {
        for picked in choices(&orders.iter().map(|orders| (0..orders.len()).collect()).collect::<Vec<_>>()) {
            let mut run = Run {
                program: &program,
                from: vec![None; program.events.len()],
                number: vec![0; program.events.len()],
            };
            loads.iter().zip(&from).for_each(|(&load, &store)| run.from[load] = Some(store));
            for (orders, picked) in orders.iter().zip(picked) {
                orders[picked].iter().enumerate().for_each(|(n, &event)| run.number[event] = n + 1);
            }
            if run.is_allowed() {
                allowed.insert(run.outcome());
            }
            all.insert(run.outcome());
        }
    }
    (all, allowed)
}

/// The examples of the manual.
#[test]
fn the_axioms_say_what_their_text_says() {
    use super::{CORR, LB, MP, SB};
    let forbidden = |roles, order| {
        let (all, allowed) = outcomes(roles, order);
        all.difference(&allowed).cloned().collect::<Vec<_>>()
    };
    assert_eq!(forbidden(MP, Order::Relaxed), [[0; 2]; 0]);
    assert_eq!(forbidden(MP, Order::Fence), [[1, 0]], "if r0 is 1, then r1 is 1");
    assert_eq!(forbidden(SB, Order::FenceSc), [[0, 0]], "r0 is 1, or r1 is 1");
    assert_eq!(forbidden(SB, Order::Fence), [[0; 2]; 0], "with fence.acq_rel this is not guaranteed");
    assert_eq!(forbidden(LB, Order::Relaxed), [[0; 2]; 0], "load buffering without dependencies is permitted");
    assert_eq!(forbidden(CORR, Order::Relaxed), [[1, 0], [3, 0], [3, 1]], "strictly consistent for each place");
}
