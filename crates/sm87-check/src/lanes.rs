//! What is known to have happened before what, lane by lane, as PTX's memory model says ([`super::strict`]).
//!
//! A warp has one clock, which moves on whenever one of its lanes lets others know what it has done until then. What all lanes of the
//! warp know is kept once, and what single lanes know beyond that with each lane.
//!
//! Lanes meet at barriers and at WARPSYNC. ptxas leaves a NOP where it has dropped a WARPSYNC because the lanes run together anyway.
//! A lane tells what it knew at its last fence through a strong store, and learns what it has heard by a strong load at its next fence.

use super::cells::Event;
use super::knowledge::{Knowledge, Told, Words, thread};
use super::order::WARPS;
use sm87::observe::lanes as each;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many phases of a barrier are remembered.
const PHASES: usize = 64;

/// Lanes that come together: what they know, and which of each warp have come.
#[derive(Clone, Debug)]
struct Gathering {
    known: Knowledge,
    came: [u32; WARPS],
}

/// A barrier of the CTA.
#[derive(Debug, Default)]
struct Meeting {
    /// The number of the newest phase.
    phase: u64,
    phases: VecDeque<Gathering>,
}

/// Lanes that wait for each other at a WARPSYNC.
#[derive(Debug)]
struct Sync {
    wanted: u32,
    came: u32,
    known: Knowledge,
}

/// What a lane knew at a fence: what all lanes of its warp knew and what it knew beyond that, and the time.
type Fence = (Arc<Knowledge>, Option<Arc<Knowledge>>, u32);

/// What a lane has found in a word through which others tell something. It learns it at a fence.
#[derive(Debug)]
struct Heard {
    lane: u32,
    word: u64,
    /// Whether its load is ordered with those of other CTAs.
    from_others: bool,
    told: Arc<Told>,
}

/// The order of a warp's lanes.
#[derive(Debug)]
struct OfWarp {
    time: u32,
    all: Arc<Knowledge>,
    lanes: [Option<Arc<Knowledge>>; 32],
    /// The last fence of each lane, and the last one that is for more than the CTA.
    fences: Option<Box<[[Option<Fence>; 32]; 2]>>,
    /// Whether there was a fence since the warp was last at a barrier.
    fenced: bool,
    heard: Vec<Heard>,
    /// The lanes that wait at a barrier, its number and the phase.
    waits: Vec<(u32, usize, u64)>,
    syncs: Vec<Sync>,
    /// The times at which groups of asynchronous copies were complete. The copies of later groups are not.
    copied: Vec<u32>,
    /// The number of groups that have begun.
    groups: u32,
}

impl OfWarp {
    fn new() -> OfWarp {
        OfWarp {
            time: 1,
            all: Arc::default(),
            lanes: Default::default(),
            fences: None,
            fenced: false,
            heard: Vec::new(),
            waits: Vec::new(),
            syncs: Vec::new(),
            copied: Vec::new(),
            groups: 0,
        }
    }

    /// Lanes learn something. `live` are those that have not exited.
    fn learn(&mut self, mask: u32, live: u32, known: &Knowledge) {
        if mask & live == live {
            return Arc::make_mut(&mut self.all).join(known);
        }
        for lane in each(mask) {
            Arc::make_mut(self.lanes[lane as usize].get_or_insert_default()).join(known);
        }
    }

    /// What lanes of this warp tell others now: what they know, and what they have done.
    fn gather(&mut self, warp: usize, mask: u32, live: u32, known: &mut Knowledge) {
        known.join(&self.all);
        let mut last: Option<&Arc<Knowledge>> = None;
        for lane in each(mask) {
            let Some(more) = &self.lanes[lane as usize] else { continue };
            if !last.replace(more).is_some_and(|last| Arc::ptr_eq(last, more)) {
                known.join(more);
            }
        }
        if mask & live == live {
            known.own.learn_warp(warp, self.time);
        } else {
            each(mask).for_each(|lane| known.own.learn(thread(warp, lane), self.time));
        }
    }

