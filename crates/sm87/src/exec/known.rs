//! What the engine knows about the addresses of a chain of loads ([`super::chains`]) from the last load of the chain.
//!
//! A load keeps what it found out, together with the index of the first load of its chain. This holds for the later loads of the
//! chain that the same lanes of the same warp execute, as long as no instruction jumps. So a jump and the start of a CTA make
//! the engine forget everything of the chain. What is left is how the lanes lay and in which mapping they were ([`Spot`]), with which the
//! first load of the chain compares its lanes when it is executed again.
#![allow(unsafe_code)]

use super::host::{self, LINE};
use super::uop::Uop;
use super::warp::Warp;
use super::windows::Windows;
use crate::isa::memory::bytes;
use sm87_simd::{Simd, part};

/// How the lanes of an access lie in the block of memory that contains them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The lanes follow each other without a gap.
    Row,
    /// All lanes use the same address.
    Same,
    /// The lanes lie in any other way.
    Scattered,
}

/// The numbers of lanes.
pub(super) trait Numbers<V> {
    /// Those of the lanes from `i` on.
    fn at(&self, i: usize) -> V;
    /// Zero for lanes whose number alone says where they are.
    fn elsewhere(&self, i: usize) -> V;
}

/// How the lanes of an access lie relative to each other. It also describes a later access of the same lanes if all of their
/// numbers have changed by the same amount.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// The active lanes, and the bytes of each lane's access. No lanes means that there is no layout.
    pub lanes: u32,
    pub len: u32,
    /// The number of the first active lane.
    pub first: u32,
    /// The number of each lane. In a vector with at least one active lane, the inactive lanes have the number of the first
    /// active lane of the access, so that loops can treat all lanes alike. In a vector without active lanes the numbers have no
    /// meaning.
    pub at: [u32; 32],
    pub how: Pattern,
    /// The least and the greatest number.
    pub least: u32,
    pub most: u32,
    /// Bit `i` describes the vector of lanes from `i` on. In `same` it says that all of these lanes have one number. In `again`
    /// it says that they have the same numbers as the vector before. In `rows` it says that they follow each other without a gap.
    pub same: u32,
    pub again: u32,
    pub rows: u32,
}

impl Layout {
    pub(crate) const NONE: Layout = Layout {
        lanes: 0,
        len: 0,
        first: 0,
        at: [0; 32],
        how: Pattern::Same,
        least: 0,
        most: 0,
        same: 0,
        again: 0,
        rows: 0,
    };

    /// Whether this layout describes the lanes in `on` with these numbers, of which the first is `first`.
    #[inline(always)]
    pub(super) fn is_of<V: Simd>(&self, on: u32, len: u32, first: u32, numbers: &impl Numbers<V>) -> bool {
        if self.lanes != on || self.len != len {
            return false;
        }
        let moved = V::splat(first.wrapping_sub(self.first));
        let (mut apart, mut i) = (V::splat(0), 0);
        while i < 32 {
            let active = part::<V>(on, i);
            if active != 0 {
                // SAFETY: the layout has 32 words.
                let at = unsafe { V::load(self.at.as_ptr().add(i)) };
                let gap = numbers.at(i).sub(moved).xor(at).or(numbers.elsewhere(i));
                apart = apart.or(if active == V::ALL { gap } else { V::from_bits(active).and(gap) });
            }
            i += V::LANES;
        }
        !apart.any()
    }

    /// The least and the greatest number if that of the first active lane is `first`.
    #[inline(always)]
    pub(super) fn span(&self, first: u32) -> (i64, i64) {
        let moved = i64::from(first) - i64::from(self.first);
        (i64::from(self.least) + moved, i64::from(self.most) + moved)
    }

    /// Whether all numbers are words if that of the first active lane is `first`.
    #[inline(always)]
    fn is_in_range(&self, first: u32) -> bool {
        let (least, most) = self.span(first);
        least >= 0 && most <= u32::MAX.into()
    }

