//! Finding a row of a table by its number, in a dozen instructions.

/// Positions of a table's rows, hashed by their numbers; made at compile time. `SLOTS` is a power of two, several times
/// the number of rows.
pub struct Index<const SLOTS: usize> {
    slots: [u16; SLOTS],
}

/// A table's index: the table, the field with a row's number, how many slots.
macro_rules! index {
    ($rows:ident, $number:ident, $slots:literal) => {{
        let (mut index, mut at) = ($crate::rm::Index::<$slots>::new(), 0);
        while at < $rows.len() {
            index = index.with($rows[at].$number, at);
            at += 1;
        }
        index
    }};
}
pub(crate) use index;

/// No row.
const FREE: u16 = u16::MAX;

impl<const SLOTS: usize> Index<SLOTS> {
    /// An index of no rows.
    pub const fn new() -> Index<SLOTS> {
        assert!(SLOTS.is_power_of_two() && SLOTS > 1);
        Index { slots: [FREE; SLOTS] }
    }

    /// The same with one row more.
    #[must_use]
    pub const fn with(mut self, number: u32, position: usize) -> Index<SLOTS> {
        assert!(position < SLOTS / 2 && position < FREE as usize);
        let mut at = Self::home(number);
        while self.slots[at] != FREE {
            at = (at + 1) % SLOTS;
        }
        self.slots[at] = position as u16;
        self
    }

    const fn home(number: u32) -> usize {
        (number.wrapping_mul(0x9e37_79b1) >> (32 - SLOTS.ilog2())) as usize
    }

    /// The row with this number: `number_of` tells a row's.
    #[inline]
    pub fn find<'a, R>(&self, rows: &'a [R], number: u32, number_of: impl Fn(&R) -> u32) -> Option<&'a R> {
        let mut at = Self::home(number);
        loop {
            // A free slot's position is beyond every table.
            let row = rows.get(self.slots[at % SLOTS] as usize)?;
            if number_of(row) == number {
                return Some(row);
            }
            at += 1;
        }
    }
}