    /// Lanes that run together learn from each other.
    fn meet(&mut self, warp: usize, mask: u32, live: u32) {
        if mask & live == live && self.lanes.iter().all(Option::is_none) {
            Arc::make_mut(&mut self.all).own.learn_warp(warp, self.time);
        } else {
            let mut known = Knowledge::default();
            self.gather(warp, mask, live, &mut known);
            self.met(mask, live, known);
        }
        self.time += 1;
    }

    /// Lanes have met, and now know the same.
    fn met(&mut self, mask: u32, live: u32, known: Knowledge) {
        if mask & live == live {
            Arc::make_mut(&mut self.all).join(&known);
            each(mask).for_each(|lane| self.lanes[lane as usize] = None);
            return;
        }
        let known = Arc::new(known);
        each(mask).for_each(|lane| self.lanes[lane as usize] = Some(known.clone()));
    }
}

/// The order of a CTA's lanes.
#[derive(Debug)]
pub(crate) struct Lanes {
    cta: u32,
    warps: Vec<OfWarp>,
    meetings: [Meeting; 16],
    /// What lanes knew that have exited.
    exited: Option<Box<Knowledge>>,
    /// The words of shared memory through which lanes tell something.
    pub words: Words,
}

impl Lanes {
    /// Nothing has happened in the CTA.
    pub(crate) fn new(cta: u32) -> Lanes {
        Lanes { cta, warps: Vec::new(), meetings: Default::default(), exited: None, words: Words::default() }
    }

    /// The time of a warp.
    pub(crate) fn now(&self, warp: usize) -> u32 {
        self.warps[warp].time
    }

    /// The lanes `active` execute something: what they waited for has happened.
    pub(crate) fn goes_on(&mut self, warp: usize, active: u32, live: u32) {
        if self.warps.len() <= warp {
            self.warps.resize_with(warp + 1, OfWarp::new);
        }
        let of = &mut self.warps[warp];
        while let Some(at) = of.waits.iter().position(|(mask, ..)| mask & active != 0) {
            let (_, number, phase) = of.waits[at];
            // The barrier lets all lanes go on that wait there.
            let free = |wait: &(u32, usize, u64)| (wait.1, wait.2) == (number, phase);
            let mask = of.waits.iter().filter(|wait| free(wait)).fold(0, |mask, wait| mask | wait.0);
            of.waits.retain(|wait| !free(wait));
            let meeting = &self.meetings[number];
            let back = (meeting.phase - phase) as usize;
            let at = meeting.phases.len().saturating_sub(1).saturating_sub(back);
            if let Some(gathered) = meeting.phases.get(at) {
                of.learn(mask, live, &gathered.known);
                if mask & live == live {
                    // The barrier is for all that single lanes knew beyond the others, too.
                    each(mask).for_each(|lane| of.lanes[lane as usize] = None);
                }
            }
            if let Some(exited) = &self.exited {
                of.learn(mask, live, exited);
            }
        }
        while let Some(at) = of.syncs.iter().position(|sync| sync.came & active != 0) {
            let sync = of.syncs.swap_remove(at);
            of.met(sync.came, live, sync.known);
        }
    }

    /// Lanes come to a barrier, and wait there or not. `begins` says that nobody was there since it was last complete.
    pub(crate) fn arrives(&mut self, warp: usize, (mask, live): (u32, u32), number: usize, begins: bool, waits: bool) {
        self.acquires(warp, mask, live, false);
        let (meeting, of) = (&mut self.meetings[number & 15], &mut self.warps[warp]);
        if begins || meeting.phases.is_empty() {
            meeting.phase += 1;
            meeting.phases.push_back(Gathering { known: Knowledge::default(), came: [0; WARPS] });
            if meeting.phases.len() > PHASES {
                meeting.phases.pop_front();
            }
        }
        if let Some(gathered) = meeting.phases.back_mut() {
            of.gather(warp, mask, live, &mut gathered.known);
            gathered.came[warp] |= if waits { mask } else { 0 };
            if gathered.came[warp] & live == live {
                gathered.known.own.learn_warp(warp, of.time);
            }
        }
        of.time += 1;
        of.fenced = false;
        if waits {
            of.waits.push((mask, number & 15, meeting.phase));
        }
    }

