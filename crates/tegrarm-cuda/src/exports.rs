//! The exported functions and their table.
#![allow(unsafe_code, clippy::too_many_arguments, clippy::redundant_closure, reason = "the functions are C's")]

use crate::guard;
use crate::pointers::Ptr;
use crate::rows;
use crate::stack::Asked;
use crate::symbols::Function;
use std::ffi::{c_char, c_void};
use std::sync::atomic::AtomicBool;
use tegrarm_client::header::tegrarm_launch_sizes;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
