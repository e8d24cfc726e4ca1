//! The memory that the device library uses: offsets in `struct State` of `device.cu`. A `static_assert` there has the same sizes.

/// The size of the whole structure in bytes.
pub const SIZE: u64 = 1768;

/// `struct Stop`: why a thread stopped its kernel. The first thread writes it.
pub mod stop {
    /// The reason. It is 0 as long as no thread has stopped.
    pub const REASON: u64 = 0;
    /// It is 1 as soon as all other fields can be read.
    pub const TOLD: u64 = 4;
    /// The block of the thread: three words.
    pub const BLOCK: u64 = 8;
    /// The thread in its block: three words.
    pub const THREAD: u64 = 20;
    /// The address that was passed to `free`.
    pub const ADDRESS: u64 = 32;
    /// The line of an assertion.
    pub const LINE: u64 = 40;
    /// The expression of an assertion.
    pub const MESSAGE: u64 = 48;
    /// The file of an assertion.
    pub const FILE: u64 = 560;
    /// The function of an assertion.
    pub const FUNCTION: u64 = 1072;
    /// The number of bytes for each text, with its NUL.
    pub const TEXT: usize = 512;
    /// An assertion failed.
    pub const ASSERT: u32 = 1;
    /// `free` got an address that `malloc` had not returned.
    pub const FREE_FOREIGN: u32 = 2;
    /// `free` got an address a second time.
    pub const FREE_TWICE: u32 = 3;
}

/// `struct Ring`: the records of `printf`.
pub mod ring {
    /// The address of its words.
    pub const WORDS: u64 = 1584;
    /// The number of its words minus one.
    pub const MASK: u64 = 1592;
    /// How many records were lost because the ring was full.
    pub const LOST: u64 = 1596;
    /// How many words kernels have reserved so far.
    pub const HEAD: u64 = 1600;
    /// How many words the CPU has read so far.
    pub const TAIL: u64 = 1608;
    /// The bit in a record's first word that says that the record is complete.
    pub const COMPLETE: u32 = 1 << 31;
    /// The number of words in front of a record's bytes.
    pub const HEADER: u64 = 4;
}

/// `struct Heap`: the memory of `malloc`.
pub mod heap {
    /// The address of its units.
    pub const UNITS_AT: u64 = 1616;
    /// The number of its units.
    pub const UNITS: u64 = 1624;
    /// It is 1 while a warp changes the heap.
    pub const LOCK: u64 = 1628;
    /// Which bins have blocks: one bit for each bin.
    pub const BINS: u64 = 1632;
    /// The first block of each of the 32 bins.
    pub const BIN: u64 = 1636;
    /// The size of a unit in bytes.
    pub const UNIT: u64 = 16;
    /// The offset, in the first unit of a block, of the block's number of units.
    pub const BLOCK_SIZE: u64 = 0;
    /// The offset of a block's mark.
    pub const BLOCK_MARK: u64 = 8;
    /// The mark of a free block.
    pub const FREE: u32 = 0x4652_4545;
}
