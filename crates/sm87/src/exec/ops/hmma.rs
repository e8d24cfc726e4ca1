//! HMMA on eight columns at a time. It works for numbers whose intermediate results fit into floats. [`Hmma::run`] defines
//! the results and computes all other cases.
//!
//! A product of two factors with eleven bits each is exact as a float. It is scaled so that the last bit that survives
//! alignment has the value one. The conversion to an integer then cuts the bits below it, and integers are summed exactly.
//! The columns of a vector have the order of two accumulator registers: 0, 2, 4, 6, 1, 3, 5, 7.
#![allow(unsafe_code)]

use crate::exec::rows::Row;
use crate::exec::simd::Simd;
use crate::num::hmma::{Hmma, Input};
use crate::num::mma::Fragment;
use std::mem::MaybeUninit;

/// The number of fraction bits that survive alignment.
const FRACTION: i32 = 24;
/// The exponent that stands for a zero. The sum of it and any other exponent is below `NOTHING`.
const ZERO: i32 = -4096;
const NOTHING: i32 = -2000;
/// If all exponents lie between these two, scales and results are normal floats, and a product that is too small for a
/// float is cut to zero.
const LEAST: i32 = -100;
const MOST: i32 = 120;

/// The offsets in bytes at which the four words of each column begin in a register of B.
const COLUMNS: [u32; 8] = [0, 32, 64, 96, 16, 48, 80, 112];

/// A word of the arrays below. Shapes of less depth set and use only some of the words.
type Word = MaybeUninit<u32>;

const UNSET: Word = MaybeUninit::uninit();

/// Values and exponents of one register of A, in the register's own order: rows of `4 * per_word` numbers.
struct Left {
    value: [Word; 64],
    exponent: [Word; 64],
}

/// Values and exponents of one register of B, as rows of eight columns.
struct Right {
    value: [[Word; 8]; 8],
    exponent: [[Word; 8]; 8],
}

/// The factors of a row of A.
#[derive(Clone, Copy)]
struct Factors<'a> {
    value: &'a [Word],
    exponent: &'a [Word],
}

impl Left {
    /// Those of row `row`, if each has `width` of them.
    #[inline(always)]
    fn row(&self, row: usize, width: usize) -> Factors<'_> {
        let (from, to) = (row * width, (row + 1) * width);
        Factors { value: &self.value[from..to], exponent: &self.exponent[from..to] }
    }

    const NONE: Left = Left { value: [UNSET; 64], exponent: [UNSET; 64] };
}

impl Right {
    const NONE: Right = Right { value: [[UNSET; 8]; 8], exponent: [[UNSET; 8]; 8] };
}

/// Operands that were converted, and what they were converted from. Programs use a register of A or B for several products.
struct Kept<T, const REGISTERS: usize> {
    /// The format, the sign and the number of passes. None if nothing is kept.
    how: Option<(Input, bool, usize)>,
    registers: [Fragment; REGISTERS],
    /// The largest exponents.
    top: [u32; 8],
    factors: T,
}

impl<T, const REGISTERS: usize> Kept<T, REGISTERS> {
    const fn new(factors: T) -> Self {
        Kept { how: None, registers: [[0; 32]; REGISTERS], top: [0; 8], factors }
    }

    /// Whether the first `used` registers are those that are kept. Otherwise they will be.
    #[inline(always)]
    fn has<V: Simd>(&mut self, how: (Input, bool, usize), registers: &[&Fragment; REGISTERS], used: usize) -> bool {
        let mut apart = V::splat(0);
        for (kept, row) in self.registers.iter().zip(registers).take(used) {
            let mut i = 0;
            while i < 32 {
                // SAFETY: a register has 32 words.
                unsafe { apart = apart.or(V::load(kept.as_ptr().add(i)).xor(V::load(row.as_ptr().add(i)))) };
                i += V::LANES;
            }
        }
        if self.how == Some(how) && !apart.any() {
            return true;
        }
        self.how = Some(how);
        for (kept, row) in self.registers.iter_mut().zip(registers).take(used) {
            *kept = **row;
        }
        false
    }
}

/// The operands that were converted last: those of two A and of four B.
pub(crate) struct Operands {
    left: [Kept<[[Left; 2]; 2], 4>; 2],
    right: [Kept<[Right; 2], 2>; 4],
}

impl Operands {
    pub(crate) const fn none() -> Operands {
        Operands {
            left: [const { Kept::new([const { [const { Left::NONE }; 2] }; 2]) }; 2],
            right: [const { Kept::new([const { Right::NONE }; 2]) }; 4],
        }
    }
}

/// The state of one instruction while it is executed.
struct Unit<V> {
    input: Input,
    is_f32: bool,
    /// The largest exponent that a factor has had so far.
    top: V,
    range: Range<V>,
    /// Columns in which halves are infinite or no numbers.
    bad: V,
}