    /// Whether lanes that lie so are within the bounds.
    #[inline(always)]
    pub(super) fn is_within(&self, bounds: Bounds) -> bool {
        let (least, most) = self.span(bounds.first);
        least >= bounds.least.into() && most <= bounds.most.into()
    }
}

/// The range of the lanes' numbers, which are the low words of their addresses.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// The number of the first active lane. Another lane is aligned if the bits of its number below the alignment are the same.
    pub first: u32,
    pub least: u32,
    pub most: u32,
}

/// Finds out how the lanes in `on` lie. The result is `None` if a lane is out of bounds, misaligned or elsewhere. Then there is
/// no layout.
#[inline(always)]
pub(super) fn arrange<V: Simd, const SIZE: u32>(
    layout: &mut Layout,
    on: u32,
    bounds: Bounds,
    numbers: &impl Numbers<V>,
) -> Option<()> {
    let len = const { bytes(SIZE) };
    if layout.is_within(bounds) && layout.is_of(on, len, bounds.first, numbers) {
        return Some(());
    }
    arrange_anew::<V, SIZE>(layout, on, bounds, numbers)
}

/// The same for lanes of which nothing is known.
#[inline(always)]
pub(super) fn arrange_anew<V: Simd, const SIZE: u32>(
    layout: &mut Layout,
    on: u32,
    bounds: Bounds,
    numbers: &impl Numbers<V>,
) -> Option<()> {
    let len = const { bytes(SIZE) };
    (layout.lanes, layout.len, layout.first) = (0, len, bounds.first);
    let (first, low) = (V::splat(bounds.first), V::splat(len - 1));
    let begin = bounds.first.wrapping_sub(on.trailing_zeros() * len);
    let (mut least, mut most) = (first, first);
    let (mut bad, mut same, mut row) = (V::splat(0), V::splat(0), V::splat(0));
    let (mut alike, mut again, mut begun, mut before) = (0, 0, false, first);
    // SAFETY: the steps have a vector's words, and the layout has 32.
    unsafe {
        let mut wanted = V::load(const { steps(bytes(SIZE)) }.as_ptr()).add(V::splat(begin));
        let mut i = 0;
        while i < 32 {
            let active = part::<V>(on, i);
            if active != 0 {
                let (mut x, mut wrong) = (numbers.at(i), numbers.elsewhere(i));
                let mut gap = x.xor(wanted);
                if active != V::ALL {
                    let active = V::from_bits(active);
                    (x, wrong, gap) = (active.select(x, first), active.and(wrong), active.and(gap));
                }
                let apart = x.xor(first);
                (least, most) = (least.minu(x), most.maxu(x));
                bad = bad.or(wrong).or(apart.and(low));
                same = same.or(apart);
                row = row.or(gap);
                let to = layout.at.as_mut_ptr().add(i);
                x.store(to);
                if SIZE > 4 {
                    alike |= u32::from(V::LANES > 1 && !x.xor(V::splat(to.read())).any()) << i;
                    again |= u32::from(begun && !x.xor(before).any()) << i;
                    (begun, before) = (true, x);
                }
            }
            wanted = wanted.add(V::splat(len * V::LANES as u32));
            i += V::LANES;
        }
    }
    (layout.least, layout.most) = (least.least(), most.most());
    if bad.any() || layout.least < bounds.least || layout.most > bounds.most {
        return None;
    }
    (layout.lanes, layout.same, layout.again, layout.rows) = (on, alike, again, 0);
    layout.how = if !same.any() {
        Pattern::Same
    } else if !row.any() {
        Pattern::Row
    } else {
        Pattern::Scattered
    };
    if SIZE == 4 && V::LANES > 1 && layout.how == Pattern::Scattered {
        pieces::<V>(layout);
    }
    Some(())
}

