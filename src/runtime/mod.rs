//! The runtime launches kernels for programs that do not make RM calls themselves.
//!
//! The crate `tegrarm-images` reads and places machine code for the GPU and the CPU, and [`library`] is the code that kernels call.
//! [`launch`] turns a loaded kernel and its sizes into the constant bank and the 64 dwords that the GPU reads. [`device`]
//! opens a GPU with RM calls alone ([`memory::session`], [`channel`]) and runs kernels on its queues. [`fault`] says what went
//! wrong, and [`replay`] runs work again that was recorded once.

pub mod channel;
pub mod commands;
pub mod device;
pub mod fault;
pub mod launch;
pub mod library;
pub mod memory;
pub mod replay;
