//! Straight pieces of programs on rows of 32 lanes, as machine code of x86-64 hosts that have AVX2 or AVX-512.
//!
//! A [`Graph`] is what a piece computes: values of 32 bits for each lane, and where they are read and written. A [`Builder`] makes machine
//! code of graphs, eight or sixteen lanes at a time, and [`Code`] holds it in memory that can be executed and not written. The crate knows nothing of
//! GPUs: who makes a graph says what an instruction is.

mod code;
mod emit;
mod graph;
mod host;
mod memory;
mod order;
mod registers;

#[cfg(target_arch = "x86_64")]
pub use code::meets_denormals;
pub use code::{Builder, Code, Piece};
pub use graph::{Graph, One, Two, Value};
pub use host::Host;
pub use memory::{Arrangement, Shape, Window};

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