/// Finds the vectors whose lanes have one word, or words in a row: a block with rows of 8 or 16 threads uses its arrays so.
#[inline(always)]
fn pieces<V: Simd>(layout: &mut Layout) {
    (layout.same, layout.rows) = (0, 0);
    // SAFETY: the steps have a vector's words, and the layout has 32.
    let steps = unsafe { V::load(const { steps(4) }.as_ptr()) };
    for i in (0..32).step_by(V::LANES).filter(|&i| part::<V>(layout.lanes, i) == V::ALL) {
        // SAFETY: as above.
        let gap = unsafe { V::load(layout.at.as_ptr().add(i)) }.sub(V::splat(layout.at[i]));
        layout.same |= u32::from(!gap.any()) << i;
        layout.rows |= u32::from(!gap.xor(steps).any()) << i;
    }
}

/// The vector 0, `len`, 2 · `len` and so on.
pub(super) const fn steps(len: u32) -> [u32; 8] {
    let (mut steps, mut i) = ([0; 8], 0);
    while i < 8 {
        steps[i] = i as u32 * len;
        i += 1;
    }
    steps
}

/// Where the lanes of an access are: `base` plus a number of each lane's own.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub base: *mut u8,
    pub layout: &'a Layout,
}

impl<'a> Places<'a> {
    /// Lanes of which the first active one is at `first`.
    #[inline(always)]
    pub(super) fn new(first: *mut u8, layout: &'a Layout) -> Self {
        Places { base: first.wrapping_sub(layout.first as usize), layout }
    }

    pub(super) fn are_scattered(&self) -> bool {
        self.layout.how == Pattern::Scattered
    }

    /// Where the first lane would be if the lanes in `on` lie in a row. That lane need not be active.
    #[inline(always)]
    pub(super) fn begin(&self, on: u32, len: u32) -> *mut u8 {
        let lane = on.trailing_zeros();
        self.of(lane).wrapping_sub((lane * len) as usize)
    }

    /// Where an active lane is.
    #[inline(always)]
    pub(super) fn of(&self, lane: u32) -> *mut u8 {
        self.base.wrapping_add(self.layout.at[lane as usize & 31] as usize)
    }
}

/// Where the memory of an access is that lies in one extent.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Where the first active lane is.
    pub first: *mut u8,
    /// How far the access can be moved back, which is negative, and ahead without leaving the extent.
    pub back: i64,
    pub ahead: i64,
}

impl Found {
    pub(super) const NONE: Found = Found { first: std::ptr::null_mut(), back: 0, ahead: 0 };
}

/// How the lanes of an access to global memory lay, and where that was. It serves a later access of the same lanes as long as the
/// registers of all lanes have changed by the same amount, which they do in loops over arrays. It holds during a launch, because mappings do.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub layout: Layout,
    /// What was added to the registers, and the high words of these.
    uniform: u64,
    high: u32,
    /// The memory, for an access whose first lane has the number `layout.first`.
    found: Found,
}

impl Spot {
    pub(super) const NONE: Spot = Spot { layout: Layout::NONE, uniform: 0, high: 0, found: Found::NONE };

    /// Keeps where an access was that lies as the layout says. Its first lane has the number `first`.
    #[inline(always)]
    pub(super) fn keep(&mut self, first: u32, high: u32, uniform: u64, found: Found) {
        let moved = self.moved(first);
        let Found { first, back, ahead } = found;
        let found = Found { first: first.wrapping_offset(-(moved as isize)), back: back + moved, ahead: ahead + moved };
        (self.uniform, self.high, self.found) = (uniform, high, found);
    }

    /// Where an access is that lies in the same way, if it is in the same extent. Unrolled loops add different numbers to the same registers.
    #[inline(always)]
    pub(super) fn found(&self, first: u32, high: u32, uniform: u64) -> Option<Found> {
        let moved = self.moved(first).wrapping_add(uniform.wrapping_sub(self.uniform) as i64);
        let Found { first: at, back, ahead } = self.found;
        let known = self.layout.lanes != 0 && high == self.high;
        let inside = moved >= back && moved <= ahead;
        // Where the same is added to the registers, their low words have not gone over the end of their range inside the extent.
        if !known || !inside || uniform != self.uniform && !self.layout.is_in_range(first) {
            return None;
        }
        Some(Found { first: at.wrapping_offset(moved as isize), back: back - moved, ahead: ahead - moved })
    }

