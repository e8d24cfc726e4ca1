//! Modifier fields: the bits they occupy, the values that exist, and the names of these values.

use crate::word::Word;

/// Adjacent bits of an instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The lowest bit.
    pub lo: u8,
    /// The number of bits, at most 48.
    pub len: u8,
}

impl Bits {
    /// `len` bits from bit `lo`.
    pub const fn new(lo: u32, len: u32) -> Bits {
        Bits { lo: lo as u8, len: len as u8 }
    }

    pub(super) const NONE: Bits = Bits { lo: 0, len: 0 };

    /// The value of these bits in `word`.
    pub const fn of(self, word: Word) -> u32 {
        word.bits(self.lo as u32, self.len as u32)
    }

    /// The value of these bits in `word` as a signed number.
    pub const fn signed(self, word: Word) -> i64 {
        word.signed(self.lo as u32, self.len as u32)
    }

    /// Puts `value` into these bits of `word`.
    #[must_use]
    pub const fn with(self, word: Word, value: u32) -> Word {
        let mask = ((1u128 << self.len) - 1) << self.lo;
        Word(word.0 & !mask | (value as u128) << self.lo & mask)
    }
}

/// The names of the values of a field. The empty name is a default that is not written. The name `?` is a value that
/// does not exist, and so is every value after the end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// One bit that has a name if it is set.
    Set(&'static str),
    /// One bit that has a name if it is clear.
    Clear(&'static str),
    /// The names in the order of the values, with `|` between them.
    List(&'static str),
    /// Only this value exists, and it is not written.
    Exactly(u32),
}

impl Names {
    fn get(self, value: u32) -> Option<&'static str> {
        match self {
            Names::Set(name) => Some(if value == 1 { name } else { "" }),
            Names::Clear(name) => Some(if value == 0 { name } else { "" }),
            Names::List(names) => names.split('|').nth(value as usize).filter(|name| *name != "?"),
            Names::Exactly(x) => (value == x).then_some(""),
        }
    }

    /// Panics while the crate is compiled if some value that has a name does not fit into `len` bits.
    pub(super) const fn fit(self, len: u8) {
        let count = match self {
            Names::Set(_) | Names::Clear(_) => 2,
            Names::Exactly(x) => x as usize + 1,
            Names::List(names) => {
                let (bytes, mut i, mut count) = (names.as_bytes(), 0, 1);
                while i < bytes.len() {
                    count += (bytes[i] == b'|') as usize;
                    i += 1;
                }
                count
            }
        };
        assert!(count <= 1 << len, "a field has more names than values");
    }
}

/// The names of a field, among which another field may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    One(Names),
    By(Bits, &'static [Names]),
}

/// A field that modifies what an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    low: Bits,
    /// The upper bits of the value, if the field is in two places.
    high: Bits,
    values: Values,
}

impl Field {
    pub(super) const fn new(bits: Bits, names: Names) -> Field {
        names.fit(bits.len);
        Field { low: bits, high: Bits::NONE, values: Values::One(names) }
    }

    /// Makes a field that is in two places.
    pub(super) const fn split(low: Bits, high: Bits, names: Names) -> Field {
        names.fit(low.len + high.len);
        Field { low, high, values: Values::One(names) }
    }

    /// Makes a field whose names depend on the bits `by`. There is a set of names for each value of these bits.
    pub(super) const fn by(bits: Bits, by: Bits, names: &'static [Names]) -> Field {
        assert!(names.len() == 1 << by.len, "another field chooses among as many sets of names as it has values");
        let mut i = 0;
        while i < names.len() {
            names[i].fit(bits.len);
            i += 1;
        }
        Field { low: bits, high: Bits::NONE, values: Values::By(by, names) }
    }

    /// The bits of the field. If it is in two places, the lower bits come first.
    pub fn places(&self) -> impl Iterator<Item = Bits> {
        [self.low, self.high].into_iter().filter(|b| b.len != 0)
    }

    /// The bits that decide what the values of the field mean, if there are such bits.
    pub fn chosen_by(&self) -> Option<Bits> {
        match self.values {
            Values::One(_) => None,
            Values::By(bits, _) => Some(bits),
        }
    }

    /// The number of values that the field can hold, including values that do not exist.
    pub fn size(&self) -> u32 {
        1 << (self.low.len + self.high.len)
    }

    /// The value of the field in `word`.
    pub fn value(&self, word: Word) -> u32 {
        self.low.of(word) | self.high.of(word) << self.low.len
    }

    /// Puts `value` into this field of `word`.
    #[must_use]
    pub fn with(&self, word: Word, value: u32) -> Word {
        self.high.with(self.low.with(word, value), value >> self.low.len)
    }

    /// The name of the field's value in `word`, which is empty for the default. The result is `None` if there is no
    /// such value.
    pub fn name(&self, word: Word) -> Option<&'static str> {
        let names = match self.values {
            Values::One(names) => names,
            Values::By(by, names) => names[by.of(word) as usize],
        };
        names.get(self.value(word))
    }

    /// Whether the field is part of the text. A field is not, if the word is an instruction only with one value in it.
    pub fn is_written(&self) -> bool {
        !matches!(self.values, Values::One(Names::Exactly(_)))
    }

    /// Whether the field has a value that does not exist.
    pub(super) fn can_be_wrong(&self) -> bool {
        let short = |names: Names| (0..self.size()).any(|value| names.get(value).is_none());
        match self.values {
            Values::One(names) => short(names),
            Values::By(_, names) => names.iter().any(|&n| short(n)),
        }
    }
}
