//! Accesses in which all lanes use one block of memory. They are executed for all lanes together.
#![allow(unsafe_code)]

use super::{deposit, extend, fetch};
use crate::exec::known::{Pattern, Places};
use crate::exec::uop::Uop;
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::bytes;
use sm87_simd::{Simd, Taker, part, put};
use tegra_mm::whole;

/// If at most this many lanes are active, they are loaded one by one.
const FEW: u32 = 6;

/// Loads all lanes in `on` from a block.
///
/// # Safety
/// The lanes were arranged for a block that is readable.
#[inline(always)]
pub(super) unsafe fn load_block<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, on: u32, places: Places<'_>) {
    let words = const { bytes(SIZE).div_ceil(4) };
    let how = places.layout.how;
    // SAFETY: `arrange` found every lane inside the block, with `SIZE`'s bytes left, and aligned; rows have 32 words.
    unsafe {
        let p = places.of(on.trailing_zeros()).cast_const();
        if how == Pattern::Same {
            let found = read::<SIZE>(p);
            for k in 0..words {
                let (d, mut i) = (w.dst(u.d.plus(k)), 0);
                while i < 32 {
                    if part::<V>(on, i) != 0 {
                        put(d, i, on, V::splat(found[k as usize]));
                    }
                    i += V::LANES;
                }
            }
            return;
        }
        if SIZE > 4 && how == Pattern::Row && on == u32::MAX {
            return wide_row::<V, SIZE>(w, u, p);
        }
        if SIZE > 4 {
            return wide::<V, SIZE>(w, u, on, places);
        }
        let d = w.dst(u.d);
        if SIZE == 4 && how == Pattern::Row && on != u32::MAX {
            let (p, mut i) = (places.begin(on, 4).cast::<u32>(), 0);
            while i < 32 {
                if part::<V>(on, i) != 0 {
                    let mask = V::from_bits(on >> i);
                    let found = V::load_some(p.wrapping_add(i), mask);
                    mask.select(found, V::load(d.add(i))).store(d.add(i));
                }
                i += V::LANES;
            }
            return;
        }
        if on.count_ones() <= FEW {
            lanes(on).for_each(|lane| fetch(w, u, SIZE, lane, places.of(lane)));
            return;
        }
        match (SIZE, how) {
            (4, Pattern::Row) if on == u32::MAX => std::ptr::copy_nonoverlapping(p.cast(), d, 32),
            (_, Pattern::Row) if on == u32::MAX => narrow_row::<SIZE>(p, d),
            _ => scattered::<V, SIZE>(d, on, places),
        }
    }
}

/// Loads all 32 lanes from a block. Lanes that load a word or less are in a row, or all at the same place.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub(super) unsafe fn load_all<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, places: Places<'_>) {
    debug_assert!(SIZE > 4 || !places.are_scattered());
    // SAFETY: the conditions are those of this function; rows have 32 words.
    unsafe {
        let p = places.of(0).cast_const();
        if SIZE > 4 {
            return match places.layout.how {
                Pattern::Row => wide_row::<V, SIZE>(w, u, p),
                Pattern::Same => same::<V, SIZE>(w, u, p),
                Pattern::Scattered => wide::<V, SIZE>(w, u, u32::MAX, places),
            };
        }
        if places.layout.how == Pattern::Same {
            return same::<V, SIZE>(w, u, p);
        }
        let d = w.dst(u.d);
        if SIZE == 4 {
            return std::ptr::copy_nonoverlapping(p.cast(), d, 32);
        }
        narrow_row::<SIZE>(p, d);
    }
}

/// Loads 32 bytes or halves in a row, and extends them.
///
/// # Safety
/// As for [`load_block`]; `d` is a row.
#[inline(always)]
unsafe fn narrow_row<const SIZE: u32>(p: *const u8, d: *mut u32) {
    // SAFETY: whoever calls has found as many bytes or halves at `p`; rows have 32 words.
    unsafe {
        if SIZE < 2 {
            let found = p.cast::<[u8; 32]>().read();
            (0..32).for_each(|i| d.add(i).write(extend(SIZE, found[i].into(), 0)));
        } else {
            let found = p.cast::<[u16; 32]>().read();
            (0..32).for_each(|i| d.add(i).write(extend(SIZE, found[i].into(), 0)));
        }
    }
}

/// Loads the same words for all 32 lanes.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn same<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, p: *const u8) {
    // SAFETY: whoever calls has found the bytes at `p`; rows have 32 words.
    unsafe {
        let found = read::<SIZE>(p);
        for k in 0..const { bytes(SIZE).div_ceil(4) } {
            let (d, x) = (w.dst(u.d.plus(k)), V::splat(found[k as usize]));
            (0..32).step_by(V::LANES).for_each(|i| x.store(d.add(i)));
        }
    }
}

/// The rows that loads write, for lanes from `i` on. `ALL` says that all of them are active.
struct Rows<'a, const ALL: bool> {
    loads: &'a [Uop],
    rows: *mut u32,
    i: usize,
    on: u32,
}

