//! Matrix multiply–accumulate of a whole warp on fragments: which lane has which element, IMMA, DMMA, and the
//! instructions that move 8×8 matrices for them. HMMA is in [`super::hmma`].
//!
//! A fragment register is `[u32; 32]`, one word per lane. The lanes have the elements that the PTX ISA documents for
//! `mma.sync`, with g = lane / 4, t = lane % 4, and n elements of A or B in a register:
//!
//! * A, register r: row g, plus 8 for odd r; columns t·n … t·n + n − 1, plus 4·n for the second pair of registers.
//!   Shapes with 8 rows have one register.
//! * B, register r: column g; rows t·n … t·n + n − 1, plus 4·n for each further register.
//! * C and D, 32-bit: registers 0 and 1 have row g, columns 2t and 2t + 1, and registers 2 and 3 have row g + 8.
//!   16-bit: register 0 has both columns of row g, and register 1 those of row g + 8.

use super::sparse::Grain;

/// One fragment register of a warp.
pub type Fragment = [u32; 32];

/// An integer shape that IMMA has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Imma {
    /// The number of rows of A and D: 8 or 16. D always has 8 columns.
    rows: usize,
    /// The number of columns of A.
    depth: usize,
    /// The bits of an element of A and B: 8 or 4.
    bits: u32,
    /// True if A is signed.
    pub signed_a: bool,
    /// True if B is signed.
    pub signed_b: bool,
    /// `.SAT`: the sum saturates. Otherwise it wraps.
    pub saturate: bool,
}

impl Imma {
    /// Reads the three-bit shape field and the element widths (`narrow` means 4 bits). The result is `None` for shapes
    /// that do not exist. Operands of two different widths are not documented and count as such shapes.
    #[must_use]
    pub const fn from_bits(shape: u32, narrow_a: bool, narrow_b: bool) -> Option<Self> {
        let (rows, depth) = match (shape, narrow_a, narrow_b) {
            (0, false, false) => (8, 16),
            (2, true, true) => (8, 32),
            (4, false, false) => (16, 16),
            (5, false, false) | (5, true, true) => (16, 32),
            (6, true, true) => (16, 64),
            _ => return None,
        };
        let bits = if narrow_a { 4 } else { 8 };
        Some(Self { rows, depth, bits, signed_a: false, signed_b: false, saturate: false })
    }

    /// The same for a sparse A, of which half of the elements is stored. The numbers of registers are those of the stored half.
    #[must_use]
    pub const fn sparse_from_bits(shape: u32, narrow_a: bool, narrow_b: bool) -> Option<Self> {
        let depth = match (shape, narrow_a, narrow_b) {
            (5, false, false) => 16,
            (6, false, false) | (6, true, true) => 32,
            (7, true, true) => 64,
            _ => return None,
        };
        let bits = if narrow_a { 4 } else { 8 };
        Some(Self { rows: 16, depth, bits, signed_a: false, signed_b: false, saturate: false })
    }

    /// The numbers of registers of A, of B, and of C or D.
    #[must_use]
    pub const fn registers(self) -> [usize; 3] {
        let b = self.depth * self.bits as usize / 128;
        [b * self.rows / 8, b, self.rows / 4]
    }

    /// The number of bits of an element of A and B.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Computes D = A·B + C. Registers beyond [`Imma::registers`] are ignored in the operands and zero in the result.
    #[must_use]
    #[inline]
    pub fn run(self, a: &[Fragment; 4], b: &[Fragment; 2], c: &[Fragment; 4]) -> [Fragment; 4] {
        let (left, right) = (self.left(a), self.right(&b[..self.registers()[1]]));
        self.sums(c, |row, column| {
            let factors = left[row].iter().zip(&right[column]).take(self.depth);
            factors.map(|(&x, &y)| i32::from(x) * i32::from(y)).sum()
        })
    }

