//! libcuda.so.1 on libtegrarm: CUDA's driver interface, as one more client of the C interface of `libtegrarm.so`.
//!
//! Every function of cuda.h is exported. The build script makes the exports from tables (functions.tsv, states.tsv): an export turns its
//! arguments into values that are safe to use, and calls the function with its name in [`rows`] inside [`guard::call`], or refuses. Nothing
//! here talks to a kernel or to a GPU: [`machine`] calls `libtegrarm.so`, which is loaded when a program calls `cuInit`.
//!
//! Order of locks: a stream's, then a context's, then that of a table of handles. Allocations have one lock of their own, which is
//! never held while libtegrarm is called; the mappings of reserved addresses have another one, which is held, so that two threads do not
//! change one mapping at a time. A pool's list of freed memory has one, too, which is held while a fence is looked at and no other lock is taken.
//!
//! The layers are on the page docs/layers.md: what a program holds (`order`, `capturing`, `context`, `functions`, `graphs`) is below the
//! files with the functions that it calls (`streams`, `captures`, `contexts`, `queries`, `launches`, `execs`, `nodes`).
#![allow(non_snake_case, reason = "the functions have the names of CUDA's driver")]

mod allocations;
mod api;
mod arrays;
mod attributes;
mod captures;
mod capturing;
mod context;
mod contexts;
mod copies;
mod device;
mod driver;
mod events;
mod execs;
mod exports;
mod fatbin;
mod fills;
mod functions;
mod graphs;
mod guard;
mod handles;
mod host;
mod jit;
mod kernels;
mod launches;
mod libraries;
mod links;
mod log;
mod machine;
mod mappings;
mod memory;
mod modules;
mod nodes;
mod numbers;
mod order;
mod pointer_attributes;
mod pointers;
mod pools;
mod queries;
mod replays;
mod result;
mod rows;
mod shapes;
mod stack;
mod streams;
mod structures;
mod symbols;
mod toolkits;
mod topology;
mod user_objects;
mod virtual_memory;
mod works;