    fn moved(&self, first: u32) -> i64 {
        i64::from(first) - i64::from(self.layout.first)
    }
}

/// The number of chains that are known at a time.
const CHAINS: usize = 4;

/// How the lanes of a chain lie.
pub(crate) struct Chain {
    warp: u32,
    first: u32,
    /// The lanes of which this is known: those of the load, or more. 0 means that nothing is known.
    lanes: u32,
    /// The offset in the instruction.
    offset: i64,
    found: Found,
    spot: Spot,
    /// How far behind the access is the memory that the host should fetch meanwhile. 0 means that nobody knows.
    ahead: isize,
    /// How far the lanes move from one turn of a loop to the next, if each of them walks through memory of its own. 0 means that nobody knows.
    pub(super) step: isize,
}

/// In a loop over an array, a warp's next access is as far from this one as this one is from the last. The host finds that out by itself
/// only if the accesses are near each other, and a loop has so few instructions that one access ahead would be too late.
const TURNS_AHEAD: isize = 4;
/// The shortest and the longest distance of two accesses, in bytes, for which the host is told.
const STRIDES: std::ops::Range<usize> = 512..1 << 24;
/// The same for lanes that walk through memory of their own. The end of one CTA and the beginning of the next are farther apart.
const STEPS: std::ops::RangeInclusive<usize> = LINE..=1024;

impl Chain {
    const NONE: Chain =
        Chain { warp: 0, first: 0, lanes: 0, offset: 0, found: Found::NONE, spot: Spot::NONE, ahead: 0, step: 0 };

    /// The places of the lanes of the load `u`, if this chain tells them.
    #[inline(always)]
    pub(super) fn places(&self, w: &Warp, u: &Uop, lanes: u32, len: u32) -> Option<Places<'_>> {
        let offset = offset(u);
        (self.is_of(w, u, lanes) && self.fits(offset, len)).then(|| self.at(offset))
    }

    /// Whether this is known of the load `u`.
    #[inline(always)]
    fn is_of(&self, w: &Warp, u: &Uop, lanes: u32) -> bool {
        u.aux != 0 && lanes & !self.lanes == 0 && self.first == u.at - u32::from(u.aux) && self.warp == w.index
    }

    /// Whether the lanes of a load of this chain are aligned and in the same extent, if it has this offset. What else is added to the
    /// registers is the same for the whole chain.
    #[inline(always)]
    pub(super) fn fits(&self, offset: i64, len: u32) -> bool {
        let moved = offset - self.offset;
        moved >= self.found.back && moved <= self.found.ahead && moved & i64::from(len - 1) == 0
    }

    /// The places of the lanes of a load that has this offset.
    #[inline(always)]
    pub(super) fn at(&self, offset: i64) -> Places<'_> {
        let moved = offset - self.offset;
        Places::new(self.found.first.wrapping_add(moved as usize), &self.spot.layout)
    }

    /// Where the lanes were at the last access.
    #[inline(always)]
    pub(super) fn last(&self) -> &Spot {
        &self.spot
    }

    /// The place for what is found out. Nothing is known of the chain until [`Self::keep`] is called.
    #[inline(always)]
    pub(super) fn spot(&mut self) -> &mut Spot {
        self.lanes = 0;
        &mut self.spot
    }

    /// Keeps what was found out for a load.
    #[inline(always)]
    pub(super) fn keep(&mut self, w: &Warp, u: &Uop, lanes: u32, found: Found) {
        let (first, offset) = (u.at - u32::from(u.aux), offset(u));
        let again = self.warp == w.index && self.first == first && self.offset == offset;
        let stride = (found.first as isize).wrapping_sub(self.found.first as isize);
        self.ahead = if again && STRIDES.contains(&stride.unsigned_abs()) { TURNS_AHEAD * stride } else { 0 };
        if !again {
            self.step = 0;
        } else if STEPS.contains(&stride.unsigned_abs()) {
            self.step = stride;
        }
        (self.warp, self.first, self.lanes) = (w.index, first, lanes);
        (self.offset, self.found) = (offset, found);
    }

    /// Lets the host fetch what the lanes in `on` will load in the next turn of a loop, if each of them has loaded so many bytes in this one. The
    /// host can fetch only some lines at a time, so those that are loaded now come first.
    #[inline(always)]
    pub(super) fn fetch_next(&self, places: Places<'_>, on: u32, bytes: usize) {
        if self.step != 0 && bytes >= LINE {
            // Lanes that are not active have the place of one that is.
            let lanes = &places.layout.at[..32 - on.leading_zeros() as usize];
            for pair in (0..bytes as isize).step_by(2 * LINE) {
                let next = places.base.wrapping_offset(self.step + pair);
                for at in lanes {
                    let p = next.wrapping_add(*at as usize);
                    host::fetch(p);
                    host::fetch(p.wrapping_add(LINE));
                }
            }
        }
    }

    /// Lets the host fetch what the next turns of a loop will load, if this load of `len` bytes a lane is in one.
    #[inline(always)]
    pub(super) fn fetch_ahead(&self, places: Places<'_>, len: u32) {
        if self.ahead != 0 && places.layout.how == Pattern::Row {
            let p = places.of(0).wrapping_offset(self.ahead);
            (0..(32 * len as usize).max(LINE)).step_by(LINE).for_each(|line| host::fetch(p.wrapping_add(line)));
        }
    }
}