impl<V: Simd> Unit<V> {
    /// The lowest exponent that a factor can have, and the exponent that infinities and NaN have.
    #[inline(always)]
    fn limits(&self) -> (i32, i32) {
        if self.input == Input::F16 { (-14, 16) } else { (-126, 128) }
    }

    /// Factors as floats. Each lane of `x` holds 16 bits or a whole word.
    #[inline(always)]
    fn float(&self, x: V) -> V {
        match self.input {
            Input::F16 => widened(x),
            Input::Bf16 => x.shl(V::splat(16)),
            Input::Tf32 => x.and(V::splat(0xffff_e000)),
        }
    }

    /// Value and exponent of factors.
    #[inline(always)]
    fn factor(&mut self, value: V, neg: V) -> (V, V) {
        let exponent = exponent(value, self.limits().0);
        self.top = self.top.maxs(exponent);
        (value.xor(neg), exponent)
    }

    /// Converts A, unless it is kept.
    #[inline(always)]
    fn lefts(&mut self, kept: &mut Kept<[[Left; 2]; 2], 4>, a: &[&Fragment; 4], neg: bool, passes: usize) {
        if !kept.has::<V>((self.input, neg, passes), a, 2 * passes) {
            let before = self.begin();
            for (p, out) in kept.factors.iter_mut().enumerate().take(passes) {
                self.left(&mut out[0], a[2 * p], sign(neg));
                self.left(&mut out[1], a[2 * p + 1], sign(neg));
            }
            self.end(&mut kept.top, before);
        } else {
            self.note(&kept.top);
        }
    }

    /// Converts B, unless it is kept.
    #[inline(always)]
    fn rights(&mut self, kept: &mut Kept<[Right; 2], 2>, b: &[&Fragment; 2], neg: bool, passes: usize) {
        if !kept.has::<V>((self.input, neg, passes), b, passes) {
            let before = self.begin();
            for (p, out) in kept.factors.iter_mut().enumerate().take(passes) {
                self.right(out, b[p], sign(neg));
            }
            self.end(&mut kept.top, before);
        } else {
            self.note(&kept.top);
        }
    }

    /// From here on, `top` is that of one operand. Returns that of the others.
    #[inline(always)]
    fn begin(&mut self) -> V {
        std::mem::replace(&mut self.top, V::splat(ZERO as u32))
    }

    #[inline(always)]
    fn end(&mut self, top: &mut [u32; 8], before: V) {
        // SAFETY: a value has eight lanes at most.
        unsafe { self.top.store(top.as_mut_ptr()) };
        self.top = self.top.maxs(before);
    }

    #[inline(always)]
    fn note(&mut self, top: &[u32; 8]) {
        // SAFETY: as above.
        self.top = self.top.maxs(unsafe { V::load(top.as_ptr()) });
    }

    #[inline(always)]
    fn left(&mut self, out: &mut Left, row: &Fragment, neg: V) {
        let mut i = 0;
        while i < if self.input == Input::Tf32 { 32 } else { 64 } {
            // SAFETY: a fragment has 32 words or 64 halves, and `out` has as many words.
            unsafe {
                let p = row.as_ptr();
                let value = match self.input {
                    Input::F16 => V::load_halves(p.cast::<u16>().add(i)),
                    Input::Bf16 => self.float(V::widen(p.cast::<u16>().add(i))),
                    Input::Tf32 => self.float(V::load(p.add(i))),
                };
                let (value, exponent) = self.factor(value, neg);
                value.store(out.value.as_mut_ptr().cast::<u32>().add(i));
                exponent.store(out.exponent.as_mut_ptr().cast::<u32>().add(i));
            }
            i += V::LANES;
        }
    }

    #[inline(always)]
    fn right(&mut self, out: &mut Right, row: &Fragment, neg: V) {
        let row = Row(*row);
        let mut i = 0;
        while i < 8 {
            // SAFETY: a row is aligned and has four words for each of the eight columns.
            let words = unsafe { V::gather4(row.0.as_ptr().cast(), COLUMNS.as_ptr().add(i)) };
            for (t, &word) in words.iter().enumerate() {
                if self.input == Input::Tf32 {
                    self.column(out, t, i, word, neg);
                } else {
                    self.column(out, 2 * t, i, word.and(V::splat(0xffff)), neg);
                    self.column(out, 2 * t + 1, i, word.shr(V::splat(16)), neg);
                }
            }
            i += V::LANES;
        }
    }

    #[inline(always)]
    fn column(&mut self, out: &mut Right, k: usize, i: usize, x: V, neg: V) {
        let (value, exponent) = self.factor(self.float(x), neg);
        // SAFETY: a row has eight columns.
        unsafe {
            value.store(out.value[k].as_mut_ptr().cast::<u32>().add(i));
            exponent.store(out.exponent[k].as_mut_ptr().cast::<u32>().add(i));
        }
    }

