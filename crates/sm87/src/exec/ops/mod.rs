//! Instructions by family: how each is lowered, and what it does.

pub(crate) mod atomic;
pub(crate) mod barrier;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod fp32;
pub(crate) mod half;
pub(crate) mod int;
pub(crate) mod logic;
pub(crate) mod memory;
pub(crate) mod special;
pub(crate) mod tensor;
mod wide;
