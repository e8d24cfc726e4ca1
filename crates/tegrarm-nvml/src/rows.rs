//! The table of functions, and the functions that the library exports.

use crate::{abi, answers, guard};
use std::ffi::{c_char, c_void};

/// What the library does with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It answers everything that an integrated GPU has.
    Done,
    /// It answers, and the reason says what the answer is, or what is left out.
    Partly,
    /// It returns this result, and the reason says why.
    Refused(u32),
}

/// One function of NVML.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The first major version of CUDA that has it. 12 stands for all older ones.
    pub since: u32,
    /// The types of its parameters, as C writes them.
    pub parameters: &'static str,
    /// What the library does with it.
    pub state: State,
    /// The reason, or what the answer is. It can be empty for a function that is done.
    pub why: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

/// A sentence for a result. The string is static, and any number has one.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: u32) -> *const c_char {
    answers::session::error_string(result).as_ptr()
}
