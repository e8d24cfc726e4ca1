//! `/dev/nvidia-uvm`: ioctl numbers and argument structures.

pub mod managed;
pub mod mapping;
pub mod numbers;
pub mod tools;

pub use managed::*;
pub use mapping::*;
pub use numbers::*;
pub use tools::*;
