//! HMMA, IMMA, BMMA, DMMA and MOVM. The matrix units work on fragments, and each register of a fragment is one row.
#![allow(unsafe_code)]

use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, WarpError};
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::{Dst, Src};
use crate::exec::rows::{Pred, pred};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::Warp;
use sm87_num::Round;
use sm87_num::hmma::Hmma;
use sm87_num::mma::{Bmma, Fragment, Imma, dmma, transpose};
use sm87_simd::{Double, Simd};

#[inline(always)]
fn load<const N: usize>(w: &Warp, s: Src, used: usize) -> [Fragment; N] {
    let mut f = [[0; 32]; N];
    for (i, row) in f.iter_mut().enumerate().take(used) {
        *row = w.row(s.plus(i as u32));
    }
    f
}

#[inline(always)]
fn store(w: &mut Warp, d: Dst, rows: &[Fragment]) {
    for (i, row) in rows.iter().enumerate() {
        w.put_row(d.plus(i as u32), row);
    }
}

/// Refuses a matrix instruction that is not executed by the whole warp.
fn whole(env: &mut Env<'_>, u: &Uop, exec: u32) -> Result<(), Flow> {
    if exec == u32::MAX {
        env.counts.matrices += 1;
        return Ok(());
    }
    let text = format!("matrix instruction with lanes {exec:#010x} only");
    Err(env.warp_error(u, WarpError::IllegalParameter, text))
}

/// Where the metadata of a sparse matrix are: the register, and the number that says which lanes of each quad hold them. They
/// are kept in `imm`, above its other bits.
#[derive(Clone, Copy)]
struct Metadata {
    register: u8,
    selector: u32,
}

impl Metadata {
    const AT: u32 = 16;

    fn of(l: &mut Lower<'_>) -> u32 {
        // This register, too, is one that the code uses.
        l.reg(40, 1);
        (l.bits(40, 8) | l.bits(48, 2) << 8) << Self::AT
    }

    const fn from_imm(imm: u32) -> Self {
        Metadata { register: (imm >> Self::AT) as u8, selector: imm >> (Self::AT + 8) & 3 }
    }

    fn load(self, w: &Warp) -> Fragment {
        load::<1>(w, Src::reg(self.register), 1)[0]
    }
}

fn hmma_of(l: &Lower<'_>) -> Option<Hmma> {
    let shape = u32::from(l.bit(78)) << 1 | u32::from(l.bit(75));
    let make = if l.bit(73) { Hmma::sparse_from_bits } else { Hmma::from_bits };
    let mut h = make(shape, l.bits(82, 2), l.bit(76))?;
    h.neg_a = l.bit(72);
    h.neg_b = l.bit(63);
    Some(h)
}

/// HMMA whose shape, type of A and B, and type of C and D are in `FORM` as [`Hmma::from_bits`] takes them: two bits, two
/// bits, one bit.
struct Halves<const FORM: u32>;
impl<const FORM: u32> Whole for Halves<FORM> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let Some(mut h) = Hmma::from_bits(FORM & 3, FORM >> 2 & 3, FORM & 16 != 0) else {
            return env.warp_error(u, WarpError::IllegalEncoding, "HMMA shape".to_owned());
        };
        (h.neg_a, h.neg_b) = (u.imm & 32 != 0, u.imm & 64 != 0);
        let nothing = w.pred(u.ps) == 0;
        #[cfg(target_arch = "x86_64")]
        if V::LANES > 1 {
            static ZERO: [Fragment; 4] = [[0; 32]; 4];
            let c = if nothing { ZERO.as_ptr().cast() } else { w.src(u.c) };
            // Registers that follow each other have different places.
            let places = [u.a.offset() / 128, u.b.offset() / 64];
            let operands = env.operands.get_or_insert_with(|| Box::new(sm87_simd::converted::Converted::none()));
            // SAFETY: only AVX2 has several lanes. The micro-op was lowered with as many registers, and rows follow each other.
            if unsafe { sm87_simd::hmma::run(h, [w.src(u.a), w.src(u.b), c], operands, places, w.dst(u.d)) } {
                return Flow::Next;
            }
        }
        exactly(w, u, h, nothing);
        Flow::Next
    }
}

