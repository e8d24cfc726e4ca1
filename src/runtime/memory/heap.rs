//! Memory for machine code and for launch images. Both share large blocks, so that loading a module or launching a
//! kernel makes no kernel call as long as there is room.

use crate::runtime::memory::place::Place;
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory, Span};
use std::sync::Arc;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::RmResult;

/// The number of bytes of a block. A larger module has a block of its own.
const BLOCK: u64 = 1 << 20;
/// Pieces are whole pages, because no section needs more alignment.
const UNIT: u64 = 4096;

/// All memory of this kind of a device.
pub struct Heap {
    session: Arc<Session>,
    blocks: Mutex<Vec<Block>>,
}

struct Block {
    memory: Arc<Memory>,
    /// The free ranges (offset, length) in order. They never touch each other.
    free: Vec<(u64, u64)>,
}

/// A piece of a block. It is free again when it is dropped.
pub struct Piece {
    heap: Arc<Heap>,
    memory: Arc<Memory>,
    offset: u64,
    len: u64,
}

impl Heap {
    /// Makes a heap without blocks.
    pub fn new(session: &Arc<Session>) -> Arc<Heap> {
        Arc::new(Heap { session: session.clone(), blocks: Mutex::default() })
    }

    /// Takes `len` bytes. Their contents are undefined, because they may have been used before.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn take(self: &Arc<Heap>, len: u64) -> RmResult<Piece> {
        let len = len.next_multiple_of(UNIT);
        if let Some((memory, offset)) = self.blocks.lock().iter_mut().find_map(|block| block.take(len)) {
            return Ok(Piece { heap: self.clone(), memory, offset, len });
        }
        // This makes kernel calls, so that it must not be done while the lock is held.
        let size = len.max(BLOCK);
        let memory = Arc::new(Memory::new(&self.session, size, Cache::WriteCombined)?);
        let free = if size > len { vec![(len, size - len)] } else { Vec::new() };
        self.blocks.lock().push(Block { memory: memory.clone(), free });
        Ok(Piece { heap: self.clone(), memory, offset: 0, len })
    }
}

impl Heap {
    /// Frees the blocks that nobody uses. The result says whether there was one.
    pub fn trim(&self) -> bool {
        let mut blocks = self.blocks.lock();
        let unused: Vec<Block> = blocks.extract_if(.., |block| block.is_free()).collect();
        drop(blocks);
        !unused.is_empty()
    }
}

impl Block {
    fn is_free(&self) -> bool {
        self.free == [(0, self.memory.len())]
    }

    fn take(&mut self, len: u64) -> Option<(Arc<Memory>, u64)> {
        let at = self.free.iter().position(|&(_, free)| free >= len)?;
        let (offset, free) = self.free[at];
        if free == len {
            self.free.remove(at);
        } else {
            self.free[at] = (offset + len, free - len);
        }
        Some((self.memory.clone(), offset))
    }

    /// Returns a range to the block. The result is true if the whole block is free.
    fn give(&mut self, offset: u64, len: u64) -> bool {
        let at = self.free.partition_point(|&(start, _)| start < offset);
        self.free.insert(at, (offset, len));
        // The range is joined with the free range after it, and then with the one before it.
        for first in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            if let [(start, len), (next, more)] = self.free.get(first..first + 2).unwrap_or(&[])
                && start + len == *next
            {
                self.free[first] = (*start, len + more);
                self.free.remove(first + 1);
            }
        }
        self.is_free()
    }
}

impl Piece {
    /// The GPU address of the piece.
    #[inline]
    pub fn va(&self) -> u64 {
        self.memory.va() + self.offset
    }

    /// The memory of which it is a piece.
    pub fn block(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// `len` bytes of it at `offset`.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` when they lie outside the block.
    pub fn span(&self, offset: u64, len: u64) -> RmResult<Span> {
        Span::of(&self.memory, self.offset + offset, len)
    }

    /// The double word at `offset`.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` when it lies outside the block.
    pub fn place(&self, offset: u64) -> RmResult<Place> {
        Place::of(&self.memory, self.offset + offset, 8)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` when they do not fit.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> RmResult<()> {
        self.memory.write(self.offset + offset, bytes)
    }

    /// Zeroes everything from `offset` on.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` when `offset` lies outside.
    pub fn zero_from(&self, offset: u64) -> RmResult<()> {
        self.memory.zero(self.offset + offset, self.len.saturating_sub(offset))
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut blocks = self.heap.blocks.lock();
        let Some(at) = blocks.iter().position(|block| Arc::ptr_eq(&block.memory, &self.memory)) else { return };
        // One empty block is kept for the next module. A second one, or a large one, is freed.
        if blocks[at].give(self.offset, self.len) && (blocks.len() > 1 || self.memory.len() > BLOCK) {
            let block = blocks.swap_remove(at);
            drop(blocks);
            drop(block);
        }
    }
}