    /// The same for a sparse A, of which half of the elements is stored. B has twice as many registers.
    #[must_use]
    #[inline]
    pub fn run_sparse(
        self,
        a: &[Fragment; 4],
        b: &[Fragment; 4],
        c: &[Fragment; 4],
        metadata: &Fragment,
        selector: usize,
    ) -> [Fragment; 4] {
        let (left, right) = (self.left(a), self.right(&b[..2 * self.registers()[1]]));
        let grain = if self.bits == 4 { Grain::Nibbles } else { Grain::Bytes };
        let columns: [_; 16] = std::array::from_fn(|row| grain.columns(metadata, selector, row, self.depth));
        self.sums(c, |row, column| {
            let stored = left[row].iter().zip(&columns[row]).take(self.depth);
            stored.map(|(&x, &k)| i32::from(x) * i32::from(right[column][k])).sum()
        })
    }

    /// The number of elements in four words.
    const fn width(self) -> usize {
        128 / self.bits as usize
    }

    /// The rows of A. Four words of a register belong to the same row; they hold its next elements in order.
    #[inline(always)]
    fn left(self, a: &[Fragment; 4]) -> [[i16; 64]; 16] {
        let mut left = [[0; 64]; 16];
        let width = self.width();
        for g in 0..8 {
            for (r, register) in a.iter().take(self.registers()[0]).enumerate() {
                self.elements(register, g, self.signed_a, &mut left[g + r % 2 * 8][r / 2 * width..][..width]);
            }
        }
        left
    }

    /// The columns of B.
    #[inline(always)]
    fn right(self, b: &[Fragment]) -> [[i16; 128]; 8] {
        let mut right = [[0; 128]; 8];
        let width = self.width();
        for (g, column) in right.iter_mut().enumerate() {
            for (r, register) in b.iter().enumerate() {
                self.elements(register, g, self.signed_b, &mut column[r * width..][..width]);
            }
        }
        right
    }

    /// D, computed from C and the product of each row with each column.
    #[inline(always)]
    fn sums(self, c: &[Fragment; 4], product: impl Fn(usize, usize) -> i32) -> [Fragment; 4] {
        let mut d = [[0; 32]; 4];
        for (r, lane) in (0..self.registers()[2]).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
            let (row, column) = accumulator(r, lane);
            let (sum, addend) = (product(row, column), c[r][lane] as i32);
            d[r][lane] = (if self.saturate { sum.saturating_add(addend) } else { sum.wrapping_add(addend) }) as u32;
        }
        d
    }

    /// The elements in the four words of row or column `g`, in order.
    #[inline(always)]
    fn elements(self, register: &Fragment, g: usize, signed: bool, to: &mut [i16]) {
        let mut bytes = [0; 16];
        for t in 0..4 {
            bytes[4 * t..4 * t + 4].copy_from_slice(&register[4 * g + t].to_le_bytes());
        }
        if self.bits == 8 {
            for (to, byte) in to.iter_mut().zip(bytes) {
                *to = if signed { i16::from(byte as i8) } else { i16::from(byte) };
            }
            return;
        }
        for (pair, byte) in to.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            let (low, high) = (byte << 4, byte & 0xf0);
            *pair = if signed {
                [i16::from(low as i8 >> 4), i16::from(high as i8 >> 4)]
            } else {
                [i16::from(low >> 4), i16::from(high >> 4)]
            };
        }
    }
}

/// A shape of BMMA, whose elements have one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bmma {
    /// The number of rows of A and D: 8 or 16.
    rows: usize,
    /// The number of registers of B. Each holds 128 rows.
    steps: usize,
    /// True if bits are combined by AND, false if they are combined by XOR.
    and: bool,
}

impl Bmma {
    /// Reads the two-bit shape field.
    #[must_use]
    pub const fn from_bits(shape: u32, and: bool) -> Option<Self> {
        let (rows, steps) = match shape {
            0 => (8, 1),
            1 => (16, 1),
            2 => (16, 2),
            _ => return None,
        };
        Some(Self { rows, steps, and })
    }

    /// The numbers of registers of A, of B, and of C or D.
    #[must_use]
    pub const fn registers(self) -> [usize; 3] {
        [self.steps * self.rows / 8, self.steps, self.rows / 4]
    }

