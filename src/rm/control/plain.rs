//! Answers that are the same whatever the GPU is. Each row that uses one says why it may.

use crate::rm::controls::ControlCall;
use crate::status::RmResult;

/// Leaves the parameters as they are: the control only sets something that does not exist here.
pub fn nothing(_call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    Ok(())
}

/// Zero in everything behind the first `N` bytes, which the client filled in.
pub fn zero_after<const N: usize>(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    params[N..].fill(0);
    Ok(())
}
