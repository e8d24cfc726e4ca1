//! Numbers of cuda.h.
#![allow(dead_code, non_upper_case_globals, reason = "it has all numbers of the header, with their names")]

include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
