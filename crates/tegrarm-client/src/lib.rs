//! libtegrarm's C interface, for libraries that load it at run time.
//!
//! A library with the name of one of NVIDIA's own, such as `libcuda.so.1`, is a client of `include/tegrarm.h` like any program. It is not
//! linked with libtegrarm, because a linked library that is missing ends the program before its first line with a sentence of the dynamic
//! loader. This crate finds libtegrarm when it is first needed, and says in a sentence why it could not.
//!
//! It knows nothing of the crate `tegrarm`: [`header`] is generated from the header.

// Every call of a function that was found by its name is unsafe, and so are the calls that find it.
#![allow(unsafe_code)]

pub mod find;
mod functions;
// The names are those of C.
#[allow(non_camel_case_types, non_snake_case)]
#[rustfmt::skip]
pub mod header;
#[cfg(test)]
mod layout;
mod load;

pub use load::{Functions, library};
