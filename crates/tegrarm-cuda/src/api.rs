//! Libraries that are loaded at run time: libtegrarm, when cuInit is called, and compilers.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
