//! Where the lanes of a warp are: groups, turns, and what groups wait for.
//!
//! Lanes that execute together form a group: a pc and a mask. One group runs; the others wait, either for their
//! turn (the group with the lowest pc runs, groups that meet at one pc become one) or for lanes: at a convergence
//! barrier, at a WARPSYNC, at a CTA barrier.
//!
//! Every lane has its own view of the convergence barriers: the mask of the lanes that it will meet. Lanes that execute
//! one BSSY get one view, and a callee that saves a barrier register and uses it again has another. So lanes that wait at
//! one BSYNC belong together only if their views are the same.
//!
//! Groups that meet become one only if they are in the same call: lanes that came to a function from different places do
//! not know of each other, and a function that asks which lanes are active wants to hear of its own caller's.

use super::rows::Src;
use super::uop::Flow;
use super::warp::{Warp, lanes};

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its turn.
    Turn,
    /// BSYNC: the lanes named by the convergence barrier in this row.
    Converge(Src),
    /// WARPSYNC: these lanes.
    Lanes(u32),
    /// WARPSYNC.EXCLUSIVE: these lanes, which then go on alone.
    Alone(u32),
    /// BAR: the other warps at CTA barrier `n`.
    Cta(u8),
}

/// Lanes at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub mask: u32,
    /// Index of the next instruction; for a waiting group, of the one it waits at.
    pub pc: u32,
    pub wait: Wait,
    /// Its turn comes before all others', and no group joins it, until it waits for something.
    pub alone: bool,
}

impl Group {
    pub(super) const NONE: Group = Group { mask: 0, pc: 0, wait: Wait::Turn, alone: false };

    /// One of its lanes.
    fn lane(self) -> usize {
        self.mask.trailing_zeros() as usize & 31
    }
}

/// An odd number, so that multiplying by it can be undone.
const MIX: u32 = 0x9e37_79b1;
const UNMIX: u32 = {
    // Newton's iteration doubles the number of bits that are right.
    let (mut x, mut bits) = (MIX, 3);
    while bits < 32 {
        x = x.wrapping_mul(2u32.wrapping_sub(MIX.wrapping_mul(x)));
        bits *= 2;
    }
    x
};

/// Instructions a group that was pushed aside may run before the lowest pc goes first again.
const TURN: u32 = 512;
/// Slices, and pauses, for which lanes at a convergence barrier wait for lanes that yield.
const PATIENCE: u32 = 8;
/// Looks in vain after which others run first.
const POLLS: u32 = 16;

impl Warp {
    /// Groups other than the running one.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Takes lanes out of the running group and puts them at `pc`; joins a group that waits there alike.
    pub(crate) fn park(&mut self, mask: u32, pc: u32, wait: Wait) {
        self.active &= !mask;
        self.push(mask, pc, wait, self.alone && wait == Wait::Turn);
        self.recheck |= wait != Wait::Turn;
    }

    fn push(&mut self, mask: u32, pc: u32, wait: Wait, alone: bool) {
        if mask == 0 {
            return;
        }
        let (frames, frame) = (&self.frames, self.frame(mask));
        let joins = |g: &&mut Group| {
            let together = wait != Wait::Turn || !alone && !g.alone && frames[g.lane()] == frame;
            g.pc == pc && g.wait == wait && together
        };
        match self.groups[..self.count].iter_mut().find(joins) {
            Some(g) => g.mask |= mask,
            None => {
                self.groups[self.count] = Group { mask, pc, wait, alone };
                self.count += 1;
            }
        }
        if wait == Wait::Turn {
            self.switch_at = if alone { 0 } else { self.switch_at.min(pc) };
        }
    }

    /// The call that lanes are in: a number made of the return addresses on the way there.
    fn frame(&self, mask: u32) -> u32 {
        self.frames[mask.trailing_zeros() as usize & 31]
    }

    /// Lanes call a function that will return to `back`.
    pub(crate) fn enter(&mut self, mask: u32, back: u32) {
        lanes(mask)
            .for_each(|l| self.frames[l as usize] = self.frames[l as usize].wrapping_mul(MIX).wrapping_add(back));
    }

    /// Lanes return to `back`.
    pub(crate) fn leave(&mut self, mask: u32, back: u32) {
        lanes(mask)
            .for_each(|l| self.frames[l as usize] = self.frames[l as usize].wrapping_sub(back).wrapping_mul(UNMIX));
    }

