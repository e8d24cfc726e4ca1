//! A warp: its registers and predicates. [`super::groups`] keeps where its lanes are.
#![allow(unsafe_code)]

use super::groups::Group;
use super::rows::{self, Dst, Lasts, Pred, Row, Src, pred};
use std::cell::RefCell;
use std::thread::LocalKey;

/// What a watched instruction ([`super::poll`]) found the last time: its index, the lanes, and a number made of the values.
pub(crate) type Found = (u32, u32, u64);

/// A warp.
pub struct Warp {
    /// The predicates as lane masks; see [`pred`].
    pub(crate) preds: [u32; pred::COUNT],
    /// The arrays that [`Src`] refers to.
    bases: [*const u32; 3],
    /// The warp's own rows, which it may write.
    rows: *mut u32,
    /// The lanes of the running group. 0 means that no group can run.
    pub(crate) active: u32,
    /// The pc of the running group. It is valid when the interpreter is not inside a slice.
    pub(crate) pc: u32,
    /// The lowest pc of the groups that wait for their turn. The running group stops when it gets there.
    pub(crate) switch_at: u32,
    /// The lanes that have not exited.
    pub(crate) live: u32,
    pub(super) groups: [Group; 32],
    pub(super) count: usize,
    /// Whether waiting groups may be able to continue.
    pub(super) recheck: bool,
    /// Whether the running group runs before all others, and no group joins it.
    pub(crate) alone: bool,
    /// The pc at which the last turn of [`Self::rotate`] began.
    pub(super) turned: u32,
    /// A number for the call that each lane is in.
    pub(super) frames: [u32; 32],
    /// The index of the warp in the CTA.
    pub(crate) index: u32,
    /// For each barrier, the lanes that have executed BAR.ARV while other lanes of the warp have not.
    arriving: [u32; 16],
    /// The lanes that executed YIELD since the last call of [`Self::starve`].
    pub(crate) yielded: u32,
    /// The cycle at which the warp continues, if it sleeps.
    pub(crate) wake: u64,
    /// Whether lanes have read a clock since this was last asked.
    pub(crate) looked: bool,
    /// What watched instructions found recently.
    found: [Found; 8],
    /// Whether one of `frames`, `arriving` and `found` may be something else than zeros.
    pub(super) marked: bool,
    /// The number of polls in a row that found nothing new.
    pub(crate) polls: u32,
    /// The number of slices in a row that ended with lanes that wait for running lanes.
    pub(super) starved: u32,
    /// The result of the last BAR.RED.
    pub(crate) reduction: u32,
    /// The number of instructions issued so far.
    pub(crate) issued: u64,
    /// The instructions that a template stands for and that are not counted yet, and how many of them each lane executes.
    pub(crate) ahead: (u32, u32),
    /// Whether the warp has yet to execute the opening of its program.
    pub(crate) opens: bool,
}

thread_local! {
    static SPARE: RefCell<Vec<Vec<Warp>>> = const { RefCell::new(Vec::new()) };
}

impl Lasts for Warp {
    const SPARE: &'static LocalKey<RefCell<Vec<Vec<Warp>>>> = &SPARE;
}

impl Warp {
    /// The index of the warp in the CTA.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The lanes that run together. 0 means that none can run.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Makes a warp that has not begun.
    pub(crate) fn new(index: u32) -> Warp {
        Warp {
            preds: [0; pred::COUNT],
            bases: [std::ptr::null(); 3],
            rows: std::ptr::null_mut(),
            active: 0,
            pc: 0,
            switch_at: u32::MAX,
            live: 0,
            groups: [Group::NONE; 32],
            count: 0,
            recheck: false,
            alone: false,
            turned: 0,
            frames: [0; 32],
            index,
            arriving: [0; 16],
            yielded: 0,
            wake: 0,
            looked: false,
            found: [Found::default(); 8],
            marked: false,
            polls: 0,
            starved: 0,
            reduction: 0,
            issued: 0,
            ahead: (0, 0),
            opens: false,
        }
    }

    /// Begins at `entry` with the lanes `lanes`. The warp owns `rows`, which are cleared.
    pub(crate) fn begin(&mut self, lanes: u32, entry: u32, rows: &mut [Row], immediates: &[Row], constants: &[Row]) {
        // Warps begin often, so they are not made anew. This names every field, so that none is forgotten.
        let Warp {
            preds,
            bases,
            rows: own,
            active,
            pc,
            switch_at,
            live,
            groups: _, // as many as `count` says
            count,
            recheck,
            alone,
            turned,
            frames,
            index: _,
            arriving,
            yielded,
            wake,
            looked,
            found,
            marked,
            polls,
            starved,
            reduction,
            issued,
            ahead,
            opens,
        } = self;
        *preds = [0; pred::COUNT];
        preds[usize::from(pred::PT)] = u32::MAX;
        preds[usize::from(pred::UPT)] = u32::MAX;
        let first = rows.as_mut_ptr().cast::<u32>();
        (*bases, *own) = ([first, immediates.as_ptr().cast(), constants.as_ptr().cast()], first);
        (*active, *live, *pc, *switch_at) = (lanes, lanes, entry, u32::MAX);
        (*count, *recheck, *alone, *turned, *starved) = (0, false, false, 0, 0);
        if std::mem::take(marked) {
            (*frames, *arriving, *found) = ([0; 32], [0; 16], [Found::default(); 8]);
        }
        (*yielded, *wake, *looked, *polls, *reduction, *issued, *ahead, *opens) = (0, 0, false, 0, 0, 0, (0, 0), false);
    }

