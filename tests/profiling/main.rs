//! The debugger's and the profiler's objects and controls.

#[path = "../common/mod.rs"]
mod common;

mod controls;
mod debugger;
mod kernels;
mod profiler;
