//! Controls of the NV2080 (subdevice) interface: command numbers and parameter structures, by category.

pub mod bus;
pub mod engines;
pub mod fb;
pub mod gpu;
pub mod gr;

pub use bus::*;
pub use engines::*;
pub use fb::*;
pub use gpu::*;
pub use gr::*;