    /// Lanes come to a WARPSYNC, with others that they wait for.
    pub(crate) fn synchronises(&mut self, warp: usize, (mask, live): (u32, u32), wanted: u32) {
        self.acquires(warp, mask, live, false);
        let of = &mut self.warps[warp];
        let at = of.syncs.iter().position(|sync| sync.wanted == wanted && sync.came & mask == 0);
        if at.is_none() && wanted & live & !mask == 0 {
            return of.meet(warp, mask, live);
        }
        let at = at.unwrap_or_else(|| {
            of.syncs.push(Sync { wanted, came: 0, known: Knowledge::default() });
            of.syncs.len() - 1
        });
        let mut sync = of.syncs.swap_remove(at);
        of.gather(warp, mask, live, &mut sync.known);
        sync.came |= mask;
        of.time += 1;
        of.syncs.push(sync);
    }

    /// Lanes that run together execute a NOP: it may stand for a WARPSYNC, or for a fence of the CTA.
    pub(crate) fn runs_together(&mut self, warp: usize, mask: u32, live: u32) {
        self.acquires(warp, mask, live, false);
        self.warps[warp].meet(warp, mask, live);
    }

    /// Lanes exit.
    pub(crate) fn exits(&mut self, warp: usize, mask: u32, live: u32) {
        let of = &mut self.warps[warp];
        of.gather(warp, mask, live, self.exited.get_or_insert_default());
        of.time += 1;
    }

    /// Lanes execute a fence, for other CTAs too if it is `wide`. What they tell from now on is what they know now.
    pub(crate) fn fences(&mut self, warp: usize, mask: u32, live: u32, wide: bool) {
        self.acquires(warp, mask, live, wide);
        let of = &mut self.warps[warp];
        let fences = of.fences.get_or_insert_default();
        for lane in each(mask).map(|lane| lane as usize) {
            let fence = (of.all.clone(), of.lanes[lane].clone(), of.time);
            if wide {
                fences[1][lane] = Some(fence.clone());
            }
            fences[0][lane] = Some(fence);
        }
        of.fenced = true;
        of.time += 1;
    }

    /// Lanes learn what they have heard, of other CTAs too if it is `wide`.
    pub(crate) fn acquires(&mut self, warp: usize, mask: u32, live: u32, wide: bool) {
        let (of, cta) = (&mut self.warps[warp], self.cta);
        if of.heard.is_empty() {
            return;
        }
        for at in (0..of.heard.len()).rev() {
            let heard = &of.heard[at];
            if mask >> heard.lane & 1 == 0 {
                continue;
            }
            let (lane, mut learnt) = (heard.lane, Knowledge::default());
            heard.told.teach(cta, wide && heard.from_others, &mut learnt);
            if wide || !heard.from_others || !heard.told.has_others(cta) {
                of.heard.swap_remove(at);
            }
            of.learn(1 << lane, live, &learnt);
        }
    }

    /// A lane has found a word through which others told something.
    pub(crate) fn hears(&mut self, warp: usize, lane: u32, word: u64, told: &Arc<Told>, from_others: bool) {
        let heard = &mut self.warps[warp].heard;
        let is_it = |heard: &&mut Heard| {
            (heard.lane, heard.word, heard.from_others) == (lane, word, from_others) && told.continues(&heard.told)
        };
        match heard.iter_mut().find(is_it) {
            Some(known) => known.told = told.clone(),
            None => heard.push(Heard { lane, word, from_others, told: told.clone() }),
        }
    }

    /// A lane learns at once what was told through a word.
    pub(crate) fn learns(&mut self, warp: usize, lane: u32, live: u32, told: &Told) {
        let mut learnt = Knowledge::default();
        told.teach(self.cta, false, &mut learnt);
        self.warps[warp].learn(1 << lane, live, &learnt);
    }

    /// What a lane tells its CTA by a strong store, and others if the store is `wide`: what it knew at its last fence.
    pub(crate) fn tells(&self, warp: usize, lane: u32, wide: bool) -> [Option<Knowledge>; 2] {
        [false, true].map(|others| {
            let (all, more, time) = self.warps[warp].fences.as_ref()?[usize::from(others)][lane as usize].as_ref()?;
            (wide || !others).then(|| {
                let mut known = Knowledge::clone(all);
                more.iter().for_each(|more| known.join(more));
                known.own.learn(thread(warp, lane), *time);
                known
            })
        })
    }

