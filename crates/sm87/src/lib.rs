//! sm_87 machine code: described, decoded, printed and executed.
//!
//! ```text
//!   word    an instruction as it lies in memory
//!    └ isa      the instruction set as data: a row per opcode, and which words are instructions
//!       ├ disasm   text, as NVIDIA's disassembler writes it
//!       └ exec     execution, with the arithmetic of the crate `sm87-num`
//!          └ observe  somebody looks at what is executed: crates above this one check it, or model its time
//!   launch, fault   what is run, and why it stopped
//! ```
//!
//! [`isa::lookup`] and [`isa::legal`] say what a word means, [`disassemble`] turns it into text, and [`run`] executes a
//! grid, which [`Launch`] describes, to its end or to its first fault. The crate knows memory through a page table
//! ([`tegra_mm::PageTable`]), and [`Launch`] gives it its clock and its limits. It knows no kernel, no command stream
//! and no environment variable.

mod disasm;
mod exec;
mod fault;
pub mod isa;
mod launch;
#[cfg(test)]
mod tests;
mod word;

pub use disasm::disassemble;
pub use fault::{ErrorRegisters, Site, SmFault, Stopped};
pub use launch::{ConstantBank, Launch, Limits, Progress, RunStats, Told};
pub use word::Word;

use observe::Observer;

/// What an observer sees of a launch: the program, and warps and their CTA when they are about to execute an instruction.
pub mod observe {
    pub use crate::exec::access;
    pub use crate::exec::decode::find;
    pub use crate::exec::dispatch::Named;
    pub use crate::exec::env::Env;
    pub use crate::exec::groups::{Group, Wait};
    pub use crate::exec::image::{Fetch, Image};
    pub use crate::exec::mem::read;
    pub use crate::exec::observe::{Chosen, CtaObserver, Observer, Step};
    pub use crate::exec::ops::barrier::{named as named_barrier, waits as waits_at_barrier};
    pub use crate::exec::rows::{Pred, REGISTER, Src, pred};
    pub use crate::exec::uop::{Flow, Origin, Uop};
    pub use crate::exec::warp::{Warp, lanes};
}

/// Runs a grid to its end.
///
/// # Errors
/// The first fault. A kernel that is informed of it needs some time to stop the engine. During this time the warps of
/// the same CTA continue, and for a moment also the CTAs that follow: one for each SM and one more. Their effects on
/// the error registers are reported too, and they do not depend on the number of host threads.
pub fn run(launch: &Launch) -> Result<RunStats, Stopped> {
    exec::run(launch, &[])
}

/// Runs a grid to its end while observers look at it. If there are any, one host thread executes it, so that they see the same every time.
///
/// # Errors
/// As for [`run`].
pub fn run_observed(launch: &Launch, observers: &[&dyn Observer]) -> Result<RunStats, Stopped> {
    exec::run(launch, observers)
}
