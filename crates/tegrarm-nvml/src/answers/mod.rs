//! The functions that answer, by subject. `states.tsv` says which function of NVML each of them answers.
//!
//! # Safety
//! All of them take the arguments of a function of NVML as its caller passed them: a pointer is NULL or valid for what the header says.

pub mod clocks;
pub mod devices;
pub mod events;
pub mod memory;
pub mod processes;
pub mod session;
pub mod system;
pub mod thermal;

use std::ffi::c_void;

/// A handle of a device, as callers pass it.
pub type Device = *mut c_void;
