//! Accesses in which all lanes use one block of memory. They are executed for all lanes together.
#![allow(unsafe_code)]

use super::super::special::bytes;
use super::{deposit, extend, fetch};
use crate::exec::simd::Simd;
use crate::exec::uop::Uop;
use crate::exec::warp::{Warp, lanes};

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

/// Where the lanes of an access are: `base` plus an offset of each lane. In a vector with at least one active lane, the
/// inactive lanes have the offset of the first active lane of the access, so that loops can treat all lanes alike. In a vector
/// without active lanes the offsets have no meaning.
pub(super) struct Places {
    pub base: *mut u8,
    pub at: [u32; 32],
    pub how: Pattern,
}

impl Places {
    /// Where the first lane would be if the lanes in `on` lie in a row. That lane need not be active.
    #[inline(always)]
    fn begin(&self, on: u32, len: u32) -> *mut u8 {
        let lane = on.trailing_zeros();
        self.base.wrapping_add(self.at[lane as usize & 31] as usize).wrapping_sub((lane * len) as usize)
    }
}

/// If at most this many lanes are active, they are loaded one by one.
const FEW: u32 = 6;

/// The range of the lanes' numbers, which are the low words of their addresses.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// The number of the first active lane. Another lane is aligned if the bits of its number below the alignment are the same.
    pub first: u32,
    pub least: u32,
    pub most: u32,
}

/// Finds out how lanes lie. `at(i)` gives the numbers of the lanes from `i` on. `other(i)` is zero for lanes whose number
/// alone says where they are. The result is `None` if a lane in `on` is out of bounds or misaligned, or if its `other` is not
/// zero.
#[inline(always)]
pub(super) fn arrange<V: Simd, const SIZE: u32>(
    on: u32,
    bounds: Bounds,
    at: impl Fn(usize) -> V,
    other: impl Fn(usize) -> V,
) -> Option<([u32; 32], Pattern)> {
    let len = const { bytes(SIZE) };
    let (first, low) = (V::splat(bounds.first), V::splat(len - 1));
    let begin = bounds.first.wrapping_sub(on.trailing_zeros() * len);
    let (least, most) = (V::splat(bounds.least), V::splat(bounds.most));
    let (mut bad, mut same, mut row) = (V::splat(0), V::splat(0), V::splat(0));
    let mut places = [0; 32];
    // SAFETY: `STEPS` and `places` have 32 words.
    unsafe {
        let mut wanted = V::load(const { steps(bytes(SIZE)) }.as_ptr()).add(V::splat(begin));
        let mut i = 0;
        while i < 32 {
            if idle::<V>(on, i) {
                wanted = wanted.add(V::splat(len * V::LANES as u32));
                i += V::LANES;
                continue;
            }
            let (mut x, mut wrong) = (at(i), other(i));
            let mut gap = x.xor(wanted);
            if on != u32::MAX {
                let active = V::from_bits(on >> i);
                (x, wrong, gap) = (active.select(x, first), active.and(wrong), active.and(gap));
            }
            let apart = x.xor(first);
            let outside = x.maxu(least).minu(most).xor(x);
            bad = bad.or(wrong).or(outside).or(apart.and(low));
            same = same.or(apart);
            row = row.or(gap);
            wanted = wanted.add(V::splat(len * V::LANES as u32));
            x.store(places.as_mut_ptr().add(i));
            i += V::LANES;
        }
    }
    if bad.any() {
        return None;
    }
    let how = if !same.any() {
        Pattern::Same
    } else if !row.any() {
        Pattern::Row
    } else {
        Pattern::Scattered
    };
    Some((places, how))
}

/// The vector 0, `len`, 2 · `len` and so on.
const fn steps(len: u32) -> [u32; 8] {
    let (mut steps, mut i) = ([0; 8], 0);
    while i < 8 {
        steps[i] = i as u32 * len;
        i += 1;
    }
    steps
}

/// Whether all lanes of a vector from lane `i` on are inactive.
#[inline(always)]
fn idle<V: Simd>(on: u32, i: usize) -> bool {
    on != u32::MAX && on >> i & const { u32::MAX >> (32 - V::LANES) } == 0
}

/// Writes the active lanes from `i` on to a row.
///
/// # Safety
/// `row` has 32 words.
#[inline(always)]
unsafe fn put<V: Simd>(row: *mut u32, i: usize, on: u32, x: V) {
    // SAFETY: rows have 32 words.
    unsafe {
        let p = row.add(i);
        let x = if on == u32::MAX { x } else { V::from_bits(on >> i).select(x, V::load(p)) };
        x.store(p);
    }
}

