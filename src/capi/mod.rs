//! The C interface: the only exported functions. Each guards, converts, calls, converts back.
//!
//! `unsafe` is here because C hands over pointers. Rules every function keeps: a pointer is looked at only after it
//! was compared with NULL; parameters are copied in before and out after the call, so nothing inside ever holds a
//! reference to memory the caller may change; no panic leaves ([`guard`]).
#![allow(unsafe_code)]

mod guard;
mod instance;

// In the header's order.
pub mod objects;

pub mod files;

pub mod library;

pub mod runtime;
