//! Memory of the virtual Orin: what backs a buffer, and how GPU addresses reach it.

mod backing;
mod page_table;

pub use backing::Backing;
pub use page_table::{Access, Extent, FaultKind, MmuFault, PageTable};
