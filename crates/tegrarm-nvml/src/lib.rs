//! `libnvidia-ml.so.1` for an integrated GPU: NVML on the C interface of libtegrarm and the files of the system.
//!
//! NVIDIA's NVML answers "not supported" on an Orin to almost everything that monitors ask. This library answers what the kernel says: load,
//! clocks, memory, temperature, power, processes. What an integrated GPU does not have is refused with a status, and no number is invented.
//!
//! `functions.tsv` and `states.tsv` have one row for each function of NVML's header. The build makes the exported functions of them. A
//! monitor opens no channel, gives the GPU nothing to do, and needs neither a daemon nor the rights of root.

// The exported functions take pointers of C.
#![allow(unsafe_code)]

#[allow(non_camel_case_types, non_snake_case)]
#[rustfmt::skip]
pub mod abi;
mod answers;
mod board;
mod clients;
mod forked;
mod gpu;
mod guard;
mod pointers;
mod result;
pub mod rows;
mod session;