    /// What a lane tells that arrives at a barrier in memory, as a fence and a store do.
    pub(crate) fn tells_all(&mut self, warp: usize, lane: u32) -> Knowledge {
        let (of, mut known) = (&mut self.warps[warp], Knowledge::default());
        of.gather(warp, 1 << lane, u32::MAX, &mut known);
        of.time += 1;
        known
    }

    /// Whether a warp has executed a fence since it was last at a barrier. What it stores in shared memory then may be a flag.
    pub(crate) fn has_fenced(&self, warp: usize) -> bool {
        self.warps[warp].fenced
    }

    /// The group of the asynchronous copies that a warp issues now, and one.
    pub(crate) fn group(&self, warp: usize) -> u32 {
        self.warps[warp].groups + 1
    }

    /// The copies of a warp so far are a group.
    pub(crate) fn groups(&mut self, warp: usize) {
        self.warps[warp].groups += 1;
    }

    /// A warp waits for all groups but so many.
    pub(crate) fn awaits(&mut self, warp: usize, but: u32) {
        let of = &mut self.warps[warp];
        let complete = of.groups.saturating_sub(but) as usize;
        if complete > of.copied.len() {
            of.copied.resize(complete, of.time);
            of.time += 1;
        }
    }

    /// All copies of a warp are complete when a barrier in memory is.
    pub(crate) fn awaits_all(&mut self, warp: usize) {
        self.groups(warp);
        self.awaits(warp, 0);
    }

    /// The time at which an access was made. A copy that nobody has waited for is not.
    fn time_of(&self, event: &Event) -> Option<u32> {
        match event.copy {
            0 => Some(event.time),
            _ if event.cta != self.cta => Some(event.time),
            group => self.warps[usize::from(event.warp)].copied.get(group as usize - 1).copied(),
        }
    }

    /// Whether an access was made: it is no copy of the CTA that nobody has waited for.
    pub(crate) fn is_made(&self, event: &Event) -> bool {
        self.time_of(event).is_some()
    }

    /// Whether all lanes of the warp of the access `now` know of another access.
    pub(crate) fn all_know(&self, other: &Event, now: &Event) -> bool {
        let (all, warp) = (&self.warps[usize::from(now.warp)].all, usize::from(other.warp));
        let known = if other.cta == self.cta { all.own.of_warp(warp) } else { all.of_other_warp(other.cta, warp) };
        self.time_of(other).is_some_and(|time| known >= time)
    }

