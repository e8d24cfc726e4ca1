//! A buffer that consists of several memory objects, for a kernel that refuses large buffers although it has the memory.
//!
//! The pieces lie behind each other for the GPU and for the CPU, so that nobody who uses the buffer sees them.

use crate::runtime::memory::reserved::Range;
use crate::runtime::memory::session::Session;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::MapRequest;
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::FromZeros;

/// Pieces are whole huge pages.
const UNIT: u64 = 2 << 20;
/// A buffer is not divided into more pieces than this, which bounds what an attempt costs that fails.
const MOST_PIECES: u64 = 64;

/// The pieces of one buffer. Dropping the value frees them.
pub struct Pieces {
    session: Arc<Session>,
    handles: Vec<u32>,
    /// The GPU addresses of all pieces. The pieces end before.
    range: Range,
    cpu: usize,
}

impl Pieces {
    /// Allocates `len` zeroed bytes with the attributes of `NV_MEMORY_ALLOCATION_PARAMS`, in pieces that are as large as the
    /// kernel gives them. They are mapped with the flags of `NVOS46`, and for the CPU, too, if `cpu` says so.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if even the smallest piece is refused, or if the process has something else at the addresses.
    /// Nothing is left of the attempt.
    pub fn new(session: &Arc<Session>, len: u64, attr: u32, flags: u32, cpu: bool) -> RmResult<Pieces> {
        let smallest = len.div_ceil(MOST_PIECES).next_multiple_of(UNIT);
        if len < 2 * smallest {
            fail!(NV_ERR_NO_MEMORY, "{len} bytes are too few to be divided");
        }
        // From here on `Drop` undoes all steps.
        let range = Range::new(session, len)?;
        let mut made = Pieces { session: session.clone(), handles: Vec::new(), range, cpu: 0 };
        let (mut at, mut size) = (0, (len / 2).next_multiple_of(UNIT));
        while at < len {
            match made.allocate(size.min(len - at), attr) {
                Ok(handle) => {
                    made.handles.push(handle);
                    let bytes = size.min(len - at);
                    made.map(handle, at, bytes, flags, cpu)?;
                    at += bytes;
                }
                Err(e) if e.status == NV_ERR_NO_MEMORY && size > smallest => {
                    size = (size / 2).next_multiple_of(UNIT).max(smallest);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(made)
    }

    fn allocate(&self, size: u64, attr: u32) -> RmResult<u32> {
        let (owner, zeroed) = (self.session.client(), NV_MEMORY_ALLOCATION_PARAMS::new_zeroed());
        let params = NV_MEMORY_ALLOCATION_PARAMS { owner, size, alignment: 4096, attr, ..zeroed };
        self.session.alloc(self.session.device, NV01_MEMORY_LOCAL_USER, params)
    }

    /// Maps a piece behind the pieces before it.
    fn map(&mut self, memory: u32, at: u64, length: u64, flags: u32, cpu: bool) -> RmResult<()> {
        let (rm, client, device) = (self.session.rm(), self.session.client(), self.session.device);
        self.range.map(at, memory, 0, length, flags)?;
        if !cpu {
            return Ok(());
        }
        let cpu = rm.map_memory(client, device, &MapRequest { memory, offset: 0, length, at: None, flags: 0 })?;
        if at == 0 {
            self.cpu = cpu;
        } else if cpu != self.cpu + at as usize {
            fail!(NV_ERR_NO_MEMORY, "the process has something else at {:#x}", self.cpu + at as usize);
        }
        Ok(())
    }

    /// The GPU address of the first byte.
    pub fn va(&self) -> u64 {
        self.range.va()
    }

    /// The CPU address of the first byte. It is 0 if the buffer is not mapped for the CPU.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// How many pieces there are.
    pub fn count(&self) -> usize {
        self.handles.len()
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        for handle in self.handles.drain(..) {
            self.session.free(handle);
        }
    }
}
