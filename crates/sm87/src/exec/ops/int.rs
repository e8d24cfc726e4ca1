//! IADD3, IMAD, LEA, ISETP, IMNMX, IABS and the small multipliers. Their uniform forms use the same code.

use super::carry;
use crate::exec::alu::{self, Alu, Compare, Condition};
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::record::Operation;
use crate::exec::rows::{Pred, Src, pred};
use crate::exec::several::{Results, Several, Sources, several};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::{bits, int};
use sm87_simd::Simd;

/// The driver for vectors or for the uniform datapath, as the opcode demands.
pub(crate) fn any<O: Alu>(l: &Lower<'_>) -> Operation {
    if l.uniform() { alu::ualu::<O>() } else { alu::alu::<O>() }
}

/// Writes a predicate of one lane.
#[inline(always)]
pub(crate) fn put_pred(w: &mut Warp, index: u8, lane: u32, value: bool) {
    w.set_pred(index, 1 << lane, u32::from(value) << lane);
}

/// Reads a predicate of one lane.
#[inline(always)]
pub(crate) fn get_pred(w: &Warp, p: Pred, lane: u32) -> bool {
    w.pred(p) >> lane & 1 != 0
}

pub(crate) const NEG: [u32; 3] = [1, 2, 4];
pub(crate) const X: u32 = 8;
pub(super) const HIGH: u32 = 32;
pub(super) const SX32: u32 = 64;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

/// Source `n`, negated if its bit says so.
#[inline(always)]
fn signed<V: Simd>(u: &Uop, n: usize, x: V) -> V {
    let s = V::splat(if u.mods & NEG[n] != 0 { u32::MAX } else { 0 });
    x.xor(s).sub(s)
}

struct Add3<const SIGNS: bool, const N: usize>;
impl<const SIGNS: bool, const N: usize> Alu for Add3<SIGNS, N> {
    const SOURCES: usize = N;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        if !SIGNS {
            return if N == 2 { a.add(b) } else { a.add(b).add(c) };
        }
        let ab = signed(u, 0, a).add(signed(u, 1, b));
        if N == 2 { ab } else { ab.add(signed(u, 2, c)) }
    }
}

pub(crate) fn iadd3(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (b, c) = if l.swapped() { (2, 1) } else { (1, 2) };
    let immediate = matches!(l.word.form(), 2 | 4);
    let x = l.bit(74);
    let mods = flag(l.bit(72), NEG[0]) | flag(l.bit(63) && !immediate, NEG[b]) | flag(l.bit(75), NEG[c]) | flag(x, X);
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    let (first, second) = (l.bits(81, 3) != 7, l.bits(84, 3) != 7);
    let carries = x || first || second;
    let zero_c = !l.swapped() && l.is_zero(64);
    let pt = l.pred(77, 80);
    // !PT: there is no second carry.
    let one_carry = matches!(pt, Pred { index: pred::PT | pred::UPT, invert: -1 });
    let run = match (carries, mods & 7 != 0, zero_c) {
        (true, false, true) if x && one_carry && !first && !second => several::<carry::Add2X<false>>(l.uniform()),
        (true, false, true) if x && one_carry => several::<carry::Add2X<true>>(l.uniform()),
        (true, ..) if x => several::<carry::Add3X>(l.uniform()),
        (true, false, true) if !second => several::<carry::Add2>(l.uniform()),
        (true, false, _) => several::<carry::Add3<false>>(l.uniform()),
        (true, true, _) => several::<carry::Add3<true>>(l.uniform()),
        (_, false, true) => any::<Add3<false, 2>>(l),
        (_, false, false) => any::<Add3<false, 3>>(l),
        (_, true, true) => any::<Add3<true, 2>>(l),
        (_, true, false) => any::<Add3<true, 3>>(l),
    };
    Ok(Uop { mods, pd, pe, pt, ..l.abc(run)? })
}

/// A product plus C (0), a product alone (1), or a product minus C (2).
struct Mad<const HOW: u8>;
impl<const HOW: u8> Alu for Mad<HOW> {
    const SOURCES: usize = if HOW == 1 { 2 } else { 3 };
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, c: V, _: u32) -> V {
        match HOW {
            0 => a.mul(b).add(c),
            1 => a.mul(b),
            _ => a.mul(b).sub(c),
        }
    }
}

/// The forms of IMAD that only move, add or subtract.
struct Plus<const HOW: u8>;
impl<const HOW: u8> Alu for Plus<HOW> {
    const SOURCES: usize = 3;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, _: V, c: V, _: u32) -> V {
        match HOW {
            0 => c,
            1 => a.add(c),
            _ => a.sub(c),
        }
    }
}

/// Whether C is negated. The bit that says so depends on where C is.
fn neg_c(l: &Lower<'_>) -> bool {
    if l.swapped() { l.bit(63) && l.word.form() != 2 } else { l.bit(75) }
}

