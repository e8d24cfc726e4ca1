//! What a device knows that explains a fault, beside what the kernel says of it.

use super::known::Known;
use super::library::stop::Stop;
use super::library::{Installed, Sizes};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// All of it.
pub struct Clues {
    /// Installed with the first module that needs it.
    library: OnceLock<Arc<Installed>>,
    sizes: Mutex<Sizes>,
    /// Code and buffers, by address.
    known: Known,
    /// Replays of the device, whose work nobody else knows of.
    replays: AtomicUsize,
}

impl Clues {
    /// Nothing is known yet.
    pub fn new(sizes: Sizes) -> Arc<Clues> {
        let (library, sizes, replays) = (OnceLock::new(), Mutex::new(sizes), AtomicUsize::new(0));
        Arc::new(Clues { library, sizes, known: Known::default(), replays })
    }

    /// The device library, if a module needed it.
    #[inline]
    pub fn library(&self) -> Option<&Arc<Installed>> {
        self.library.get()
    }

    /// The device library, which `install` makes.
    ///
    /// # Errors
    /// What `install` says.
    pub fn library_or<E>(&self, install: impl FnOnce() -> Result<Installed, E>) -> Result<&Arc<Installed>, E> {
        if let Some(library) = self.library.get() {
            return Ok(library);
        }
        let installed = Arc::new(install()?);
        // If another thread was faster, what this one made goes again.
        Ok(self.library.get_or_init(|| installed))
    }

    /// Code and buffers, by address.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// How much memory kernels get for `malloc` and `printf`.
    pub fn sizes(&self) -> Sizes {
        *self.sizes.lock()
    }

    /// From now on kernels get this much.
    pub fn set_sizes(&self, change: impl FnOnce(&mut Sizes)) {
        change(&mut self.sizes.lock());
    }

    /// A replay begins.
    pub fn begin_replay(self: &Arc<Clues>) -> Replaying {
        self.replays.fetch_add(1, Ordering::Relaxed);
        Replaying(self.clone())
    }

    /// Whether there are replays, which may run at any time.
    pub fn has_replays(&self) -> bool {
        self.replays.load(Ordering::Relaxed) > 0
    }

    /// Why a thread gave up, if one did since the last call.
    pub fn stop(&self) -> Option<Stop> {
        self.library()?.stop()
    }
}

/// A replay, until it is dropped.
pub struct Replaying(Arc<Clues>);

impl Drop for Replaying {
    fn drop(&mut self) {
        self.0.replays.fetch_sub(1, Ordering::Relaxed);
    }
}
