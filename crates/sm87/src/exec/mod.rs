//! Execution of decoded programs.
//!
//! ```text
//!   grid      a launch: faults, limits, host threads
//!    └ worker   a thread: CTAs one after another, or in turns
//!    └ cta    warps take turns, barriers
//!       └ interp   one warp, one micro-op after another
//!            └ ops  what an instruction does        (arithmetic: sm::num)
//!   image     a program decoded: micro-ops, immediates     lower   operands of a micro-op
//!   runs, chains   instructions that are executed together, and loads that know of each other
//!   rows, warp     registers as rows of 32 lanes           groups   where lanes are: divergence, waiting
//!   simd, alu      lane-wise operations written once, as handlers for all, some, one lane
//!   check          what the checker looks at before an instruction is executed     model   what an instruction would take
//!   several        operations on pairs of registers, and operations whose results include predicates
//! ```

mod alu;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod chains;
mod check;
mod clock;
mod consts;
mod cta;
mod dispatch;
mod env;
mod floats;
mod grid;
mod groups;
mod image;
mod interp;
mod isa;
mod local;
mod lower;
mod mem;
mod model;
mod ops;
mod poll;
mod rows;
mod runs;
mod several;
mod simd;
#[cfg(test)]
mod tests;
mod uop;
mod warp;
mod worker;

pub(crate) use grid::run;
#[cfg(test)]
pub(crate) use image::can_execute;

/// The NaN that single-precision operations make.
const NAN: u32 = crate::num::f32::NAN;