/// Computes the result for any numbers.
#[cold]
fn exactly(w: &mut Warp, u: &Uop, h: Hmma, nothing: bool) {
    let [ra, rb, rc] = h.registers();
    let c = if nothing { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let d = h.run(&load(w, u.a, ra), &load(w, u.b, rb), &c);
    store(w, u.d, &d[..rc]);
}

fn sparse_halves(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if let Err(flow) = whole(env, u, exec) {
        return flow;
    }
    let (f, metadata) = (u.imm, Metadata::from_imm(u.imm));
    let Some(mut h) = Hmma::sparse_from_bits(f & 3, f >> 2 & 3, f & 16 != 0) else {
        return env.warp_error(u, WarpError::IllegalEncoding, "HMMA shape".to_owned());
    };
    (h.neg_a, h.neg_b) = (f & 32 != 0, f & 64 != 0);
    let [ra, rb, rc] = h.registers();
    let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let (a, b) = (load::<4>(w, u.a, ra), load::<4>(w, u.b, 2 * rb));
    let d = h.run_sparse(&a, &b, &c, &metadata.load(w), metadata.selector as usize);
    store(w, u.d, &d[..rc]);
    Flow::Next
}

struct Transpose;
impl Whole for Transpose {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let [fragment] = load::<1>(w, u.a, 1);
        store(w, u.d, &[transpose(&fragment)]);
        Flow::Next
    }
}

/// MOVM.16.MT88.
pub(crate) fn movm(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(78, 2) != 0 {
        return Err(Refused("MOVM shape"));
    }
    let (d, a) = (l.dst(1), l.a());
    Ok(Uop { d, a, ..l.uop(alu::whole::<Transpose>()) })
}

/// The uniform predicate of HMMA and IMMA, which is stored as 7 - p. If it is false, C counts as zero.
fn addend(l: &Lower<'_>) -> Pred {
    Pred { index: pred::UNIFORM + (7 - l.bits(87, 3) as u8), invert: -(l.bit(90) as i8) }
}

pub(crate) fn hmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let h = hmma_of(l).ok_or(Refused("HMMA shape"))?;
    let [ra, rb, rc] = h.registers().map(|n| n as u8);
    let sparse = l.bit(73);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb << u8::from(sparse)), l.reg(64, rc));
    let imm = u32::from(l.bit(78)) << 1
        | u32::from(l.bit(75))
        | l.bits(82, 2) << 2
        | u32::from(l.bit(76)) << 4
        | u32::from(h.neg_a) << 5
        | u32::from(h.neg_b) << 6;
    if sparse {
        let imm = imm | Metadata::of(l);
        return Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(Handlers::all(sparse_halves)) });
    }
    let run = match imm & 31 {
        0b0_00_00 => alu::whole::<Halves<0b0_00_00>>(),
        0b0_00_01 => alu::whole::<Halves<0b0_00_01>>(),
        0b1_00_00 => alu::whole::<Halves<0b1_00_00>>(),
        0b1_00_01 => alu::whole::<Halves<0b1_00_01>>(),
        0b1_01_00 => alu::whole::<Halves<0b1_01_00>>(),
        0b1_01_01 => alu::whole::<Halves<0b1_01_01>>(),
        0b1_10_00 => alu::whole::<Halves<0b1_10_00>>(),
        0b1_10_10 => alu::whole::<Halves<0b1_10_10>>(),
        _ => return Err(Refused("HMMA shape")),
    };
    Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(run) })
}

struct Integers;
impl Whole for Integers {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let Some(i) = imma_of(u.imm) else {
            return env.warp_error(u, WarpError::IllegalEncoding, "IMMA shape".to_owned());
        };
        let [ra, rb, rc] = i.registers();
        let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
        let d = if u.imm & SPARSE != 0 {
            let metadata = Metadata::from_imm(u.imm);
            let (a, b) = (load::<4>(w, u.a, ra), load::<4>(w, u.b, 2 * rb));
            i.run_sparse(&a, &b, &c, &metadata.load(w), metadata.selector as usize)
        } else if V::LANES == 1 {
            i.run(&load::<4>(w, u.a, ra), &load::<2>(w, u.b, rb), &c)
        } else {
            // SAFETY: the micro-op was lowered with as many registers, whose rows follow each other.
            unsafe { integers::<V>(i, w.src(u.a), w.src(u.b), &c) }
        };
        store(w, u.d, &d[..rc]);
        Flow::Next
    }
}

/// The flag of `imm` that says that half of A is stored.
const SPARSE: u32 = 1 << 8;

/// What [`imma_lower`] wrote into `imm`.
fn imma_of(imm: u32) -> Option<Imma> {
    let make = if imm & SPARSE != 0 { Imma::sparse_from_bits } else { Imma::from_bits };
    let mut i = make(imm & 7, imm & 8 != 0, imm & 16 != 0)?;
    (i.signed_a, i.signed_b, i.saturate) = (imm & 32 != 0, imm & 64 != 0, imm & 128 != 0);
    Some(i)
}

