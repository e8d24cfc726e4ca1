//! GPU addresses that are reserved, and the memory that is mapped there at the moment.
//!
//! What is mapped has the same address for the CPU and for the GPU, so that bytes of several mappings lie behind each other for both.

use crate::runtime::memory::session::Session;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;
use tegrarm_rm::rm::{DmaRequest, MapRequest};
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::{FromZeros, IntoBytes};

/// GPU addresses without memory. They are free again when the value is dropped.
pub struct Range {
    session: Arc<Session>,
    /// NV50_MEMORY_VIRTUAL.
    handle: u32,
    va: u64,
}

impl Range {
    /// Reserves `len` bytes of addresses.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if the GPU has not so many free addresses.
    pub fn new(session: &Arc<Session>, len: u64) -> RmResult<Range> {
        let zeroed = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        let (owner, hVASpace) = (session.client(), session.space);
        let mut params = NV_MEMORY_ALLOCATION_PARAMS { owner, hVASpace, size: len, ..zeroed };
        let rm = session.rm();
        let prepared = rm.prepare_alloc(NV50_MEMORY_VIRTUAL, true, size_of_val(&params) as u32)?;
        let handle = rm.alloc(prepared, session.client(), session.device, 0, params.as_mut_bytes())?;
        Ok(Range { session: session.clone(), handle, va: params.offset })
    }

    /// The first address.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// Maps `length` bytes of a memory object, from its byte `from` on, at the address `at` bytes behind the first one, with the flags
    /// of `NVOS46`. The mapping ends with the memory object.
    ///
    /// # Errors
    /// An error that RM gives, also if something is mapped there already.
    pub fn map(&self, at: u64, memory: u32, from: u64, length: u64, flags: u32) -> RmResult<()> {
        let flags = flags | NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << 15;
        let request = DmaRequest { dma: self.handle, memory, offset: from, length, flags, dma_offset: self.va + at };
        self.session.rm().map_memory_dma(self.session.client(), self.session.device, &request).map(drop)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.session.free(self.handle);
    }
}

/// Reserved addresses with what is mapped there. Dropping the value unmaps everything and frees the addresses.
pub struct Reserved {
    /// The mappings, by the offset. They are declared first, because they end before the addresses.
    parts: Mutex<BTreeMap<u64, Arc<Part>>>,
    range: Range,
    len: u64,
}

/// One mapping. It has a memory object of its own, with which it ends.
struct Part {
    session: Arc<Session>,
    handle: u32,
    len: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.session.free(self.handle);
    }
}

/// Mappings that cannot end for as long as the value exists.
pub type Kept = Vec<Arc<dyn Any + Send + Sync>>;

/// What is mapped into reserved addresses.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The memory object. It may be freed while it is mapped: the memory lives as long as the mapping.
    pub memory: u32,
    /// The offset of the first byte in the memory, a multiple of the page size.
    pub offset: u64,
    /// The length in bytes, a multiple of the page size.
    pub len: u64,
}

impl Reserved {
    /// Reserves `len` bytes of addresses.
    ///
    /// # Errors
    /// As [`Range::new`].
    pub fn new(session: &Arc<Session>, len: u64) -> RmResult<Reserved> {
        Ok(Reserved { parts: Mutex::default(), range: Range::new(session, len)?, len })
    }

    /// The first address.
    pub fn va(&self) -> u64 {
        self.range.va()
    }

    /// Maps memory at the offset `at`, with the flags of `NVOS46`.
    ///
    /// # Errors
    /// `NV_ERR_STATE_IN_USE` if memory is mapped there already, `NV_ERR_NO_MEMORY` if the process has something else at the
    /// addresses, and an error that RM gives. Nothing is left of the attempt.
    pub fn map(&self, at: u64, source: Source, flags: u32) -> RmResult<()> {
        let (session, len) = (&self.range.session, source.len);
        let (rm, client, device) = (session.rm(), session.client(), session.device);
        let mut parts = self.parts.lock();
        if let Some((start, part)) = parts.range(..at + len).next_back()
            && start + part.len > at
        {
            fail!(
                NV_ERR_STATE_IN_USE,
                "{len:#x} bytes at {at:#x}: {:#x} bytes are mapped at {start:#x} already; unmap them first",
                part.len
            );
        }
        // From here on `Drop` undoes all steps, because freeing a memory object removes its mappings.
        let handle = rm.dup_object(client, device, 0, client, source.memory)?;
        let part = Part { session: session.clone(), handle, len };
        self.range.map(at, handle, source.offset, len, flags)?;
        let request = MapRequest { memory: handle, offset: source.offset, length: len, at: None, flags: 0 };
        let cpu = rm.map_memory(client, device, &request)?;
        if cpu as u64 != self.va() + at {
            fail!(NV_ERR_NO_MEMORY, "the process has something else at {:#x}", self.va() + at);
        }
        parts.insert(at, Arc::new(part));
        Ok(())
    }

    /// Removes all mappings of a range. Returns where they were: offset and length of each.
    ///
    /// # Errors
    /// `NV_ERR_OBJECT_NOT_FOUND` if nothing is mapped there, `NV_ERR_INVALID_LIMIT` if the range ends inside a mapping, and
    /// `NV_ERR_STATE_IN_USE` if something keeps one. Then everything stays.
    pub fn unmap(&self, at: u64, len: u64) -> RmResult<Vec<(u64, u64)>> {
        let mut parts = self.parts.lock();
        let end = at + len;
        let touched = parts.range(..end).rev().take_while(|(start, part)| *start + part.len > at);
        let found: Vec<_> = touched.map(|(start, part)| (*start, part.len)).collect();
        if found.is_empty() {
            fail!(NV_ERR_OBJECT_NOT_FOUND, "nothing is mapped in the {len:#x} bytes at {at:#x}");
        }
        if let Some((start, size)) = found.iter().find(|(start, size)| *start < at || start + size > end) {
            fail!(
                NV_ERR_INVALID_LIMIT,
                "{len:#x} bytes at {at:#x} are a part of the mapping of {size:#x} bytes at {start:#x}, which ends as a whole"
            );
        }
        // Nobody can begin to keep a mapping while the table is locked.
        if let Some((start, _)) =
            found.iter().find(|(start, _)| parts.get(start).is_some_and(|p| Arc::strong_count(p) > 1))
        {
            fail!(
                NV_ERR_STATE_IN_USE,
                "a replay or another thread copies the memory that is mapped at {start:#x}: destroy the replay first"
            );
        }
        let gone: Vec<_> = found.iter().filter_map(|(start, _)| parts.remove(start)).collect();
        drop(gone);
        Ok(found)
    }

    /// Keeps all mappings of a range.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if a byte of the range has no memory.
    pub fn keep(&self, at: u64, len: u64) -> RmResult<Kept> {
        let (parts, mut kept) = (self.parts.lock(), Kept::new());
        let mut from = at;
        while from < at + len {
            match parts.range(..=from).next_back().filter(|(start, part)| *start + part.len > from) {
                Some((start, part)) => {
                    from = start + part.len;
                    kept.push(part.clone());
                }
                None => {
                    fail!(NV_ERR_INVALID_BASE, "no memory is mapped at {from:#x} of {:#x} reserved bytes", self.len)
                }
            }
        }
        Ok(kept)
    }
}
