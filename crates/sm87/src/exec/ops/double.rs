//! DADD, DMUL, DFMA and DSETP.

use crate::exec::alu::{self, Each};
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::rows::Src;
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use crate::num::{Round, f64 as num};

const NEG: [u32; 3] = [1, 1 << 2, 1 << 4];
const ABS: [u32; 3] = [1 << 1, 1 << 3, 1 << 5];
const ROUND: u32 = 8;
const CODE: u32 = 12;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

#[inline(always)]
fn source(w: &Warp, u: &Uop, s: Src, n: usize, lane: u32) -> u64 {
    num::modify(w.get64(s, lane), u.mods & ABS[n] != 0, u.mods & NEG[n] != 0)
}

fn round(u: &Uop) -> Round {
    Round::from_bits(u.mods >> ROUND & 3)
}

struct Add;
impl Each for Add {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let r = num::add(source(w, u, u.a, 0, lane), source(w, u, u.b, 1, lane), round(u));
        w.put64(u.d, lane, r);
    }
}

struct Mul;
impl Each for Mul {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let r = num::mul(source(w, u, u.a, 0, lane), source(w, u, u.b, 1, lane), round(u));
        w.put64(u.d, lane, r);
    }
}

struct Fma;
impl Each for Fma {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let (a, b, c) = (source(w, u, u.a, 0, lane), source(w, u, u.b, 1, lane), source(w, u, u.c, 2, lane));
        w.put64(u.d, lane, num::fma(a, b, c, round(u)));
    }
}

struct SetPredicate;
impl Each for SetPredicate {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let (a, b) = (source(w, u, u.a, 0, lane), source(w, u, u.b, 1, lane));
        let code = (u.mods >> CODE & 15) as u8;
        let bit = |on: bool| u32::from(on) << lane;
        let hit = bit(num::compare(a, b, code));
        // The codes .MIN and .MAX use the second destination to report that both sources are NaN.
        let other = if matches!(code, 0 | 15) { bit(num::both_nan(a, b)) } else { !hit };
        let p = w.pred(u.ps);
        let combine = |x: u32| match u.imm {
            0 => x & p,
            1 => x | p,
            _ => x ^ p,
        };
        w.set_pred(u.pd, 1 << lane, combine(hit));
        w.set_pred(u.pe, 1 << lane, combine(other));
    }
}

/// The second operand of DADD and DSETP. A register is at bits 64..71, and another operand at bits 32..63.
fn second(l: &mut Lower<'_>) -> Result<(Src, u32), Refused> {
    if l.word.form() == 1 {
        return Ok((l.reg(64, 2), flag(l.bit(75), NEG[1]) | flag(l.bit(74), ABS[1])));
    }
    let immediate = matches!(l.word.form(), 2 | 4);
    let mods = flag(l.bit(63) && !immediate, NEG[1]) | flag(l.bit(62) && !immediate, ABS[1]);
    Ok((l.slot32_wide(2, Widen::High)?, mods))
}

fn first(l: &mut Lower<'_>) -> (Src, u32) {
    (l.reg(24, 2), flag(l.bit(72), NEG[0]) | flag(l.bit(73), ABS[0]))
}

pub(crate) fn dadd(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma), (b, mb)) = (l.dst(2), first(l), second(l)?);
    let mods = ma | mb | l.bits(78, 2) << ROUND;
    Ok(Uop { d, a, b, mods, ..l.uop(alu::each::<Add>()) })
}

pub(crate) fn dmul(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma)) = (l.dst(2), first(l));
    let immediate = l.word.form() == 4;
    let mb = flag(l.bit(63) && !immediate, NEG[1]) | flag(l.bit(62) && !immediate, ABS[1]);
    let b = l.slot32_wide(2, Widen::High)?;
    let mods = ma | mb | l.bits(78, 2) << ROUND;
    Ok(Uop { d, a, b, mods, ..l.uop(alu::each::<Mul>()) })
}

pub(crate) fn dfma(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma)) = (l.dst(2), first(l));
    let (slot32, slot64) = if l.swapped() { (2, 1) } else { (1, 2) };
    let immediate = matches!(l.word.form(), 2 | 4);
    let mods = ma
        | flag(l.bit(63) && !immediate, NEG[slot32])
        | flag(l.bit(62) && !immediate, ABS[slot32])
        | flag(l.bit(75), NEG[slot64])
        | flag(l.bit(74), ABS[slot64])
        | l.bits(78, 2) << ROUND;
    let (b, c) = l.bc_wide(2, 2, Widen::High)?;
    Ok(Uop { d, a, b, c, mods, ..l.uop(alu::each::<Fma>()) })
}

pub(crate) fn dsetp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    // Bits 74 and 75 say how to combine the results, so the modifiers of the register operand are in other bits.
    let (a, ma) = first(l);
    let (b, mb) = match l.word.form() {
        1 => (l.reg(32, 2), flag(l.bit(63), NEG[1]) | flag(l.bit(62), ABS[1])),
        _ => second(l)?,
    };
    let mods = ma | mb | l.bits(76, 4) << CODE;
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { a, b, mods, imm: l.bits(74, 2), pd, pe, ps: l.ps(), ..l.uop(alu::each::<SetPredicate>()) })
}
