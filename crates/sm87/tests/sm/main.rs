//! The SM alone: compiled kernels executed on bare memory.
//!
//! The kernels are our own CUDA C, compiled once and kept as hex with their source (`data/`).

mod differential;
mod faults;
mod flow;
mod kernels;
mod rare;
mod silicon;
mod support;
mod tensor;
