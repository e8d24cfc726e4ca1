//! One row of a table of handles: an object, and the handle under which it is there now.
//!
//! `make loom` tries it in every order of threads.

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The fields have this order so that a launch finds the lock without an addition.
#[repr(C)]
pub struct Row<T> {
    object: Mutex<Option<T>>,
    /// The handle of the object that is in the row now, or 0 if the row has no object.
    handle: AtomicU64,
}

/// The object of a row, or none, while no other thread can use it.
pub type Guard<'a, T> = MutexGuard<'a, Option<T>>;

/// Why a row cannot be held.
#[derive(Debug, PartialEq, Eq)]
pub enum Unheld {
    /// Another object is there, or none.
    Gone,
    /// Another thread holds the object.
    Busy,
}

impl<T> Row<T> {
    pub fn empty() -> Row<T> {
        Row { object: Mutex::new(None), handle: AtomicU64::new(0) }
    }

    /// The handle of the object that is here now, or 0.
    pub fn handle(&self) -> u64 {
        self.handle.load(Ordering::Acquire)
    }

    /// Puts an object into the row, which has none.
    pub fn put(&self, handle: u64, object: T) {
        let mut held = self.object.lock();
        *held = Some(object);
        self.handle.store(handle, Ordering::Release);
    }

    /// Holds the object of a handle. If another thread holds it, this waits.
    ///
    /// # Errors
    /// [`Unheld::Gone`].
    #[inline(always)]
    pub fn hold(&self, handle: u64) -> Result<Guard<'_, T>, Unheld> {
        self.still(handle, self.object.lock())
    }

    /// Holds the object of a handle, and never waits.
    ///
    /// # Errors
    /// [`Unheld::Gone`], or [`Unheld::Busy`] while another thread holds the object.
    #[inline(always)]
    pub fn hold_now(&self, handle: u64) -> Result<Guard<'_, T>, Unheld> {
        if let Some(guard) = self.object.try_lock() {
            return self.still(handle, guard);
        }
        Err(if self.handle() == handle { Unheld::Busy } else { Unheld::Gone })
    }

    #[inline(always)]
    fn still<'a>(&self, handle: u64, guard: Guard<'a, T>) -> Result<Guard<'a, T>, Unheld> {
        // The handle changes only while the row is held.
        if self.handle.load(Ordering::Relaxed) == handle { Ok(guard) } else { Err(Unheld::Gone) }
    }

    /// Takes the object out, if `doomed` says so of it and its handle. Returns both.
    pub fn take(&self, doomed: impl Fn(u64, &T) -> bool) -> Option<(u64, T)> {
        let mut object = self.object.lock();
        let handle = self.handle.load(Ordering::Relaxed);
        let taken = object.take_if(|object| doomed(handle, object))?;
        self.handle.store(0, Ordering::Release);
        Some((handle, taken))
    }

    /// The handle of the object, if `is` says so of it.
    pub fn handle_if(&self, is: impl Fn(&T) -> bool) -> Option<u64> {
        let object = self.object.lock();
        object.as_ref().is_some_and(is).then(|| self.handle.load(Ordering::Relaxed))
    }
}
