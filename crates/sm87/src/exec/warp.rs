//! A warp: its registers, its predicates, and where each of its lanes is.
//!
//! Lanes that execute together form a group: a pc and a mask. One group runs; the others wait, either for their
//! turn (the group with the lowest pc runs, groups that meet at one pc become one) or for lanes: at a convergence
//! barrier, at a WARPSYNC, at a CTA barrier.
#![allow(unsafe_code)]

use super::rows::{Dst, Row, Src, pred};
use super::uop::Pred;

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its turn.
    Turn,
    /// BSYNC: the lanes named by the convergence barrier in this row.
    Converge(Src),
    /// WARPSYNC: these lanes.
    Lanes(u32),
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
}

/// Instructions a group that was pushed aside may run before the lowest pc goes first again.
const TURN: u32 = 512;
/// Slices for which lanes at a convergence barrier wait for lanes that yield.
const PATIENCE: u32 = 2;

/// A warp.
pub(crate) struct Warp {
    /// Predicates as lane masks; see [`pred`].
    pub preds: [u32; pred::COUNT],
    /// The arrays [`Src`] refers to.
    bases: [*const u32; 3],
    /// The warp's own rows, writable.
    rows: *mut u32,
    /// Lanes of the running group; 0 = no group can run.
    pub active: u32,
    /// Where the running group is, whenever the interpreter is not inside a slice.
    pub pc: u32,
    /// The lowest pc among groups whose turn may come; the running group stops when it gets there.
    pub switch_at: u32,
    /// Lanes that have not exited.
    pub live: u32,
    groups: [Group; 32],
    count: usize,
    /// Waiting groups may have become free.
    recheck: bool,
    /// Index in the CTA.
    pub index: u32,
    /// Lanes that came to BAR.ARV and whose warp is not complete there, per barrier.
    pub arriving: [u32; 16],
    /// Lanes that executed YIELD since [`Self::starve`] last looked.
    pub yielded: u32,
    /// Slices in a row that ended with lanes waiting for lanes that run.
    starved: u32,
    /// Result of the last BAR.RED.
    pub reduction: u32,
    /// Instructions issued so far.
    pub issued: u64,
}

impl Warp {
    /// A warp at `entry` with `lanes` live; `rows`, cleared, belongs to it from now on.
    pub(crate) fn new(
        index: u32,
        lanes: u32,
        entry: u32,
        rows: &mut [Row],
        immediates: &[Row],
        constants: &[Row],
    ) -> Warp {
        let rows = rows.as_mut_ptr().cast::<u32>();
        let mut preds = [0; pred::COUNT];
        preds[usize::from(pred::PT)] = u32::MAX;
        preds[usize::from(pred::UNIFORM + 7)] = u32::MAX;
        Warp {
            preds,
            bases: [rows, immediates.as_ptr().cast(), constants.as_ptr().cast()],
            rows,
            active: lanes,
            pc: entry,
            switch_at: u32::MAX,
            live: lanes,
            groups: [Group { mask: 0, pc: 0, wait: Wait::Turn }; 32],
            count: 0,
            recheck: false,
            index,
            arriving: [0; 16],
            yielded: 0,
            starved: 0,
            reduction: 0,
            issued: 0,
        }
    }

    /// Moves to another image of the same program: new immediates and constants, pcs shifted by `delta`.
    pub(crate) fn rebase(&mut self, immediates: &[Row], constants: &[Row], delta: u32) {
        self.bases[1] = immediates.as_ptr().cast();
        self.bases[2] = constants.as_ptr().cast();
        self.pc = self.pc.wrapping_add(delta);
        for g in &mut self.groups[..self.count] {
            g.pc += delta;
        }
        if self.switch_at != u32::MAX {
            self.switch_at += delta;
        }
    }

    /// The row of a source operand.
    #[inline(always)]
    pub(crate) fn src(&self, s: Src) -> *const u32 {
        // SAFETY: lowering only makes sources inside the three arrays, and the grid gives every warp arrays of
        // the image it runs.
        unsafe { self.bases.get_unchecked(s.space()).add(s.offset()) }
    }

    /// The row of a destination.
    #[inline(always)]
    pub(crate) fn dst(&mut self, d: Dst) -> *mut u32 {
        // SAFETY: as for `src`; destinations are always in the warp's own rows.
        unsafe { self.rows.add(d.offset()) }
    }

