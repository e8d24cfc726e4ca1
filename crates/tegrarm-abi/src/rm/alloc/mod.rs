//! Allocation parameters of the RM classes, and the flags inside them.

pub mod flags;
pub mod params;

pub use flags::*;
pub use params::*;
