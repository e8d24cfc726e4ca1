//! Execution of decoded programs.
//!
//! ```text
//!   grid      a launch: faults, limits, host threads
//!    └ threads  the other threads, kept from one grid to the next, and the CTAs that each gets
//!    └ worker   a thread: CTAs one after another, or in turns
//!    └ cta    warps take turns, barriers
//!       └ interp   one warp, one micro-op after another
//!            └ ops  what an instruction does        (arithmetic: sm::num)
//!   programs  the program of a launch, as it grows
//!   decode    a program found and decoded     image   what comes of it: micro-ops, immediates     lower   operands of a micro-op
//!   places    where the code of a program is, which may be far apart
//!   runs, straight   instructions that are executed together      chains, known   loads that know of each other
//!   rounds         all warps go from one barrier to the next
//!   rows, warp     registers as rows of 32 lanes           groups   where lanes are: divergence, waiting
//!   alu            lane-wise operations written once, as handlers for all, some, one lane
//!   schedule       other orders of CTAs and warps
//!   observe        somebody looks at instructions when they are executed
//!   live           registers that a program reads before it writes them
//!   template       what all warps begin with, executed once
//!   opening, linear   what all CTAs begin with, apart from numbers that are linear in the index of the CTA
//!   several        operations on pairs of registers, and operations whose results include predicates
//! ```

pub mod access;
mod alu;
mod barriers;
mod chains;
mod clock;
mod consts;
mod cta;
pub(crate) mod decode;
pub(crate) mod dispatch;
pub(crate) mod env;
mod floats;
mod grid;
pub(crate) mod groups;
mod host;
pub(crate) mod image;
mod interp;
mod known;
mod linear;
mod live;
mod local;
mod lower;
pub(crate) mod mem;
pub(crate) mod observe;
mod opening;
/// The instructions by family. Each family has the code that lowers them and the code that executes them.
pub(crate) mod ops {
    pub(crate) mod atomic;
    pub(crate) mod barrier;
    mod carry;
    pub(crate) mod control;
    pub(crate) mod convert;
    pub(crate) mod double;
    pub(crate) mod fp32;
    pub(crate) mod half;
    pub(crate) mod int;
    pub(crate) mod logic;
    pub(crate) mod memory;
    pub(crate) mod mufu;
    pub(crate) mod special;
    pub(crate) mod tensor;
}
mod places;
mod poll;
mod programs;
pub(crate) mod record;
mod rounds;
pub(crate) mod rows;
mod runs;
mod schedule;
mod several;
mod straight;
mod stretches;
mod template;
#[cfg(test)]
mod tests;
mod threads;
pub(crate) mod translate;
pub(crate) mod uop;
pub(crate) mod warp;
mod windows;
mod worker;

#[cfg(test)]
pub(crate) use decode::can_execute;
pub(crate) use grid::run;