    /// Lanes leave for good.
    pub(crate) fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.active &= !mask;
        self.recheck = true;
    }

    /// A convergence barrier changed: lanes may have nothing to wait for any more.
    #[inline(always)]
    pub(crate) fn barrier_changed(&mut self) {
        if self.count != 0 {
            self.recheck = true;
            self.settle();
        }
    }

    /// Frees waiting groups that have nothing left to wait for; the interpreter looks at `switch_at` next.
    pub(crate) fn settle(&mut self) {
        if self.recheck {
            self.recheck = false;
            self.free_waiting();
        }
    }

    /// Lanes that wait at CTA barrier `n`.
    pub(crate) fn waiting_at(&self, n: u8) -> u32 {
        self.waiting(Wait::Cta(n))
    }

    /// Lanes that wait for this, wherever they are.
    fn waiting(&self, wait: Wait) -> u32 {
        self.groups().iter().filter(|g| g.wait == wait).fold(0, |mask, g| mask | g.mask)
    }

    /// CTA barrier `n` is complete: its lanes go on behind their BAR.
    pub(crate) fn release(&mut self, n: u8) {
        for g in self.groups[..self.count].iter_mut().filter(|g| g.wait == Wait::Cta(n)) {
            *g = Group { wait: Wait::Turn, pc: g.pc + 1, ..*g };
        }
        self.elect();
    }

    /// Makes the group with the lowest pc the running one, merging groups that meet. `active` is 0 afterwards if
    /// no group can run.
    pub(crate) fn elect(&mut self) {
        self.settle();
        self.stand_by();
        let turn = self.groups().iter().filter(|g| g.wait == Wait::Turn);
        // Those who go alone go first. The one that runs was put at the end, and goes on where it is as good as another.
        let next = turn.clone().rfind(|g| g.alone).or_else(|| turn.rev().min_by_key(|g| g.pc)).copied();
        self.switch_at = u32::MAX;
        if let Some(next) = next {
            self.run_next(next);
        }
    }

    /// Puts the running group among the others.
    fn stand_by(&mut self) {
        let mask = std::mem::take(&mut self.active);
        self.push(mask, self.pc, Wait::Turn, self.alone);
        self.alone = false;
    }

    /// Takes the groups whose turn it is where `next` is, and recomputes when to look again.
    fn run_next(&mut self, next: Group) {
        (self.pc, self.active, self.alone) = (next.pc, 0, next.alone);
        self.switch_at = u32::MAX;
        let frame = self.frame(next.mask);
        let mut kept = 0;
        for i in 0..self.count {
            let g = self.groups[i];
            let same = g.pc == next.pc && !g.alone && self.frames[g.lane()] == frame;
            let joins = if next.alone { g.mask == next.mask } else { same };
            if g.wait == Wait::Turn && joins {
                self.active |= g.mask;
                continue;
            }
            // Groups at one place that cannot join must not take turns there: see `cta::finish_block`.
            if g.wait == Wait::Turn && !next.alone && g.pc != next.pc {
                self.switch_at = self.switch_at.min(g.pc);
            }
            self.groups[kept] = g;
            kept += 1;
        }
        self.count = kept;
    }

    /// Whether lanes of this warp wait for their turn while others run.
    pub(crate) fn has_rivals(&self) -> bool {
        self.groups().iter().any(|g| g.wait == Wait::Turn)
    }

    /// Lets another group run for a while, so that lanes that spin do not starve the lanes they spin for. Says for
    /// how many instructions, if there is such a group.
    pub(crate) fn rotate(&mut self) -> Option<u32> {
        let turn = self.groups().iter().filter(|g| g.wait == Wait::Turn);
        // The nearest above the running group, else the lowest: every group gets its turn.
        let above = turn.clone().filter(|g| g.pc > self.pc).min_by_key(|g| g.pc);
        let next = above.or_else(|| turn.min_by_key(|g| g.pc)).copied()?;
        self.stand_by();
        self.run_next(next);
        self.switch_at = u32::MAX;
        Some(TURN)
    }

    /// Ends a turn given by [`Self::rotate`].
    pub(crate) fn end_turn(&mut self) {
        self.elect();
    }

    /// Lanes looked in vain whether they may go on: after some such looks others run first.
    pub(crate) fn poll(&mut self) -> Flow {
        self.polls += 1;
        if self.polls < POLLS {
            return Flow::Next;
        }
        self.polls = 0;
        Flow::Pause
    }

    /// A slice ended. Lanes at a convergence barrier whose partners spin, yielding, may wait for ever: perhaps it is
    /// them who hold what the others spin for. After a while the barrier lets them go.
    pub(crate) fn starve(&mut self) {
        if !self.groups().iter().any(|g| matches!(g.wait, Wait::Converge(_))) {
            self.starved = 0;
            self.yielded = 0;
            return;
        }
        self.starved += 1;
        if self.starved < PATIENCE {
            return;
        }
        let yielded = self.yielded;
        self.starved = 0;
        self.yielded = 0;
        if self.part(|missing| missing & !yielded == 0) {
            self.elect();
        }
    }

    /// Nothing in the CTA can run. Lanes that wait at convergence barriers for lanes of this warp that wait likewise, or
    /// at a WARPSYNC, do so only because the barriers are there: nobody promised that lanes converge, so they go on.
    /// Whether there were such lanes.
    pub(crate) fn unlock(&mut self) -> bool {
        let blocked = self.groups().iter().filter(|g| !matches!(g.wait, Wait::Cta(_)));
        let blocked = blocked.fold(0, |mask, g| mask | g.mask);
        let parted = self.part(|missing| missing & !blocked == 0);
        if parted {
            self.elect();
        }
        parted
    }

    /// Lets lanes at convergence barriers go on without their partners, where `may` agrees to those that are missing:
    /// neither side waits for the other any more. Whether there were such lanes.
    fn part(&mut self, may: impl Fn(u32) -> bool) -> bool {
        let mut parted = false;
        for i in 0..self.count {
            let g = self.groups[i];
            let Wait::Converge(row) = g.wait else { continue };
            let here = self.waiting(g.wait);
            for lane in lanes(g.mask) {
                let view = self.get(row, lane);
                let missing = view & self.live & !self.like(row, view, here);
                if missing != 0 && may(missing) {
                    self.forget(row, view, missing);
                    parted = true;
                }
            }
        }
        self.recheck |= parted;
        parted
    }

    /// The lanes among `here` that see `view` in a barrier row.
    #[inline]
    fn like(&self, row: Src, view: u32, here: u32) -> u32 {
        lanes(here).filter(|&l| self.get(row, l) == view).fold(0, |mask, l| mask | 1 << l)
    }

    /// The lanes `gone` leave the barrier that `view` is the view of, for all lanes that see it so.
    pub(crate) fn forget(&mut self, row: Src, view: u32, gone: u32) {
        for lane in 0..32 {
            if self.get(row, lane) == view {
                self.put(row.as_dst(), lane, if gone >> lane & 1 == 1 { gone } else { view & !gone });
            }
        }
    }

    fn free_waiting(&mut self) {
        // Lanes that wait for each other leave together: all are found before any moves.
        let free = (0..self.count).fold(0, |mask, i| mask | self.free_lanes(self.groups[i]));
        let mut i = 0;
        while free != 0 && i < self.count {
            let g = self.groups[i];
            let part = if g.wait == Wait::Turn { 0 } else { g.mask & free };
            self.groups[i].mask &= !part;
            if self.groups[i].mask == 0 {
                self.count -= 1;
                self.groups[i] = self.groups[self.count];
            } else {
                i += 1;
            }
            if !matches!(g.wait, Wait::Converge(_)) {
                self.push(part, g.pc + 1, Wait::Turn, matches!(g.wait, Wait::Alone(_)));
                continue;
            }
            let mut left = part;
            while left != 0 {
                let frame = self.frame(left);
                let alike = lanes(left).filter(|&l| self.frames[l as usize] == frame).fold(0, |mask, l| mask | 1 << l);
                self.push(alike, g.pc + 1, Wait::Turn, false);
                left &= !alike;
            }
        }
    }

    /// The lanes of a waiting group that have nothing left to wait for.
    fn free_lanes(&self, g: Group) -> u32 {
        match g.wait {
            Wait::Turn | Wait::Cta(_) => 0,
            Wait::Converge(row) => self.converged(row, self.waiting(g.wait)) & g.mask,
            Wait::Lanes(want) | Wait::Alone(want) if want & self.live & !self.waiting(g.wait) == 0 => g.mask,
            Wait::Lanes(_) | Wait::Alone(_) => 0,
        }
    }

    /// Which of the lanes `here` at a BSYNC have all their partners with them.
    #[inline]
    pub(crate) fn converged(&self, row: Src, here: u32) -> u32 {
        let (mut free, mut left) = (0, here);
        while left != 0 {
            let view = self.get(row, left.trailing_zeros());
            let alike = self.like(row, view, left);
            if view & self.live & !alike == 0 {
                free |= alike;
            }
            left &= !alike;
        }
        free
    }
}
