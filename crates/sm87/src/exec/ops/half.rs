//! HADD2, HMUL2, HFMA2, HMNMX2, HSET2 and HSETP2, in f16 and bfloat16.

use super::int::{get_pred, put_pred};
use crate::exec::alu::{self, Alu, Each};
use crate::exec::lower::{Lower, Refused};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::f32::MinMax as How;
use sm87_num::half::{self as num, Kind, Mode, Operand, Swizzle};
use sm87_simd::Simd;

/// The places in `mods` of four bits for each source (swizzle, absolute value, sign). The modifiers of the result
/// follow.
const SOURCE: [u32; 3] = [0, 4, 8];
const FTZ: u32 = 1 << 12;
const FMZ: u32 = 1 << 13;
const SAT: u32 = 1 << 14;
const RELU: u32 = 1 << 15;
const SINGLE: u32 = 1 << 16;
const BF16: u32 = 1 << 17;
const NAN: u32 = 1 << 18;
const XORSIGN: u32 = 1 << 19;
const CODE: u32 = 20;
const COMBINE: u32 = 24;
const AND_BF: u32 = 1 << 26;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

fn slot_a(l: &Lower<'_>) -> u32 {
    (l.bits(74, 2) | flag(l.bit(73), 4) | flag(l.bit(72), 8)) << SOURCE[0]
}

fn slot32(l: &Lower<'_>) -> u32 {
    if matches!(l.word.form(), 2 | 4) { 0 } else { l.bits(60, 2) | flag(l.bit(62), 4) | flag(l.bit(63), 8) }
}

fn slot64(l: &Lower<'_>) -> u32 {
    l.bits(81, 2) | flag(l.bit(83), 4) | flag(l.bit(84), 8)
}

#[inline(always)]
fn operand(u: &Uop, n: usize) -> Operand {
    let m = u.mods >> SOURCE[n];
    Operand { swizzle: Swizzle::from_bits(m), abs: m & 4 != 0, neg: m & 8 != 0 }
}

#[inline(always)]
fn mode(u: &Uop) -> Mode {
    Mode {
        kind: kind(u),
        ftz: u.mods & FTZ != 0,
        fmz: u.mods & FMZ != 0,
        sat: u.mods & SAT != 0,
        relu: u.mods & RELU != 0,
        f32: u.mods & SINGLE != 0,
    }
}

#[inline(always)]
fn kind(u: &Uop) -> Kind {
    if u.mods & BF16 != 0 { Kind::Bf16 } else { Kind::F16 }
}

#[inline(always)]
fn lanes(u: &Uop, n: usize, x: u32) -> [f32; 2] {
    operand(u, n).lanes(kind(u), x, u.mods & (FTZ | FMZ) != 0)
}

super::int::lanewise! {
    Add(u, a, b, _c) num::add2(lanes(u, 0, a), lanes(u, 1, b), mode(u));
    Mul(u, a, b, _c) num::mul2(lanes(u, 0, a), lanes(u, 1, b), mode(u));
    Fma(u, a, b, c) num::fma2(lanes(u, 0, a), lanes(u, 1, b), lanes(u, 2, c), mode(u));
}

/// The product of -0 and 0, plus C. Compilers use it to move an immediate in the half-precision unit.
struct Third;
impl Alu for Third {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, _: V, _: V, c: V, _: u32) -> V {
        c
    }
}

fn result(l: &Lower<'_>) -> u32 {
    flag(l.bit(77), SAT) | flag(l.bit(78), SINGLE) | flag(l.bit(80), FTZ) | flag(l.bit(76), FMZ)
}

pub(crate) fn hadd2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l) | slot32(l) << SOURCE[1] | (result(l) & !FMZ);
    Ok(Uop { mods, ..l.ab(alu::alu::<Add>())? })
}

pub(crate) fn hmul2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l) | slot32(l) << SOURCE[1] | result(l);
    Ok(Uop { mods, ..l.ab(alu::alu::<Mul>())? })
}

pub(crate) fn hfma2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = fma_mods(l);
    fma(l, mods)
}

