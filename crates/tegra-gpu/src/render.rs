//! Render enable: conditional execution of copies and launches.

use super::mem::Accessor;
use tegra_mm::MmuFault;
use tegrarm_abi::methods::copy::*;

/// The mistake in a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// The mode does not exist.
    Mode,
    /// The address is not a multiple of 16.
    Alignment,
}

/// Checks a setting. The compute and copy classes have the same numbers for the modes.
pub(crate) fn check(va: u64, mode: u32) -> Result<(), Invalid> {
    if mode > NVC6B5_SET_RENDER_ENABLE_C_MODE_RENDER_IF_NOT_EQUAL {
        return Err(Invalid::Mode);
    }
    if va.is_multiple_of(16) { Ok(()) } else { Err(Invalid::Alignment) }
}

/// Evaluates a mode that was checked. The modes that compare read two 64-bit values that are 16 bytes apart, as two
/// four-word reports would write them.
pub(crate) fn enabled(mem: &Accessor<'_>, va: u64, mode: u32) -> Result<bool, MmuFault> {
    let equal = || Ok(mem.read_u64(va)? == mem.read_u64(va + 16)?);
    match mode {
        NVC6B5_SET_RENDER_ENABLE_C_MODE_FALSE => Ok(false),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_CONDITIONAL => Ok(mem.read_u64(va)? != 0),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_RENDER_IF_EQUAL => equal(),
        NVC6B5_SET_RENDER_ENABLE_C_MODE_RENDER_IF_NOT_EQUAL => equal().map(|equal| !equal),
        _ => Ok(true),
    }
}
