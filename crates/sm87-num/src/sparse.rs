//! Sparse matrices: the metadata of HMMA.SP and IMMA.SP say which elements of A are stored.
//!
//! Half of A's elements are stored. A field of four metadata bits describes the next stored elements of a row:
//!
//! - Elements of 8 or 16 bits: two stored elements of four columns. Each has a number of two bits, which is its column.
//! - TF32 elements: one stored element of two columns. The field is 4 for the first column and 14 for the second.
//! - Elements of 4 bits: two stored pairs of eight columns. Each has a number of two bits, which is the pair of columns.
//!
//! Let g be lane / 4, the number of a quad of lanes. For 16-bit and TF32 elements, a word holds four fields of row g in its low
//! half and four of row g + 8 in its high half. For smaller elements, a word holds eight fields of one row, and the fields of
//! row g + 8 are in the next lane. If not all lanes of a quad hold metadata, the selector says which lanes do.

use super::mma::Fragment;

/// The columns that a field of metadata describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Two of four columns, with elements of 16 bits.
    Halves,
    /// One of two columns, with elements of 32 bits.
    Words,
    /// Two of four columns, with elements of 8 bits.
    Bytes,
    /// Two pairs of four pairs of columns, with elements of 4 bits.
    Nibbles,
}

impl Grain {
    /// How many stored elements a field describes.
    const fn stored(self) -> usize {
        match self {
            Grain::Words => 1,
            Grain::Halves | Grain::Bytes => 2,
            Grain::Nibbles => 4,
        }
    }

    /// The column of a field's stored element, counted from the field's first column.
    #[inline]
    fn column(self, field: u32, element: usize) -> usize {
        let of_two = |n: usize| (field >> (2 * n) & 3) as usize;
        match self {
            Grain::Words => (field >> 3) as usize,
            Grain::Halves | Grain::Bytes => of_two(element),
            Grain::Nibbles => 2 * of_two(element / 2) + element % 2,
        }
    }

