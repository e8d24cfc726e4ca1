//! LOP3, PLOP3, SHF, PRMT, MOV, SEL, P2R and R2P, and their uniform forms.
#![allow(unsafe_code)]

use super::int::{any, lanewise};
use crate::exec::alu::{self, Alu, Whole};
use crate::exec::env::Env;
use crate::exec::lower::{Lower, Refused};
use crate::exec::record::{Operation, Record, Recorded, Recorder};
use crate::exec::rows::{Pred, pred};
use crate::exec::several::{Results, Several, Sources, several};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::Warp;
use sm87_num::bits::{self, PrmtMode, Shift};
use sm87_simd::{Simd, put};

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

/// A look-up table that programs use often, known when the engine is compiled.
struct Lop2<const LUT: u8>;
impl<const LUT: u8> Alu for Lop2<LUT> {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, _: V, _: u32) -> V {
        match LUT {
            0xc0 => a.and(b),
            0xfc => a.or(b),
            0x3c => a.xor(b),
            0x30 => a.and(b.not()),
            0x0c => a.not().and(b),
            _ => b.not(),
        }
    }
}

/// Any look-up table, as a tree of bitwise choices.
struct Lop3;
impl Alu for Lop3 {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        let on = choose(b, leaf(u.imm >> 6, c), leaf(u.imm >> 4, c));
        choose(a, on, choose(b, leaf(u.imm >> 2, c), leaf(u.imm, c)))
    }
}

/// Two bits of the look-up table say what becomes of `c`: 0, c, !c or 1.
#[inline(always)]
fn leaf<V: Simd>(lut: u32, c: V) -> V {
    let (zero, one) = (lut & 1, lut >> 1 & 1);
    c.and(V::splat((zero ^ one).wrapping_neg())).xor(V::splat(zero.wrapping_neg()))
}

/// Bitwise `by ? on : off`.
#[inline(always)]
fn choose<V: Simd>(by: V, on: V, off: V) -> V {
    off.xor(by.and(on.xor(off)))
}

/// LOP3 with a predicate result: whether the result is not zero, combined with the predicate source by OR or AND.
struct Lop3Pred;
impl Several for Lop3Pred {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let r = Lop3::eval(u, s.a[0], s.b[0], s.c[0], 0);
        let (some, p) = (r.eq(V::splat(0)).not(), V::from_bits(s.p));
        Results::with(r, if u.mods != 0 { some.and(p) } else { some.or(p) })
    }
}

pub(crate) fn lop3(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(72, 8);
    let run = if l.bits(81, 3) != 7 {
        several::<Lop3Pred>(l.uniform())
    } else {
        match imm {
            0xc0 => any::<Lop2<0xc0>>(l),
            0xfc => any::<Lop2<0xfc>>(l),
            0x3c => any::<Lop2<0x3c>>(l),
            0x30 => any::<Lop2<0x30>>(l),
            0x0c => any::<Lop2<0x0c>>(l),
            0x33 => any::<Lop2<0x33>>(l),
            _ => any::<Lop3>(l),
        }
    };
    let (mods, pd) = (flag(l.bit(80), 1), l.pdst(81));
    Ok(Uop { imm, mods, pd, ..l.abc(run)? })
}

fn plop3_rows(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let mask = alu::scope(u, exec);
    let third = crate::exec::rows::Pred { index: u.aux as u8 & 31, invert: -((u.aux >> 8 & 1) as i8) };
    let (a, b, c) = (w.pred(u.ps), w.pred(u.pt), w.pred(third));
    w.set_pred(u.pd, mask, bits::plop3_lanes(a, b, c, u.imm as u8));
    w.set_pred(u.pe, mask, bits::plop3_lanes(a, b, c, u.mods as u8));
    Flow::Next
}

pub(crate) fn plop3(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(72, 5) << 3 | l.bits(64, 3);
    let (pt, pd, pe) = (l.pred(77, 80), l.pdst(81), l.pdst(84));
    let third = l.pred(68, 71);
    let index = if l.bit(67) && !l.uniform() { pred::UNIFORM + (third.index & 7) } else { third.index };
    let u = l.uop(Handlers::all(plop3_rows));
    let aux = u.aux | u16::from(index) | u16::from(third.invert != 0) << 8;
    Ok(Uop { imm, mods: l.bits(16, 8), pd, pe, ps: l.ps(), pt, aux, ..u })
}

fn plop3_sign_rows(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let mask = alu::scope(u, exec);
    let signs = |s| (0..32).fold(0, |mask, lane| mask | (w.get(s, lane) >> 31) << lane);
    let (a, b, c) = (signs(u.a), signs(u.b), signs(u.c));
    w.set_pred(u.pd, mask, bits::plop3_lanes(a, b, c, u.imm as u8));
    w.set_pred(u.pe, mask, bits::plop3_lanes(a, b, c, u.mods as u8));
    Flow::Next
}