/// Computes D as [`Imma::run`] does, the eight columns together.
///
/// # Safety
/// `a` and `b` are the rows of as many registers as the shape has, and a value has eight lanes.
#[inline(always)]
unsafe fn integers<V: Simd>(i: Imma, a: *const u32, b: *const u32, c: &[Fragment; 4]) -> [Fragment; 4] {
    let signed = [i.signed_a, i.signed_b];
    let [ra, rb, rc] = i.registers();
    // SAFETY: as this function asks of its caller.
    let sums = unsafe {
        match (ra, rb, i.bits()) {
            (1, 1, 8) => products::<V, 1, 1, 2>(signed, a, b),
            (1, 1, _) => products::<V, 1, 1, 4>(signed, a, b),
            (2, 1, 8) => products::<V, 2, 1, 2>(signed, a, b),
            (2, 1, _) => products::<V, 2, 1, 4>(signed, a, b),
            (_, _, 8) => products::<V, 4, 2, 2>(signed, a, b),
            _ => products::<V, 4, 2, 4>(signed, a, b),
        }
    };
    let mut d = [[0; 32]; 4];
    for (row, sums) in sums.iter().enumerate().take(4 * rc) {
        for (odd, sums) in sums.as_chunks::<4>().0.iter().enumerate() {
            let (n, at) = (row / 8 * 2 + odd, row % 8 * 4);
            let (d, c) = (&mut d[n][at..at + 4], &c[n][at..at + 4]);
            for t in 0..4 {
                d[t] = sums[t].wrapping_add(c[t]);
            }
            if i.saturate {
                (0..4).for_each(|t| d[t] = (sums[t] as i32).saturating_add(c[t] as i32) as u32);
            }
        }
    }
    d
}

/// The bytes at which the four words of each column begin in a register of B. The even columns are first, because a register of D has
/// either these or the others.
const COLUMNS: [u32; 8] = [0, 32, 64, 96, 16, 48, 80, 112];

/// The sums of products for each row of A, the even columns first. The registers of A and B are `A` and `B`, and a word has so many
/// pairs of elements.
///
/// # Safety
/// As for [`integers`].
#[inline(always)]
unsafe fn products<V: Simd, const A: usize, const B: usize, const PAIRS: usize>(
    [signed_a, signed_b]: [bool; 2],
    a: *const u32,
    b: *const u32,
) -> [[u32; 8]; 16] {
    let mut left = [[[0u32; 32]; PAIRS]; A];
    for (n, pairs) in left.iter_mut().enumerate() {
        for i in (0..32).step_by(V::LANES) {
            // SAFETY: a register has 32 words, from which a value is taken.
            let words = unsafe { V::load(a.add(32 * n + i)) };
            for (p, row) in pairs.iter_mut().enumerate() {
                // SAFETY: as above.
                unsafe { halves::<V, PAIRS>(words, p, signed_a).store(row.as_mut_ptr().add(i)) };
            }
        }
    }
    let mut right = [[[V::splat(0); PAIRS]; 4]; B];
    for (n, quad) in right.iter_mut().enumerate() {
        // SAFETY: each of these bytes begins four words of a register, which is aligned.
        let words = unsafe { V::gather4(b.add(32 * n).cast(), COLUMNS.as_ptr()) };
        for (pairs, word) in quad.iter_mut().zip(words) {
            for (p, pair) in pairs.iter_mut().enumerate() {
                *pair = halves::<V, PAIRS>(word, p, signed_b);
            }
        }
    }
    let mut sums = [[0; 8]; 16];
    let tall = A / B;
    for (row, sums) in sums.iter_mut().enumerate().take(8 * tall) {
        let mut sum = V::splat(0);
        for (n, quad) in right.iter().enumerate() {
            for (t, pairs) in quad.iter().enumerate() {
                for (p, &pair) in pairs.iter().enumerate() {
                    let factor = left[n * tall + row / 8][p][row % 8 * 4 + t];
                    sum = sum.add(V::splat(factor).dot2(pair));
                }
            }
        }
        // SAFETY: the array has eight words.
        unsafe { sum.store(sums.as_mut_ptr()) };
    }
    sums
}

