//! Accesses in which all lanes use one block of memory. They are executed for all lanes together.
#![allow(unsafe_code)]

use super::super::special::bytes;
use super::{deposit, fetch};
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

/// The offsets of the lanes from the lowest byte of a block, if every lane is aligned and inside.
///
/// Inactive lanes get the offset of the first active lane, so that the loops need not treat them differently.
#[inline(always)]
pub(super) fn arrange<const SIZE: u32>(offset: &[u32; 32], limit: u32) -> Option<Pattern> {
    let len = const { bytes(SIZE) };
    let (mut row, mut same, mut low, mut top) = (0, 0, 0, 0);
    for (i, &x) in offset.iter().enumerate() {
        row |= x ^ offset[0].wrapping_add(i as u32 * len);
        same |= x ^ offset[0];
        low |= x;
        top = top.max(x);
    }
    if low & (len - 1) != 0 || top > limit {
        return None;
    }
    Some(match (row, same) {
        (0, _) => Pattern::Row,
        (_, 0) => Pattern::Same,
        _ => Pattern::Scattered,
    })
}

/// Loads all lanes in `on` from a block.
///
/// # Safety
/// `offset` was computed by [`arrange`] for the block at `p`.
#[inline(always)]
pub(super) unsafe fn load_block<const SIZE: u32>(
    w: &mut Warp,
    u: &Uop,
    on: u32,
    p: *const u8,
    offset: &[u32; 32],
    how: Pattern,
) {
    let words = const { bytes(SIZE).div_ceil(4) };
    if words == 1 && SIZE == 4 && on == u32::MAX {
        let d = w.dst(u.d);
        // SAFETY: `arrange` found that every offset is aligned and has `SIZE` bytes inside the block at `p`. Rows have
        // 32 words.
        unsafe {
            match how {
                Pattern::Row => std::ptr::copy_nonoverlapping(p.add(offset[0] as usize).cast(), d, 32),
                Pattern::Same => {
                    let x = p.add(offset[0] as usize).cast::<u32>().read_volatile();
                    d.cast::<[u32; 32]>().write([x; 32]);
                }
                Pattern::Scattered => {
                    for (i, &at) in offset.iter().enumerate() {
                        d.add(i).write(p.add(at as usize).cast::<u32>().read_volatile());
                    }
                }
            }
        }
        return;
    }
    if SIZE >= 4 && how == Pattern::Same {
        let mut found = [0; 4];
        // SAFETY: `arrange` found `SIZE` aligned bytes at every offset of the block at `p`.
        unsafe { read::<SIZE>(p.add(offset[0] as usize), &mut found) };
        for k in 0..words {
            let x = found[k as usize];
            let d = w.dst(u.d.plus(k));
            if on == u32::MAX {
                // SAFETY: rows have 32 words.
                unsafe { d.cast::<[u32; 32]>().write([x; 32]) };
            } else {
                lanes(on).for_each(|lane| w.put(u.d.plus(k), lane, x));
            }
        }
        return;
    }
    if SIZE > 4 && on == u32::MAX {
        for k in (0..words).step_by(2) {
            let (low, high) = (w.dst(u.d.plus(k)), w.dst(u.d.plus(k + 1)));
            for (i, &at) in offset.iter().enumerate() {
                // SAFETY: `arrange` found `SIZE` aligned bytes at every offset of the block at `p`. Rows have 32 words.
                unsafe {
                    let x = p.add(at as usize + 4 * k as usize).cast::<u64>().read_volatile();
                    low.add(i).write(x as u32);
                    high.add(i).write((x >> 32) as u32);
                }
            }
        }
        return;
    }
    for lane in lanes(on) {
        // SAFETY: `arrange` found `SIZE` aligned bytes at every offset of the block at `p`.
        unsafe { fetch(w, u, SIZE, lane, p.add(offset[lane as usize] as usize)) };
    }
}

/// Reads the bytes of `SIZE`, four or more of them, two words at a time. A program that writes two words at once is
/// never seen with one of them written.
///
/// # Safety
/// `p` is readable for that many bytes and aligned to them.
#[inline(always)]
unsafe fn read<const SIZE: u32>(p: *const u8, words: &mut [u32; 4]) {
    // SAFETY: callers have looked `p` up for the bytes of `SIZE`.
    unsafe {
        if const { bytes(SIZE) } == 4 {
            words[0] = p.cast::<u32>().read_volatile();
            return;
        }
        for (k, pair) in words.as_chunks_mut::<2>().0[..const { bytes(SIZE) as usize / 8 }].iter_mut().enumerate() {
            let x = p.cast::<u64>().add(k).read_volatile();
            *pair = [x as u32, (x >> 32) as u32];
        }
    }
}

/// Stores all lanes in `on` to a block, lowest lane first.
///
/// # Safety
/// `offset` was computed by [`arrange`] for the block at `p`, which is writable.
#[inline(always)]
pub(super) unsafe fn store_block<const SIZE: u32>(
    w: &Warp,
    u: &Uop,
    on: u32,
    p: *mut u8,
    offset: &[u32; 32],
    how: Pattern,
) {
    let words = const { bytes(SIZE).div_ceil(4) };
    if SIZE >= 4 && on == u32::MAX && how != Pattern::Same {
        if words == 1 && how == Pattern::Row {
            // SAFETY: `arrange` found 32 words in the block from the first offset on. The block is writable, because
            // callers look it up for a store. Rows have 32 words.
            unsafe { std::ptr::copy_nonoverlapping(w.src(u.b), p.add(offset[0] as usize).cast(), 32) };
            return;
        }
        for (i, &at) in offset.iter().enumerate() {
            // SAFETY: `arrange` found `SIZE` aligned bytes at every offset of the writable block.
            unsafe { deposit(w, u, SIZE, i as u32, p.add(at as usize)) };
        }
        return;
    }
    for lane in lanes(on) {
        // SAFETY: `arrange` found `SIZE` aligned bytes at every offset of the writable block.
        unsafe { deposit(w, u, SIZE, lane, p.add(offset[lane as usize] as usize)) };
    }
}