    /// One lane of a source operand.
    #[inline(always)]
    pub(crate) fn get(&self, s: Src, lane: u32) -> u32 {
        debug_assert!(lane < 32);
        // SAFETY: a row has 32 words.
        unsafe { self.src(s).add(lane as usize & 31).read() }
    }

    /// One lane of a register pair.
    #[inline(always)]
    pub(crate) fn get64(&self, s: Src, lane: u32) -> u64 {
        u64::from(self.get(s, lane)) | u64::from(self.get(s.plus(1), lane)) << 32
    }

    /// Sets one lane of a destination.
    #[inline(always)]
    pub(crate) fn put(&mut self, d: Dst, lane: u32, value: u32) {
        // SAFETY: a row has 32 words.
        unsafe { self.dst(d).add(lane as usize & 31).write(value) }
    }

    /// Sets one lane of a register pair.
    #[inline(always)]
    pub(crate) fn put64(&mut self, d: Dst, lane: u32, value: u64) {
        self.put(d, lane, value as u32);
        self.put(d.plus(1), lane, (value >> 32) as u32);
    }

    /// Sets all lanes of a uniform register.
    #[inline(always)]
    pub(crate) fn broadcast(&mut self, d: Dst, value: u32) {
        self.fill(d, value, u32::MAX);
    }

    /// The lanes for which a predicate holds (lanes that are not active may be set too).
    #[inline(always)]
    pub(crate) fn pred(&self, p: Pred) -> u32 {
        self.preds[usize::from(p.index & 31)] ^ p.invert as i32 as u32
    }

    /// Writes the lanes in `mask` of a predicate.
    #[inline(always)]
    pub(crate) fn set_pred(&mut self, index: u8, mask: u32, value: u32) {
        let p = &mut self.preds[usize::from(index & 31)];
        *p = (*p & !mask) | (value & mask);
    }

    /// Whether every lane has exited.
    pub(crate) fn done(&self) -> bool {
        self.live == 0
    }

    /// Groups other than the running one.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Takes lanes out of the running group and puts them at `pc`; joins a group that waits there alike.
    pub(crate) fn park(&mut self, mask: u32, pc: u32, wait: Wait) {
        self.active &= !mask;
        self.push(mask, pc, wait);
        self.recheck |= wait != Wait::Turn;
    }