    /// Computes D: C plus the number of set bits when a row of A is combined with a column of B. The sum wraps around.
    #[must_use]
    #[inline]
    pub fn run(self, a: &[Fragment; 4], b: &[Fragment; 2], c: &[Fragment; 4]) -> [Fragment; 4] {
        let mut d = [[0; 32]; 4];
        for (r, lane) in (0..self.registers()[2]).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
            let (row, column) = accumulator(r, lane);
            d[r][lane] = c[r][lane];
            for (step, t) in (0..self.steps).flat_map(|step| (0..4).map(move |t| (step, t))) {
                let x = a[step * (self.rows / 8) + row / 8][row % 8 * 4 + t];
                let y = b[step][column * 4 + t];
                let bits = if self.and { x & y } else { x ^ y };
                d[r][lane] = d[r][lane].wrapping_add(bits.count_ones());
            }
        }
        d
    }
}

/// The row and column of D that register `register` of `lane` has, for 32-bit accumulators.
#[inline(always)]
#[must_use]
pub const fn accumulator(register: usize, lane: usize) -> (usize, usize) {
    (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2)
}

/// DMMA.884: D (8×8) = A (8×4)·B (4×8) + C, in doubles. A and B are one register pair each, and C and D two. The four
/// products are added to C in order, and each step is fused and rounded.
#[must_use]
#[inline(always)]
pub fn dmma(a: &[Fragment; 2], b: &[Fragment; 2], c: &[Fragment; 4], round: super::Round) -> [Fragment; 4] {
    let pair = |x: &[Fragment], lane: usize| u64::from(x[1][lane]) << 32 | u64::from(x[0][lane]);
    let mut d = [[0; 32]; 4];
    for (half, lane) in (0..2).flat_map(|half| (0..32).map(move |lane| (half, lane))) {
        let (row, column) = accumulator(half, lane);
        let mut sum = pair(&c[2 * half..], lane);
        for k in 0..4 {
            sum = super::f64::fma(pair(a, row * 4 + k), pair(b, column * 4 + k), sum, round);
        }
        d[2 * half][lane] = sum as u32;
        d[2 * half + 1][lane] = (sum >> 32) as u32;
    }
    d
}

/// LDSM: makes a fragment of one 8×8 matrix of halves that was read from eight 16-byte rows. Lane l gets element 2(l %
/// 4) of row l / 4 and the next one. For `.MT88`, callers apply [`transpose`].
#[must_use]
#[inline]
pub fn rows_to_fragment(rows: &[[u32; 4]; 8]) -> Fragment {
    std::array::from_fn(|lane| rows[lane / 4][lane % 4])
}