/// PLOP3 on the top bits of registers.
pub(crate) fn plop3_sign(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (imm, mods) = (l.bits(72, 8), l.bits(16, 8));
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    let (a, (b, c)) = (l.a(), l.bc()?);
    Ok(Uop { a, b, c, imm, mods, pd, pe, ..l.uop(Handlers::all(plop3_sign_rows)) })
}

/// Shifts that ignore one of the two words.
struct Shl;
impl Alu for Shl {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, _: V, _: u32) -> V {
        a.shl(b)
    }
}

struct Shr<const SIGNED: bool>;
impl<const SIGNED: bool> Alu for Shr<SIGNED> {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, _: V, b: V, c: V, _: u32) -> V {
        if SIGNED { c.sar(b) } else { c.shr(b) }
    }
}

pub(crate) fn shift(mods: u32) -> Shift {
    Shift { right: mods & 1 != 0, hi: mods & 2 != 0, wrap: mods & 4 != 0, wide: mods & 8 != 0, signed: mods & 16 != 0 }
}

/// SHF in general. [`bits::shf`] defines it for one lane.
pub(crate) struct Funnel;
impl Alu for Funnel {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, low: V, count: V, high: V, _: u32) -> V {
        let how = shift(u.mods);
        let width = if how.wide { 64 } else { 32 };
        let n = if how.wrap { count.and(V::splat(width - 1)) } else { count.minu(V::splat(width)) };
        // Shifts by 32 and more give zero, and so do those by less than nothing, which are large as unsigned numbers.
        let (rest, beyond) = (V::splat(32).sub(n), n.sub(V::splat(32)));
        match (how.right, how.hi) {
            (false, false) => low.shl(n),
            (false, true) => high.shl(n).or(low.shr(rest)).or(low.shl(beyond)),
            (true, true) if how.signed => high.sar(n),
            (true, true) => high.shr(n),
            (true, false) => {
                let near = low.shr(n).or(high.shl(rest));
                if how.signed { V::splat(31).lt(n).select(high.sar(beyond), near) } else { near.or(high.shr(beyond)) }
            }
        }
    }
}

/// PRMT by a selector that all lanes have. [`bits::prmt`] defines it for one lane.
pub(crate) struct PermuteFixed;
impl Alu for PermuteFixed {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, _: V, c: V, _: u32) -> V {
        let nibble = |i: u32| u.imm >> (4 * i) & 15;
        let (mut out, mut i) = (V::splat(0), 0);
        while i < 4 {
            let (first, begin) = (nibble(i), i);
            let word = if first & 4 != 0 { c } else { a };
            let byte = first & 3;
            // Bytes that follow each other in the word, too, are moved together.
            while i < 4 && nibble(i) == first + (i - begin) && byte + (i - begin) < 4 {
                i += 1;
            }
            let moved = if first & 8 != 0 {
                i = begin + 1;
                word.shl(V::splat(24 - 8 * byte)).sar(V::splat(31))
            } else if byte < begin {
                word.shl(V::splat(8 * (begin - byte)))
            } else {
                word.shr(V::splat(8 * (byte - begin)))
            };
            let bytes = u32::MAX << (8 * begin) & u32::MAX >> (32 - 8 * i);
            out = out.or(moved.and(V::splat(bytes)));
        }
        out
    }
}

lanewise! {
    Permute(u, a, b, c) bits::prmt(a, mode(u).nibbles(b), c);
}

/// What `mods` says of a SHF to the left of one word, in the lowest four bits, and of one to the right with the sign.
pub(crate) const TO_THE_LEFT: u32 = 0;
pub(crate) const TO_THE_RIGHT_SIGNED: u32 = 1 | 2 | 16;

pub(crate) fn shf(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (signed, wide) = match l.bits(73, 2) {
        0 => (true, true),
        1 => (false, true),
        2 => (true, false),
        _ => (false, false),
    };
    let (wrap, right, hi) = (l.bit(75), l.bit(76), l.bit(80));
    let mods = flag(right, 1) | flag(hi, 2) | flag(wrap, 4) | flag(wide, 8) | flag(signed, 16);
    // Shl and Shr clamp counts at 32, as SHF without .W does for 32-bit types.
    let run = match (right, hi) {
        _ if wrap || wide => any::<Funnel>(l),
        (false, false) => any::<Shl>(l),
        (true, true) if signed => any::<Shr<true>>(l),
        (true, true) => any::<Shr<false>>(l),
        _ => any::<Funnel>(l),
    };
    Ok(Uop { mods, ..l.abc(run)? })
}

fn mode(u: &Uop) -> PrmtMode {
    PrmtMode::from_bits(u.mods).unwrap_or_default()
}

