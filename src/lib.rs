//! libtegrarm: desktop NVIDIA's Resource Manager interface on Jetson's nvgpu and nvmap.
//!
//! ```text
//! capi        the C functions: guard, convert, call, convert back
//!   │
//! files       escapes and UVM calls of the device nodes, decoded into RM's verbs
//!   │
//!  rm         clients and their object trees, the class table, the control table
//!   │
//! tegra       one type per kind of nvgpu or nvmap descriptor
//!   │
//! tegrarm_kmd::Kmd     the kernel: a board's, the virtual Orin, a recording ([`backend`] picks)
//! ```
//!
//! **Lifetimes.** Everything is given back by `Drop`. A handle's entry in its client's tree owns the object; objects own
//! descriptors, mappings and references to what they need: a channel its address space and group, a GPU mapping the
//! buffer in it. A multi-step operation that fails half-way therefore undoes itself. Freeing takes objects out of the
//! tree first and drops them afterwards, so a call in another thread either found the object, and finishes, or did not.
//! The device nodes stay open for as long as there is a client.
//!
//! **Locks**, in the order in which they may be taken: the process's instance; one UVM file's ranges; the table of open
//! files; the list of clients; one client's tree
//! (look-ups and edits only, never across a system call); one memory object; one VA space's mappings; one store's views;
//! nvmap's open descriptors. The last four may be held across a system call that concerns the same object; nothing on
//! the way of a control or a submission takes them.

// C names in the C interface, and upstream names of fields.
#![allow(non_snake_case)]

pub mod backend;
pub mod capi;
pub mod files;
mod logging;
pub mod rm;
pub mod runtime;
pub mod status;
pub mod tegra;