    /// The columns of the `depth` stored elements of row `row`.
    #[must_use]
    #[inline]
    pub fn columns(self, metadata: &Fragment, selector: usize, row: usize, depth: usize) -> [usize; 64] {
        let (quad, lower) = (row % 8 * 4, row / 8);
        let fields = depth / self.stored();
        let field = |n: usize| {
            let (lane, bit) = match self {
                Grain::Halves | Grain::Words if fields == 4 => (selector, 16 * lower + 4 * n),
                Grain::Halves | Grain::Words => (2 * (selector & 1) + n / 4, 16 * lower + n % 4 * 4),
                Grain::Bytes | Grain::Nibbles if fields == 8 => (2 * (selector & 1) + lower, 4 * n),
                Grain::Bytes | Grain::Nibbles => (n / 8 * 2 + lower, n % 8 * 4),
            };
            metadata[quad + lane] >> bit & 15
        };
        let mut columns = [0; 64];
        for (k, column) in columns.iter_mut().enumerate().take(depth) {
            let n = k / self.stored();
            *column = 2 * n * self.stored() + self.column(field(n), k % self.stored());
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmma::Hmma;
    use crate::mma::{Bmma, Imma, accumulator};
    use crate::oracle::draws;

    /// A word of metadata for each lane. All fields are ones that the PTX ISA allows.
    fn metadata(mut draw: impl FnMut() -> u32, grain: Grain) -> Fragment {
        let valid: &[u32] = match grain {
            Grain::Words => &[0b0100, 0b1110],
            _ => &[0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110],
        };
        [(); 32].map(|()| (0..8).map(|k| valid[draw() as usize % valid.len()] << (4 * k)).sum())
    }

    #[test]
    fn the_first_field_of_a_row_is_in_the_lanes_that_the_selector_names() {
        let mut words = [0x4444_4444; 32];
        words[4 * 3 + 2] = 0x4444_444e;
        assert_eq!(Grain::Halves.columns(&words, 2, 3, 8)[..4], [2, 3, 4, 5]);
        assert_eq!(Grain::Halves.columns(&words, 1, 3, 8)[..4], [0, 1, 4, 5]);
        // Row 11 has the upper half of the word, from bit 16.
        words[4 * 3 + 2] = 0x4449_4444;
        assert_eq!(Grain::Halves.columns(&words, 2, 11, 8)[..4], [1, 2, 4, 5]);
    }

    #[test]
    fn sparse_integers_are_dense_ones_with_zeros() {
        for mut draw in draws(60) {
            let (shape, narrow, selector) = draw.pick(&[(5, false, 1), (6, false, 0), (6, true, 1), (7, true, 0)]);
            let mut how = Imma::sparse_from_bits(shape, narrow, narrow).unwrap();
            (how.signed_a, how.signed_b, how.saturate) = (draw.flag(), draw.flag(), draw.flag());
            let grain = if narrow { Grain::Nibbles } else { Grain::Bytes };
            let (bits, [ra, rb, _]) = (if narrow { 4 } else { 8 }, how.registers());
            let [a, b, c] =
                [(); 3].map(|()| -> [Fragment; 4] { [(); 4].map(|()| [(); 32].map(|()| draw.int() as u32)) });
            let words = metadata(|| draw.int() as u32, grain);
            let d = how.run_sparse(&a, &b, &c, &words, selector);
            let per_word = 32 / bits;
            let number = |word: u32, at: usize, signed: bool| {
                let x = i64::from(word >> (at * bits)) & ((1 << bits) - 1);
                if signed && x >> (bits - 1) != 0 { x - (1 << bits) } else { x }
            };
            let depth = ra / 2 * 4 * per_word;
            for (r, lane) in (0..4).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
                let (row, column) = accumulator(r, lane);
                let columns = grain.columns(&words, selector, row, depth);
                let mut sum = i64::from(c[r][lane] as i32);
                for (k, &of) in columns.iter().enumerate().take(depth) {
                    let at = |k: usize| (k / (4 * per_word), k % (4 * per_word) / per_word, k % per_word);
                    let (block, t, e) = at(k);
                    let x = number(a[2 * block + row / 8][row % 8 * 4 + t], e, how.signed_a);
                    let (block, t, e) = at(of);
                    assert!(block < 2 * rb);
                    sum += x * number(b[block][column * 4 + t], e, how.signed_b);
                }
                let want = if how.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                assert_eq!(d[r][lane], want as u32, "{how:?}");
            }
        }
    }

    #[test]
    fn sparse_halves_are_dense_ones_of_the_chosen_rows() {
        for mut draw in draws(40) {
            let (shape, selector) = draw.pick(&[(1, 0), (1, 3), (3, 0), (3, 1)]);
            let how = Hmma::sparse_from_bits(shape, 0, true).unwrap();
            let [ra, rb, _] = how.registers();
            // Small integers, whose products and sums are exact.
            let small = |draw: &mut dyn FnMut() -> u32| [0x3c00u32, 0xbc00, 0x4000, 0, 0x4200][draw() as usize % 5];
            let mut next = || draw.int() as u32;
            let mut fragment = || -> Fragment { [(); 32].map(|()| small(&mut next) | small(&mut next) << 16) };
            let (a, b) = ([(); 4].map(|()| fragment()), [(); 4].map(|()| fragment()));
            let words = metadata(next, Grain::Halves);
            let d = how.run_sparse(&a, &b, &[[0; 32]; 4], &words, selector);
            let value = |word: u32, e: usize| f64::from(crate::half::Kind::F16.widen((word >> (16 * e)) as u16));
            for (r, lane) in (0..4).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
                let (row, column) = accumulator(r, lane);
                let columns = Grain::Halves.columns(&words, selector, row, 4 * ra);
                let sum: f64 = (0..4 * ra)
                    .map(|k| {
                        let x = value(a[k / 8 * 2 + row / 8][row % 8 * 4 + k % 8 / 2], k % 2);
                        let of = columns[k];
                        assert!(of / 8 < 2 * rb);
                        x * value(b[of / 8][column * 4 + of % 8 / 2], of % 2)
                    })
                    .sum();
                assert_eq!(f64::from(f32::from_bits(d[r][lane])), sum);
            }
        }
    }

    #[test]
    fn one_bit_products_count_bits() {
        for mut draw in draws(60) {
            let (shape, and) = (draw.pick(&[0, 1, 2]), draw.flag());
            let how = Bmma::from_bits(shape, and).unwrap();
            let [a, b, c] =
                [(); 3].map(|()| -> [Fragment; 4] { [(); 4].map(|()| [(); 32].map(|()| draw.int() as u32)) });
            let [ra, rb, rc] = how.registers();
            let d = how.run(&a, &[b[0], b[1]], &c);
            for (r, lane) in (0..rc).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
                let (row, column) = accumulator(r, lane);
                let bit = |word: u32, k: usize| word >> (k % 32) & 1;
                let count: u32 = (0..128 * rb)
                    .map(|k| {
                        let x = bit(a[k / 128 * (ra / rb) + row / 8][row % 8 * 4 + k % 128 / 32], k);
                        let y = bit(b[k / 128][column * 4 + k % 128 / 32], k);
                        if and { x & y } else { x ^ y }
                    })
                    .sum();
                assert_eq!(d[r][lane], c[r][lane].wrapping_add(count), "{how:?}");
            }
        }
        assert_eq!(Bmma::from_bits(3, true), None);
        assert_eq!(Imma::sparse_from_bits(4, false, false), None);
        assert_eq!(Hmma::sparse_from_bits(2, 2, true), None);
    }
}
