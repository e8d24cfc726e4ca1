//! Before a stretch of machine code is executed that loads words ([`Stretch`]), its windows are found: where the words of each lane are
//! ([`Window`]).
//!
//! A window serves all loads with one address register. How lanes lie is found out once, and compared the next time. If a word is not mapped or
//! not aligned, if lanes lie too far apart, or if a window would reach beyond the memory, there are no windows: the interpreter executes the
//! instructions, and says what is wrong.
#![allow(unsafe_code)]

use super::consts::Banks;
use super::host::wide;
use super::mem::{Shared, Tlb};
use super::runs::{Group, Space, Stretch, WINDOWS};
use super::warp::{self, Warp};
use sm87_native::{Arrangement, Host, Shape, Window};
use sm87_simd::{Simd, part};
use tegra_mm::Access;

/// After so many failures in a row, a window is not looked for as many times as [`REST`].
const FAILURES: u8 = 4;
const REST: u8 = 200;

/// The memory that loads read.
pub(crate) struct Memories<'m, 't> {
    pub tlb: &'m mut Tlb<'t>,
    pub shared: &'m mut Shared,
    pub banks: &'m Banks,
}

/// The lanes that execute a stretch, one bit each. At least one does.
#[derive(Clone, Copy)]
struct Lanes(u32);

impl Lanes {
    fn first(self) -> u32 {
        self.0.trailing_zeros() & 31
    }

    fn are_all(self) -> bool {
        self.0 == u32::MAX
    }
}

/// How the lanes of a group of loads lay, and where that was.
#[derive(Clone)]
struct Seen {
    /// The address register of each lane, without that of the first one that is active, and the least and the greatest of these as signed numbers.
    /// Without a shape, all numbers are [`NO_SHAPE`].
    at: [u32; 32],
    /// The lanes of which that is known.
    active: u32,
    least: i64,
    most: i64,
    shape: Shape,
    /// The extent of global memory: its address, its bytes, and the host's memory. It holds during a launch, because mappings do.
    start: u64,
    len: u64,
    host: *const u8,
    failures: u8,
    rest: u8,
    /// The group to whose words the window leads, and when that was so.
    group: u32,
    turn: u64,
}

/// A number that the first lane that is active never has.
const NO_SHAPE: u32 = 1;

impl Seen {
    const NOTHING: Seen = Seen {
        at: [NO_SHAPE; 32],
        active: u32::MAX,
        least: 0,
        most: 0,
        shape: Shape::NONE,
        start: 0,
        len: 0,
        host: std::ptr::null(),
        failures: 0,
        rest: 0,
        group: 0,
        turn: 0,
    };

    /// Whether the window leads to the words of a group.
    #[inline(always)]
    fn leads_to(&self, group: &Group, turn: u64) -> bool {
        self.turn == turn && self.group == group.number
    }

    /// Whether the lanes lie as those that were seen, whose shape is known. The registers are shifted if `SCALED`, and have high words if `PAIRS`, which
    /// must be the same.
    #[inline(always)]
    fn is_of<V: Simd, const SCALED: bool, const PAIRS: bool>(&self, w: &Warp, group: &Group, lanes: Lanes) -> bool {
        let scaled = |x: V| if SCALED { x.shl(V::splat(group.scale())) } else { x };
        let (row, first) = (w.src(group.a), scaled(V::splat(w.get(group.a, lanes.first()))));
        let (high, other) = (w.src(group.a.plus(1)), V::splat(w.get(group.a.plus(1), lanes.first())));
        let (mut gap, mut i) = (V::splat(0), 0);
        while i < 32 {
            // SAFETY: rows have 32 words, and a pair was lowered as two rows.
            unsafe {
                let (x, at) = (V::load(row.add(i)), V::load(self.at.as_ptr().add(i)));
                let mut apart = scaled(x).sub(first).xor(at);
                if PAIRS {
                    apart = apart.or(V::load(high.add(i)).xor(other));
                }
                gap = gap.or(if lanes.are_all() { apart } else { apart.and(V::from_bits(part::<V>(lanes.0, i))) });
            }
            i += V::LANES;
        }
        !gap.any()
    }

    /// Where the word of the first lane is, if the lanes lie as those that were seen, and the words and windows are in memory.
    #[inline(always)]
    fn again<V: Simd>(
        &mut self,
        w: &Warp,
        (group, lanes): (&Group, Lanes),
        of: &mut Memories<'_, '_>,
    ) -> Option<*const u8> {
        // Lanes that are spread have code for all lanes alone.
        if lanes.0 & !self.active != 0 || self.shape.spread && !lanes.are_all() {
            return None;
        }
        let first = lanes.first();
        match group.space {
            Space::Shared(0) if self.is_of::<V, false, false>(w, group, lanes) => {
                self.in_shared(w, (group, first), of.shared)
            }
            Space::Shared(1..) if self.is_of::<V, true, false>(w, group, lanes) => {
                self.in_shared(w, (group, first), of.shared)
            }
            Space::Pairs if self.is_of::<V, false, true>(w, group, lanes) => self.in_global(w, (group, first), of.tlb),
            Space::Words if self.is_of::<V, false, false>(w, group, lanes) => self.in_global(w, (group, first), of.tlb),
            Space::Bank(bank) if self.is_of::<V, false, false>(w, group, lanes) => {
                self.in_bank(w, (group, first), of.banks.bank(bank))
            }
            _ => None,
        }
    }

