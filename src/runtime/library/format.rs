//! Formats of `printf`: their parts, and the argument that belongs to each part. `device.cu` reads formats in the same way.

use super::messages::Record;

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// Bytes that are printed as they are.
    Text(&'a [u8]),
    /// A conversion and its argument.
    Conversion(Conversion<'a>, Value<'a>),
}

/// How an argument is printed: flags, width, precision, length and letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion<'a> {
    /// Any of `-+ #0`.
    pub flags: &'a [u8],
    /// The smallest number of characters. If it is negative, the text is aligned to the left.
    pub width: Option<i32>,
    /// The number of digits of a number, or the largest number of characters of a string.
    pub precision: Option<i32>,
    /// The number of bytes of a short integer: 1 for `hh`, 2 for `h`.
    pub narrow: Option<u8>,
    /// The letter at the end of the conversion.
    pub letter: u8,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A 32-bit integer or a character.
    Word(u32),
    /// A 64-bit integer or a pointer.
    Double(u64),
    /// A floating-point number.
    Real(f64),
    /// A string without its NUL. `None` stands for a null pointer.
    String(Option<&'a [u8]>),
}

/// The parts of a message, in order. If the record lacks an argument, 0 is used.
pub fn parts(record: &Record) -> Vec<Part<'_>> {
    let mut reader = Reader { rest: &record.format, arguments: &record.arguments, at: 0, strings: &record.strings };
    let mut parts = Vec::new();
    while let Some(part) = reader.next() {
        parts.extend(part);
    }
    parts
}

struct Reader<'a> {
    rest: &'a [u8],
    arguments: &'a [u8],
    at: usize,
    strings: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the next part. The inner `None` is a part that prints nothing, the outer `None` is the end.
    fn next(&mut self) -> Option<Option<Part<'a>>> {
        let whole = self.rest;
        match whole {
            [] => None,
            [b'%', b'%', rest @ ..] => {
                self.rest = rest;
                Some(Some(Part::Text(&whole[..1])))
            }
            [b'%', ..] => {
                self.rest = &whole[1..];
                let part = self.conversion();
                // Text that is not a conversion is printed as it is.
                let written = &whole[..whole.len() - self.rest.len()];
                Some(part.unwrap_or(Some(Part::Text(written))))
            }
            _ => {
                let text = self.take_while(|b| b != b'%');
                Some(Some(Part::Text(text)))
            }
        }
    }

    /// Reads a conversion behind its `%`. The inner `None` is a conversion that prints nothing; the outer `None` means
    /// that the text is not a conversion.
    fn conversion(&mut self) -> Option<Option<Part<'a>>> {
        let flags = self.take_while(|b| b"-+ #0".contains(&b));
        let width = self.number();
        let precision = if self.eat(b'.') { Some(self.number().unwrap_or(0)) } else { None };
        let length = self.take_while(|b| b"hljztLq".contains(&b));
        let wide = length.iter().any(|b| *b != b'h');
        let narrow = (!wide && !length.is_empty()).then_some(if length.len() == 1 { 2 } else { 1 });
        let (&letter, rest) = self.rest.split_first()?;
        self.rest = rest;
        let value = match letter {
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' if !wide => Value::Word(self.word()),
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'p' => Value::Double(self.double()),
            b'c' => Value::Word(self.double() as u32),
            b'e' | b'f' | b'g' | b'a' | b'E' | b'F' | b'G' | b'A' => Value::Real(f64::from_bits(self.double())),
            b's' => Value::String(self.string()),
            b'n' => {
                self.double();
                return Some(None);
            }
            _ => return None,
        };
        // A negative precision means that there is no precision.
        let precision = precision.filter(|p| *p >= 0);
        Some(Some(Part::Conversion(Conversion { flags, width, precision, narrow, letter }, value)))
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&b| !accept(b)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(found)..];
        found
    }

    /// Reads a number. A `*` takes it from the arguments.
    fn number(&mut self) -> Option<i32> {
        if self.eat(b'*') {
            return Some(self.word() as i32);
        }
        let digits = self.take_while(|b| b.is_ascii_digit());
        let add = |n: i32, d: &u8| n.saturating_mul(10).saturating_add(i32::from(d - b'0'));
        (!digits.is_empty()).then(|| digits.iter().fold(0, add))
    }

    fn argument<const N: usize>(&mut self) -> [u8; N] {
        self.at = self.at.next_multiple_of(N);
        let bytes = self.arguments.get(self.at..self.at + N).and_then(|b| b.try_into().ok());
        self.at += N;
        bytes.unwrap_or([0; N])
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.argument())
    }

    fn double(&mut self) -> u64 {
        u64::from_le_bytes(self.argument())
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let pointer = self.double();
        let end = self.strings.iter().position(|&b| b == 0).unwrap_or(self.strings.len());
        let (text, rest) = self.strings.split_at(end);
        self.strings = rest.get(1..).unwrap_or_default();
        (pointer != 0).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(format: &str, arguments: &[&[u8]], strings: &[u8]) -> Record {
        let mut packed = Vec::new();
        for argument in arguments {
            packed.resize(packed.len().next_multiple_of(argument.len()), 0);
            packed.extend_from_slice(argument);
        }
        Record { format: format.into(), arguments: packed, strings: strings.to_vec() }
    }

    #[test]
    fn arguments_lie_at_multiples_of_their_sizes() {
        let r = record(
            "a%d%llu%c%f|",
            &[&7u32.to_le_bytes(), &8u64.to_le_bytes(), &65u32.to_le_bytes(), &1.5f64.to_le_bytes()],
            b"",
        );
        let values: Vec<_> =
            parts(&r).into_iter().filter_map(|p| if let Part::Conversion(_, v) = p { Some(v) } else { None }).collect();
        assert_eq!(values, [Value::Word(7), Value::Double(8), Value::Word(65), Value::Real(1.5)]);
    }

    #[test]
    fn widths_and_precisions_may_be_arguments() {
        let r = record("%-+*.*hhd", &[&5u32.to_le_bytes(), &2u32.to_le_bytes(), &9u32.to_le_bytes()], b"");
        let c = Conversion { flags: b"-+", width: Some(5), precision: Some(2), narrow: Some(1), letter: b'd' };
        assert_eq!(parts(&r), [Part::Conversion(c, Value::Word(9))]);
    }

    #[test]
    fn strings_come_in_order_and_may_be_null() {
        let pointer = 1u64.to_le_bytes();
        let r = record("%s,%s,%.1s", &[&pointer, &0u64.to_le_bytes(), &pointer], b"ab\0\0c\0");
        let strings: Vec<_> = parts(&r)
            .into_iter()
            .filter_map(|p| if let Part::Conversion(_, Value::String(s)) = p { Some(s) } else { None })
            .collect();
        assert_eq!(strings, [Some(&b"ab"[..]), None, Some(&b"c"[..])]);
    }

    #[test]
    fn what_is_no_conversion_is_text() {
        let text = |format: &str| {
            let r = record(format, &[], b"");
            let texts = parts(&r).into_iter().map(|p| if let Part::Text(t) = p { t.to_vec() } else { b"?".to_vec() });
            String::from_utf8(texts.flatten().collect()).unwrap()
        };
        assert_eq!(text("100%% of %y and %"), "100% of %y and %");
        assert_eq!(text("%n"), "", "it counts, and prints nothing");
        assert_eq!(text("%d"), "?", "without an argument it is 0");
    }
}
