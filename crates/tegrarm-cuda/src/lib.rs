//! libcuda.so.1 on libtegrarm: CUDA's driver interface, as one more client of the C interface of `libtegrarm.so`.
//!
//! Every function of cuda.h is exported. The build script makes the exports from tables (functions.tsv, states.tsv): an export turns its
//! arguments into values that are safe to use, and calls the function with its name in [`rows`] inside [`guard::call`], or refuses. Nothing
//! here talks to a kernel or to a GPU: [`machine`] calls `libtegrarm.so`, which is loaded when a program calls `cuInit`.
//!
//! Order of locks: a stream's, then a context's, then that of a table of handles. Allocations have one lock of their own, which is
//! never held while libtegrarm is called.
#![allow(non_snake_case, reason = "the functions have the names of CUDA's driver")]

mod allocations;
mod api;
mod attributes;
mod context;
mod copies;
mod device;
mod driver;
mod events;
mod fatbin;
mod fills;
mod functions;
mod guard;
mod handles;
mod host;
mod jit;
mod kernels;
mod launches;
mod libraries;
mod limits;
mod links;
mod log;
mod machine;
mod memory;
mod modules;
mod occupancy;
mod pointer_attributes;
mod pointers;
mod pools;
mod result;
mod shapes;
mod streams;
mod structures;
mod symbols;
mod works;

/// Numbers of cuda.h.
#[allow(dead_code, non_upper_case_globals, reason = "it has all numbers of the header, with their names")]
mod numbers {
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}

/// What answers the exported functions.
mod rows {
    pub use crate::context::rows::*;
    pub use crate::copies::rows::*;
    pub use crate::device::rows::*;
    pub use crate::driver::rows::*;
    pub use crate::events::rows::*;
    pub use crate::fills::rows::*;
    pub use crate::functions::rows::*;
    pub use crate::host::rows::*;
    pub use crate::launches::rows::*;
    pub use crate::libraries::rows::*;
    pub use crate::limits::rows::*;
    pub use crate::links::rows::*;
    pub use crate::memory::rows::*;
    pub use crate::modules::rows::*;
    pub use crate::occupancy::rows::*;
    pub use crate::pointer_attributes::rows::*;
    pub use crate::pools::rows::*;
    pub use crate::streams::rows::*;
    pub use crate::symbols::rows::*;
}

/// The exported functions and their table.
mod exports {
    #![allow(unsafe_code, clippy::too_many_arguments, reason = "the functions are C's")]
    use crate::guard;
    use crate::pointers::Ptr;
    use crate::rows;
    use crate::symbols::{Function, State};
    use std::ffi::{c_char, c_void};

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
