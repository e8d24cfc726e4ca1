//! Modifier fields: where they lie, which of their values exist, and what those are called.

use crate::word::Word;

/// Adjacent bits of an instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Lowest bit.
    pub lo: u8,
    /// How many, at most 48.
    pub len: u8,
}

impl Bits {
    /// `len` bits from bit `lo`.
    pub const fn new(lo: u32, len: u32) -> Bits {
        Bits { lo: lo as u8, len: len as u8 }
    }

    const NONE: Bits = Bits { lo: 0, len: 0 };

    /// What they hold.
    pub const fn of(self, word: Word) -> u32 {
        word.bits(self.lo as u32, self.len as u32)
    }

    /// What they hold as a signed number.
    pub const fn signed(self, word: Word) -> i64 {
        word.signed(self.lo as u32, self.len as u32)
    }

    /// `word` with `value` in these bits.
    #[must_use]
    pub const fn with(self, word: Word, value: u32) -> Word {
        let mask = ((1u128 << self.len) - 1) << self.lo;
        Word(word.0 & !mask | (value as u128) << self.lo & mask)
    }
}

/// What the values of a field are called. The empty name is the default that nobody writes, `?` a value that does not exist,
/// and so is every value behind the end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// A bit with a name when it is set.
    Set(&'static str),
    /// A bit with a name when it is clear.
    Clear(&'static str),
    /// Names in the order of the values, `|` between them.
    List(&'static str),
    /// Only this value exists, and nobody writes it.
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

    /// Panics, while the crate is compiled, unless a field of `len` bits can hold every value that has a name.
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

/// The names of a field, which another field may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    One(Names),
    By(Bits, &'static [Names]),
}

/// A field that modifies what an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    low: Bits,
    /// The value's upper bits, where a field lies in two places.
    high: Bits,
    values: Values,
}

impl Field {
    pub(super) const fn new(bits: Bits, names: Names) -> Field {
        names.fit(bits.len);
        Field { low: bits, high: Bits::NONE, values: Values::One(names) }
    }

    /// A field in two places.
    pub(super) const fn split(low: Bits, high: Bits, names: Names) -> Field {
        names.fit(low.len + high.len);
        Field { low, high, values: Values::One(names) }
    }

    /// A field whose names depend on the bits `by`: a set of names for each of their values.
    pub(super) const fn by(bits: Bits, by: Bits, names: &'static [Names]) -> Field {
        assert!(names.len() == 1 << by.len, "another field chooses among as many sets of names as it has values");
        let mut i = 0;
        while i < names.len() {
            names[i].fit(bits.len);
            i += 1;
        }
        Field { low: bits, high: Bits::NONE, values: Values::By(by, names) }
    }

    /// Where it lies; a field in two places has its lower bits first.
    pub fn places(&self) -> impl Iterator<Item = Bits> {
        [self.low, self.high].into_iter().filter(|b| b.len != 0)
    }

    /// The bits that decide what its values mean, if that depends on something.
    pub fn chosen_by(&self) -> Option<Bits> {
        match self.values {
            Values::One(_) => None,
            Values::By(bits, _) => Some(bits),
        }
    }

    /// How many values it can hold, those that do not exist included.
    pub fn size(&self) -> u32 {
        1 << (self.low.len + self.high.len)
    }

    /// What it holds.
    pub fn value(&self, word: Word) -> u32 {
        self.low.of(word) | self.high.of(word) << self.low.len
    }

    /// `word` with `value` in this field.
    #[must_use]
    pub fn with(&self, word: Word, value: u32) -> Word {
        self.high.with(self.low.with(word, value), value >> self.low.len)
    }

    /// The name of what it holds, empty for the default; `None` if there is no such value.
    pub fn name(&self, word: Word) -> Option<&'static str> {
        let names = match self.values {
            Values::One(names) => names,
            Values::By(by, names) => names[by.of(word) as usize],
        };
        names.get(self.value(word))
    }

    /// Whether the field is part of the text. What must hold one value for the word to be an instruction is not.
    pub fn is_written(&self) -> bool {
        !matches!(self.values, Values::One(Names::Exactly(_)))
    }

    /// Whether some value does not exist.
    pub(super) fn can_be_wrong(&self) -> bool {
        let short = |names: Names| (0..self.size()).any(|value| names.get(value).is_none());
        match self.values {
            Values::One(names) => short(names),
            Values::By(_, names) => names.iter().any(|&n| short(n)),
        }
    }
}
