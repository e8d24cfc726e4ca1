//! The instructions by family. Each family has the code that lowers them and the code that executes them.

pub(crate) mod atomic;
pub(crate) mod barrier;
mod carry;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod fp32;
pub(crate) mod half;
#[cfg(target_arch = "x86_64")]
pub(crate) mod hmma;
pub(crate) mod int;
pub(crate) mod logic;
pub(crate) mod memory;
pub(crate) mod mufu;
pub(crate) mod special;
pub(crate) mod tensor;