/// Pair `p` of the elements of each word, as halves. A word has so many pairs.
#[inline(always)]
fn halves<V: Simd, const PAIRS: usize>(words: V, p: usize, signed: bool) -> V {
    let bits = 16 / PAIRS as u32;
    // The two elements are moved to the top of a word, one after the other, and from there down to their halves.
    let first = words.shl(V::splat(32 - bits * (2 * p as u32 + 1)));
    let second = words.shl(V::splat(32 - bits * (2 * p as u32 + 2)));
    let (low, high) = (V::splat(32 - bits), V::splat(16 - bits));
    let (first, second) = if signed { (first.sar(low), second.sar(high)) } else { (first.shr(low), second.shr(high)) };
    first.and(V::splat(0xffff)).or(second.and(V::splat(0xffff_0000)))
}

pub(crate) fn imma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let shape = u32::from(l.bit(86)) << 2 | u32::from(l.bit(85)) << 1 | u32::from(l.bit(75));
    let (na, nb) = (l.bit(83), l.bit(84));
    let sparse = l.bit(72);
    let make = if sparse { Imma::sparse_from_bits } else { Imma::from_bits };
    let shape_ok = make(shape, na, nb).filter(|_| !l.bit(73) && l.bit(74));
    let [ra, rb, rc] = shape_ok.ok_or(Refused("IMMA shape"))?.registers().map(|n| n as u8);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb << u8::from(sparse)), l.reg(64, rc));
    let imm = shape
        | u32::from(na) << 3
        | u32::from(nb) << 4
        | u32::from(l.bit(76)) << 5
        | u32::from(l.bit(78)) << 6
        | u32::from(l.bit(82)) << 7
        | if sparse { SPARSE } else { 0 }
        | if sparse { Metadata::of(l) } else { 0 };
    Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(alu::whole::<Integers>()) })
}

fn bmma(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if let Err(flow) = whole(env, u, exec) {
        return flow;
    }
    let Some(m) = Bmma::from_bits(u.imm & 3, u.imm & 4 != 0) else {
        return env.warp_error(u, WarpError::IllegalEncoding, "BMMA shape".to_owned());
    };
    let [ra, rb, rc] = m.registers();
    let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let d = m.run(&load::<4>(w, u.a, ra), &load::<2>(w, u.b, rb), &c);
    store(w, u.d, &d[..rc]);
    Flow::Next
}

pub(crate) fn bmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (shape, and) = (l.bits(75, 2), l.bit(78));
    let [ra, rb, rc] = Bmma::from_bits(shape, and).ok_or(Refused("BMMA shape"))?.registers().map(|n| n as u8);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb), l.reg(64, rc));
    Ok(Uop { d, a, b, c, imm: shape | u32::from(and) << 2, ps: addend(l), ..l.uop(Handlers::all(bmma)) })
}

struct Doubles;
impl Whole for Doubles {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let round = Round::from_bits(u.imm);
        let (a, b, c) = (load::<2>(w, u.a, 2), w.src(u.b), load::<4>(w, u.c, 4));
        // SAFETY: B is two registers, whose rows follow each other.
        let found = if V::LANES > 1 && round == Round::Rn { unsafe { doubles::<V>(&a, b, &c) } } else { None };
        let d = found.unwrap_or_else(|| dmma(&a, &load::<2>(w, u.b, 2), &c, round));
        store(w, u.d, &d);
        Flow::Next
    }
}

/// Computes D as [`dmma`] does, rounded to nearest and the eight columns together, unless there is a result with the exponent of a NaN.
///
/// # Safety
/// `b` is the rows of two registers, and a value has eight lanes.
#[inline(always)]
unsafe fn doubles<V: Simd>(a: &[Fragment; 2], b: *const u32, c: &[Fragment; 4]) -> Option<[Fragment; 4]> {
    // SAFETY: each of these bytes begins four words of a register, which is aligned.
    let (low, high) =
        unsafe { (V::gather4(b.cast(), COLUMNS.as_ptr()), V::gather4(b.add(32).cast(), COLUMNS.as_ptr())) };
    let (mut d, mut nans) = ([[0; 32]; 4], V::splat(0));
    for row in 0..8 {
        let at = 4 * row;
        let mut words = [[0u32; 8]; 2];
        for (n, words) in words.iter_mut().enumerate() {
            words[..4].copy_from_slice(&c[n][at..at + 4]);
            words[4..].copy_from_slice(&c[n + 2][at..at + 4]);
        }
        // SAFETY: the arrays have eight words each.
        let mut sum = unsafe { [V::load(words[0].as_ptr()), V::load(words[1].as_ptr())] };
        for k in 0..4 {
            let factor = [V::splat(a[0][at + k]), V::splat(a[1][at + k])];
            sum = V::double(Double::Fma, factor, [low[k], high[k]], sum);
        }
        let top = V::splat(0x7ff0_0000);
        nans = nans.or(sum[1].and(top).eq(top));
        for (n, words) in words.iter_mut().enumerate() {
            // SAFETY: the array has eight words.
            unsafe { sum[n].store(words.as_mut_ptr()) };
            d[n][at..at + 4].copy_from_slice(&words[..4]);
            d[n + 2][at..at + 4].copy_from_slice(&words[4..]);
        }
    }
    (!nans.any()).then_some(d)
}

