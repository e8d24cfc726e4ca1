//! The Resource Manager of the process. It is made on first use and replaced in a forked child.

use crate::backend::{Backend, cpu_cache_from_env};
use crate::files::Door;
use once_cell::sync::OnceCell;
use std::cell::UnsafeCell;
use std::io::Write;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Kmd;
use tegrarm_lock::{ForkOnce, RwLock};
use tegrarm_output::settings::tell_of_unknown_once;
use tegrarm_output::{Stderr, say};
use tegrarm_rm::rm::{Rm, disown_clients};
use tegrarm_rm::status::{RmResult, fail};

/// A value that belongs to one process. A forked child overwrites the cell without dropping the old value, for two
/// reasons: a thread that exists in the parent only may hold a lock in it, and dropping the parent's manager would tear
/// down the parent's GPU objects.
pub(super) struct Cell<T>(UnsafeCell<T>);

// SAFETY: the contents have their own locks. The only write that goes past these locks is in `in_child`, when no other
// thread exists.
unsafe impl<T: Sync> Sync for Cell<T> {}

/// The current manager.
static CURRENT: Cell<RwLock<Option<Arc<Rm>>>> = Cell::new(RwLock::new(None));
/// The device nodes as this process has them open.
static DOOR: Cell<OnceCell<Door>> = Cell::new(OnceCell::new());

impl<T> Cell<T> {
    /// A cell with its first contents.
    pub(super) const fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    pub(super) fn get(&'static self) -> &'static T {
        // SAFETY: all users of `Cell` get shared references, and the only write, in `in_child`, happens while no other
        // thread exists.
        unsafe { &*self.0.get() }
    }

    /// # Safety
    /// No other thread exists.
    pub(super) unsafe fn replace(&self, value: T) {
        // SAFETY: no other thread exists, as this function asks of its caller. The old value is not dropped, on purpose: it is the parent's.
        unsafe { self.0.get().write(value) };
    }
}

fn current() -> &'static RwLock<Option<Arc<Rm>>> {
    CURRENT.get()
}

/// The file door.
pub fn door() -> &'static Door {
    DOOR.get().get_or_init(|| {
        watch_process();
        Door::default()
    })
}

extern "C" fn in_child() {
    disown_clients();
    // SAFETY: called by fork(2) in the child, where this is the only thread.
    unsafe {
        super::runtime::forget_handles();
        CURRENT.replace(RwLock::new(None));
        DOOR.replace(OnceCell::new());
    }
}

extern "C" fn at_exit() {
    // A thread that is still inside a call holds the lock. The manager is then left alone, because the kernel cleans up
    // when the process ends.
    if let Some(slot) = current().try_write()
        && let Some(rm) = &*slot
    {
        rm.at_exit();
        report(rm);
        super::runtime::report_leaks(None);
        // The file door stays, because other threads may still run. Freeing objects that they use would help nobody,
        // and the kernel frees them a moment later.
    }
}

fn watch_process() {
    static WATCHED: ForkOnce = ForkOnce::new();
    WATCHED.call(|| {
        // SAFETY: both functions stay at their addresses for as long as the library is loaded, and the `atexit`
        // handlers of a library run before it is unloaded.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// Returns the manager. The first call makes it from the environment.
#[inline]
pub fn get() -> RmResult<Arc<Rm>> {
    if let Some(rm) = &*current().read() {
        return Ok(rm.clone());
    }
    init_first(None)
}

/// The kernel, if the library is in use already.
pub fn current_kmd() -> Option<Arc<dyn Kmd>> {
    current().read().as_ref().map(|rm| rm.kmd().clone())
}

#[cold]
fn init_first(backend: Option<&str>) -> RmResult<Arc<Rm>> {
    watch_process();
    crate::logging::start();
    tell_of_unknown_once("libtegrarm");
    let mut slot = current().write();
    if let Some(rm) = &*slot {
        return Ok(rm.clone());
    }
    let backend = match backend {
        Some(text) => Backend::parse(text)?,
        None => Backend::from_env()?,
    };
    let rm = Arc::new(Rm::new(backend.recorded_by_env().open()?, cpu_cache_from_env()?));
    *slot = Some(rm.clone());
    Ok(rm)
}

/// Makes the manager with the backend that the caller names, or else with the one that the environment names.
pub fn init(backend: Option<&str>) -> RmResult<()> {
    if current().read().is_some() {
        fail!(NV_ERR_INVALID_STATE, "libtegrarm is initialised already; call tegrarm_shutdown first");
    }
    init_first(backend).map(drop)
}

/// Frees every client and forgets the manager.
pub fn shutdown() {
    super::runtime::close_all();
    let rm = current().write().take();
    door().shutdown();
    if let Some(rm) = rm {
        rm.shutdown();
        report(&rm);
    }
}

/// Prints which calls were asked for and refused, if `TEGRARM_REPORT=1` asks for the report. An error is ignored: if
/// standard error is closed, there is no place left to say so.
fn report(rm: &Rm) {
    let Some(value) = std::env::var_os("TEGRARM_REPORT") else { return };
    match value.to_str() {
        Some("1") => drop(write!(Stderr, "{}", rm.report())),
        Some("" | "0") => {}
        _ => say(&format!("TEGRARM_REPORT={} is not understood, nothing is reported: must be 0 or 1", value.display())),
    }
}
