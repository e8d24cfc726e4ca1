//! NVIDIA's Resource Manager on the descriptors of nvgpu and nvmap.
//!
//! [`rm`] has the clients, their trees of objects and the tables of classes and controls. [`tegra`] has one type for each kind of descriptor of
//! the kernel, and [`status`] has the numbers and errors of both. Nothing in this crate knows the C interface, the device files or the runtime,
//! which are in the crate `tegrarm`.

// Structures use upstream's names of fields.
#![allow(non_snake_case)]

pub mod rm;
pub mod status;
pub mod tegra;
