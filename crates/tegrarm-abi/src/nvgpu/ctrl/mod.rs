//! nvgpu ctrl node: ioctls, argument structures, constants (L4T r36).

pub mod args;
pub mod info;
pub mod numbers;

pub use args::*;
pub use info::*;
pub use numbers::*;
