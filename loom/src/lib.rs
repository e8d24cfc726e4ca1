//! The small pieces of hand-made synchronisation, with loom's locks and atomics in the place of the real ones. Each
//! test runs its threads in every order that the memory model allows (`make loom`).
//!
//! The pieces are the files of the library and of the simulator themselves. They take everything that concerns threads
//! from `crate::sync`.
#![cfg(test)]
#![allow(dead_code, reason = "a piece has more functions than its tests call")]

/// The progress of a queue that was recovered.
#[path = "../../src/runtime/channel/lost_work.rs"]
mod lost_work;
/// The rows of the tables of handles.
#[path = "../../src/capi/runtime/row.rs"]
mod row;
mod sync;
/// The sleep of the GPU's threads.
#[path = "../../crates/tegra-gpu/src/wake.rs"]
mod wake;

mod handles;
mod recovery;
mod sleeps;