pub(crate) fn dmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(72, 4) != 0 || l.bits(62, 2) != 0 || l.bits(87, 4) != 0 {
        return Err(Refused("DMMA with signs or a predicate"));
    }
    let (d, a, b, c) = (l.dst(4), l.reg(24, 2), l.reg(32, 2), l.reg(64, 4));
    Ok(Uop { d, a, b, c, imm: l.bits(78, 2), ..l.uop(alu::whole::<Doubles>()) })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    //! All columns together against the definitions.

    use super::*;
    use crate::exec::host::wide;
    use crate::exec::rows::Row;
    use proptest::prelude::*;

    wide! {
        unsafe fn integers_wide(i: Imma, a: *const u32, b: *const u32, c: &[Fragment; 4]) -> [Fragment; 4] {
            // SAFETY: as this function asks of its caller.
            unsafe { integers::<sm87_simd::avx2::Avx2>(i, a, b, c) }
        }
        unsafe fn doubles_wide(a: &[Fragment; 2], b: *const u32, c: &[Fragment; 4]) -> Option<[Fragment; 4]> {
            // SAFETY: as this function asks of its caller.
            unsafe { doubles::<sm87_simd::avx2::Avx2>(a, b, c) }
        }
    }

    /// Rows with any words, or with numbers of which the sums saturate.
    fn rows<const N: usize>() -> impl Strategy<Value = [Row; N]> {
        let word = prop_oneof![
            any::<u32>(),
            prop::sample::select(vec![0, 0x7fff_ffff, 0x8000_0000, 0x7f7f_7f7f, 0x8080_8080, u32::MAX])
        ];
        prop::collection::vec(word, 32 * N)
            .prop_map(|words| std::array::from_fn(|n| Row(std::array::from_fn(|i| words[32 * n + i]))))
    }

    proptest! {
        #[test]
        fn integers_are_those_of_the_definition(
            a in rows::<4>(), b in rows::<2>(), c in rows::<4>(), how in 0..8u32,
            shape in prop::sample::select(vec![0, 2 | 24, 4, 5, 5 | 24, 6 | 24]),
        ) {
            let i = imma_of(shape | how << 5).expect("a shape");
            let (of_a, of_b, of_c) = (a.map(|row| row.0), b.map(|row| row.0), c.map(|row| row.0));
            let want = i.run(&of_a, &of_b, &of_c);
            if crate::exec::host::avx2() {
                // SAFETY: there are as many rows, and the host has AVX2.
                let found = unsafe { integers_wide(i, a.as_ptr().cast(), b.as_ptr().cast(), &of_c) };
                prop_assert_eq!(found, want, "{:?}", i);
            }
        }

        #[test]
        fn doubles_are_those_of_the_definition(a in rows::<2>(), b in rows::<2>(), c in rows::<4>(), plain: bool) {
            // A number whose exponent is near zero is neither lost nor infinite in a sum.
            let near = |word: u32| if plain { word & 0x800f_ffff | (1000 + (word >> 20 & 31)) << 20 } else { word };
            let high = |row: Row| Row(row.0.map(near));
            let ([a0, a1], [b0, b1], [c0, c1, c2, c3]) = (a, b, c);
            let (a, b, c) = ([a0, high(a1)], [b0, high(b1)], [c0, high(c1), c2, high(c3)]);
            let (of_a, of_b, of_c) = (a.map(|row| row.0), b.map(|row| row.0), c.map(|row| row.0));
            let want = dmma(&of_a, &of_b, &of_c, Round::Rn);
            if crate::exec::host::avx2() {
                // SAFETY: as above.
                let found = unsafe { doubles_wide(&of_a, b.as_ptr().cast(), &of_c) };
                prop_assert!(found.is_some() || !plain);
                prop_assert_eq!(found.unwrap_or(want), want);
            }
        }
    }
}