    /// Computes one pass for two rows, whose factors are `a`. Returns the new sums.
    #[inline(always)]
    fn pass(&mut self, a: [Factors<'_>; 2], b: &Right, i: usize, addend: [V; 2]) -> [V; 2] {
        let lowest = if self.is_f32 { -126 } else { -14 };
        let own = [exponent(addend[0], lowest), exponent(addend[1], lowest)];
        let mut top = own;
        for ((&e0, &e1), eb) in a[0].exponent.iter().zip(a[1].exponent).zip(&b.exponent) {
            // SAFETY: a row has eight columns. `run` has set as many factors as a row of A has.
            let (e0, e1, eb) =
                unsafe { (e0.assume_init(), e1.assume_init(), V::load(eb.as_ptr().cast::<u32>().add(i))) };
            top = [top[0].maxs(V::splat(e0).add(eb)), top[1].maxs(V::splat(e1).add(eb))];
        }
        self.range.note(top[0]);
        self.range.note(top[1]);
        if !self.is_f32 {
            self.bad = self.bad.or(V::splat(15).lt(own[0].maxs(own[1])));
        }
        let scale = [scale(top[0]), scale(top[1])];
        let mut total = [addend[0].fmul(scale[0]).f2i(), addend[1].fmul(scale[1]).f2i()];
        for ((&a0, &a1), b) in a[0].value.iter().zip(a[1].value).zip(&b.value) {
            // SAFETY: as above.
            let (a0, a1, b) = unsafe { (a0.assume_init(), a1.assume_init(), V::load(b.as_ptr().cast::<u32>().add(i))) };
            let (x, y) = (V::splat(a0).fmul(b).fmul(scale[0]), V::splat(a1).fmul(b).fmul(scale[1]));
            total = [total[0].add(x.f2i()), total[1].add(y.f2i())];
        }
        [self.rounded(total[0], scale[0]), self.rounded(total[1], scale[1])]
    }

    /// `total` divided by `scale`, cut to an f32 or rounded to an f16. A sum of zero is +0.
    #[inline(always)]
    fn rounded(&self, total: V, scale: V) -> V {
        let magnitude = total.abs();
        let near = magnitude.i2f();
        // The nearest number is the truncated number or the next one.
        let cut = near.add(magnitude.lt(near.f2i()));
        let cut = if self.is_f32 {
            cut
        } else {
            // The last bit is set if anything was cut off. With such a bit, rounding twice gives the same as rounding once.
            cut.or(cut.f2i().eq(magnitude).not().and(V::splat(1)))
        };
        // The scale is a power of two, so that the division is one of exponents.
        let scaled = cut.add(V::splat(127 << 23)).sub(scale);
        let scaled = magnitude.eq(V::splat(0)).select(V::splat(0), scaled);
        let scaled = if self.is_f32 { scaled } else { widened(halved(scaled)) };
        scaled.or(total.and(V::splat(1 << 31)))
    }
}

/// The least and the greatest exponent to which sums were aligned, those of zeros left out.
#[derive(Clone, Copy)]
struct Range<V> {
    /// Above `NOTHING`, without a sign: zeros are far above all others.
    least: V,
    most: V,
}

impl<V: Simd> Range<V> {
    #[inline(always)]
    fn new() -> Self {
        Range { least: V::splat(u32::MAX), most: V::splat(ZERO as u32) }
    }

    #[inline(always)]
    fn note(&mut self, top: V) {
        self.least = self.least.minu(top.sub(V::splat(NOTHING as u32)));
        self.most = self.most.maxs(top);
    }

