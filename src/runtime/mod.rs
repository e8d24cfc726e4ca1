//! The runtime: kernels for people who do not want to write RM calls.
//!
//! [`cubin`] turns GPU machine code into memory.

pub mod cubin;
pub mod elf;
