//! What an answer returns, and how statuses of libtegrarm become results of NVML.

use crate::abi::*;
use tegrarm_client::header::*;

/// Nothing, or a result of NVML that is no success.
pub type Answer<T = ()> = Result<T, u32>;

/// The result for a status of libtegrarm.
pub fn of_status(status: u32) -> u32 {
    match status {
        NV_ERR_CARD_NOT_PRESENT => NVML_ERROR_DRIVER_NOT_LOADED,
        NV_ERR_INSUFFICIENT_PERMISSIONS => NVML_ERROR_NO_PERMISSION,
        NV_ERR_INVALID_DEVICE | NV_ERR_INVALID_ARGUMENT => NVML_ERROR_INVALID_ARGUMENT,
        NV_ERR_NO_MEMORY => NVML_ERROR_MEMORY,
        NV_ERR_NOT_SUPPORTED => NVML_ERROR_NOT_SUPPORTED,
        NV_ERR_RESOURCE_LOST => NVML_ERROR_GPU_IS_LOST,
        NV_ERR_OPERATING_SYSTEM => NVML_ERROR_OPERATING_SYSTEM,
        _ => NVML_ERROR_UNKNOWN,
    }
}

/// The value, or "not supported" where the system does not say it.
pub fn known<T>(value: Option<T>) -> Answer<T> {
    value.ok_or(NVML_ERROR_NOT_SUPPORTED)
}
