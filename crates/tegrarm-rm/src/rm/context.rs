//! Remembers in which RM call this thread is, so that a recording can say for which call each kernel call was made.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// An RM call, with the class or command that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// No RM call: the library does this for itself.
    Nothing,
    /// `rm_alloc` of a class.
    Alloc(u32),
    /// `rm_alloc_memory` of a class.
    AllocMemory(u32),
    /// `rm_control` with a command.
    Control(u32),
    /// `rm_free` of an object of a class. The class is 0 when there was no such object.
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

/// Whether a recording needs the label. Looking at a flag costs fewer instructions than writing a thread-local
/// variable, and calls are measured in instructions.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Ends the call when it is dropped.
pub struct Left(Option<Inside>);

impl Drop for Left {
    // It is a part of each call of the C interface, which is another crate.
    #[inline]
    fn drop(&mut self) {
        if let Some(outer) = self.0 {
            NOW.set(outer);
        }
    }
}

/// Notes that this thread is in an RM call until the result is dropped.
#[inline]
pub fn enter(call: Inside) -> Left {
    Left(WATCHED.load(Ordering::Relaxed).then(|| NOW.replace(call)))
}

/// Announces that [`now`] will be asked for from now on.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// The call in which this thread is. It is [`Inside::Nothing`] before [`watch`].
pub fn now() -> Inside {
    NOW.get()
}