pub(crate) fn imad(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let neg = neg_c(l);
    let b_one = l.word.form() == 4 && l.bits(32, 32) == 1;
    let c_zero = !l.swapped() && l.is_zero(64);
    let run = if l.bit(74) {
        several::<carry::MadX>(l.uniform())
    } else if l.is_zero(24) && !neg {
        any::<Plus<0>>(l)
    } else if b_one {
        if neg { any::<Plus<2>>(l) } else { any::<Plus<1>>(l) }
    } else if neg {
        any::<Mad<2>>(l)
    } else if c_zero {
        any::<Mad<1>>(l)
    } else {
        any::<Mad<0>>(l)
    };
    Ok(Uop { mods: flag(neg, NEG[2]), ..l.abc(run)? })
}

fn wide_operands(l: &mut Lower<'_>) -> Result<(u32, Src, Src, Src), Refused> {
    let mods = flag(l.bit(74), X) | flag(neg_c(l), NEG[2]);
    let widen = if l.bit(73) { Widen::Signed } else { Widen::Unsigned };
    let a = l.a();
    let (b, c) = l.bc_wide(1, 2, widen)?;
    Ok((mods, a, b, c))
}

pub(crate) fn imad_wide(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (mods, a, b, c) = wide_operands(l)?;
    let d = l.dst(2);
    let plain = mods & (X | NEG[2]) == 0 && l.bits(81, 3) == 7;
    let run = match (plain, l.bit(73)) {
        (true, true) => several::<carry::Wide<true>>(l.uniform()),
        (true, false) => several::<carry::Wide<false>>(l.uniform()),
        (false, true) => several::<carry::WideX<true>>(l.uniform()),
        (false, false) => several::<carry::WideX<false>>(l.uniform()),
    };
    Ok(Uop { d, a, b, c, mods, ps: l.ps(), pd: l.pdst(81), ..l.uop(run) })
}

pub(crate) fn imad_hi(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (mods, a, b, c) = wide_operands(l)?;
    let d = l.dst(1);
    let signed = l.bit(73);
    let run =
        if signed { several::<carry::High<true>>(l.uniform()) } else { several::<carry::High<false>>(l.uniform()) };
    Ok(Uop { d, a, b, c, mods, ps: l.ps(), pd: l.pdst(81), ..l.uop(run) })
}

struct Relate<const SIGN: bool>;
impl<const SIGN: bool> Compare for Relate<SIGN> {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V) -> (V, V, V) {
        (if SIGN { a.lt(b) } else { a.ltu(b) }, a.eq(b), V::splat(0))
    }
}

/// One condition of integers.
struct Less<const SIGN: bool>;
impl<const SIGN: bool> Condition for Less<SIGN> {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        if SIGN { a.lt(b) } else { a.ltu(b) }
    }
}

struct Equal;
impl Condition for Equal {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        a.eq(b)
    }
}

/// ISETP for the relations that are one condition, its opposite, or one of these with the sources exchanged.
fn isetp_one(l: &mut Lower<'_>) -> Result<Option<Uop>, Refused> {
    if l.uniform() || l.bit(72) {
        return Ok(None);
    }
    let less = if l.bit(73) { alu::condition::<Less<true>> } else { alu::condition::<Less<false>> };
    let (run, exchanged, opposite) = match l.bits(76, 3) {
        1 => (less(), false, false),
        6 => (less(), false, true),
        4 => (less(), true, false),
        3 => (less(), true, true),
        2 => (alu::condition::<Equal>(), false, false),
        5 => (alu::condition::<Equal>(), false, true),
        _ => return Ok(None),
    };
    alu::conditional(l, run, exchanged, opposite).map(Some)
}

pub(crate) fn isetp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if let Some(u) = isetp_one(l)? {
        return Ok(u);
    }
    let mods = l.bits(76, 3) | l.bits(74, 2) << alu::cmp::COMBINE | flag(l.bit(72), alu::cmp::EXTENDED);
    let run = match (l.uniform(), l.bit(73)) {
        (false, true) => alu::setp::<Relate<true>>(),
        (false, false) => alu::setp::<Relate<false>>(),
        (true, true) => alu::usetp::<Relate<true>>(),
        (true, false) => alu::usetp::<Relate<false>>(),
    };
    let (pd, pe, pt) = (l.pdst(81), l.pdst(84), l.pred(68, 71));
    Ok(Uop { mods, pd, pe, pt, ..l.ab(run)? })
}

struct LeaPlain;
impl Alu for LeaPlain {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, _: V, _: u32) -> V {
        a.shl(V::splat(u.imm)).add(b)
    }
}

pub(crate) fn lea(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    // In form 2 the number is the high word of A, and its top bit is no sign of B.
    let immediate = matches!(l.word.form(), 2 | 4);
    let mods = flag(l.bit(72), NEG[0])
        | flag(l.bit(63) && !immediate, NEG[1])
        | flag(l.bit(74), X)
        | flag(l.bit(80), HIGH)
        | flag(l.bit(73), SX32);
    let pd = l.pdst(81);
    let run = if mods == 0 && l.bits(81, 3) == 7 { any::<LeaPlain>(l) } else { several::<carry::Lea>(l.uniform()) };
    let imm = l.bits(75, 5);
    Ok(Uop { mods, imm, pd, ..l.abc(run)? })
}

