//! sm_87 machine code: described, decoded, printed and executed.
//!
//! ```text
//!   word    an instruction as it lies in memory
//!    └ isa      the instruction set as data: a row per opcode, and which words are instructions
//!       ├ disasm   text, as NVIDIA's disassembler writes it
//!       └ exec     execution           num   arithmetic, to the bit
//!          └ check    what is wrong with a program     model   what it would take on a board
//!   launch, fault   what is run, and why it stopped
//! ```
//!
//! [`isa::lookup`] and [`isa::legal`] say what a word means, [`disassemble`] turns it into text, and [`run`] executes a
//! grid, which [`Launch`] describes, to its end or to its first fault. The crate knows memory through a page table
//! ([`tegra_mm::PageTable`]), and [`Launch`] gives it its clock and its limits. It knows no kernel, no command stream
//! and no environment variable.

mod check;
mod disasm;
mod exec;
mod fault;
pub mod isa;
mod launch;
mod model;
pub mod num;
#[cfg(test)]
mod tests;
mod word;

pub use check::{Checker, Checks, Kind, Party, Report};
pub use disasm::disassemble;
pub use fault::{ErrorRegisters, Site, SmFault, Stopped};
pub use launch::{ConstantBank, Launch, Limits, Progress, RunStats, Told};
pub use model::{Estimate, Machine, Model, Unit};
pub use word::Word;

use exec::observe::Observer;
use std::sync::Arc;

/// Runs a grid to its end.
///
/// # Errors
/// The first fault. A kernel that is informed of it needs some time to stop the engine. During this time the warps of
/// the same CTA continue, and for a moment also the CTAs that follow: one for each SM and one more. Their effects on
/// the error registers are reported too, and they do not depend on the number of host threads.
pub fn run(launch: &Launch) -> Result<RunStats, Stopped> {
    exec::run(launch, &[])
}

/// Runs a grid to its end while a checker looks at it, a model of its time, or both. One host thread executes it then, so that they see
/// the same every time.
///
/// # Errors
/// As for [`run`].
pub fn run_observed(
    launch: &Launch,
    checker: Option<&Arc<Checker>>,
    model: Option<&Model>,
) -> Result<RunStats, Stopped> {
    let watch = checker.map(check::Watch::new);
    let (watch, model) = (watch.as_ref().map(|w| w as &dyn Observer), model.map(|m| m as &dyn Observer));
    let observers: Vec<&dyn Observer> = watch.into_iter().chain(model).collect();
    exec::run(launch, &observers)
}
