//! The runtime launches kernels for programs that do not make RM calls themselves.
//!
//! Two loaders turn object files into memory: [`cubin`] loads GPU machine code, and [`hostobj`] CPU machine code.
//! [`params`] and [`qmd`] turn a loaded kernel and a launch into the constant bank and the 64 dwords that the GPU
//! reads. [`device`] opens a GPU with RM calls alone ([`session`], [`queue`]) and runs kernels on it. [`replay`] runs
//! work again that was recorded once.

pub mod base;
pub mod buffer;
pub mod checking;
pub mod clues;
pub mod commands;
pub mod cubin;
pub mod device;
pub mod elf;
pub mod event;
pub mod fault;
pub mod follow_up;
pub mod heap;
pub mod hostobj;
pub mod known;
pub mod lane;
pub mod lanes;
pub mod launch;
pub mod library;
pub mod lost;
pub mod measure;
pub mod memory;
pub mod module;
pub mod params;
pub mod patience;
pub mod place;
pub mod prepared;
pub mod printing;
pub mod profile;
pub mod profiling;
pub mod qmd;
pub mod queue;
pub mod queues;
pub mod ready;
pub mod replay;
pub mod sentence;
pub mod session;
mod stacks;
pub mod stamps;
pub mod syncpoints;
pub mod timeline;
pub mod waits;
