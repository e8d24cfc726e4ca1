//! The C interface: the only exported functions. Each guards, converts, calls, converts back.
//!
//! `unsafe` is here because C hands over pointers. Rules every function keeps: a pointer is looked at only after it
//! was compared with NULL; parameters are copied in before and out after the call, so nothing inside ever holds a
//! reference to memory the caller may change; no panic leaves ([`guard`]).
//!
//! The comments of the exported functions are those of `include/tegrarm.h`, for people who write C. What a caller has to keep
//! is in their sentences and, for all functions at once, at the top of the header (`cbindgen.toml`).
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc, reason = "the headings of Rust's documentation mean nothing in a C header")]

mod guard;
mod instance;

// In the header's order.
pub mod objects;

pub mod files;

pub mod library;

pub mod messages;

pub mod runtime;
