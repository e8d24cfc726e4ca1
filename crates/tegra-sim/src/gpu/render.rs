//! Render enable: conditional execution of copies and launches.

use super::mem::Accessor;
use crate::mm::MmuFault;
use tegrarm_abi::methods::copy::*;

/// Outcome of looking at a render-enable setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enable {
    /// Work is executed, or skipped.
    Decided(bool),
    /// No such mode.
    BadMode,
    /// The address must be 16-byte aligned in the modes that read memory.
    Misaligned,
}

/// Evaluates a mode; compute and copy class number them alike. The modes that compare look at two 64-bit
/// values, 16 bytes apart, as two four-word reports would leave them.
pub(crate) fn enabled(mem: &Accessor<'_>, va: u64, mode: u32) -> Result<Enable, MmuFault> {
    let reads = mode > NVC6B5_SET_RENDER_ENABLE_C_MODE_TRUE;
    if reads && !va.is_multiple_of(16) {
        return Ok(Enable::Misaligned);
    }
    let equal = || Ok(mem.read_u64(va)? == mem.read_u64(va + 16)?);
    Ok(match mode {
        NVC6B5_SET_RENDER_ENABLE_C_MODE_FALSE => Enable::Decided(false),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_TRUE => Enable::Decided(true),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_CONDITIONAL => Enable::Decided(mem.read_u64(va)? != 0),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_RENDER_IF_EQUAL => Enable::Decided(equal()?),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_RENDER_IF_NOT_EQUAL => Enable::Decided(!equal()?),
        _ => Enable::BadMode,
    })
}
