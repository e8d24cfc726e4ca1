//! Instructions by what they cost. The figures are not here: they belong to a GPU, and the rows to the instruction set.

use super::field::Bits;
use crate::word::Word;

/// Instructions that use the same lanes of an SM for the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Single-precision arithmetic.
    Single,
    /// Integer additions, comparisons, logic, shifts, moves, selections and votes.
    Integer,
    /// Integer products.
    Product,
    /// Arithmetic on pairs of halves.
    Half,
    /// Double-precision arithmetic.
    Double,
    /// Reciprocals, roots, logarithms, exponentials, sines.
    Function,
    /// Bit reversal, leading zeros, population count.
    BitCount,
    /// Conversions between types.
    Conversion,
    /// Moves between lanes.
    Shuffle,
    /// Reductions and comparisons over the lanes of a warp.
    Reduction,
    /// Special registers, and moves to the uniform datapath.
    SpecialRegister,
    /// Constants at an address that is computed.
    Constant,
    /// Accesses to memory, whose cost depends on their addresses.
    Memory,
    /// Products of matrices.
    Matrix(Matrix),
    /// Instructions that take a slot of their scheduler, and nothing else.
    Slot,
}

/// A product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The shapes, in the order of the values of the shape field: rows, columns and depth. A depth of 0 is a value that does not exist.
    pub shapes: &'static [[u32; 3]],
    /// The shape field, whose upper bits may be in another place.
    pub shape: [Bits; 2],
    /// The bit that says that the first matrix is sparse: then half of the products are made.
    pub sparse: Option<Bits>,
    /// The elements.
    pub elements: Elements,
    /// Other elements, if these bits have this value.
    pub otherwise: Option<(Bits, u32, Elements)>,
}

/// The elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// f16 and bfloat16.
    Halves,
    /// TF32.
    Tf32,
    /// f64.
    Doubles,
    /// Integers of eight bits.
    Bytes,
    /// Integers of four bits.
    Nibbles,
    /// Single bits.
    Bits,
}

impl Matrix {
    /// The number of products that `word` adds.
    pub fn products(&self, word: Word) -> u32 {
        let [low, high] = self.shape;
        let at = low.of(word) | high.of(word) << low.len;
        let all = self.shapes.get(at as usize).map_or(0, |shape| shape.iter().product());
        if self.sparse.is_some_and(|bit| bit.of(word) == 1) { all / 2 } else { all }
    }

    /// The elements that `word` multiplies.
    pub fn elements(&self, word: Word) -> Elements {
        match self.otherwise {
            Some((bits, value, elements)) if bits.of(word) == value => elements,
            _ => self.elements,
        }
    }
}

const fn bits(lo: u32, len: u32) -> Bits {
    Bits::new(lo, len)
}

pub(super) const HMMA: Matrix = Matrix {
    shapes: &[[16, 8, 8], [16, 8, 16], [16, 8, 4], [16, 8, 32]],
    shape: [bits(75, 1), bits(78, 1)],
    sparse: Some(bits(73, 1)),
    elements: Elements::Halves,
    otherwise: Some((bits(82, 2), 2, Elements::Tf32)),
};

pub(super) const IMMA: Matrix = Matrix {
    shapes: &[[8, 8, 16], [0; 3], [8, 8, 32], [0; 3], [16, 8, 16], [16, 8, 32], [16, 8, 64], [16, 8, 128]],
    shape: [bits(75, 1), bits(85, 2)],
    sparse: Some(bits(72, 1)),
    elements: Elements::Bytes,
    otherwise: Some((bits(83, 1), 1, Elements::Nibbles)),
};

pub(super) const BMMA: Matrix = Matrix {
    shapes: &[[8, 8, 128], [16, 8, 128], [16, 8, 256]],
    shape: [bits(75, 2), Bits::NONE],
    sparse: None,
    elements: Elements::Bits,
    otherwise: None,
};

pub(super) const DMMA: Matrix = Matrix {
    shapes: &[[8, 8, 4]],
    shape: [Bits::NONE, Bits::NONE],
    sparse: None,
    elements: Elements::Doubles,
    otherwise: None,
};
