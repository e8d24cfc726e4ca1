//! Memory of the virtual Orin: the memory behind a buffer, the page tables through which GPU addresses reach it, and
//! the addresses that nvgpu chooses.

mod backing;
mod buddy;
mod keeper;
mod mappings;
pub mod memfd;
mod page_table;
pub mod whole;

pub use backing::{Backing, Nature, SYNCPOINT_STRIDE};
pub use buddy::{Buddy, PageClass};
pub use keeper::{Kept, keep_here};
pub use mappings::most as mappings_for_buffers;
pub use page_table::{Access, Extent, FaultKind, MmuFault, PageAttributes, PageTable};