/// The offset in a load.
#[inline(always)]
pub(super) fn offset(u: &Uop) -> i64 {
    i64::from(u.imm as i32)
}

/// Instructions whose lanes were not in a row at their last access. A set knows them by the last bits of their indices, so that it may have
/// others, too.
#[derive(Clone, Copy)]
pub(super) struct Parted(u64);

impl Parted {
    #[inline(always)]
    pub(super) fn has(self, u: &Uop) -> bool {
        self.0 >> (u.at % 64) & 1 != 0
    }

    #[inline(always)]
    pub(super) fn add(&mut self, u: &Uop) {
        self.0 |= 1 << (u.at % 64);
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, u: &Uop) {
        self.0 &= !(1 << (u.at % 64));
    }
}

/// What is known of the chains that were met last.
pub(crate) struct Known {
    chains: [Chain; CHAINS],
    /// The same of the stores that were met last, and how the lanes of the last access to shared memory lay.
    stores: [Spot; CHAINS],
    pub(super) shared: Layout,
    /// The accesses to shared memory for which that layout is tried before a row.
    pub(super) parted: Parted,
    /// The windows of stretches of machine code.
    pub(super) windows: Windows,
}

impl Known {
    pub(crate) const NOTHING: Known = Known {
        chains: [const { Chain::NONE }; CHAINS],
        stores: [Spot::NONE; CHAINS],
        shared: Layout::NONE,
        parted: Parted(0),
        windows: Windows::NONE,
    };

    /// What may be known of the load `u` of `len` bytes. Chains with different address registers have different places, and so have loads
    /// of a word and of more with one register.
    #[inline(always)]
    pub(super) fn of(&mut self, u: &Uop, len: u32) -> &mut Chain {
        &mut self.chains[(u.a.offset() / 64 + if len > 4 { CHAINS / 2 } else { 0 }) % CHAINS]
    }

    /// The same of the store `u`.
    #[inline(always)]
    pub(super) fn of_store(&mut self, u: &Uop) -> &mut Spot {
        &mut self.stores[u.a.offset() / 64 % CHAINS]
    }

    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.chains.iter_mut().for_each(|chain| chain.lanes = 0);
        self.windows.forget();
    }
}
