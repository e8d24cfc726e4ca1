//! Which RM call this thread is in, so that a recording can say what each kernel call was made for.

use super::{classes, controls};
use std::cell::Cell;

/// An RM call, with what it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// None: the library's own business.
    Nothing,
    /// `rm_alloc` of a class.
    Alloc(u32),
    /// `rm_alloc_memory` of a class.
    AllocMemory(u32),
    /// `rm_control` with a command.
    Control(u32),
    /// `rm_free` of an object of a class; class 0 when there was nothing to free.
    Free(u32),
    /// `rm_dup_object`.
    DupObject,
    /// `rm_map_memory`.
    MapMemory,
    /// `rm_unmap_memory`.
    UnmapMemory,
    /// `rm_map_memory_dma`.
    MapMemoryDma,
    /// `rm_unmap_memory_dma`.
    UnmapMemoryDma,
}

thread_local! {
    static NOW: Cell<Inside> = const { Cell::new(Inside::Nothing) };
}

/// Leaves the call when dropped.
pub struct Left(Inside);

impl Drop for Left {
    fn drop(&mut self) {
        NOW.set(self.0);
    }
}

/// Says that this thread is in an RM call, until the result is dropped.
pub fn enter(call: Inside) -> Left {
    Left(NOW.replace(call))
}

/// The call this thread is in, as recordings write it: `rm_alloc NV01_MEMORY_LOCAL_USER`; empty outside of any.
pub fn label() -> String {
    let class = |verb: &str, number| match classes::find(number) {
        Some(row) => format!("{verb} {}", row.name),
        None => format!("{verb} {number:#x}"),
    };
    match NOW.get() {
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
