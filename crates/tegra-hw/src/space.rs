//! Address spaces and pieces of memory, as both the kernel and the GPU name them.

use std::sync::Arc;
use tegra_mm::{Backing, PageTable};
use tegrarm_lock::RwLock;

/// An address space as the GPU sees it: the current page table.
#[derive(Debug, Default)]
pub struct HwSpace {
    table: RwLock<Arc<PageTable>>,
}

impl HwSpace {
    /// The mappings as they are now.
    pub fn table(&self) -> Arc<PageTable> {
        self.table.read().clone()
    }

    /// Changes the mappings. Snapshots that were taken before do not change.
    pub fn update<R>(&self, change: impl FnOnce(&mut PageTable) -> R) -> R {
        change(Arc::make_mut(&mut self.table.write()))
    }
}

/// A piece of a buffer that the hardware or the kernel writes.
#[derive(Clone, Debug)]
pub struct Place {
    /// The memory.
    pub backing: Arc<Backing>,
    /// The offset of the first byte of the piece.
    pub offset: usize,
}