    /// Whether a lane knows of another access, which `lane` of its warp has made.
    pub(crate) fn knows(&self, other: (&Event, u8), now: (&Event, u8)) -> bool {
        let ((with, lane), (now, me)) = (other, now);
        let (of, warp) = (&self.warps[usize::from(now.warp)], usize::from(with.warp));
        let Some(time) = self.time_of(with) else { return false };
        if (with.cta, with.warp, lane) == (self.cta, now.warp, me) {
            return true;
        }
        let who = thread(warp, lane.into());
        let known = |by: &Knowledge| {
            let until = if with.cta == self.cta { by.own.of(who) } else { by.of_other(with.cta, who) };
            until >= time
        };
        known(&of.all) || of.lanes[usize::from(me)].as_ref().is_some_and(|more| known(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    /// Two warps of a CTA, which have begun.
    fn begun() -> Lanes {
        let mut lanes = Lanes::new(0);
        (0..2).for_each(|warp| lanes.goes_on(warp, ALL, ALL));
        lanes
    }

    /// An access of a warp now.
    fn access(lanes: &Lanes, warp: u8) -> Event {
        Event { time: lanes.now(warp.into()), warp, copy: 0, ..Event::default() }
    }

    /// Whether a lane of a warp knows what a lane of another has done.
    fn knows(lanes: &Lanes, (warp, lane): (u8, u8), other: (&Event, u8)) -> bool {
        lanes.knows(other, (&Event { warp, ..Event::default() }, lane))
    }

    #[test]
    fn lanes_know_of_each_other_when_they_have_met() {
        let mut lanes = begun();
        let store = access(&lanes, 0);
        assert!(knows(&lanes, (0, 3), (&store, 3)) && !knows(&lanes, (0, 4), (&store, 3)));
        lanes.synchronises(0, (0xff, ALL), 0xff);
        assert!(knows(&lanes, (0, 4), (&store, 3)) && !knows(&lanes, (0, 8), (&store, 3)));
        assert!(!knows(&lanes, (0, 4), (&store, 9)), "lane 9 was not there");
        lanes.runs_together(0, ALL, ALL);
        assert!(lanes.all_know(&store, &access(&lanes, 0)) && knows(&lanes, (0, 31), (&store, 9)));
        assert!(!knows(&lanes, (0, 4), (&access(&lanes, 0), 3)), "what comes behind it is not ordered");
        assert!(!knows(&lanes, (1, 4), (&store, 3)));
    }

    #[test]
    fn lanes_that_come_one_after_another_wait_for_each_other() {
        let mut lanes = begun();
        let store = access(&lanes, 0);
        lanes.synchronises(0, (0xffff, ALL), ALL);
        lanes.goes_on(0, 0xffff_0000, ALL);
        assert!(!knows(&lanes, (0, 20), (&store, 3)));
        lanes.synchronises(0, (0xffff_0000, ALL), ALL);
        lanes.goes_on(0, ALL, ALL);
        assert!(knows(&lanes, (0, 20), (&store, 3)) && knows(&lanes, (0, 3), (&store, 20)));
    }

    #[test]
    fn a_barrier_orders_the_lanes_that_came_to_it() {
        let mut lanes = begun();
        let (first, second) = (access(&lanes, 0), access(&lanes, 1));
        lanes.arrives(0, (0xff, ALL), 2, true, true);
        lanes.arrives(0, (!0xff, ALL), 2, false, true);
        lanes.arrives(1, (ALL, ALL), 2, false, true);
        assert!(!knows(&lanes, (1, 0), (&first, 3)), "it waits");
        (0..2).for_each(|warp| lanes.goes_on(warp, ALL, ALL));
        assert!(knows(&lanes, (1, 0), (&first, 3)) && knows(&lanes, (0, 9), (&second, 5)));
        assert!(knows(&lanes, (0, 9), (&first, 5)) && !knows(&lanes, (0, 9), (&access(&lanes, 1), 5)));
    }

    #[test]
    fn a_lane_tells_what_it_knew_at_its_fence_and_another_learns_it_at_its_own() {
        let mut lanes = begun();
        let (before, others) = (access(&lanes, 0), access(&lanes, 0));
        lanes.fences(0, 1 << 3, ALL, false);
        let behind = access(&lanes, 0);
        let told = lanes.tells(0, 3, true);
        assert!(told[0].is_some() && told[1].is_none(), "the fence is for the CTA");
        assert!(lanes.tells(0, 4, true).iter().all(Option::is_none));
        let mut words = Words::default();
        words.tell(64, 0, told, false);
        let told = words.get(64).cloned().unwrap_or_default();
        lanes.hears(1, 7, 64, &told, true);
        assert!(!knows(&lanes, (1, 7), (&before, 3)), "it has executed no fence");
        lanes.fences(1, 1 << 7, ALL, false);
        assert!(knows(&lanes, (1, 7), (&before, 3)) && !knows(&lanes, (1, 8), (&before, 3)));
        assert!(!knows(&lanes, (1, 7), (&behind, 3)) && !knows(&lanes, (1, 7), (&others, 4)));
    }

    #[test]
    fn a_copy_is_made_when_its_group_was_waited_for() {
        let mut lanes = begun();
        let first = Event { copy: lanes.group(0), ..access(&lanes, 0) };
        lanes.groups(0);
        let second = Event { copy: lanes.group(0), ..access(&lanes, 0) };
        lanes.groups(0);
        assert!(!knows(&lanes, (0, 3), (&first, 3)));
        lanes.awaits(0, 1);
        assert!(knows(&lanes, (0, 3), (&first, 3)) && !knows(&lanes, (0, 4), (&first, 3)));
        assert!(!knows(&lanes, (0, 3), (&second, 3)));
        lanes.awaits_all(0);
        lanes.runs_together(0, ALL, ALL);
        assert!(knows(&lanes, (0, 4), (&second, 3)));
    }
}
