//! What threads know of what others have done: for each thread of each CTA, the time until which it is known (a vector clock).
//!
//! Mostly, all lanes of a warp are known until the same time. So there is one time for each warp, and a list of the threads of which
//! more is known. What is known of other CTAs is shared until it changes.

use super::order::{Times, WARPS, join};
use super::quick::Quick;
use std::sync::Arc;

/// The number of a thread in its CTA.
pub(crate) fn thread(warp: usize, lane: u32) -> u16 {
    (warp as u16) << 5 | lane as u16 & 31
}

/// What is known of the threads of one CTA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The time until which all lanes of each warp are known.
    warps: Times,
    /// The threads of which more is known, in the order of their numbers.
    more: Vec<(u16, u32)>,
}

impl Known {
    /// The time until which all lanes of a warp are known.
    pub(crate) fn of_warp(&self, warp: usize) -> u32 {
        self.warps[warp % WARPS]
    }

    /// The time until which a thread is known.
    pub(crate) fn of(&self, thread: u16) -> u32 {
        let warp = self.of_warp(usize::from(thread >> 5));
        if self.more.is_empty() {
            return warp;
        }
        self.more.binary_search_by_key(&thread, |more| more.0).map_or(warp, |at| self.more[at].1.max(warp))
    }

    /// All lanes of a warp are known until a time.
    pub(crate) fn learn_warp(&mut self, warp: usize, time: u32) {
        let known = &mut self.warps[warp % WARPS];
        *known = (*known).max(time);
        self.forget_less();
    }

    /// A thread is known until a time.
    pub(crate) fn learn(&mut self, thread: u16, time: u32) {
        if self.of_warp(usize::from(thread >> 5)) >= time {
            return;
        }
        match self.more.binary_search_by_key(&thread, |more| more.0) {
            Ok(at) => self.more[at].1 = self.more[at].1.max(time),
            Err(at) => self.more.insert(at, (thread, time)),
        }
    }

    /// Learns what another one knows.
    pub(crate) fn join(&mut self, other: &Known) {
        join(&mut self.warps, &other.warps);
        self.forget_less();
        other.more.iter().for_each(|&(thread, time)| self.learn(thread, time));
    }

    fn forget_less(&mut self) {
        let warps = &self.warps;
        self.more.retain(|&(thread, time)| time > warps[usize::from(thread >> 5) % WARPS]);
    }
}

/// What is known of other CTAs, by their numbers.
type Others = Quick<u32, Arc<Known>>;

/// What is known of all threads of the grid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// Of the threads of the own CTA.
    pub own: Known,
    /// Of those of others.
    others: Option<Arc<Others>>,
}

impl Knowledge {
    /// Learns what another thread of the same CTA knows.
    pub(crate) fn join(&mut self, other: &Knowledge) {
        self.own.join(&other.own);
        let Some(theirs) = &other.others else { return };
        match &mut self.others {
            None => self.others = Some(theirs.clone()),
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => theirs.iter().for_each(|(cta, known)| learn(Arc::make_mut(mine), *cta, known)),
        }
    }

    /// A thread of the CTA `mine` learns what one of the CTA `theirs` knows.
    pub(crate) fn adopt(&mut self, mine: u32, theirs: u32, other: &Knowledge) {
        if mine == theirs {
            return self.join(other);
        }
        learn(Arc::make_mut(self.others.get_or_insert_default()), theirs, &Arc::new(other.own.clone()));
        for (cta, known) in other.others.iter().flat_map(|others| others.iter()) {
            if *cta == mine {
                self.own.join(known);
            } else {
                learn(Arc::make_mut(self.others.get_or_insert_default()), *cta, known);
            }
        }
    }

    /// The time until which a thread of another CTA is known.
    pub(crate) fn of_other(&self, cta: u32, thread: u16) -> u32 {
        self.others.as_ref().and_then(|others| others.get(&cta)).map_or(0, |known| known.of(thread))
    }

    /// The time until which all lanes of a warp of another CTA are known.
    pub(crate) fn of_other_warp(&self, cta: u32, warp: usize) -> u32 {
        self.others.as_ref().and_then(|others| others.get(&cta)).map_or(0, |known| known.of_warp(warp))
    }
}

fn learn(mine: &mut Others, cta: u32, known: &Arc<Known>) {
    let of = mine.entry(cta).or_insert_with(|| known.clone());
    if !Arc::ptr_eq(of, known) {
        Arc::make_mut(of).join(known);
    }
}

/// What was told through a word of memory since a store that was no change began its history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Tells one history from the next.
    history: u64,
    /// What the threads of each CTA told their own CTA, and what they told others.
    by: Quick<u32, [Option<Arc<Knowledge>>; 2]>,
}

impl Told {
    /// Whether what another one says is a part of this, or will be.
    pub(crate) fn continues(&self, other: &Told) -> bool {
        self.history == other.history
    }

