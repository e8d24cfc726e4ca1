//! The state that the device library works on: `struct State` of `device.cu`, as offsets. A `static_assert` there has the same numbers.

/// Bytes of the whole.
pub const SIZE: u64 = 1768;

/// `struct Stop`: why the first thread gave up.
pub mod stop {
    /// The reason, 0 while nobody has given up.
    pub const REASON: u64 = 0;
    /// 1 as soon as the rest can be read.
    pub const TOLD: u64 = 4;
    /// Three words.
    pub const BLOCK: u64 = 8;
    /// Three words.
    pub const THREAD: u64 = 20;
    /// The address that was not to be freed.
    pub const ADDRESS: u64 = 32;
    /// The line of an assertion.
    pub const LINE: u64 = 40;
    /// Its text.
    pub const MESSAGE: u64 = 48;
    /// Its file.
    pub const FILE: u64 = 560;
    /// Its function.
    pub const FUNCTION: u64 = 1072;
    /// Bytes of each text, with its NUL.
    pub const TEXT: usize = 512;
    /// An assertion failed.
    pub const ASSERT: u32 = 1;
    /// `free` got an address that `malloc` did not give.
    pub const FREE_FOREIGN: u32 = 2;
    /// `free` got an address a second time.
    pub const FREE_TWICE: u32 = 3;
}

/// `struct Ring`: what `printf` wrote.
pub mod ring {
    /// Where its words lie.
    pub const WORDS: u64 = 1584;
    /// One less than their number.
    pub const MASK: u64 = 1592;
    /// How many records found no room.
    pub const LOST: u64 = 1596;
    /// How many words were taken so far.
    pub const HEAD: u64 = 1600;
    /// How many words the CPU has read so far.
    pub const TAIL: u64 = 1608;
    /// The bit of a record's first word that says that it can be read.
    pub const COMPLETE: u32 = 1 << 31;
    /// Words in front of a record's bytes.
    pub const HEADER: u64 = 4;
}

/// `struct Heap`: what `malloc` gives.
pub mod heap {
    /// Where its units lie.
    pub const UNITS_AT: u64 = 1616;
    /// Their number.
    pub const UNITS: u64 = 1624;
    /// 1 while a warp works on it.
    pub const LOCK: u64 = 1628;
    /// Which bins have blocks.
    pub const BINS: u64 = 1632;
    /// The first block of each of 32 bins.
    pub const BIN: u64 = 1636;
    /// Bytes of a unit.
    pub const UNIT: u64 = 16;
    /// Of a block, in its first unit: its units, those of the block before it, and its mark.
    pub const BLOCK_SIZE: u64 = 0;
    /// The mark's offset in a block.
    pub const BLOCK_MARK: u64 = 8;
    /// The mark of a free block.
    pub const FREE: u32 = 0x4652_4545;
}