impl<const ALL: bool> Taker for Rows<'_, ALL> {
    /// # Safety
    /// There are four loads for each group.
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, n: usize, words: [V; 4]) {
        for (k, x) in words.into_iter().enumerate() {
            // SAFETY: as this function asks of its caller; a load was lowered with a row of 32 words.
            unsafe {
                let row = self.rows.add(self.loads.get_unchecked(4 * n + k).d.offset());
                if ALL { x.store(row.add(self.i)) } else { put(row, self.i, self.on, x) }
            }
        }
    }
}

/// Executes several loads of one word together. Each loads the word that follows the word of the load before.
///
/// # Safety
/// The lanes were arranged for a block that is readable, with a word for each load; there are four loads, or a multiple of that.
#[inline(always)]
pub(super) unsafe fn load_rows<V: Simd>(w: &mut Warp, loads: &[Uop], on: u32, places: Places<'_>) {
    let (base, at, rows) = (places.base.cast_const(), places.layout.at.as_ptr(), w.own());
    let mut i = 0;
    while i < 32 {
        let active = part::<V>(on, i);
        // Each store would ask whether all lanes are active if both cases had one loop, and the loads would take twice as many instructions.
        // SAFETY: whoever calls has found four words more for each lane and each group of loads; rows have 32 words.
        unsafe {
            if active == V::ALL {
                V::gather_words(base, at.add(i), loads.len() / 4, &Rows::<true> { loads, rows, i, on });
            } else if active != 0 {
                V::gather_words(base, at.add(i), loads.len() / 4, &Rows::<false> { loads, rows, i, on });
            }
        }
        i += V::LANES;
    }
}

/// Loads two or four words for each lane.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn wide<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, on: u32, places: Places<'_>) {
    let (base, layout, words) = (places.base.cast_const(), places.layout, const { bytes(SIZE).div_ceil(4) } as usize);
    let rows: [*mut u32; 4] = [w.dst(u.d), w.dst(u.d.plus(1)), w.dst(u.d.plus(2)), w.dst(u.d.plus(3))];
    let (mut found, mut is_before) = ([V::splat(0); 4], false);
    let mut i = 0;
    // SAFETY: `arrange` found every lane inside the block and aligned; rows have 32 words.
    unsafe {
        while i < 32 {
            let loads = part::<V>(on, i) != 0;
            if loads {
                let at = layout.at.as_ptr().add(i);
                // In products of matrices, lanes often load the same words as their neighbours, or as the vector before.
                if !is_before || layout.again >> i & 1 == 0 {
                    let same = V::LANES > 1 && layout.same >> i & 1 != 0;
                    found = match SIZE {
                        5 if same => two(V::spread2(base.add(at.read() as usize))),
                        5 => two(V::gather2(base, at)),
                        _ if same => V::spread4(base.add(at.read() as usize)),
                        _ => V::gather4(base, at),
                    };
                }
                for k in 0..words {
                    put(rows[k], i, on, found[k]);
                }
            }
            is_before = loads;
            i += V::LANES;
        }
    }
}

/// Loads two or four words for each lane, of lanes that follow each other from `p` on.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn wide_row<V: Simd, const SIZE: u32>(w: &mut Warp, u: &Uop, p: *const u8) {
    let rows: [*mut u32; 4] = [w.dst(u.d), w.dst(u.d.plus(1)), w.dst(u.d.plus(2)), w.dst(u.d.plus(3))];
    let (len, words) = const { (bytes(SIZE) as usize, bytes(SIZE) as usize / 4) };
    let mut i = 0;
    while i < 32 {
        // SAFETY: the caller has found every lane of the row aligned in the block; rows of registers have 32 words.
        unsafe {
            let p = p.add(i * len);
            let found = if SIZE == 5 { two(V::row2(p)) } else { V::row4(p) };
            for k in 0..words {
                found[k].store(rows[k].add(i));
            }
        }
        i += V::LANES;
    }
}

/// Two words in the place of four, of which the others are not used.
#[inline(always)]
fn two<V: Simd>([a, b]: [V; 2]) -> [V; 4] {
    [a, b, a, b]
}

