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
#[path = "tests/sparse.rs"]
mod tests;
