//! The file door: the device nodes of desktop RM, and the programs that use them.

#[path = "../common/mod.rs"]
mod common;

mod door;
mod generations;
mod librecuda;
mod owners;
