//! Shared memory of the program, placed where the GPU can have it at the same address.
//!
//! The code is a file of `tegrarm-kmd`, which the file door uses too. It is compiled here as a file of its own, because this library
//! depends on libc alone.

#[path = "../../tegrarm-kmd/src/placing.rs"]
mod shared;

pub use shared::mmap;