    /// Whether other CTAs have told something.
    pub(crate) fn has_others(&self, cta: u32) -> bool {
        self.by.iter().any(|(by, told)| *by != cta && told[1].is_some())
    }

    /// What a thread of the CTA `mine` learns from it. Only if it `hears` others, it learns what they told.
    pub(crate) fn teach(&self, mine: u32, hears: bool, knowledge: &mut Knowledge) {
        for (by, [own, others]) in &self.by {
            let told = if *by == mine { own } else { others };
            if let Some(told) = told.as_ref().filter(|_| *by == mine || hears) {
                knowledge.adopt(mine, *by, told);
            }
        }
    }
}

/// The words of a memory through which threads have told something.
#[derive(Debug, Default)]
pub(crate) struct Words {
    words: Quick<u64, Arc<Told>>,
    histories: u64,
}

impl Words {
    /// Whether nothing was told.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// What was told through a word.
    pub(crate) fn get(&self, word: u64) -> Option<&Arc<Told>> {
        self.words.get(&word)
    }

    /// A thread of a CTA stores to a word, or changes it, and tells its own CTA and others something, or nothing.
    pub(crate) fn tell(&mut self, word: u64, cta: u32, told: [Option<Knowledge>; 2], changes: bool) {
        if told.iter().all(Option::is_none) {
            if !changes {
                self.words.remove(&word);
            }
            return;
        }
        let known = self.words.entry(word).or_default();
        let of = Arc::make_mut(known);
        if !changes || of.by.is_empty() {
            self.histories += 1;
            (of.history, of.by) = (self.histories, Quick::default());
        }
        let slots = of.by.entry(cta).or_default();
        for (slot, told) in slots.iter_mut().zip(told) {
            match (slot, told) {
                (_, None) => {}
                (Some(known), Some(told)) => Arc::make_mut(known).join(&told),
                (empty, Some(told)) => *empty = Some(Arc::new(told)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_known_of_some_threads_than_of_their_warps() {
        let mut known = Known::default();
        known.learn(thread(2, 5), 7);
        known.learn(thread(2, 5), 6);
        assert_eq!((known.of(thread(2, 5)), known.of(thread(2, 4)), known.of_warp(2)), (7, 0, 0));
        known.learn_warp(2, 7);
        assert_eq!((known.of(thread(2, 4)), known.more.len()), (7, 0), "nothing more is known now");
        known.learn(thread(2, 5), 7);
        assert_eq!(known.more.len(), 0);
        let mut other = Known::default();
        other.learn(thread(2, 9), 8);
        other.learn(thread(0, 1), 1);
        known.join(&other);
        assert_eq!([thread(2, 9), thread(2, 8), thread(0, 1), thread(0, 0)].map(|t| known.of(t)), [8, 7, 1, 0]);
    }

    #[test]
    fn what_a_cta_knows_of_another_reaches_a_third() {
        let (mut first, mut second, mut third) = (Knowledge::default(), Knowledge::default(), Knowledge::default());
        first.own.learn(thread(1, 3), 4);
        second.adopt(1, 0, &first);
        second.own.learn_warp(0, 9);
        third.adopt(2, 1, &second);
        assert_eq!((third.of_other(0, thread(1, 3)), third.of_other(0, thread(1, 2))), (4, 0));
        assert_eq!((third.of_other_warp(1, 0), third.of_other(1, thread(1, 3))), (9, 0));
        first.adopt(0, 2, &third);
        assert_eq!((first.own.of(thread(1, 3)), first.of_other(1, thread(0, 30))), (4, 9));
    }

    #[test]
    fn a_store_ends_what_was_told_before_and_a_change_goes_on() {
        let knows = |time| {
            let mut knowledge = Knowledge::default();
            knowledge.own.learn_warp(0, time);
            knowledge
        };
        let (mut words, told) = (Words::default(), |words: &Words, mine, hears| {
            let mut learnt = Knowledge::default();
            words.get(8).into_iter().for_each(|told| told.teach(mine, hears, &mut learnt));
            [0, 1].map(|cta| if cta == mine { learnt.own.of_warp(0) } else { learnt.of_other_warp(cta, 0) })
        });
        words.tell(8, 0, [Some(knows(3)), Some(knows(3))], true);
        words.tell(8, 1, [Some(knows(5)), None], true);
        assert_eq!(told(&words, 0, true), [3, 0], "CTA 1 has told its own threads alone");
        assert_eq!((told(&words, 1, true), told(&words, 1, false)), ([3, 5], [0, 5]));
        words.tell(8, 0, [None, None], true);
        assert_eq!(told(&words, 1, true), [3, 5]);
        words.tell(8, 1, [Some(knows(6)), Some(knows(6))], false);
        assert_eq!((told(&words, 0, true), told(&words, 1, true)), ([0, 6], [0, 6]));
        words.tell(8, 1, [None, None], false);
        assert!(words.is_empty());
    }
}
