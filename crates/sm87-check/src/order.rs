//! What is known to have happened before what: in a CTA by the clocks of its warps, between CTAs by one clock for each.
//!
//! A warp's clock moves on whenever others may learn what the warp has done until then: at a barrier, and when it releases a
//! word with an atomic. An access happened before if the warp that makes the next one has learnt of its time. The lanes of a
//! warp count as one: machine code that executes together is ordered.

use super::quick::Quick;
use std::collections::VecDeque;

/// The most warps of a CTA.
pub(crate) const WARPS: usize = 32;
/// The times of all warps of a CTA.
pub(crate) type Times = [u32; WARPS];

/// Learns what another knows.
pub(crate) fn join(mine: &mut Times, theirs: &Times) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

/// How many phases of a barrier are remembered. A warp that comes late learns what the oldest of them knows.
const PHASES: usize = 64;

/// A barrier: what the warps that came to it in its last phases knew.
#[derive(Clone, Debug, Default)]
struct Meeting {
    /// The number of the newest phase.
    phase: u64,
    known: VecDeque<Times>,
}

/// The order of a CTA's warps.
#[derive(Debug)]
pub(crate) struct Order {
    /// For each warp, the times that it knows of all. Its own is the time now.
    known: Vec<Times>,
    /// The barrier and the phase at which each warp waits.
    waits: [Option<(usize, u64)>; WARPS],
    meetings: [Meeting; 16],
    /// What warps knew that have exited.
    exited: Times,
    /// The warps that have executed a fence since they were last at a barrier.
    fenced: u32,
    /// Words of shared memory through which warps tell each other what they know.
    words: Quick<u32, Times>,
    /// The time of the CTA, and the times of others that it knows.
    pub time: u32,
    pub others: Quick<u32, u32>,
    /// How much of what was told through words of global memory each warp has learnt.
    pub heard: Quick<(u64, u8), u64>,
    /// Whether the CTA has executed a fence, and one for the whole GPU.
    pub fence: bool,
    pub gpu_fence: bool,
}

impl Order {
    /// Nothing has happened.
    pub(crate) fn new() -> Order {
        let mut known = vec![[0; WARPS]; WARPS];
        known.iter_mut().enumerate().for_each(|(warp, times)| times[warp] = 1);
        Order {
            known,
            waits: [None; WARPS],
            meetings: Default::default(),
            exited: [0; WARPS],
            fenced: 0,
            words: Quick::default(),
            time: 1,
            others: Quick::default(),
            heard: Quick::default(),
            fence: false,
            gpu_fence: false,
        }
    }

    /// The time of a warp.
    pub(crate) fn now(&self, warp: usize) -> u32 {
        self.known[warp][warp]
    }

    /// Whether `warp` knows what `other` has done until `time`.
    pub(crate) fn knows(&self, warp: usize, other: usize, time: u32) -> bool {
        self.known[warp][other] >= time
    }

    /// A warp executes something: if it was at a barrier, the barrier is complete.
    pub(crate) fn goes_on(&mut self, warp: usize) {
        let Some((number, phase)) = self.waits[warp].take() else { return };
        let meeting = &self.meetings[number];
        let back = (meeting.phase - phase) as usize;
        let at = meeting.known.len().saturating_sub(1).saturating_sub(back);
        if let Some(known) = meeting.known.get(at) {
            join(&mut self.known[warp], known);
        }
        let exited = self.exited;
        join(&mut self.known[warp], &exited);
    }

    /// A warp comes to a barrier, and waits there or not. `begins` says that nobody was there since it was last complete.
    pub(crate) fn arrives(&mut self, warp: usize, number: usize, begins: bool, waits: bool) {
        let meeting = &mut self.meetings[number & 15];
        if begins || meeting.known.is_empty() {
            meeting.phase += 1;
            meeting.known.push_back([0; WARPS]);
            if meeting.known.len() > PHASES {
                meeting.known.pop_front();
            }
        }
        let phase = meeting.phase;
        if let Some(known) = meeting.known.back_mut() {
            join(known, &self.known[warp]);
        }
        self.known[warp][warp] += 1;
        self.fenced &= !(1 << warp);
        if waits {
            self.waits[warp] = Some((number & 15, phase));
        }
    }

    /// Lanes of a warp exit.
    pub(crate) fn exits(&mut self, warp: usize) {
        let known = self.known[warp];
        join(&mut self.exited, &known);
        self.known[warp][warp] += 1;
    }

    /// A warp executes a fence.
    pub(crate) fn fences(&mut self, warp: usize, whole_gpu: bool) {
        self.fenced |= 1 << warp;
        self.fence = true;
        self.gpu_fence |= whole_gpu;
    }

    /// Whether a warp has executed a fence since it was last at a barrier. What it stores then may be a flag.
    pub(crate) fn has_fenced(&self, warp: usize) -> bool {
        self.fenced >> warp & 1 == 1
    }

    /// A warp learns what others told through a word of shared memory.
    pub(crate) fn acquires(&mut self, warp: usize, word: u32) {
        if let Some(times) = self.words.get(&word) {
            join(&mut self.known[warp], times);
        }
    }

    /// A warp tells what it knows through a word of shared memory. [`Self::moves_on`] follows.
    pub(crate) fn releases(&mut self, warp: usize, word: u32) {
        let known = self.known[warp];
        join(self.words.entry(word).or_insert([0; WARPS]), &known);
    }

    /// What a warp knows.
    pub(crate) fn all_known(&mut self, warp: usize) -> &mut Times {
        &mut self.known[warp]
    }

    /// What a warp does from now on is not known to those that it told something.
    pub(crate) fn moves_on(&mut self, warp: usize) {
        self.known[warp][warp] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_orders_what_was_before_it() {
        let mut order = Order::new();
        let before = order.now(1);
        assert!(!order.knows(0, 1, before));
        order.arrives(0, 3, true, true);
        order.arrives(1, 3, false, true);
        order.goes_on(0);
        order.goes_on(1);
        assert!(order.knows(0, 1, before) && order.knows(1, 0, 1));
        assert!(!order.knows(0, 1, order.now(1)), "what comes behind it is not ordered");
        // The next phase begins before a warp has gone on from this one.
        order.arrives(0, 3, true, true);
        order.arrives(1, 3, false, true);
        order.goes_on(0);
        order.arrives(0, 3, true, false);
        let later = order.now(0);
        order.goes_on(1);
        assert!(order.knows(1, 0, later - 2) && !order.knows(1, 0, later - 1));
    }

    #[test]
    fn a_word_tells_what_its_writer_knew() {
        let mut order = Order::new();
        order.releases(4, 100);
        order.moves_on(4);
        order.acquires(5, 96);
        assert!(!order.knows(5, 4, 1));
        order.acquires(5, 100);
        assert!(order.knows(5, 4, 1) && !order.knows(5, 4, 2));
    }
}
