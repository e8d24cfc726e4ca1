//! The instruction set as data. One [`Row`] for each opcode says everything about it, and everything else is derived
//! from the rows.
//!
//! [`lookup`] finds the row of a word, and [`legal`] says whether the word is an instruction. The text of a row is a
//! template of plain text and fields in braces. It names every modifier field with its values, so that the text of a
//! word and its legality always come from the same place.
//!
//! | field | what it is |
//! |---|---|
//! | `{80.FTZ}`, `{!73.U32}` | `.FTZ` if bit 80 is set, `.U32` if bit 73 is clear |
//! | `{76:2|RM|RP}` | two bits from bit 76 select a name, which is written after a point. An empty name is not written. `?` and every value after the end of the list do not exist |
//! | `{86:1=0}` | a field that is not written, with the only value that exists |
//! | `{72:8#}`, `{44:3}` | a number, hexadecimal or decimal |
//! | `{P81}`, `{P81?}`, `{P81,}` | a predicate destination that is always written; one that is written with a comma after it, or before it, unless it is PT |
//! | `{p87}`, `{p87?}`, `{p87!}` | a predicate source that is always written; one that is written after a comma, unless it is PT; one that is a branch condition |
//! | `{74 p87}` | a comma and a predicate source, which are written if bit 74 is set |
//! | `{p87v}`, `{p68u}` | a predicate source that is never uniform; one that is uniform if bit 67 is set |
//! | `{R32}` | the register at bit 32 |
//! | `{fB}` | an operand, with its type (`f` float, `d` double, `h` halves, `u` unsigned, `x` signed, …) and its slot |
//! | others | a name in the table of named fields |
//!
//! A template with an unknown field is an error when the crate is compiled.

mod constraint;
pub mod cost;
pub mod effects;
mod field;
pub mod memory;
mod named;
mod op;
pub(crate) mod operand;
mod parse;
pub(crate) mod piece;
mod row;
mod table;

pub use constraint::Constraint;
pub use effects::{Across, Does, Effects, Formula};
pub use field::{Bits, Field};
pub(crate) use named::CACHE_LINE;
pub use op::Op;
pub use row::{Datapath, End, Flow, Notes, Row};
pub use table::ROWS;

use crate::word::Word;
use once_cell::race::OnceBox;
use operand::Operand;
use piece::Piece;
use std::fmt;

/// Checks that every template is made of known fields, and that no opcode has two rows.
const _: () = {
    let mut taken = [0u8; 512];
    let mut i = 0;
    while i < ROWS.len() {
        let row = &ROWS[i];
        assert!(taken[row.base as usize] & row.forms == 0, "an opcode has two rows");
        taken[row.base as usize] |= row.forms;
        let mut text = row.text;
        while let Some((_, rest)) = parse::next(text) {
            text = rest;
        }
        i += 1;
    }
    assert!(ROWS.len() < NONE as usize, "the index has room");
};

/// The element of the index for an opcode that has no row.
const NONE: u16 = u16::MAX;

/// A row, and the pieces of its template.
#[derive(Debug)]
pub struct Opcode {
    row: &'static Row,
    pieces: Vec<Piece>,
    /// The fields that have values that do not exist, and the operands with such fields.
    checks: Vec<Check>,
}

#[derive(Debug)]
enum Check {
    Field(Field),
    Part(Operand),
}

/// The reason why a word is not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// No row has this opcode.
    Opcode,
    /// The value of this field does not exist.
    Field(Field),
    /// The fields break this rule.
    Constraint(Constraint),
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Illegal::Opcode => f.write_str("there is no such opcode"),
            Illegal::Field(field) => {
                let places = field.places().map(|b| format!("bits {}..{}", b.lo, b.lo + b.len - 1));
                write!(f, "the field at {} has a value that does not exist", places.collect::<Vec<_>>().join(" and "))
            }
            Illegal::Constraint(c) => write!(f, "fields contradict each other: {}", c.text),
        }
    }
}

impl std::error::Error for Illegal {}

impl Opcode {
    fn new(row: &'static Row) -> Opcode {
        let (mut pieces, mut rest) = (Vec::new(), row.text);
        while let Some((piece, behind)) = parse::next(rest) {
            pieces.push(piece);
            rest = behind;
        }
        let checks = pieces.iter().filter_map(|piece| match *piece {
            Piece::Modifier(field) if field.can_be_wrong() => Some(Check::Field(field)),
            Piece::Operand(operand) => Some(Check::Part(operand)),
            _ => None,
        });
        Opcode { row, checks: checks.collect(), pieces }
    }

