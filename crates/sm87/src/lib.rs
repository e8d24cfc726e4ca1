//! sm_87 machine code: described, decoded, printed and executed.
//!
//! ```text
//!   word    an instruction as it lies in memory
//!    └ isa      the instruction set as data: a row per opcode, and which words are instructions
//!       ├ disasm   text, as NVIDIA's disassembler writes it
//!       └ exec     execution           num   arithmetic, to the bit
//!   launch, fault   what is run, and why it stopped     check   what is looked for, and was found
//!   model    what it would take on a board
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
pub use launch::{ConstantBank, Launch, Limits, Progress, RunStats};
pub use model::{Estimate, Machine, Unit};
pub use word::Word;

/// Runs a grid to its end.
///
/// # Errors
/// The first fault. A kernel that is informed of it needs some time to stop the engine. During this time the warps of
/// the same CTA continue, and for a moment also the CTAs that follow: one for each SM and one more. Their effects on
/// the error registers are reported too, and they do not depend on the number of host threads.
pub fn run(launch: &Launch) -> Result<RunStats, Stopped> {
    exec::run(launch)
}
