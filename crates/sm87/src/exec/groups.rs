//! Groups of lanes in a warp: where they are, whose turn it is, and what they wait for.
//!
//! Lanes that execute together form a group, which has a pc and a mask. One group runs, and the others wait. They wait
//! for their turn or for lanes. The group with the lowest pc has the first turn, and groups that meet at one pc become
//! one group. Lanes are waited for at a convergence barrier, at a WARPSYNC and at a CTA barrier.
//!
//! Every lane has its own view of the convergence barriers, which is the mask of the lanes that it will meet. Lanes
//! that execute one BSSY together get the same view. A function that saves a barrier register and uses it again has
//! another view. So lanes that wait at one BSYNC belong together only if their views are the same.
//!
//! Groups that meet become one only if they are in the same call. Lanes that called a function from different places do
//! not know of each other, and a function that asks which lanes are active expects those of its own caller.

use super::rows::Src;
use super::warp::{Warp, lanes};
use std::fmt;

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The group waits for its turn.
    Turn,
    /// The group is at a BSYNC and waits for the lanes that the convergence barrier in this row names.
    Converge(Src),
    /// The group is at a WARPSYNC and waits for these lanes.
    Lanes(u32),
    /// The group is at a WARPSYNC.EXCLUSIVE and waits for these lanes. Each group then continues alone.
    Alone(u32),
    /// The group is at a BAR and waits for the other warps at CTA barrier `n`.
    Cta(u8),
}

/// What follows the word "wait" in a sentence.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Turn => f.write_str("for their turn"),
            Wait::Converge(_) => f.write_str("at BSYNC for lanes that never come"),
            Wait::Lanes(want) | Wait::Alone(want) => write!(f, "at WARPSYNC for lanes {want:#010x}"),
            Wait::Cta(n) => write!(f, "at barrier {n} for warps or lanes that never come"),
        }
    }
}

/// Lanes that are at the same instruction.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The lanes.
    pub mask: u32,
    /// The index of the next instruction. For a waiting group it is the instruction at which it waits.
    pub pc: u32,
    /// What it waits for.
    pub wait: Wait,
    /// Whether the group runs before all others and no group joins it, until it waits for something.
    pub alone: bool,
}

impl Group {
    pub(super) const NONE: Group = Group { mask: 0, pc: 0, wait: Wait::Turn, alone: false };

    /// The lowest lane of the group.
    fn lane(self) -> usize {
        self.mask.trailing_zeros() as usize & 31
    }
}

/// An odd number: multiplication by it can be undone.
const MIX: u32 = 0x9e37_79b1;
const UNMIX: u32 = {
    // Newton's iteration doubles the number of correct bits in each step.
    let (mut x, mut bits) = (MIX, 3);
    while bits < 32 {
        x = x.wrapping_mul(2u32.wrapping_sub(MIX.wrapping_mul(x)));
        bits *= 2;
    }
    x
};

/// The number of instructions that a group runs in a turn that it gets although another has a lower pc.
const TURN: u32 = 512;
/// The number of slices and pauses for which lanes at a convergence barrier wait for lanes that yield.
const PATIENCE: u32 = 8;
/// The number of polls without a new result after which other warps run first.
const POLLS: u32 = 16;

impl Warp {
    /// Lanes that wait for all lanes of the warp, at a CTA barrier or at the WARPSYNC in front of it, and others that do not come: those
    /// that run, if some do.
    pub fn torn(&self) -> Option<(Group, Group)> {
        let running = Group { mask: self.active, pc: self.pc, ..Group::NONE };
        let elsewhere = |g: &&Group| matches!(g.wait, Wait::Turn | Wait::Converge(_));
        let rest = if self.active != 0 { running } else { self.groups().iter().find(elsewhere).copied()? };
        let waits = |g: &&Group| match g.wait {
            Wait::Cta(_) => true,
            Wait::Lanes(wanted) | Wait::Alone(wanted) => wanted & rest.mask != 0,
            Wait::Turn | Wait::Converge(_) => false,
        };
        Some((*self.groups().iter().find(waits)?, rest))
    }

    /// The groups that do not run.
    pub fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Takes lanes out of the running group and puts them at `pc`. They join a group that waits there for the same
    /// thing.
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

