//! Finds a row of a table by its number, in about twelve instructions.

/// The positions of a table's rows, hashed by their numbers. The index is made at compile time. `SLOTS` is a power of
/// two and several times the number of rows.
pub struct Index<const SLOTS: usize> {
    slots: [u16; SLOTS],
}

/// Makes the index of a table. The arguments are the table, the field that has a row's number, and the number of slots.
#[macro_export]
macro_rules! index {
    ($rows:ident, $number:ident, $slots:literal) => {{
        let (mut index, mut at) = ($crate::rm::Index::<$slots>::empty(), 0);
        while at < $rows.len() {
            index = index.with($rows[at].$number, at);
            at += 1;
        }
        index
    }};
}
pub use index;

/// The content of a slot without a row.
const FREE: u16 = u16::MAX;

impl<const SLOTS: usize> Index<SLOTS> {
    /// An index without rows.
    pub const fn empty() -> Index<SLOTS> {
        assert!(SLOTS.is_power_of_two() && SLOTS > 1);
        Index { slots: [FREE; SLOTS] }
    }

    /// The same index with one more row.
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

    /// The row that has this number. `number_of` returns the number of a row.
    #[inline]
    pub fn find<'a, R>(&self, rows: &'a [R], number: u32, number_of: impl Fn(&R) -> u32) -> Option<&'a R> {
        let mut at = Self::home(number);
        loop {
            // The position in a free slot is larger than any table, so `get` finds nothing.
            let row = rows.get(self.slots[at % SLOTS] as usize)?;
            if number_of(row) == number {
                return Some(row);
            }
            at += 1;
        }
    }
}
