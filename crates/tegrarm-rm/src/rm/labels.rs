//! The labels of recordings: in which RM call a kernel call was made.

use super::context::{self, Inside};
use super::{classes, controls};

/// The call in which this thread is, as recordings write it, for example `rm_alloc NV01_MEMORY_LOCAL_USER`. The label
/// is empty outside of a call, and before [`context::watch`].
pub fn label() -> String {
    let class = |verb: &str, number| match classes::find(number) {
        Some(row) => format!("{verb} {}", row.name),
        None => format!("{verb} {number:#x}"),
    };
    match context::now() {
        Inside::Nothing => String::new(),
        Inside::Alloc(number) => class("rm_alloc", number),
        Inside::AllocMemory(number) => class("rm_alloc_memory", number),
        Inside::Free(number) => class("rm_free", number),
        Inside::Control(cmd) => {
            controls::find(cmd).map_or_else(|| format!("rm_control {cmd:#x}"), |row| format!("rm_control {}", row.name))
        }
        Inside::DupObject => "rm_dup_object".to_owned(),
        Inside::MapMemory => "rm_map_memory".to_owned(),
        Inside::UnmapMemory => "rm_unmap_memory".to_owned(),
        Inside::MapMemoryDma => "rm_map_memory_dma".to_owned(),
        Inside::UnmapMemoryDma => "rm_unmap_memory_dma".to_owned(),
    }
}
