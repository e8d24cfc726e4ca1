//! Beginning and end, and the sentences of results.

use crate::abi::*;
use crate::result::Answer;
use crate::session;
use std::ffi::CStr;

pub unsafe fn init() -> Answer {
    session::begin(true)
}

pub unsafe fn init_with_flags(flags: u32) -> Answer {
    session::begin(flags & NVML_INIT_FLAG_NO_GPUS == 0)
}

pub unsafe fn shutdown() -> Answer {
    session::end()
}

/// The sentence for a result.
pub fn error_string(result: u32) -> &'static CStr {
    match result {
        NVML_SUCCESS => c"Success",
        NVML_ERROR_UNINITIALIZED => c"The library is not initialised: call nvmlInit first",
        NVML_ERROR_INVALID_ARGUMENT => c"An argument is not valid",
        NVML_ERROR_NOT_SUPPORTED => c"The GPU, or its driver, does not have this",
        NVML_ERROR_NO_PERMISSION => c"The user may not do this",
        NVML_ERROR_NOT_FOUND => c"What was asked for was not found",
        NVML_ERROR_INSUFFICIENT_SIZE => c"The buffer is too small",
        NVML_ERROR_DRIVER_NOT_LOADED => c"There is no GPU, or its driver is not loaded",
        NVML_ERROR_TIMEOUT => c"The time has passed",
        NVML_ERROR_LIBRARY_NOT_FOUND => c"libtegrarm cannot be loaded",
        NVML_ERROR_FUNCTION_NOT_FOUND => c"The library has no such function",
        NVML_ERROR_GPU_IS_LOST => c"The GPU cannot be reached any more",
        NVML_ERROR_OPERATING_SYSTEM => c"The system did not answer",
        NVML_ERROR_IN_USE => c"The GPU is in use",
        NVML_ERROR_MEMORY => c"There is not enough memory",
        NVML_ERROR_NO_DATA => c"There is no value yet",
        NVML_ERROR_ARGUMENT_VERSION_MISMATCH => c"The structure has a version that this library does not know",
        NVML_ERROR_UNKNOWN => c"The library met a bug in itself, or a result that it does not know",
        _ => c"This result is not used by this library",
    }
}
