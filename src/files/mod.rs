//! The file door: desktop RM's device nodes. Decodes escapes and UVM calls, and calls the object core; nothing here
//! implements an RM verb a second time.
//!
//! ```text
//! door        open, ioctl, mmap, close: descriptors in, errno out
//!  ├─ table    which open file a descriptor refers to
//!  ├─ escapes  one row per NV_ESC_*; verbs, heap, cards answer them
//!  └─ uvm      one row per UVM call; a tree of address ranges per open file
//! ```
//!
//! A failure is one of two kinds ([`call::Fail`]). Transport failures (wrong number, size, pointer, node) are errnos,
//! and fatal to frontends. RM's own are written into the structure's status, and the ioctl succeeds.

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