    /// Moves the warp to another image of the same program. It has new immediates and constants, and `moved` says which pc each pc
    /// becomes.
    pub(crate) fn rebase(&mut self, immediates: &[Row], constants: &[Row], moved: impl Fn(u32) -> u32) {
        self.bases[1] = immediates.as_ptr().cast();
        self.bases[2] = constants.as_ptr().cast();
        self.pc = moved(self.pc);
        self.turned = moved(self.turned);
        self.groups[..self.count].iter_mut().for_each(|g| g.pc = moved(g.pc));
        if self.switch_at != u32::MAX {
            self.switch_at = moved(self.switch_at);
        }
    }

    /// Clears the rows that a program uses and the one before it did not. Each has so many uniform registers and registers.
    pub(crate) fn uses(&mut self, before: [u32; 2], now: [u32; 2]) {
        for row in rows::new_rows(before, now).into_iter().flatten() {
            // SAFETY: the warp owns its rows, which are all that a program of the launch may use.
            unsafe { self.rows.cast::<Row>().add(row).write(Row::ZERO) };
        }
    }

    /// The row of a source operand.
    #[inline(always)]
    pub(crate) fn src(&self, s: Src) -> *const u32 {
        // SAFETY: lowering only makes sources inside of the three arrays, and the grid gives every warp the arrays of
        // the image that it runs.
        unsafe { self.bases.get_unchecked(s.space()).add(s.offset()) }
    }

    /// The row of a destination.
    #[inline(always)]
    pub(crate) fn dst(&mut self, d: Dst) -> *mut u32 {
        // SAFETY: lowering only makes destinations inside of the warp's own rows.
        unsafe { self.rows.add(d.offset()) }
    }

    /// Reads one lane of a source operand. It is one of an instruction of the program that the warp executes.
    #[inline(always)]
    pub fn get(&self, s: Src, lane: u32) -> u32 {
        debug_assert!(lane < 32);
        // SAFETY: a row has 32 words.
        unsafe { self.src(s).add(lane as usize & 31).read() }
    }

    /// The warp's own rows.
    #[inline(always)]
    pub(crate) fn own(&mut self) -> *mut u32 {
        self.rows
    }

    /// The words of constant banks.
    #[inline(always)]
    pub(crate) fn constants(&self) -> *const u32 {
        self.bases[2]
    }

    /// All lanes of a source operand. It is one of an instruction of the program that the warp executes.
    #[inline(always)]
    pub fn row(&self, s: Src) -> [u32; 32] {
        // SAFETY: a row has 32 words.
        unsafe { self.src(s).cast::<[u32; 32]>().read() }
    }

    /// The same without a copy.
    #[inline(always)]
    pub(super) fn lanes_of(&self, s: Src) -> &[u32; 32] {
        // SAFETY: a row has 32 words, and handlers, which write rows, borrow the warp mutably.
        unsafe { &*self.src(s).cast::<[u32; 32]>() }
    }

    /// Sets all lanes of a destination.
    #[inline(always)]
    pub(crate) fn put_row(&mut self, d: Dst, row: &[u32; 32]) {
        // SAFETY: a row has 32 words.
        unsafe { self.dst(d).cast::<[u32; 32]>().write(*row) };
    }

    /// Sets the lanes in `mask` of a destination to those of `row`.
    #[inline(always)]
    pub(crate) fn put_lanes(&mut self, d: Dst, row: &[u32; 32], mask: u32) {
        if mask == u32::MAX {
            return self.put_row(d, row);
        }
        lanes(mask).for_each(|lane| self.put(d, lane, row[lane as usize & 31]));
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

    /// The lanes for which a predicate holds. Lanes that are not active may be set too.
    #[inline(always)]
    pub fn pred(&self, p: Pred) -> u32 {
        self.preds[usize::from(p.index & 31)] ^ p.invert as i32 as u32
    }

    /// Notes that lanes arrive at CTA barrier `n` without waiting there. Returns whether all lanes of the warp now have.
    pub(crate) fn arrives(&mut self, n: usize, lanes: u32) -> bool {
        self.marked = true;
        self.arriving[n] |= lanes;
        let all = self.arriving[n] & self.live == self.live;
        if all {
            self.arriving[n] = 0;
        }
        all
    }

    /// Notes what a watched instruction finds, at one of a few places. Returns whether it is something new.
    #[inline(always)]
    pub(crate) fn finds(&mut self, place: u32, now: Found) -> bool {
        self.marked = true;
        let place = place as usize % self.found.len();
        std::mem::replace(&mut self.found[place], now) != now
    }

    /// Sets a predicate for the lanes in `mask`.
    #[inline(always)]
    pub(crate) fn set_pred(&mut self, index: u8, mask: u32, value: u32) {
        let p = &mut self.preds[usize::from(index & 31)];
        *p = (*p & !mask) | (value & mask);
    }

    /// Whether every lane has exited.
    pub fn done(&self) -> bool {
        self.live == 0
    }

    /// Copies the lanes in `mask` of a row.
    #[inline(always)]
    pub(crate) fn copy(&mut self, d: Dst, s: Src, mask: u32) {
        if mask == u32::MAX {
            // SAFETY: rows have 32 words, and the value is read before it is written.
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
}

/// The numbers of the set bits of a mask, lowest first.
#[inline(always)]
pub fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros();
        mask &= mask - 1;
        Some(lane)
    })
}