/// Loads all lanes in `on` from a block.
///
/// # Safety
/// `at` was arranged for a block that is readable.
#[inline(always)]
pub(super) unsafe fn load_block<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, on: u32, places: &Places) {
    let words = const { bytes(SIZE).div_ceil(4) };
    let (base, at) = (places.base.cast_const(), &places.at);
    // SAFETY: `arrange` found every lane inside the block, with `SIZE`'s bytes left, and aligned; rows have 32 words.
    unsafe {
        let p = base.wrapping_add(at[on.trailing_zeros() as usize & 31] as usize);
        if places.how == Pattern::Same {
            let found = read::<SIZE>(p);
            for k in 0..words {
                let (d, mut i) = (w.dst(u.d.plus(k)), 0);
                while i < 32 {
                    put(d, i, on, V::splat(found[k as usize]));
                    i += V::LANES;
                }
            }
            return;
        }
        if SIZE > 4 {
            return wide::<V, SIZE>(w, u, on, places);
        }
        let d = w.dst(u.d);
        if SIZE == 4 && places.how == Pattern::Row && on != u32::MAX {
            let (p, mut i) = (places.begin(on, 4).cast::<u32>(), 0);
            while i < 32 {
                let mask = V::from_bits(on >> i);
                let found = V::load_some(p.wrapping_add(i), mask);
                mask.select(found, V::load(d.add(i))).store(d.add(i));
                i += V::LANES;
            }
            return;
        }
        if on.count_ones() <= FEW {
            lanes(on).for_each(|lane| fetch(w, u, SIZE, lane, base.add(at[lane as usize] as usize)));
            return;
        }
        match (SIZE, places.how) {
            (4, Pattern::Row) if on == u32::MAX => std::ptr::copy_nonoverlapping(p.cast(), d, 32),
            (2 | 3, Pattern::Row) if on == u32::MAX => {
                let found = p.cast::<[u16; 32]>().read();
                for (i, &x) in found.iter().enumerate() {
                    d.add(i).write(extend(SIZE, x.into(), 0));
                }
            }
            _ => scattered::<V, SIZE>(d, on, places),
        }
    }
}

/// Loads two or four words for each lane.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn wide<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, on: u32, places: &Places) {
    let (base, at, words) = (places.base.cast_const(), &places.at, const { bytes(SIZE).div_ceil(4) } as usize);
    let rows: [*mut u32; 4] = [w.dst(u.d), w.dst(u.d.plus(1)), w.dst(u.d.plus(2)), w.dst(u.d.plus(3))];
    let (mut found, mut before) = ([V::splat(0); 4], None);
    let mut i = 0;
    // SAFETY: `arrange` found every lane inside the block and aligned; rows have 32 words.
    unsafe {
        while i < 32 {
            if idle::<V>(on, i) {
                i += V::LANES;
                continue;
            }
            let here = V::load(at.as_ptr().add(i));
            // In products of matrices, lanes often load the same words as their neighbours, or as the vector before.
            if before.is_none_or(|before: V| here.xor(before).any()) {
                found = if V::LANES > 1 && !here.xor(V::splat(at[i])).any() {
                    let [a, b, c, d] = read::<SIZE>(base.add(at[i] as usize));
                    [V::splat(a), V::splat(b), V::splat(c), V::splat(d)]
                } else if words == 2 {
                    let [a, b] = V::gather2(base, at.as_ptr().add(i));
                    [a, b, a, b]
                } else {
                    V::gather4(base, at.as_ptr().add(i))
                };
                before = Some(here);
            }
            for k in 0..words {
                put(rows[k], i, on, found[k]);
            }
            i += V::LANES;
        }
    }
}

/// Loads at most a word for each lane, wherever the lanes are.
///
/// # Safety
/// As for [`load_block`]; `d` is a row.
#[inline(always)]
unsafe fn scattered<V: Simd, const SIZE: u32>(d: *mut u32, on: u32, places: &Places) {
    // SAFETY: `arrange` found every lane inside the block and aligned; inactive lanes are where the first active one is.
    // Rows have 32 words.
    unsafe {
        let mut i = 0;
        while i < 32 {
            if !idle::<V>(on, i) {
                let mut found = [0; 8];
                let to = if on == u32::MAX { d.add(i) } else { found.as_mut_ptr() };
                for j in 0..V::LANES {
                    let p = places.base.cast_const().add(places.at[i + j] as usize);
                    to.add(j).write(match SIZE {
                        0 | 1 => extend(SIZE, p.read_volatile().into(), 0),
                        2 | 3 => extend(SIZE, p.cast::<u16>().read_volatile().into(), 0),
                        _ => p.cast::<u32>().read_volatile(),
                    });
                }
                if on != u32::MAX {
                    put(d, i, on, V::load(found.as_ptr()));
                }
            }
            i += V::LANES;
        }
    }
}

