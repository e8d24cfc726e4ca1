//! libtegrarm: desktop NVIDIA's Resource Manager interface on Jetson's nvgpu and nvmap.
//!
//! ```text
//! capi        the C functions: guard, convert, call, convert back
//!   │
//! files       escapes and UVM calls of the device nodes, decoded into RM's verbs
//!   │
//! tegrarm_rm::rm       clients and their object trees, the class table, the control table
//!   │
//! tegrarm_rm::tegra    one type per kind of nvgpu or nvmap descriptor
//!   │
//! tegrarm_kmd::Kmd     the kernel: a board's, a simulated one, a recording ([`backend`] picks)
//! ```
//!
//! **Lifetimes.** `Drop` gives everything back. An object is owned by the entry of its handle in the client's tree.
//! Objects own descriptors, mappings and references to other objects that they need: a channel owns a reference to its
//! address space and its group, and a GPU mapping owns a reference to the buffer in it. A multi-step operation that
//! fails half-way therefore undoes itself. Freeing takes objects out of the tree first and drops them afterwards. A
//! call in another thread therefore either finds the object and finishes, or does not find it. The device nodes stay
//! open for as long as there is a client.
//!
//! **Locks**, in the order in which they may be taken: the process's instance; the ranges of one UVM file; the table of
//! open files; the list of clients; one client's tree (for look-ups and edits only, never across a system call); one
//! memory object; one VA space's mappings; one store's views; nvmap's open descriptors. The last four may be held
//! across a system call that concerns the same object; controls and submissions take none of them.

// The C interface uses C names, and structures use upstream's names of fields.
#![allow(non_snake_case)]

pub mod backend;
pub mod capi;
pub mod files;
mod logging;
pub mod runtime;
mod sync;

pub use tegrarm_rm::{rm, status, tegra};
