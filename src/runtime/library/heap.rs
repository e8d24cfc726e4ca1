//! The heap of `malloc` in kernels. Only the GPU allocates and frees in it. The CPU makes it and checks whether any of it is in use.

use super::state::heap as at;
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use tegrarm_rm::status::{During, RmResult};

/// The first unit that a block can begin at. Unit number 0 means "no block".
const FIRST: u64 = 1;

/// Makes memory for a heap of `bytes` and writes its address into the state. A heap of 0 bytes is `None`; `malloc` then returns NULL.
///
/// # Errors
/// NO_MEMORY if there is not enough memory. The state does not change then.
pub fn make(session: &Arc<Session>, state: &Memory, bytes: u64) -> RmResult<Option<Memory>> {
    if bytes == 0 {
        forget(state)?;
        return Ok(None);
    }
    let memory = Memory::new(session, bytes, Cache::Cached).during(|| format!("a heap of {bytes} bytes for malloc"))?;
    begin(state, &memory)?;
    Ok(Some(memory))
}

/// Makes the whole heap one free block.
///
/// # Errors
/// None in practice, because the heap and the state have room for what is written.
pub fn begin(state: &Memory, memory: &Memory) -> RmResult<()> {
    forget(state)?;
    let units = memory.len() / at::UNIT;
    let size = (units - FIRST) as u32;
    let bin = size.ilog2();
    memory.zero(0, 3 * at::UNIT)?;
    memory.write(FIRST * at::UNIT + at::BLOCK_SIZE, &size.to_le_bytes())?;
    memory.write(FIRST * at::UNIT + at::BLOCK_MARK, &at::FREE.to_le_bytes())?;
    state.write(at::BIN + 4 * u64::from(bin), &(FIRST as u32).to_le_bytes())?;
    state.write(at::BINS, &(1u32 << bin).to_le_bytes())?;
    state.write(at::UNITS_AT, &memory.va().to_le_bytes())?;
    state.write(at::UNITS, &(units as u32).to_le_bytes())
}

/// Clears the state: no memory, no blocks, and no lock.
fn forget(state: &Memory) -> RmResult<()> {
    state.zero(at::UNITS_AT, super::state::SIZE - at::UNITS_AT)
}

/// Whether no block of the heap is in use.
pub fn is_empty(memory: &Memory) -> bool {
    let whole = memory.len() / at::UNIT - FIRST;
    let block = FIRST * at::UNIT;
    u64::from(memory.read_u32(block + at::BLOCK_SIZE)) == whole && memory.read_u32(block + at::BLOCK_MARK) == at::FREE
}

/// Whether a fault stopped a warp that was changing the heap. The lists of blocks may be wrong then.
pub fn is_locked(state: &Memory) -> bool {
    state.read_u32(at::LOCK) != 0
}
