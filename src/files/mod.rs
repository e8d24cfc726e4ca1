//! The file door: desktop RM's device nodes. It decodes escapes and UVM calls and calls the object core, so that every
//! RM verb is implemented only once.
//!
//! ```text
//! door        open, ioctl, mmap, close: descriptors in, errno out
//!  ├─ table    which open file a descriptor refers to
//!  ├─ escapes  one row per NV_ESC_*; verbs, heap, cards answer them
//!  └─ uvm      one row per UVM call; a tree of address ranges per open file
//! ```
//!
//! A failure is one of two kinds ([`call::Fail`]). Failures of the call itself (a wrong number, size, pointer or node)
//! are errnos, and frontends do not survive them. RM's own failures are written into the status of the structure, and
//! the ioctl succeeds.

mod call;
mod cards;
mod door;
pub mod escapes;
mod heap;
mod node;
mod table;
pub mod uvm;
mod verbs;

pub use call::{Outcome, Refused};
pub use door::Door;
