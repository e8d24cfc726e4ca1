//! Templates are taken apart into pieces.
//!
//! The same function runs twice. While the crate is compiled it runs over every row, so that an unknown field is a
//! compile error. It runs again when the table is built.

use super::field::{Bits, Field, Names};
use super::named::FIELDS;
use super::operand::Operand;
use super::piece::{Base, Comma, File, Piece, When};

/// The first piece of a template, and the rest of it. The result is `None` at its end.
pub(super) const fn next(text: &'static str) -> Option<(Piece, &'static str)> {
    if text.is_empty() {
        return None;
    }
    if text.as_bytes()[0] != b'{' {
        let (plain, rest) = text.split_at(find(text, b'{'));
        return Some((Piece::Text(plain), rest));
    }
    let (_, behind) = text.split_at(1);
    let end = find(behind, b'}');
    assert!(end < behind.len(), "a field of a template has no end");
    let (field, rest) = behind.split_at(end);
    let (_, rest) = rest.split_at(1);
    Some((piece(field), rest))
}

/// The place of a byte, or the length of the text if the byte is not in it.
const fn find(text: &str, byte: u8) -> usize {
    let (bytes, mut i) = (text.as_bytes(), 0);
    while i < bytes.len() && bytes[i] != byte {
        i += 1;
    }
    i
}

/// The number at the start of a text, and the rest of it.
const fn number(text: &'static str) -> (u32, &'static str) {
    let (bytes, mut i, mut n) = (text.as_bytes(), 0, 0);
    while i < bytes.len() && bytes[i].is_ascii_digit() {
        n = 10 * n + (bytes[i] - b'0') as u32;
        i += 1;
    }
    assert!(i > 0, "a field of a template lacks a number");
    (n, text.split_at(i).1)
}

/// The text without its first byte.
const fn skip(text: &'static str) -> &'static str {
    text.split_at(1).1
}

const fn first(text: &str) -> u8 {
    if text.is_empty() { 0 } else { text.as_bytes()[0] }
}

/// Whether texts of the same length are equal.
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len()
}

const fn piece(field: &'static str) -> Piece {
    let bytes = field.as_bytes();
    match bytes {
        [b'!', ..] => {
            let (n, rest) = number(skip(field));
            assert!(first(rest) == b'.', "only a bit with a name can be inverted");
            Piece::Modifier(Field::new(Bits::new(n, 1), Names::Clear(skip(rest))))
        }
        [b'0'..=b'9', ..] => numbered(field),
        [b'P', b'0'..=b'9', ..] => destination(skip(field)),
        [b'p', b'0'..=b'9', ..] => condition(skip(field), When::Always),
        [b'R', b'0'..=b'9', ..] => Piece::Register { lo: number(skip(field)).0, file: File::Own },
        [b'A'] => Piece::Operand(Operand::parse(b'u', b'A')),
        [ty, slot @ (b'A' | b'B' | b'C' | b'S' | b'T')] => Piece::Operand(Operand::parse(*ty, *slot)),
        _ => named(field),
    }
}

/// Makes the piece of a field that begins with the number of a bit.
const fn numbered(field: &'static str) -> Piece {
    let (lo, rest) = number(field);
    match first(rest) {
        b'.' => Piece::Modifier(Field::new(Bits::new(lo, 1), Names::Set(skip(rest)))),
        b' ' => condition(skip(skip(rest)), When::Bit(lo)),
        b':' => {
            let (len, rest) = number(skip(rest));
            let bits = Bits::new(lo, len);
            match first(rest) {
                0 => Piece::Number(bits, Base::Ten),
                b'#' => Piece::Number(bits, Base::Sixteen),
                b'=' => Piece::Modifier(Field::new(bits, Names::Exactly(number(skip(rest)).0))),
                _ => Piece::Modifier(Field::new(bits, Names::List(rest))),
            }
        }
        _ => panic!("a field of a template begins with a number and means nothing"),
    }
}

const fn destination(field: &'static str) -> Piece {
    let (lo, how) = number(field);
    let comma = match first(how) {
        0 => Comma::None,
        b'?' => Comma::Behind,
        b',' => Comma::Before,
        _ => panic!("unknown way to write a predicate destination"),
    };
    Piece::Destination { lo, comma }
}

const fn condition(field: &'static str, when: When) -> Piece {
    let (lo, how) = number(field);
    let (when, file) = match (first(how), when) {
        (0, when) => (when, File::Own),
        (b'?', When::Always) => (When::Matters, File::Own),
        (b'?', When::Bit(n)) => (When::BitAndMatters(n), File::Own),
        (b'!', When::Always) => (When::Branches, File::Own),
        (b'v', when) => (when, File::Vector),
        // The bit is the one below the number.
        (b'u', when) => (when, File::UniformIf(lo - 1)),
        _ => panic!("unknown way to write a predicate source"),
    };
    Piece::Condition { lo, when, file }
}

/// Whoever compiles this crate waits for these comparisons, so they begin with what differs most often.
const fn named(field: &'static str) -> Piece {
    let (fields, wanted) = (FIELDS, field.as_bytes());
    let mut i = 0;
    while i < fields.len() {
        let (name, piece) = fields[i];
        let name = name.as_bytes();
        if name.len() == wanted.len() && name[0] == wanted[0] && equal(name, wanted) {
            return piece;
        }
        i += 1;
    }
    panic!("a template has an unknown field")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same check happens for every row while the crate is compiled.
    #[test]
    #[should_panic(expected = "unknown field")]
    fn an_unknown_name_is_an_error() {
        next("{no such field}");
    }

    #[test]
    #[should_panic(expected = "unknown type of operand")]
    fn an_unknown_operand_is_an_error() {
        next("{?A}");
    }

    #[test]
    #[should_panic(expected = "more names than values")]
    fn too_many_names_are_an_error() {
        next("{76:1A|B|C}");
    }

    #[test]
    #[should_panic(expected = "has no end")]
    fn a_field_without_an_end_is_an_error() {
        next("{d, {A}".split_at(4).0);
    }
}