    /// The row of the opcode.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// The modifier fields in the order of the text. The field that says which part of an operand is read is one of
    /// them, and it depends on the form of `word`.
    pub fn fields(&self, word: Word) -> impl Iterator<Item = Field> {
        self.pieces.iter().filter_map(move |piece| match *piece {
            Piece::Modifier(field) => Some(field),
            Piece::Operand(operand) => operand.part(word),
            _ => None,
        })
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether a word with this opcode is an instruction.
    ///
    /// # Errors
    /// The first field with a value that does not exist, or the first constraint that the word breaks.
    pub fn legal(&self, word: Word) -> Result<(), Illegal> {
        let fields = self.checks.iter().filter_map(|check| match *check {
            Check::Field(field) => Some(field),
            Check::Part(operand) => operand.part(word),
        });
        if let Some(field) = fields.into_iter().find(|field| field.name(word).is_none()) {
            return Err(Illegal::Field(field));
        }
        match self.row.constraints.iter().find(|c| !c.holds(word)) {
            Some(constraint) => Err(Illegal::Constraint(*constraint)),
            None => Ok(()),
        }
    }
}

/// A table of opcodes in which words can be looked up.
#[derive(Debug)]
pub struct Isa {
    opcodes: Vec<Opcode>,
    /// The place in `opcodes` of each 12-bit opcode.
    index: Vec<u16>,
}

impl Isa {
    /// Makes a table of these rows, which are all of [`ROWS`] or some of them.
    pub fn new(rows: impl IntoIterator<Item = &'static Row>) -> Isa {
        let opcodes: Vec<Opcode> = rows.into_iter().map(Opcode::new).collect();
        let mut index = vec![NONE; 1 << 12];
        for (i, opcode) in opcodes.iter().enumerate() {
            for number in opcode.row.opcodes() {
                index[usize::from(number)] = i as u16;
            }
        }
        Isa { opcodes, index }
    }

    /// The table of all rows.
    pub fn sm87() -> &'static Isa {
        static ALL: OnceBox<Isa> = OnceBox::new();
        ALL.get_or_init(|| Box::new(Isa::new(ROWS)))
    }

    /// Finds the opcode of a word.
    pub fn lookup(&self, word: Word) -> Option<&Opcode> {
        self.opcodes.get(usize::from(self.index[usize::from(word.opcode())]))
    }

    /// Finds the opcode of a word that is an instruction.
    ///
    /// # Errors
    /// The reason why the word is not an instruction. NVIDIA's disassembler rejects these words. What the hardware
    /// would do with them is not known, so that no program can rely on it.
    pub fn legal(&self, word: Word) -> Result<&Opcode, Illegal> {
        let opcode = self.lookup(word).ok_or(Illegal::Opcode)?;
        opcode.legal(word).map(|()| opcode)
    }

    /// The instructions that differ from an instruction in the value of one modifier: each with the name of the modifier before
    /// and after. A tool and a test execute them in the place of the instruction, as if a row of the table were wrong.
    pub fn mutants(&self, word: Word) -> impl Iterator<Item = (Word, &'static str, &'static str)> {
        let fields = self.legal(word).into_iter().flat_map(move |opcode| opcode.fields(word)).filter(Field::is_written);
        let others = fields.flat_map(move |field| (0..field.size()).map(move |value| (field, field.with(word, value))));
        let name = |field: Field, word| field.name(word).unwrap_or("?");
        others
            .filter(move |(_, other)| *other != word && self.legal(*other).is_ok())
            .map(move |(field, other)| (other, name(field, word), name(field, other)))
    }
}

/// Finds the row of a word's opcode.
pub fn lookup(word: Word) -> Option<&'static Row> {
    Isa::sm87().lookup(word).map(Opcode::row)
}

/// Finds the row of a word that is an instruction.
///
/// # Errors
/// The reason why the word is not an instruction.
pub fn legal(word: Word) -> Result<&'static Row, Illegal> {
    Isa::sm87().legal(word).map(Opcode::row)
}

/// The datapath of a word's opcode, whether or not the opcode is known.
pub(crate) fn datapath(word: Word) -> Datapath {
    Datapath::of(word.base())
}
