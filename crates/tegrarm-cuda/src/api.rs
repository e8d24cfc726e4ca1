//! Libraries that are loaded at run time: libtegrarm, when cuInit is called, and compilers. Whether cuInit was called is known here too.
#![allow(unsafe_code)]

use crate::numbers::CUDA_ERROR_NOT_INITIALIZED;
use crate::result::{Answer, Error};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_lock::ForkOnce;

/// Whether cuInit was called in this process.
static INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Whether the process is a child that has not called cuInit yet.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Fails if cuInit was not called in this process.
#[inline]
pub fn initialized() -> Answer {
    if !INITIALIZED.load(Ordering::Acquire) {
        return Err(Error::new(CUDA_ERROR_NOT_INITIALIZED, "call cuInit first, also in a child after fork".to_owned()));
    }
    Ok(())
}

/// cuInit begins. Says whether the process is a child that has to forget what its parent had.
pub fn start() -> bool {
    extern "C" fn forget() {
        INITIALIZED.store(false, Ordering::Release);
        FORKED.store(true, Ordering::Release);
    }
    static WATCHED: ForkOnce = ForkOnce::new();
    // A child does not have the contexts of its parent: every call but cuInit fails there, as with NVIDIA's driver.
    WATCHED.call(|| {
        // SAFETY: `forget` only stores numbers, which a child may do.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
    FORKED.swap(false, Ordering::AcqRel)
}

/// cuInit has done its work.
pub fn started() {
    INITIALIZED.store(true, Ordering::Release);
}

/// Where this library is, with symbolic links followed.
pub fn own_path() -> Option<PathBuf> {
    tegrarm_client::find::own_path()?.canonicalize().ok()
}

/// Loads a library. The loader keeps it for the rest of the process.
pub fn load(path: &Path) -> Result<*mut c_void, String> {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return Err("a path with a NUL".to_owned()) };
    // SAFETY: `name` is a string that ends with a NUL.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: after a failure dlerror gives a string, or NULL.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(format!("{} cannot be loaded", path.display()));
    }
    // SAFETY: it is not NULL, and ends with a NUL.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Finds a function of a library that [`load`] gave.
pub fn function(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `library` is what dlopen gave, and `name` ends with a NUL.
    let at = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

/// The functions of libtegrarm. The first call loads it.
pub fn api() -> Result<&'static tegrarm_client::Functions, &'static str> {
    tegrarm_client::library()
}
