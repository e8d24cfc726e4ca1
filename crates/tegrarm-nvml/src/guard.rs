//! What every exported function passes through.

use crate::abi::{NVML_ERROR_UNINITIALIZED, NVML_ERROR_UNKNOWN, NVML_SUCCESS};
use crate::result::Answer;
use crate::rows::{FUNCTIONS, State};
use crate::session;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The functions that work before the library is initialised, or that are about that.
const ALWAYS: [&str; 4] = ["nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown"];

/// Runs what answers the function of a row. A panic ends here and becomes NVML_ERROR_UNKNOWN.
pub fn call(row: usize, answer: impl FnOnce() -> Answer) -> u32 {
    let guarded = || {
        if !session::is_initialized() && !ALWAYS.contains(&FUNCTIONS[row].name) {
            return Err(NVML_ERROR_UNINITIALIZED);
        }
        answer()
    };
    match catch_unwind(AssertUnwindSafe(guarded)) {
        Ok(Ok(())) => NVML_SUCCESS,
        Ok(Err(result)) => result,
        Err(_) => NVML_ERROR_UNKNOWN,
    }
}

/// Answers a function that is refused. `device` is its first argument, if that is a device: a wrong one is refused for this reason.
pub fn refuse(row: usize, device: Option<*mut c_void>) -> u32 {
    call(row, || {
        if let Some(device) = device {
            session::device(device)?;
        }
        match FUNCTIONS[row].state {
            State::Refused(result) => Err(result),
            State::Done | State::Partly => Ok(()),
        }
    })
}