    /// Finds out how the lanes lie.
    fn learn(
        &mut self,
        window: &mut Window,
        host: Host,
        w: &Warp,
        (group, lanes): (&Group, Lanes),
        arrangement: Arrangement,
    ) {
        let row = w.row(group.a).map(|x| x << group.scale());
        let at = row.map(|x| x.wrapping_sub(row[lanes.first() as usize]));
        let signed = warp::lanes(lanes.0).map(|lane| i64::from(at[lane as usize] as i32));
        (self.least, self.most) = signed.fold((0, 0), |(least, most), x| (x.min(least), x.max(most)));
        self.active = lanes.0;
        (self.at, self.shape) = match window.arrange(host, &at, lanes.0, arrangement) {
            Some(shape) => (at, shape),
            None => ([NO_SHAPE; 32], Shape::NONE),
        };
    }

    /// Whether the words are aligned and among so many bytes, and the windows among those that may be read, if the word of the first lane is at `at`.
    #[inline(always)]
    fn fits(&self, group: &Group, at: u32, bytes: i64, readable: i64) -> bool {
        let (shape, first) = (&self.shape, i64::from(at));
        let (lowest, highest) = (first + i64::from(group.lowest), first + i64::from(group.highest));
        let inside = lowest + self.least >= 0 && highest + self.most + 4 <= bytes;
        let reads = lowest + shape.begin >= 0 && highest + shape.end <= readable;
        inside && reads && at & 3 == 0
    }

    #[inline(always)]
    fn in_shared(&self, w: &Warp, (group, first): (&Group, u32), shared: &mut Shared) -> Option<*const u8> {
        let own = w.get(group.a, first) << group.scale();
        let at = own.wrapping_add(group.offset).wrapping_add(w.get(group.c, 0));
        if !self.fits(group, at, shared.bytes().into(), shared.readable()) {
            return None;
        }
        shared.get(at, 4).map(<*mut u8>::cast_const)
    }

    #[inline(always)]
    fn in_bank(&self, w: &Warp, (group, first): (&Group, u32), (words, readable): (&[u32], i64)) -> Option<*const u8> {
        let at = w.get(group.a, first).wrapping_add(group.offset);
        let fits = self.fits(group, at, size_of_val(words) as i64, readable);
        fits.then(|| words.as_ptr().cast::<u8>().wrapping_add(at as usize))
    }

    #[inline(always)]
    fn in_global(&mut self, w: &Warp, (group, first): (&Group, u32), tlb: &mut Tlb<'_>) -> Option<*const u8> {
        let shape = &self.shape;
        let (low, high) =
            (w.get(group.a, first), if group.space == Space::Pairs { w.get(group.a.plus(1), first) } else { 0 });
        let offset = w.get64(group.c, 0).wrapping_add(group.offset as i32 as u64);
        let va = (u64::from(low) | u64::from(high) << 32).wrapping_add(offset);
        // The distance of two lanes is that of their low words, unless these go over the end of their range.
        let (least, most) = (i64::from(low) + self.least, i64::from(low) + self.most);
        if least < 0 || most > u32::MAX.into() || va & 3 != 0 {
            return None;
        }
        if va.wrapping_sub(self.start) >= self.len {
            let p = tlb.get(va, 4, false, Access::Read).ok().filter(|p| !p.is_null())?;
            let (before, len) = tlb.around(va);
            (self.start, self.len, self.host) = (va - before, len, p.wrapping_sub(before as usize));
        }
        let before = va - self.start;
        let begin = before as i64 + i64::from(group.lowest) + shape.begin;
        let end = before as i64 + i64::from(group.highest) + shape.end;
        (begin >= 0 && end <= self.len as i64).then(|| self.host.wrapping_add(before as usize))
    }

    /// Lets a window lead to the words of a group. The result is false if there is none.
    #[inline(always)]
    fn find<V: Simd>(
        &mut self,
        window: &mut Window,
        w: &Warp,
        of: &mut Memories<'_, '_>,
        host: Host,
        group: (&Group, Lanes),
    ) -> bool {
        if let Some(first) = self.again::<V>(w, group, of) {
            window.lead(host, &self.shape, first);
            self.failures = 0;
            return true;
        }
        self.find_anew(window, w, of, host, group)
    }

    /// The same for lanes that lie in another way, or where another window may be inside the memory.
    #[cold]
    fn find_anew(
        &mut self,
        window: &mut Window,
        w: &Warp,
        of: &mut Memories<'_, '_>,
        host: Host,
        group: (&Group, Lanes),
    ) -> bool {
        // The window leads nowhere until it is found again.
        self.turn = 0;
        // Where not all vectors can begin at the lowest word, they may end behind the highest one.
        let arrangements = [Arrangement::Forwards, Arrangement::Backwards, Arrangement::Spread];
        for &arrangement in &arrangements[..if group.1.are_all() { 3 } else { 2 }] {
            self.learn(window, host, w, group, arrangement);
            if let Some(first) = self.again::<u32>(w, group, of) {
                window.lead(host, &self.shape, first);
                // Lanes that are spread may lie in another way each time, and so may some lanes of a warp. To learn that takes longer than to load
                // the words.
                if self.shape.spread || !group.1.are_all() {
                    self.fail();
                } else {
                    self.failures = 0;
                }
                return true;
            }
        }
        self.fail();
        false
    }

    fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.rest = REST;
        }
    }
}

/// The windows of a stretch, and whether lanes of one are spread.
#[derive(Clone, Copy)]
pub(crate) struct Ready {
    pub windows: *const Window,
    pub spread: bool,
}

/// The windows of the stretches that a worker executes.
pub(crate) struct Windows {
    /// There are none before the first stretch.
    slots: Option<Box<Slots>>,
    /// The warp that looked for windows last, its lanes that did, and how often something was forgotten until then.
    warp: u32,
    active: u32,
    turn: u64,
}

/// The windows, and what was found of them.
struct Slots {
    found: [Window; WINDOWS],
    seen: [Seen; WINDOWS],
}

impl Windows {
    pub(crate) const NONE: Windows = Windows { slots: None, warp: 0, active: u32::MAX, turn: 1 };

    /// Forgets where the lanes are, because a jump was executed or a CTA begins.
    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.turn += 1;
    }

    /// The windows of a stretch, if other stretches have found all of them: what the first load of a chain finds serves the others, because no
    /// instruction between them writes their address registers.
    #[inline(always)]
    fn known(&self, w: &Warp, active: u32, stretch: &Stretch) -> Option<Ready> {
        let slots = self.slots.as_deref().filter(|_| self.warp == w.index && self.active == active)?;
        let mut spread = false;
        let mut known = |group: &Group| {
            let seen = &slots.seen[group.window()];
            spread |= seen.shape.spread;
            seen.leads_to(group, self.turn)
        };
        stretch.groups.iter().all(&mut known).then_some(Ready { windows: slots.found.as_ptr(), spread })
    }

    /// Whether the first window of a stretch is not looked for this time. Some lanes of a warp are often spread, and have no code for that.
    #[inline(always)]
    fn rests(&mut self, stretch: &Stretch) -> bool {
        let (Some(slots), Some(group)) = (&mut self.slots, stretch.groups.first()) else { return false };
        let rest = &mut slots.seen[group.window()].rest;
        let rests = *rest > 0;
        *rest -= u8::from(rests);
        rests
    }

    /// Finds the windows of a stretch for the lanes that execute it.
    #[inline(always)]
    fn find<V: Simd>(&mut self, w: &Warp, active: u32, of: &mut Memories<'_, '_>, stretch: &Stretch) -> Option<Ready> {
        if self.warp != w.index || self.active != active {
            (self.warp, self.active, self.turn) = (w.index, active, self.turn + 1);
        }
        let lanes = Lanes(active);
        let slots = self.slots.get_or_insert_with(Slots::new);
        let (mut n, mut spread) = (0, false);
        while n < stretch.groups.len() {
            let group = &stretch.groups[n];
            let (seen, window) = (&mut slots.seen[group.window()], &mut slots.found[group.window()]);
            if !seen.leads_to(group, self.turn) {
                if seen.rest > 0 {
                    seen.rest -= 1;
                    return None;
                }
                if !seen.find::<V>(window, w, of, stretch.host, (group, lanes)) {
                    return None;
                }
                (seen.turn, seen.group) = (self.turn, group.number);
            }
            spread |= seen.shape.spread;
            n += 1;
        }
        Some(Ready { windows: slots.found.as_ptr(), spread })
    }
}

impl Slots {
    #[cold]
    fn new() -> Box<Slots> {
        Box::new(Slots { found: [Window::NONE; WINDOWS], seen: [const { Seen::NOTHING }; WINDOWS] })
    }
}

/// The windows of a stretch for the lanes of a warp that are active. Without a result, the interpreter has to execute it.
///
/// # Safety
/// The host has the instruction set of [`super::host`], and the warp's arrays are those of the program.
#[inline(always)]
pub(crate) unsafe fn find(
    windows: &mut Windows,
    w: &Warp,
    active: u32,
    mut of: Memories<'_, '_>,
    stretch: &Stretch,
) -> Option<Ready> {
    if active != u32::MAX && windows.rests(stretch) {
        return None;
    }
    if let Some(known) = windows.known(w, active, stretch) {
        return Some(known);
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the conditions are those of this function.
    return unsafe { find_wide(windows, w, active, &mut of, stretch) };
    #[cfg(not(target_arch = "x86_64"))]
    windows.find::<u32>(w, active, &mut of, stretch)
}

wide! {
    unsafe fn find_wide(
        windows: &mut Windows,
        w: &Warp,
        active: u32,
        of: &mut Memories<'_, '_>,
        stretch: &Stretch,
    ) -> Option<Ready> {
        windows.find::<sm87_simd::avx2::Avx2>(w, active, of, stretch)
    }
}
