//! The runtime: kernels for people who do not want to write RM calls.
//!
//! Two loaders turn object files into memory: [`cubin`] GPU machine code, [`hostobj`] CPU machine code.

pub mod cubin;
pub mod elf;
pub mod hostobj;
