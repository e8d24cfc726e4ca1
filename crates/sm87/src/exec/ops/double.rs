//! DADD, DMUL, DFMA and DSETP.

use super::fp32::signed;
use crate::exec::alu::{self, Each};
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::rows::Src;
use crate::exec::several::{Results, Several, Sources, map_pairs, several};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::{Round, f64 as num};
use sm87_simd::{Double, Simd};

pub(crate) const NEG: [u32; 3] = [1, 1 << 2, 1 << 4];
pub(crate) const ABS: [u32; 3] = [1 << 1, 1 << 3, 1 << 5];
pub(crate) const ROUND: u32 = 8;
pub(crate) const CODE: u32 = 12;

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

/// Applies the modifiers of a source to its words. A NaN keeps its sign here; results that are NaN are computed in another
/// way.
#[inline(always)]
fn modified<V: Simd>(u: &Uop, n: usize, x: [V; 2]) -> [V; 2] {
    [x[0], signed(x[1], u.mods & ABS[n] != 0, u.mods & NEG[n] != 0)]
}

/// DADD, DMUL or DFMA.
pub(crate) struct Arithmetic<const OP: u8>;

pub(crate) const ADD: u8 = 0;
pub(crate) const MUL: u8 = 1;
pub(crate) const FMA: u8 = 2;

impl<const OP: u8> Several for Arithmetic<OP> {
    const PAIRS: u32 = 7;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        if u.mods >> ROUND & 3 == 0 {
            let (a, b, c) = (modified(u, 0, s.a), modified(u, 1, s.b), modified(u, 2, s.c));
            let r = match OP {
                ADD => V::double(Double::Add, a, a, b),
                MUL => V::double(Double::Mul, a, b, a),
                _ => V::double(Double::Fma, a, b, c),
            };
            let top = V::splat(0x7ff0_0000);
            // The vector form does not compute which NaN results. If a result has the exponent of a NaN, all lanes are computed one
            // by one.
            if !r[1].and(top).eq(top).any() {
                return Results::value(r);
            }
        }
        let source = |n: usize, x| num::modify(x, u.mods & ABS[n] != 0, u.mods & NEG[n] != 0);
        Results::value(map_pairs(&s, |a, b, c| match OP {
            ADD => num::add(source(0, a), source(1, b), round(u)),
            MUL => num::mul(source(0, a), source(1, b), round(u)),
            _ => num::fma(source(0, a), source(1, b), source(2, c), round(u)),
        }))
    }
}

/// DSETP with a compare code.
pub(crate) struct Relate;
impl Several for Relate {
    const PAIRS: u32 = 3;
    const WORDS: usize = 0;
    const CONDITIONS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let relation = V::double_relation(modified(u, 0, s.a), modified(u, 1, s.b));
        let (hit, p) = (alu::accepted(u.mods >> CODE, relation, None), V::from_bits(s.p));
        Results { value: s.a, first: alu::combined(u.imm, hit, p), second: alu::combined(u.imm, hit.not(), p) }
    }
}

/// DSETP with `.MIN` or `.MAX`.
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
    Ok(Uop { d, a, b, mods, ..l.uop(several::<Arithmetic<ADD>>(false)) })
}

pub(crate) fn dmul(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma)) = (l.dst(2), first(l));
    let immediate = l.word.form() == 4;
    let mb = flag(l.bit(63) && !immediate, NEG[1]) | flag(l.bit(62) && !immediate, ABS[1]);
    let b = l.slot32_wide(2, Widen::High)?;
    let mods = ma | mb | l.bits(78, 2) << ROUND;
    Ok(Uop { d, a, b, mods, ..l.uop(several::<Arithmetic<MUL>>(false)) })
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
    Ok(Uop { d, a, b, c, mods, ..l.uop(several::<Arithmetic<FMA>>(false)) })
}

pub(crate) fn dsetp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    // Bits 74 and 75 say how to combine the results, so the modifiers of the register operand are in other bits.
    let (a, ma) = first(l);
    let (b, mb) = match l.word.form() {
        1 => (l.reg(32, 2), flag(l.bit(63), NEG[1]) | flag(l.bit(62), ABS[1])),
        _ => second(l)?,
    };
    let mods = ma | mb | l.bits(76, 4) << CODE;
    let run = match l.bits(76, 4) {
        0 | 15 => alu::each::<SetPredicate>(),
        _ => several::<Relate>(false),
    };
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { a, b, mods, imm: l.bits(74, 2), pd, pe, ps: l.ps(), ..l.uop(run) })
}