/// HFMA2.MMA has halves only: it has no swizzles, no single-precision result and no bfloat16.
pub(crate) fn hfma2_mma(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let swizzles = SOURCE.iter().fold(0, |m, s| m | 3 << s);
    let mods = fma_mods(l) & !(SINGLE | BF16 | swizzles);
    fma(l, mods)
}

fn fma_mods(l: &Lower<'_>) -> u32 {
    let (s32, s64) = if l.swapped() { (2, 1) } else { (1, 2) };
    slot_a(l)
        | slot32(l) << SOURCE[s32]
        | slot64(l) << SOURCE[s64]
        | result(l)
        | flag(l.bit(79), RELU)
        | flag(l.bit(85), BF16)
}

fn fma(l: &mut Lower<'_>, mods: u32) -> Result<Uop, Refused> {
    let x = l.bits(32, 32);
    let nan = |h: u32| h & 0x7c00 == 0x7c00 && h & 0x3ff != 0;
    let moves =
        l.word.form() == 2 && l.bits(24, 8) == 255 && l.bits(64, 8) == 255 && mods == 8 && !nan(x) && !nan(x >> 16);
    let run = if moves { alu::alu::<Third>() } else { alu::alu::<Fma>() };
    Ok(Uop { mods, ..l.abc(run)? })
}

struct MinMax;
impl Each for MinMax {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let (a, b) = (w.get(u.a, lane), w.get(u.b, lane));
        let how = How { ftz: u.mods & FTZ != 0, nan: u.mods & NAN != 0, xorsign: u.mods & XORSIGN != 0 };
        let k = kind(u);
        let (x, y) = (operand(u, 0).halves(k, a), operand(u, 1).halves(k, b));
        let r = num::min_max2(x, y, get_pred(w, u.ps, lane), how, k, a ^ b);
        w.put(u.d, lane, r);
    }
}

pub(crate) fn hmnmx2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l)
        | slot32(l) << SOURCE[1]
        | flag(l.bit(80), FTZ)
        | flag(l.bit(81), NAN)
        | flag(l.bit(82), XORSIGN)
        | flag(l.bit(85), BF16);
    Ok(Uop { mods, ..l.ab(alu::each::<MinMax>())? })
}

#[inline(always)]
fn relation(w: &Warp, u: &Uop, lane: u32) -> [bool; 2] {
    let (a, b) = (lanes(u, 0, w.get(u.a, lane)), lanes(u, 1, w.get(u.b, lane)));
    num::compare2(a, b, (u.mods >> CODE & 15) as u8)
}

fn combine(u: &Uop, x: bool, p: bool) -> bool {
    match u.mods >> COMBINE & 3 {
        0 => x & p,
        1 => x | p,
        _ => x ^ p,
    }
}

struct Set;
impl Each for Set {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let p = get_pred(w, u.ps, lane);
        let r = relation(w, u, lane).map(|x| combine(u, x, p));
        w.put(u.d, lane, num::set2(r, u.mods & AND_BF != 0, kind(u)));
    }
}

struct SetPredicate;
impl Each for SetPredicate {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let p = get_pred(w, u.ps, lane);
        let [low, high] = relation(w, u, lane);
        if u.mods & AND_BF != 0 {
            let both = low & high;
            put_pred(w, u.pd, lane, combine(u, both, p));
            put_pred(w, u.pe, lane, combine(u, !both, p));
        } else {
            put_pred(w, u.pd, lane, combine(u, low, p));
            put_pred(w, u.pe, lane, combine(u, high, p));
        }
    }
}

fn comparison(l: &Lower<'_>) -> u32 {
    slot_a(l)
        | slot32(l) << SOURCE[1]
        | l.bits(76, 4) << CODE
        | l.bits(69, 2) << COMBINE
        | flag(l.bit(80), FTZ)
        | flag(l.bit(71), AND_BF)
        | flag(l.bit(65), BF16)
}

pub(crate) fn hset2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = comparison(l);
    Ok(Uop { mods, ..l.ab(alu::each::<Set>())? })
}

pub(crate) fn hsetp2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = comparison(l);
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { mods, pd, pe, ..l.ab(alu::each::<SetPredicate>())? })
}
