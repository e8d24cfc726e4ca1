//! Tests of the SM alone: compiled kernels are executed on plain memory.
//!
//! The kernels are this project's own CUDA C. They were compiled once and are kept as hex with their source (`data/`).

mod chains;
mod differential;
mod far;
mod faults;
mod flow;
mod kernels;
mod lanes;
mod litmus;
mod mutants;
mod rare;
mod silicon;
mod stretches;
mod support;
mod tensor;