    /// A mask of the columns in which numbers left the range of floats.
    #[inline(always)]
    fn exceeded(&self) -> V {
        let low = self.least.ltu(V::splat((LEAST - NOTHING) as u32));
        low.or(V::splat(MOST as u32).lt(self.most))
    }
}

/// What makes one of the unit in the last place that survives alignment to `top`.
#[inline(always)]
fn scale<V: Simd>(top: V) -> V {
    V::splat((127 + FRACTION) as u32).sub(top.maxs(V::splat(LEAST as u32))).shl(V::splat(23))
}

/// The exponent of a finite float, at least `lowest`.
#[inline(always)]
fn exponent<V: Simd>(x: V, lowest: i32) -> V {
    let twice = x.shl(V::splat(1));
    let exponent = twice.shr(V::splat(24)).sub(V::splat(127)).maxs(V::splat(lowest as u32));
    twice.eq(V::splat(0)).select(V::splat(ZERO as u32), exponent)
}

/// Converts halves to floats. Infinities and NaN become numbers that are too large for a half.
#[inline(always)]
fn widened<V: Simd>(x: V) -> V {
    // The exponent field is smaller by 112 than that of f32. The multiplication corrects this, for denormals too.
    let magnitude = x.and(V::splat(0x7fff)).shl(V::splat(13)).fmul(V::splat((127 + 112) << 23));
    magnitude.or(x.and(V::splat(0x8000)).shl(V::splat(16)))
}

/// Converts positive floats to halves, rounded to nearest even.
#[inline(always)]
fn halved<V: Simd>(x: V) -> V {
    let half = V::splat(0.5f32.to_bits());
    let low = x.fadd(half).sub(half);
    let even = x.shr(V::splat(13)).and(V::splat(1));
    let normal = x.sub(V::splat(112 << 23)).add(V::splat(0xfff)).add(even).shr(V::splat(13));
    let infinite = V::splat(0x7c00);
    let found = x.lt(V::splat(0x3880_0000)).select(low, normal);
    x.lt(V::splat(0x4780_0000)).select(found, infinite)
}

/// The sign with which factors are multiplied.
#[inline(always)]
fn sign<V: Simd>(neg: bool) -> V {
    V::splat(if neg { 1 << 31 } else { 0 })
}

/// How far the columns of a row are shifted in a register of halves.
const PLACES: [u32; 8] = [0, 0, 0, 0, 16, 16, 16, 16];

impl<V: Simd> Unit<V> {
    /// Columns from `i` on of a row of accumulators.
    #[inline(always)]
    fn addend(&self, c: &[&Fragment; 4], row: usize, i: usize) -> V {
        let (r, lane) = (row / 8, row % 8 * 4);
        // SAFETY: each row of a matrix has four words in a register, and eight columns.
        unsafe {
            if self.is_f32 {
                V::load_quads(c[2 * r].as_ptr().add(lane), c[2 * r + 1].as_ptr().add(lane), i)
            } else {
                let both = c[r].as_ptr().add(lane);
                let x = V::load_quads(both, both, i).shr(V::load(PLACES.as_ptr().add(i)));
                widened(x.and(V::splat(0xffff)))
            }
        }
    }

    /// Puts columns from `i` on of a row where they belong.
    #[inline(always)]
    fn put(&self, d: &mut [Fragment; 4], row: usize, i: usize, sum: V) {
        let (r, lane) = (row / 8, row % 8 * 4);
        // SAFETY: as for `addend`; a value has eight columns at most.
        unsafe {
            if self.is_f32 {
                let low = d[2 * r].as_mut_ptr().add(lane);
                return sum.store_quads(low, d[2 * r + 1].as_mut_ptr().add(lane), i);
            }
            let half = halved(sum.and(V::splat(0x7fff_ffff))).or(sum.shr(V::splat(16)).and(V::splat(0x8000)));
            let mut found = [0u32; 8];
            half.shl(V::load(PLACES.as_ptr().add(i))).store(found.as_mut_ptr());
            for (column, &x) in (i..).zip(&found).take(V::LANES) {
                d[r][lane + column % 4] |= x;
            }
        }
    }
}

/// Computes D = A·B + C. The result is `None` if a number on the way is infinite, NaN, very large or very small.
#[inline(always)]
pub(super) fn run<V: Simd>(
    how: Hmma,
    a: &[&Fragment; 4],
    b: &[&Fragment; 2],
    c: &[&Fragment; 4],
    operands: &mut Operands,
    places: [usize; 2],
) -> Option<[Fragment; 4]> {
    let (input, is_f32, top) = (how.input(), how.is_f32(), V::splat(ZERO as u32));
    let mut unit = Unit::<V> { input, is_f32, top, range: Range::new(), bad: V::splat(0) };
    let (width, passes) = (4 * how.per_word(), how.registers()[1]);
    let (left, right) = (&mut operands.left[places[0] % 2], &mut operands.right[places[1] % 4]);
    unit.lefts(left, a, how.neg_a, passes);
    unit.rights(right, b, how.neg_b, passes);
    let (left, right) = (&left.factors, &right.factors);
    let mut d = [[0; 32]; 4];
    for row in (0..16).step_by(2) {
        let mut i = 0;
        while i < 8 {
            let mut sums = [unit.addend(c, row, i), unit.addend(c, row + 1, i)];
            for (left, right) in left.iter().zip(right).take(passes) {
                let left = &left[row / 8];
                sums = unit.pass([left.row(row % 8, width), left.row(row % 8 + 1, width)], right, i, sums);
            }
            unit.put(&mut d, row, i, sums[0]);
            unit.put(&mut d, row + 1, i, sums[1]);
            i += V::LANES;
        }
    }
    let infinite = V::splat(unit.limits().1 as u32 - 1).lt(unit.top);
    let bad = infinite.or(unit.range.exceeded()).or(unit.bad);
    (!bad.any()).then_some(d)
}

#[cfg(test)]
#[path = "../tests/hmma.rs"]
mod tests;
