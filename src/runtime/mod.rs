//! The runtime launches kernels for programs that do not make RM calls themselves.
//!
//! Two loaders turn object files into memory: [`cubin`] loads GPU machine code, and [`hostobj`] CPU machine code.
//! [`params`] and [`qmd`] turn a loaded kernel and a launch into the constant bank and the 64 dwords that the GPU
//! reads. [`device`] opens a GPU with RM calls alone ([`session`], [`queue`]) and runs kernels on it. [`replay`] runs
//! work again that was recorded once.

pub mod address_map;
pub mod backoff;
pub mod base;
pub mod buffer;
pub mod channel;
pub mod checking;
pub mod commands;
pub mod cubin;
pub mod device;
pub mod diagnostics;
pub mod elf;
pub mod event;
pub mod fault;
pub mod fault_text;
pub mod fence_thread;
pub mod heap;
pub mod hostobj;
pub mod launch;
pub mod launch_images;
pub mod launch_template;
pub mod library;
pub mod lost_work;
pub mod measure;
pub mod memory;
pub mod module;
pub mod params;
pub mod place;
pub mod printing;
pub mod profile;
pub mod profiling;
pub mod qmd;
pub mod queue;
pub mod queue_ref;
pub mod queue_table;
pub mod replay;
pub mod session;
mod stacks;
pub mod stamps;
pub mod syncpoints;
pub mod timeline;
pub mod waits;
