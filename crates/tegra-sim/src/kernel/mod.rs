//! The simulated nvgpu and nvmap drivers.

pub mod hw;
