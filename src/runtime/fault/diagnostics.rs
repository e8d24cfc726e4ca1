//! What a device knows that helps to explain a fault. The kernel's own report is in [`crate::runtime::fault`].

use crate::runtime::fault::address_map::{AddressMap, Calls};
use crate::runtime::library::stop::Stop;
use crate::runtime::library::{Installed, Sizes};
use std::backtrace::Backtrace;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tegrarm_lock::Mutex;
use tegrarm_rm::rm::profile::Wanted;

/// Of so many launches the calls are kept.
const LAUNCHES: usize = 1024;

/// The device library, the modules, the buffers and the replays of a device.
pub struct Diagnostics {
    /// The device library, installed with the first module that needs it.
    library: OnceLock<Arc<Installed>>,
    sizes: Mutex<Sizes>,
    /// The code and the buffers, by address.
    known: AddressMap,
    /// Whether kernels may have left something to print: messages of the device library, or mistakes that the kernel reports.
    prints: AtomicBool,
    /// Whether the kernel of the operating system looks for mistakes in GPU code.
    checked: bool,
    /// How many replays exist. Their work is not counted anywhere else.
    replays: AtomicUsize,
    /// What the kernel of the operating system has a use for of what is known here.
    wanted: OnceLock<Option<Wanted>>,
    /// The calls that launched work, by channel and submission, if mistakes in GPU code are looked for.
    launches: Mutex<VecDeque<(u32, u64, Calls)>>,
}

impl Diagnostics {
    /// Makes an empty collection.
    pub fn new(sizes: Sizes, checked: bool) -> Arc<Diagnostics> {
        let (library, sizes, replays) = (OnceLock::new(), Mutex::new(sizes), AtomicUsize::new(0));
        let prints = AtomicBool::new(checked);
        let known = AddressMap::default();
        let (wanted, launches) = (OnceLock::new(), Mutex::default());
        Arc::new(Diagnostics { library, sizes, known, prints, checked, replays, wanted, launches })
    }

    /// The device library, if a module has needed it.
    #[inline]
    pub fn library(&self) -> Option<&Arc<Installed>> {
        self.library.get()
    }

    /// Whether kernels may have left something to print.
    #[inline]
    pub fn prints(&self) -> bool {
        self.prints.load(Ordering::Acquire)
    }

    /// Whether the kernel of the operating system looks for mistakes in GPU code.
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// The calls that this thread has made, if mistakes in GPU code are looked for. Otherwise nobody pays for them.
    pub fn calls(&self) -> Option<Calls> {
        self.checked.then(|| Arc::new(Backtrace::force_capture()))
    }

    /// Notes which calls have launched a submission to a channel, if mistakes in GPU code are looked for.
    #[inline]
    pub fn launched(&self, channel: u32, submission: u64) {
        if let Some(calls) = self.calls() {
            let mut launches = self.launches.lock();
            if launches.len() == LAUNCHES {
                launches.pop_front();
            }
            launches.push_back((channel, submission, calls));
        }
    }

    /// The calls that have launched a submission to a channel, if they are known.
    pub fn launch_of(&self, channel: u32, submission: u64) -> Option<Calls> {
        let launches = self.launches.lock();
        let found = launches.iter().rev().find(|launch| (launch.0, launch.1) == (channel, submission));
        found.map(|(.., calls)| calls.clone())
    }

    /// What the kernel of the operating system has a use for of what is known here. It is asked once.
    pub fn wanted(&self, ask: impl FnOnce() -> Option<Wanted>) -> Option<Wanted> {
        *self.wanted.get_or_init(ask)
    }

    /// The device library. If it is not installed yet, `install` makes it.
    ///
    /// # Errors
    /// Those of `install`.
    pub fn library_or<E>(&self, install: impl FnOnce() -> Result<Installed, E>) -> Result<&Arc<Installed>, E> {
        if let Some(library) = self.library.get() {
            return Ok(library);
        }
        let installed = Arc::new(install()?);
        // If another thread was faster, its library is used and this one is dropped.
        let library = self.library.get_or_init(|| installed);
        self.prints.store(true, Ordering::Release);
        Ok(library)
    }

    /// The code and the buffers, by address.
    pub fn known(&self) -> &AddressMap {
        &self.known
    }

    /// How much memory kernels get for `malloc` and `printf`.
    pub fn sizes(&self) -> Sizes {
        *self.sizes.lock()
    }

    /// Changes how much memory kernels get.
    pub fn set_sizes(&self, change: impl FnOnce(&mut Sizes)) {
        change(&mut self.sizes.lock());
    }

    /// Counts a replay until the result is dropped.
    pub fn begin_replay(self: &Arc<Diagnostics>) -> Replaying {
        self.replays.fetch_add(1, Ordering::Relaxed);
        Replaying(self.clone())
    }

    /// Whether there are replays. They may run at any time.
    pub fn has_replays(&self) -> bool {
        self.replays.load(Ordering::Relaxed) > 0
    }

    /// The reason why a thread stopped its kernel, if one did so since the last call.
    pub fn stop(&self) -> Option<Stop> {
        self.library()?.stop()
    }
}

/// Stands for one replay that exists.
pub struct Replaying(Arc<Diagnostics>);

impl Drop for Replaying {
    fn drop(&mut self) {
        self.0.replays.fetch_sub(1, Ordering::Relaxed);
    }
}