    fn push(&mut self, mask: u32, pc: u32, wait: Wait) {
        if mask == 0 {
            return;
        }
        match self.groups[..self.count].iter_mut().find(|g| g.pc == pc && g.wait == wait) {
            Some(g) => g.mask |= mask,
            None => {
                self.groups[self.count] = Group { mask, pc, wait };
                self.count += 1;
            }
        }
        if wait == Wait::Turn {
            self.switch_at = self.switch_at.min(pc);
        }
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

    /// Copies the lanes in `mask` of a row.
    #[inline(always)]
    pub(crate) fn copy(&mut self, d: Dst, s: Src, mask: u32) {
        if mask == u32::MAX {
            // SAFETY: rows have 32 words; the value is read before it is written.
            unsafe { self.dst(d).cast::<[u32; 32]>().write(self.src(s).cast::<[u32; 32]>().read()) };
            return;
        }
        for lane in lanes(mask) {
            let x = self.get(s, lane);
            self.put(d, lane, x);
        }
    }

    /// Sets the lanes in `mask` of a row to one value.
    #[inline(always)]
    pub(crate) fn fill(&mut self, d: Dst, value: u32, mask: u32) {
        if mask == u32::MAX {
            // SAFETY: rows have 32 words.
            unsafe { self.dst(d).cast::<[u32; 32]>().write([value; 32]) };
            return;
        }
        lanes(mask).for_each(|lane| self.put(d, lane, value));
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
        self.groups().iter().filter(|g| g.wait == Wait::Cta(n)).map(|g| g.mask).fold(0, |a, b| a | b)
    }

    /// CTA barrier `n` is complete: its lanes go on behind their BAR.
    pub(crate) fn release(&mut self, n: u8) {
        for i in 0..self.count {
            if self.groups[i].wait == Wait::Cta(n) {
                self.groups[i].wait = Wait::Turn;
                self.groups[i].pc += 1;
            }
        }
        self.elect();
    }

    /// Makes the group with the lowest pc the running one, merging groups that meet. `active` is 0 afterwards if
    /// no group can run.
    pub(crate) fn elect(&mut self) {
        self.settle();
        if self.active != 0 {
            let (mask, pc) = (self.active, self.pc);
            self.active = 0;
            self.push(mask, pc, Wait::Turn);
        }
        self.switch_at = u32::MAX;
        let turn = self.groups[..self.count].iter().filter(|g| g.wait == Wait::Turn);
        let Some(pc) = turn.map(|g| g.pc).min() else { return };
        self.run_at(pc);
    }

    /// Takes all groups at `pc` whose turn it is, and recomputes when to look again.
    fn run_at(&mut self, pc: u32) {
        self.pc = pc;
        self.active = 0;
        self.switch_at = u32::MAX;
        let mut kept = 0;
        for i in 0..self.count {
            let g = self.groups[i];
            if g.wait == Wait::Turn && g.pc == pc {
                self.active |= g.mask;
            } else {
                if g.wait == Wait::Turn {
                    self.switch_at = self.switch_at.min(g.pc);
                }
                self.groups[kept] = g;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Lets another group run for a while, so that lanes that spin do not starve the lanes they spin for. Says for
    /// how many instructions, if there is such a group.
    pub(crate) fn rotate(&mut self) -> Option<u32> {
        let next = self.groups().iter().filter(|g| g.wait == Wait::Turn).map(|g| g.pc);
        // The nearest above the running group, else the lowest: every group gets its turn.
        let next = next.clone().filter(|&pc| pc > self.pc).min().or_else(|| next.min())?;
        let (mask, pc) = (self.active, self.pc);
        self.push(mask, pc, Wait::Turn);
        self.run_at(next);
        self.switch_at = u32::MAX;
        Some(TURN)
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
        for i in 0..self.count {
            let g = self.groups[i];
            let Wait::Converge(row) = g.wait else { continue };
            let missing = lanes(g.mask).fold(0, |m, l| m | self.get(row, l)) & self.live & !g.mask;
            if missing & !yielded != 0 {
                continue;
            }
            // Neither side waits for the other any more.
            for lane in lanes(g.mask | missing) {
                let (keep, members) = (if g.mask >> lane & 1 == 1 { g.mask } else { !g.mask }, self.get(row, lane));
                self.put(row.as_dst(), lane, members & keep);
            }
        }
        self.recheck = true;
        self.elect();
    }

    /// Ends a turn given by [`Self::rotate`].
    pub(crate) fn end_turn(&mut self) {
        self.elect();
    }

    fn free_waiting(&mut self) {
        let mut i = 0;
        while i < self.count {
            let g = self.groups[i];
            let free = match g.wait {
                Wait::Turn | Wait::Cta(_) => 0,
                Wait::Converge(row) => self.converged(row, g.mask),
                Wait::Lanes(want) => {
                    let here = self.groups().iter().filter(|o| o.wait == g.wait).fold(0, |m, o| m | o.mask);
                    if want & self.live & !here == 0 { g.mask } else { 0 }
                }
            };
            if free == 0 {
                i += 1;
                continue;
            }
            // Freed lanes of a WARPSYNC leave together: mark all before any moves.
            if let Wait::Lanes(_) = g.wait {
                for o in self.groups[..self.count].iter_mut().filter(|o| o.wait == g.wait) {
                    o.wait = Wait::Turn;
                    o.pc += 1;
                    self.switch_at = self.switch_at.min(o.pc);
                }
                continue;
            }
            self.groups[i].mask &= !free;
            if self.groups[i].mask == 0 {
                self.count -= 1;
                self.groups[i] = self.groups[self.count];
            } else {
                i += 1;
            }
            self.push(free, g.pc + 1, Wait::Turn);
        }
    }

    /// Which of the lanes `here` at a BSYNC have all their partners with them.
    #[inline]
    pub(crate) fn converged(&self, row: Src, here: u32) -> u32 {
        let mut free = 0;
        for lane in lanes(here) {
            if self.get(row, lane) & self.live & !here == 0 {
                free |= 1 << lane;
            }
        }
        free
    }
}

/// The set bits of a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros();
        mask &= mask - 1;
        Some(lane)
    })
}
