//! The C interface: the only exported functions. Each function checks its pointers, converts the arguments, calls the
//! library and converts the result.
//!
//! `unsafe` is here because C hands over pointers. Every function keeps these rules: it looks at a pointer only after
//! it compared the pointer with NULL; it copies parameters in before the call and out after the call, so that the
//! library never holds a reference to memory that the caller may change; no panic leaves it ([`guard`]), and
//! no exception of a callback enters it ([`shield`]).
//!
//! The comments of the exported functions become the comments of `include/tegrarm.h`, so they are written for people
//! who write C. What a caller has to keep is in their sentences and, for all functions at once, at the top of the
//! header (`cbindgen.toml`).
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc, reason = "the headings of Rust's documentation mean nothing in a C header")]

mod guard;
mod instance;
mod nvtx;
mod room;
mod shield;

// The modules stand in the order of the header.
pub mod objects;

pub mod files;

pub mod library;

pub mod messages;

pub mod runtime;