/// LDSM.MT88 and MOVM.MT88: the transpose of an 8×8 matrix of halves held as a fragment.
#[must_use]
#[inline]
pub fn transpose(x: &Fragment) -> Fragment {
    let element = |row: usize, column: usize| x[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        element(column, row) | element(column + 1, row) << 16
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Round;
    use crate::oracle::draws;

    /// The place of element `i` of A for `mma.sync`, with `bits`-bit elements. The formulas are those of the PTX ISA, which
    /// numbers the elements of a lane through all its registers.
    fn a_position(lane: usize, i: usize, per_word: usize, tall: bool) -> (usize, usize) {
        let (group, thread) = (lane >> 2, lane % 4);
        let (register, within) = (i / per_word, i % per_word);
        let row = if tall && register % 2 == 1 { group + 8 } else { group };
        let block = if tall { register / 2 } else { register };
        (row, thread * per_word + within + block * 4 * per_word)
    }

    #[test]
    fn integer_products() {
        let shapes = [(0, 8, 8, 16), (2, 4, 8, 32), (4, 8, 16, 16), (5, 8, 16, 32), (5, 4, 16, 32), (6, 4, 16, 64)];
        for mut draw in draws(300) {
            let (code, bits, rows, depth) = draw.pick(&shapes);
            let mut how = Imma::from_bits(code, bits == 4, bits == 4).unwrap();
            (how.signed_a, how.signed_b, how.saturate) = (draw.flag(), draw.flag(), draw.flag());
            let [a, b, c] =
                [(); 3].map(|()| -> [Fragment; 4] { [(); 4].map(|()| [(); 32].map(|()| draw.int() as u32)) });
            let b = [b[0], b[1]];
            let per_word = 32 / bits;
            let number = |word: u32, at: usize, signed: bool| {
                let x = i64::from(word >> (at * bits)) & ((1 << bits) - 1);
                if signed && x >> (bits - 1) != 0 { x - (1 << bits) } else { x }
            };
            let mut left = vec![vec![0; depth]; rows];
            let mut right = vec![vec![0; 8]; depth];
            for lane in 0..32 {
                for i in 0..depth * rows / 32 {
                    let (row, k) = a_position(lane, i, per_word, rows == 16);
                    left[row][k] = number(a[i / per_word][lane], i % per_word, how.signed_a);
                }
                for i in 0..depth / 4 {
                    let (column, k) = a_position(lane, i, per_word, false);
                    right[k][column] = number(b[i / per_word][lane], i % per_word, how.signed_b);
                }
            }
            let d = how.run(&a, &b, &c);
            for lane in 0..32 {
                for i in 0..rows / 4 {
                    let (row, column) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                    let sum: i64 = (0..depth).map(|k| left[row][k] * right[k][column]).sum();
                    let sum = sum + i64::from(c[i][lane] as i32);
                    let want = if how.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                    assert_eq!(d[i][lane], want as u32, "{how:?}");
                }
            }
            assert_eq!(how.registers(), [depth * rows * bits / 1024, depth * 8 * bits / 1024, rows / 4]);
        }
    }

    #[test]
    fn integer_shapes_that_do_not_exist() {
        for (shape, a, b) in [
            (0, true, true),
            (2, false, false),
            (6, false, false),
            (5, true, false),
            (1, false, false),
            (7, true, true),
        ] {
            assert_eq!(Imma::from_bits(shape, a, b), None);
        }
    }

    #[test]
    fn double_products() {
        for mut draw in draws(100) {
            let mut matrix =
                |n: usize| -> Vec<f64> { (0..n).map(|_| (draw.below(2000) as f64 - 1000.0) / 64.0).collect() };
            // A (8×4) and C (8×8) are row-major and B (4×8) is column-major, so lane 4·g + t has element (g, t).
            let (a, b, c) = (matrix(32), matrix(32), matrix(64));
            let half = |x: &[f64], at: &dyn Fn(usize) -> usize, high: bool| -> Fragment {
                std::array::from_fn(|lane| (x[at(lane)].to_bits() >> if high { 32 } else { 0 }) as u32)
            };
            let pair = |x: &[f64], at: &dyn Fn(usize) -> usize| [half(x, at, false), half(x, at, true)];
            let [c0, c1] = pair(&c, &|lane| lane * 2);
            let [c2, c3] = pair(&c, &|lane| lane * 2 + 1);
            let d = dmma(&pair(&a, &|lane| lane), &pair(&b, &|lane| lane), &[c0, c1, c2, c3], Round::Rn);
            for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let want: f64 = c[row * 8 + column] + (0..4).map(|k| a[row * 4 + k] * b[column * 4 + k]).sum::<f64>();
                let (lane, register) = (row * 4 + column / 2, column % 2 * 2);
                let got = f64::from_bits(u64::from(d[register + 1][lane]) << 32 | u64::from(d[register][lane]));
                assert_eq!(got, want, "small multiples of 2^-12 are exact in any order");
            }
        }
    }

    #[test]
    fn matrices_of_halves() {
        let rows: [[u32; 4]; 8] = std::array::from_fn(|r| {
            std::array::from_fn(|w| (r * 16 + w * 2) as u32 | ((r * 16 + w * 2 + 1) as u32) << 16)
        });
        let fragment = rows_to_fragment(&rows);
        let at = |x: &Fragment, row: usize, column: usize| x[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
        let turned = transpose(&fragment);
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            assert_eq!(at(&fragment, row, column), (row * 16 + column) as u32);
            assert_eq!(at(&turned, row, column), (column * 16 + row) as u32);
        }
        assert_eq!(transpose(&turned), fragment);
    }
}