/// Loads at most a word for each lane, wherever the lanes are.
///
/// # Safety
/// As for [`load_block`]; `d` is a row.
#[inline(always)]
unsafe fn scattered<V: Simd, const SIZE: u32>(d: *mut u32, on: u32, places: Places<'_>) {
    // SAFETY: `arrange` found every lane inside the block and aligned, inactive lanes are where the first active one is.
    // Rows have 32 words.
    unsafe {
        let mut i = 0;
        while i < 32 {
            let active = part::<V>(on, i);
            if SIZE == 4 && active == V::ALL && places.layout.rows >> i & 1 != 0 {
                V::load(places.of(i as u32).cast_const().cast()).store(d.add(i));
            } else if SIZE == 4 && active == V::ALL && places.layout.same >> i & 1 != 0 {
                V::splat(places.of(i as u32).cast::<u32>().read_volatile()).store(d.add(i));
            } else if active != 0 {
                let mut found = [0; 8];
                let to = if active == V::ALL { d.add(i) } else { found.as_mut_ptr() };
                for j in 0..V::LANES {
                    let p = places.base.cast_const().add(places.layout.at[i + j] as usize);
                    to.add(j).write(match SIZE {
                        0 | 1 => extend(SIZE, p.read_volatile().into(), 0),
                        2 | 3 => extend(SIZE, p.cast::<u16>().read_volatile().into(), 0),
                        _ => p.cast::<u32>().read_volatile(),
                    });
                }
                if active != V::ALL {
                    put(d, i, on, V::load(found.as_ptr()));
                }
            }
            i += V::LANES;
        }
    }
}

/// Reads `SIZE`'s bytes. It reads all of them at once, so that a store of as many bytes is seen completely or not at all.
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
                let x = whole::load(p);
                let ((a, b), (c, d)) = (pair(x as u64), pair((x >> 64) as u64));
                [a, b, c, d]
            }
            _ => [p.cast::<u32>().read_volatile(), 0, 0, 0],
        }
    }
}

/// Stores all lanes in `on` to a block, lowest lane first.
///
/// # Safety
/// The lanes were arranged for a block that is writable.
#[inline(always)]
pub(super) unsafe fn store_block<V: Simd, const SIZE: u32>(w: &Warp, u: &Uop, on: u32, places: Places<'_>) {
    let (base, at, how) = (places.base, &places.layout.at, places.layout.how);
    if SIZE == 4 && how == Pattern::Row && on != u32::MAX {
        let (b, p, mut i) = (w.src(u.b), places.begin(on, 4).cast::<u32>(), 0);
        while i < 32 {
            // SAFETY: `arrange` found a word for each lane in `on` in a row of the writable block; rows have 32 words.
            unsafe { V::load(b.add(i)).store_some(p.wrapping_add(i), V::from_bits(on >> i)) };
            i += V::LANES;
        }
        return;
    }
    if how == Pattern::Same || on != u32::MAX {
        // If several lanes store to one place, the value of the last lane stays.
        let on = if how == Pattern::Same { 1 << (31 - on.leading_zeros()) } else { on };
        for lane in lanes(on) {
            // SAFETY: `arrange` found `SIZE`'s aligned bytes at every place of the writable block.
            unsafe { deposit(w, u, SIZE, lane, base.add(at[lane as usize] as usize)) };
        }
        return;
    }
    let b: [*const u32; 4] = [w.src(u.b), w.src(u.b.plus(1)), w.src(u.b.plus(2)), w.src(u.b.plus(3))];
    // SAFETY: as above; rows have 32 words, and a group of registers is as many rows. Registers are the engine's own memory, which no
    // page table leads to, so a row and a block of memory do not overlap.
    unsafe {
        if SIZE == 4 && how == Pattern::Row {
            std::ptr::copy_nonoverlapping(b[0], base.add(at[0] as usize).cast(), 32);
            return;
        }
        if SIZE > 4 {
            let first = base.add(at[0] as usize);
            let mut i = 0;
            while i < 32 {
                let to = at.as_ptr().add(i);
                let x = [V::load(b[0].add(i)), V::load(b[1].add(i))];
                if SIZE == 5 && how == Pattern::Row {
                    V::put_row2(x, first.add(8 * i));
                } else if SIZE == 5 {
                    V::scatter2(x, base, to);
                } else {
                    let x = [x[0], x[1], V::load(b[2].add(i)), V::load(b[3].add(i))];
                    if how == Pattern::Row {
                        V::put_row4(x, first.add(16 * i));
                    } else {
                        V::scatter4(x, base, to);
                    }
                }
                i += V::LANES;
            }
            return;
        }
        if SIZE == 4 && places.layout.rows != 0 {
            let word = |lane: usize| base.add(at[lane] as usize).cast::<u32>();
            for i in (0..32).step_by(V::LANES) {
                match places.layout.rows >> i & 1 {
                    0 => (i..i + V::LANES).for_each(|lane| word(lane).write_volatile(b[0].add(lane).read())),
                    _ => V::load(b[0].add(i)).store(word(i)),
                }
            }
            return;
        }
        // The row is copied first. The compiler cannot know that no register is in the memory that is written, and would read each
        // word again after the store before it.
        let from = b[0].cast::<[u32; 32]>().read();
        if how == Pattern::Row {
            let (to, mut bytes, mut halves) = (base.add(at[0] as usize), [0u8; 32], [0u16; 32]);
            if SIZE < 2 {
                (0..32).for_each(|i| bytes[i] = from[i] as u8);
                to.cast::<[u8; 32]>().write(bytes);
            } else {
                (0..32).for_each(|i| halves[i] = from[i] as u16);
                to.cast::<[u16; 32]>().write(halves);
            }
            return;
        }
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
