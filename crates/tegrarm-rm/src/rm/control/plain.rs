//! Answers that do not depend on the GPU. Each row that uses one of them says why it may.

use super::row::ControlCall;
use crate::status::RmResult;

/// Leaves the parameters as they are. This answers controls that only set something that does not exist here.
pub fn nothing(_call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    Ok(())
}

/// Writes zeros behind the first `N` bytes, which the client filled in.
pub fn zero_after<const N: usize>(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    params[N..].fill(0);
    Ok(())
}