    /// Identifies the call that lanes are in, by a number made of the return addresses on the way there.
    fn frame(&self, mask: u32) -> u32 {
        self.frames[mask.trailing_zeros() as usize & 31]
    }

    /// Notes that lanes call a function that will return to `back`.
    pub(crate) fn enter(&mut self, mask: u32, back: u32) {
        self.marked = true;
        lanes(mask)
            .for_each(|l| self.frames[l as usize] = self.frames[l as usize].wrapping_mul(MIX).wrapping_add(back));
    }

    /// Notes that lanes return to `back`.
    pub(crate) fn leave(&mut self, mask: u32, back: u32) {
        self.marked = true;
        lanes(mask)
            .for_each(|l| self.frames[l as usize] = self.frames[l as usize].wrapping_sub(back).wrapping_mul(UNMIX));
    }

    /// Notes that lanes exit.
    pub(crate) fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.active &= !mask;
        self.recheck = true;
    }

    /// Notes that a convergence barrier changed, so that waiting lanes may be able to continue.
    #[inline(always)]
    pub(crate) fn barrier_changed(&mut self) {
        if self.count != 0 {
            self.recheck = true;
            self.settle();
        }
    }

    /// Frees groups that have nothing left to wait for. The interpreter looks at `switch_at` next.
    pub(crate) fn settle(&mut self) {
        if self.recheck {
            self.recheck = false;
            self.free_waiting();
        }
    }

    /// The lanes that wait at CTA barrier `n`.
    pub(crate) fn waiting_at(&self, n: u8) -> u32 {
        self.waiting(Wait::Cta(n))
    }

    /// The lanes that wait for this, at any instruction.
    fn waiting(&self, wait: Wait) -> u32 {
        self.groups().iter().filter(|g| g.wait == wait).fold(0, |mask, g| mask | g.mask)
    }

    /// Lets the lanes in `mask` wait at CTA barrier `n`, to which they come at `pc`, if they are the whole warp. Then nobody else has to be
    /// looked at. Returns whether they are.
    #[inline(always)]
    pub(crate) fn stops_at(&mut self, n: u8, mask: u32, pc: u32) -> bool {
        if (self.count, self.recheck, mask) != (0, false, self.live) {
            return false;
        }
        self.groups[0] = Group { mask, pc, wait: Wait::Cta(n), alone: false };
        (self.count, self.active, self.pc, self.alone, self.switch_at) = (1, 0, pc + 1, false, u32::MAX);
        true
    }

    /// The CTA barrier at which all lanes wait that have not exited, if they came there together.
    #[inline(always)]
    pub(crate) fn stopped_at(&self) -> Option<u8> {
        match self.groups[0] {
            Group { wait: Wait::Cta(n), mask, .. }
                if (self.count, self.active, self.recheck, mask) == (1, 0, false, self.live) =>
            {
                Some(n)
            }
            _ => None,
        }
    }

    /// Whether all lanes that have not exited run together.
    pub(crate) fn is_whole(&self) -> bool {
        (self.count, self.recheck, self.alone, self.active) == (0, false, false, self.live) && self.active != 0
    }

    /// Completes CTA barrier `n`: its lanes continue after their BAR.
    #[inline(always)]
    pub(crate) fn release(&mut self, n: u8) {
        if self.stopped_at() != Some(n) {
            return self.release_groups(n);
        }
        let Group { mask, pc, .. } = self.groups[0];
        (self.count, self.active, self.pc, self.alone, self.switch_at) = (0, mask, pc + 1, false, u32::MAX);
    }

    fn release_groups(&mut self, n: u8) {
        for g in self.groups[..self.count].iter_mut().filter(|g| g.wait == Wait::Cta(n)) {
            *g = Group { wait: Wait::Turn, pc: g.pc + 1, ..*g };
        }
        self.elect();
    }

    /// Makes the group with the lowest pc the running one, and merges groups that meet. `active` is 0 afterwards if no
    /// group can run.
    pub(crate) fn elect(&mut self) {
        self.settle();
        // A warp that has come to a barrier has nothing to run.
        if self.active == 0 && !self.has_rivals() {
            (self.switch_at, self.alone) = (u32::MAX, false);
            return;
        }
        self.stand_by();
        let turn = self.groups().iter().filter(|g| g.wait == Wait::Turn);
        // A group that runs alone goes first. The group that was running is the last in the list, and it continues if
        // no other group has a lower pc.
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

    /// Makes all groups that are where `next` is the running group, and computes when to look again.
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
            // Groups at one instruction that cannot join must not take turns there: see `cta::finish_block`.
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

    /// Lets another group run for a while, so that lanes that wait in a loop do not keep the lanes from running that
    /// they wait for. Returns for how many instructions, if there is such a group.
    pub(crate) fn rotate(&mut self) -> Option<u32> {
        let turn = self.groups().iter().filter(|g| g.wait == Wait::Turn);
        // The group with the next higher pc than the last one that had a turn is chosen, or the lowest if there is none. In
        // this way every group gets its turn. It must not be the next one above the running group: two groups that spin
        // below the one that they wait for would have all turns, because the lowest pc runs first in every slice.
        let above = turn.clone().filter(|g| g.pc > self.turned).min_by_key(|g| g.pc);
        let next = above.or_else(|| turn.min_by_key(|g| g.pc)).copied()?;
        self.turned = next.pc;
        self.stand_by();
        self.run_next(next);
        self.switch_at = u32::MAX;
        Some(TURN)
    }

    /// Ends a turn that [`Self::rotate`] gave.
    pub(crate) fn end_turn(&mut self) {
        self.elect();
    }

    /// Notes a poll without a new result. Returns whether there were several of them, after which other warps run first.
    pub(crate) fn poll(&mut self) -> bool {
        self.polls = (self.polls + 1) % POLLS;
        self.polls == 0
    }

    /// Notes that a slice ended. Lanes at a convergence barrier may wait for ever if their partners loop and yield,
    /// because the waiting lanes may hold what the partners wait for. After a while the barrier lets the waiting lanes
    /// continue.
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

    /// Called when nothing in the CTA can run. Lanes may wait at convergence barriers for lanes of this warp that wait
    /// in the same way, or at a WARPSYNC. They wait only because the barriers are there, and no rule promises that
    /// lanes converge, so they continue. Returns whether there were such lanes.
    pub(crate) fn unlock(&mut self) -> bool {
        let blocked = self.groups().iter().filter(|g| !matches!(g.wait, Wait::Cta(_)));
        let blocked = blocked.fold(0, |mask, g| mask | g.mask);
        let parted = self.part(|missing| missing & !blocked == 0);
        if parted {
            self.elect();
        }
        parted
    }

    /// Lets lanes at convergence barriers continue without their missing partners if `may` accepts these. Neither side
    /// waits for the other any more. Returns whether there were such lanes.
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

    /// The lanes among `here` that have the view `view` in a barrier row.
    #[inline]
    fn like(&self, row: Src, view: u32, here: u32) -> u32 {
        lanes(here).filter(|&l| self.get(row, l) == view).fold(0, |mask, l| mask | 1 << l)
    }

    /// Removes the lanes `gone` from a barrier, for all lanes that have the view `view` of it.
    pub(crate) fn forget(&mut self, row: Src, view: u32, gone: u32) {
        for lane in 0..32 {
            if self.get(row, lane) == view {
                self.put(row.as_dst(), lane, if gone >> lane & 1 == 1 { gone } else { view & !gone });
            }
        }
    }

    fn free_waiting(&mut self) {
        // Lanes that wait for each other leave together, so all are found before any of them moves.
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

    /// Whether all lanes in `here`, which come to a BSYNC together, have all their partners with them. Mostly they have the same ones.
    #[inline(always)]
    pub(crate) fn converges(&self, row: Src, here: u32) -> bool {
        let (views, view) = (self.lanes_of(row), self.get(row, here.trailing_zeros()));
        let mut apart = 0;
        // A loop, because a closure would not get the instruction set of the handler.
        for (i, other) in views.iter().enumerate() {
            apart |= (other ^ view) & 0u32.wrapping_sub(here >> i & 1);
        }
        if apart == 0 { view & self.live & !here == 0 } else { self.converged(row, here) == here }
    }

    /// The lanes among `here`, which wait at a BSYNC, that have all their partners with them.
    #[inline]
    fn converged(&self, row: Src, here: u32) -> u32 {
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
