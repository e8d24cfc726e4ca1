//! The heap of `malloc` in kernels. The GPU alone gives and takes; the CPU makes it, and looks whether anything of it is in use.

use super::state::heap as at;
use crate::runtime::memory::{Cache, Memory};
use crate::runtime::session::Session;
use crate::status::{During, RmResult};
use std::sync::Arc;

/// The first unit that a block can be: 0 stands for none.
const FIRST: u64 = 1;

/// Memory for a heap of `bytes`, and tells the state of it. `None` for a heap of 0 bytes, which gives nothing.
///
/// # Errors
/// 0x51 when there is not that much memory. The state is as before.
pub fn make(session: &Arc<Session>, state: &Memory, bytes: u64) -> RmResult<Option<Memory>> {
    if bytes == 0 {
        forget(state)?;
        return Ok(None);
    }
    let memory = Memory::new(session, bytes, Cache::Cached).during(|| format!("a heap of {bytes} bytes for malloc"))?;
    begin(state, &memory)?;
    Ok(Some(memory))
}

/// Makes everything one free block.
///
/// # Errors
/// None in practice: heap and state are as long as they were made.
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

/// No memory, no blocks, no lock.
fn forget(state: &Memory) -> RmResult<()> {
    state.zero(at::UNITS_AT, super::state::SIZE - at::UNITS_AT)
}

/// Whether no block of it is in use.
pub fn is_empty(memory: &Memory) -> bool {
    let whole = memory.len() / at::UNIT - FIRST;
    let block = FIRST * at::UNIT;
    u64::from(memory.read_u32(block + at::BLOCK_SIZE)) == whole && memory.read_u32(block + at::BLOCK_MARK) == at::FREE
}

/// Whether a warp was working on it when a fault stopped the grid: nothing that it says can be trusted then.
pub fn is_locked(state: &Memory) -> bool {
    state.read_u32(at::LOCK) != 0
}