/// Reads `SIZE`'s bytes. It reads two words at once, so that a store of two words is seen completely or not at all.
///
/// # Safety
/// `p` is readable for that many bytes and aligned to them.
#[inline(always)]
unsafe fn read<const SIZE: u32>(p: *const u8) -> [u32; 4] {
    // SAFETY: the caller has looked up `p` for `SIZE`'s bytes.
    unsafe {
        let pair = |x: u64| (x as u32, (x >> 32) as u32);
        match SIZE {
            0 | 1 => [extend(SIZE, p.read_volatile().into(), 0), 0, 0, 0],
            2 | 3 => [extend(SIZE, p.cast::<u16>().read_volatile().into(), 0), 0, 0, 0],
            5 => {
                let (a, b) = pair(p.cast::<u64>().read_volatile());
                [a, b, 0, 0]
            }
            6 => {
                let ((a, b), (c, d)) =
                    (pair(p.cast::<u64>().read_volatile()), pair(p.cast::<u64>().add(1).read_volatile()));
                [a, b, c, d]
            }
            _ => [p.cast::<u32>().read_volatile(), 0, 0, 0],
        }
    }
}

/// Stores all lanes in `on` to a block, lowest lane first.
///
/// # Safety
/// `at` was arranged for a block that is writable.
#[inline(always)]
pub(super) unsafe fn store_block<V: Simd, const SIZE: u32>(w: &Warp, u: &Uop, on: u32, places: &Places) {
    let (base, at) = (places.base, &places.at);
    if SIZE == 4 && places.how == Pattern::Row && on != u32::MAX {
        let (b, p, mut i) = (w.src(u.b), places.begin(on, 4).cast::<u32>(), 0);
        while i < 32 {
            // SAFETY: `arrange` found a word for each lane in `on` in a row of the writable block; rows have 32 words.
            unsafe { V::load(b.add(i)).store_some(p.wrapping_add(i), V::from_bits(on >> i)) };
            i += V::LANES;
        }
        return;
    }
    if places.how == Pattern::Same || on != u32::MAX {
        // If several lanes store to one place, the value of the last lane stays.
        let on = if places.how == Pattern::Same { 1 << (31 - on.leading_zeros()) } else { on };
        for lane in lanes(on) {
            // SAFETY: `arrange` found `SIZE`'s aligned bytes at every place of the writable block.
            unsafe { deposit(w, u, SIZE, lane, base.add(at[lane as usize] as usize)) };
        }
        return;
    }
    let b: [*const u32; 4] = [w.src(u.b), w.src(u.b.plus(1)), w.src(u.b.plus(2)), w.src(u.b.plus(3))];
    // SAFETY: as above; rows have 32 words, and a group of registers is as many rows.
    unsafe {
        if SIZE == 4 && places.how == Pattern::Row {
            std::ptr::copy_nonoverlapping(b[0], base.add(at[0] as usize).cast(), 32);
            return;
        }
        if SIZE > 4 {
            let mut i = 0;
            while i < 32 {
                let to = at.as_ptr().add(i);
                let x = [V::load(b[0].add(i)), V::load(b[1].add(i))];
                if SIZE == 5 {
                    V::scatter2(x, base, to);
                } else {
                    V::scatter4([x[0], x[1], V::load(b[2].add(i)), V::load(b[3].add(i))], base, to);
                }
                i += V::LANES;
            }
            return;
        }
        // The rows are copied first, because the memory that is written may be the rows themselves.
        let from = b[0].cast::<[u32; 32]>().read();
        for (&x, &at) in from.iter().zip(at) {
            let p = base.add(at as usize);
            match SIZE {
                0 | 1 => p.write_volatile(x as u8),
                2 | 3 => p.cast::<u16>().write_volatile(x as u16),
                _ => p.cast::<u32>().write_volatile(x),
            }
        }
    }
}
