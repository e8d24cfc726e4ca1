//! Which RM call this thread is in, so that a recording can say what each kernel call was made for.

use super::{classes, controls};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether anybody asks. A thread-local costs more than a look at a flag, and calls are counted in instructions.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Leaves the call when dropped.
pub struct Left(Option<Inside>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(outer) = self.0 {
            NOW.set(outer);
        }
    }
}

/// Says that this thread is in an RM call, until the result is dropped.
pub fn enter(call: Inside) -> Left {
    Left(WATCHED.load(Ordering::Relaxed).then(|| NOW.replace(call)))
}

/// From now on, [`label`] will be asked for.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// The call this thread is in, as recordings write it: `rm_alloc NV01_MEMORY_LOCAL_USER`; empty outside of any, and
/// before [`watch`].
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
