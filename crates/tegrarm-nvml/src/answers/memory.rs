//! Memory, which the CPU and the GPU share.

use super::Device;
use crate::abi::{nvmlMemory_t, nvmlMemory_v2, nvmlMemory_v2_t};
use crate::pointers::{give, version};
use crate::result::Answer;
use crate::session::{board, state};

pub unsafe fn info(of: Device, to: *mut nvmlMemory_t) -> Answer {
    let now = state(of)?;
    let used = now.memory_total.saturating_sub(now.memory_available);
    // SAFETY: see `super`.
    unsafe { give(to, nvmlMemory_t { total: now.memory_total, free: now.memory_available, used }) }
}

pub unsafe fn info_v2(of: Device, to: *mut nvmlMemory_v2_t) -> Answer {
    let now = state(of)?;
    // SAFETY: see `super`.
    unsafe { version(to, nvmlMemory_v2) }?;
    let total = board(|board| board.installed_memory()).unwrap_or(0).max(now.memory_total);
    let found = nvmlMemory_v2_t {
        version: nvmlMemory_v2,
        total,
        reserved: total - now.memory_total,
        free: now.memory_available,
        used: now.memory_total.saturating_sub(now.memory_available),
    };
    // SAFETY: see `super`.
    unsafe { give(to, found) }
}