struct MinMax<const SIGN: bool>;
impl<const SIGN: bool> Alu for MinMax<SIGN> {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, _: V, p: u32) -> V {
        let less = if SIGN { a.lt(b) } else { a.ltu(b) };
        less.xor(V::from_bits(p).not()).select(a, b)
    }
}

pub(crate) fn imnmx(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let run = if l.bit(73) { any::<MinMax<true>>(l) } else { any::<MinMax<false>>(l) };
    l.ab(run)
}

/// Makes operations on single lanes that need no vector code.
macro_rules! lanewise {
    ($($name:ident($u:ident, $a:ident, $b:ident, $c:ident) $e:expr;)*) => {$(
        struct $name;
        impl Alu for $name {
            #[inline(always)]
            fn eval<V: Simd>($u: &Uop, a: V, b: V, c: V, _: u32) -> V {
                V::map3(a, b, c, |$a, $b, $c| $e)
            }
        }
    )*};
}
pub(crate) use lanewise;

lanewise! {
    Abs(_u, a, _b, _c) int::abs(a);
    Dot4(u, a, b, c) int::dot4(a, b, int::negate(c, u.mods & 8 != 0), u.mods & 1 != 0, u.mods & 2 != 0);
    Dot2(u, a, b, c)
        int::dot2(a, b, int::negate(c, u.mods & 8 != 0), u.mods & 1 != 0, u.mods & 2 != 0, u.mods & 4 != 0);
    AbsDiff(u, a, b, c) int::abs_diff(a, b, c, u.mods & 1 != 0);
    // C is added only with .ACC.
    AbsDiff4(u, a, b, _c) int::abs_diff4(a, b, u.mods & 1 != 0);
    AbsDiff4Sum(u, a, b, c) int::abs_diff4_sum(a, b, c, u.mods & 1 != 0);
    Population(u, a, _b, _c) int::invert(a, u.mods & 1 != 0).count_ones();
    Reverse(_u, a, _b, _c) a.reverse_bits();
    Extend(u, a, b, _c) bits::extend(a, b, u.mods & 1 != 0, u.mods & 2 != 0);
    BitMask(u, a, b, _c) bits::mask(a, b, u.mods & 2 != 0);
}

pub(crate) fn iabs(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    l.unary(alu::alu::<Abs>())
}

pub(crate) fn idp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(73), 1) | flag(l.bit(74), 2) | flag(l.bit(77), 4) | flag(neg_c(l), 8);
    // .2A multiplies halves of A with bytes of B, with .HI with its upper bytes. .4A multiplies bytes of both.
    let run = if l.bit(76) { alu::alu::<Dot2>() } else { alu::alu::<Dot4>() };
    Ok(Uop { mods, ..l.abc(run)? })
}

pub(crate) fn vabsdiff(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(73), 1);
    Ok(Uop { mods, ..l.abc(alu::alu::<AbsDiff>())? })
}

pub(crate) fn vabsdiff4(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.pdst(81) != pred::SINK {
        return Err(Refused("VABSDIFF4 with a predicate result"));
    }
    let mods = flag(l.bit(73), 1);
    // With an accumulator, the four differences are added to it.
    let run = if l.bit(75) { alu::alu::<AbsDiff4Sum>() } else { alu::alu::<AbsDiff4>() };
    Ok(Uop { mods, ..l.abc(run)? })
}

pub(crate) fn popc(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(63) && l.word.form() != 4, 1);
    let run = any::<Population>(l);
    Ok(Uop { mods, ..l.unary(run)? })
}

pub(crate) fn brev(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let run = any::<Reverse>(l);
    l.unary(run)
}

pub(crate) fn sgxt(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(73), 1) | flag(l.bit(75), 2);
    let run = any::<Extend>(l);
    Ok(Uop { mods, ..l.ab(run)? })
}

pub(crate) fn bmsk(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(75), 2);
    let run = any::<BitMask>(l);
    Ok(Uop { mods, ..l.ab(run)? })
}

struct LeadingOne;
impl Several for LeadingOne {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let x = if u.mods & 1 != 0 { s.a[0].not() } else { s.a[0] };
        let x = if u.mods & 2 != 0 { x.xor(x.sar(V::splat(31))) } else { x };
        // The exponent of a float says where its highest bit is. Without the bit below the highest, the conversion does not
        // round up to the next power of two.
        let float = x.and(x.shr(V::splat(1)).not()).i2f();
        let exponent = float.shr(V::splat(23)).sub(V::splat(127));
        let place = x.sar(V::splat(31)).select(V::splat(31), exponent);
        let place = if u.mods & 4 != 0 { V::splat(31).sub(place) } else { place };
        let none = x.eq(V::splat(0));
        Results::with(none.select(V::splat(u32::MAX), place), none.not())
    }
}

pub(crate) fn flo(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(63) && l.word.form() != 4, 1) | flag(l.bit(73), 2) | flag(l.bit(74), 4);
    let pd = l.pdst(81);
    let run = several::<LeadingOne>(l.uniform());
    Ok(Uop { mods, pd, ..l.unary(run)? })
}