pub(crate) fn prmt(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = if l.uniform() { 0 } else { l.bits(72, 3) };
    let mode = PrmtMode::from_bits(mods).ok_or(Refused("PRMT mode 7"))?;
    if l.word.form() == 4 {
        let imm = mode.nibbles(l.bits(32, 32));
        let run = any::<PermuteFixed>(l);
        return Ok(Uop { mods, imm, ..l.abc(run)? });
    }
    let run = any::<Permute>(l);
    Ok(Uop { mods, ..l.abc(run)? })
}

struct Move;
impl Alu for Move {
    const SOURCES: usize = 1;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, _: V, _: V, _: u32) -> V {
        a
    }
}

pub(crate) fn mov(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if !l.uniform() && l.bits(72, 4) != 0xf {
        return Err(Refused("MOV with a lane mask"));
    }
    let run = any::<Move>(l);
    l.unary(run)
}

struct Select;
impl Alu for Select {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, _: V, p: u32) -> V {
        V::from_bits(p).select(a, b)
    }
}

pub(crate) fn sel(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let run = any::<Select>(l);
    l.ab(run)
}

/// P2R: copies the selected predicates to a byte. `mods` is the index of the first predicate, `imm` the number of the byte.
struct ToRegister;
impl Whole for ToRegister {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let exec = alu::scope(u, exec);
        let preds: [u32; 7] = std::array::from_fn(|n| w.preds[(u.mods as usize + n) & 31]);
        let (a, b, d) = (w.src(u.a), w.src(u.b), w.dst(u.d));
        let shift = V::splat(8 * (u.imm & 3));
        let mut i = 0;
        while i < 32 {
            let mut set = V::splat(0);
            for (n, &p) in preds.iter().enumerate() {
                set = set.or(V::from_bits(p >> i).and(V::splat(1 << n)));
            }
            // SAFETY: rows have 32 words.
            unsafe {
                let select = V::load(b.add(i)).and(V::splat(0x7f)).shl(shift);
                let kept = V::load(a.add(i)).and(select.not());
                let r = kept.or(set.shl(shift).and(select));
                put(d, i, exec, r);
            }
            i += V::LANES;
        }
        Flow::Next
    }
}

/// Writes down P2R of predicates that are not uniform.
fn copied(u: &Uop, r: &mut Recorder<'_>) {
    let shift = Recorded::splat(8 * (u.imm & 3));
    let bit = |n: u8| r.lanes(Pred { index: n, invert: 0 }).and(Recorded::splat(1 << n));
    let set = (1..7).fold(bit(0), |set, n| set.or(bit(n)));
    let select = r.source(u.b).and(Recorded::splat(0x7f)).shl(shift);
    let kept = r.source(u.a).and(select.not());
    r.set_row(u.d, kept.or(set.shl(shift).and(select)));
}

/// Writes down R2P. A bit becomes the sign of a number, and its sign a mask.
fn selected(u: &Uop, r: &mut Recorder<'_>) {
    let (byte, all) = (8 * (u.imm & 3), Recorded::splat(31));
    let (x, select) = (r.source(u.a), r.source(u.b));
    for n in 0..7 {
        let mask = |x: Recorded, bit: u32| x.shl(Recorded::splat(31 - bit)).sar(all);
        let old = r.lanes(Pred { index: n as u8, invert: 0 });
        let new = mask(select, n).select(mask(x, byte + n), old);
        if new != old {
            r.set_lanes(n as u8, new);
        }
    }
}

/// R2P: sets the selected predicates from a byte.
struct FromRegister;
impl Whole for FromRegister {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let (a, b, byte) = (w.src(u.a), w.src(u.b), 8 * (u.imm & 3));
        let (mut values, mut selected) = ([0; 7], [0; 7]);
        let mut i = 0;
        while i < 32 {
            // SAFETY: rows have 32 words.
            let (x, select) = unsafe { (V::load(a.add(i)), V::load(b.add(i))) };
            for n in 0..7 {
                values[n as usize] |= x.shl(V::splat(31 - byte - n)).to_bits() << i;
                selected[n as usize] |= select.shl(V::splat(31 - n)).to_bits() << i;
            }
            i += V::LANES;
        }
        for n in 0..7 {
            w.set_pred(n as u8, exec & selected[n], values[n]);
        }
        Flow::Next
    }
}

/// P2R and UP2UR.
pub(crate) fn p2r(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = if l.uniform() { u32::from(pred::UNIFORM) } else { 0 };
    let imm = l.bits(76, 2);
    let record = (!l.uniform()).then_some(copied as Record);
    Ok(Uop { mods, imm, ..l.ab(Operation { run: alu::whole::<ToRegister>(), record })? })
}

pub(crate) fn r2p(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(76, 2);
    Ok(Uop { imm, ..l.ab(Operation { run: alu::whole::<FromRegister>(), record: Some(selected) })? })
}
