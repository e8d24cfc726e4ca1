//! Where libtegrarm is.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The names of the library's file: that of a build, and the soname, which an installed system may have alone.
const NAMES: [&str; 2] = ["libtegrarm.so", "libtegrarm.so.0"];

/// Loads libtegrarm, and returns the handle of `dlopen(3)`. The library stays loaded until the process ends.
///
/// It is the file that the environment variable `TEGRARM_LIB` names. Without the variable it is the file beside the library that this code
/// is a part of, or one directory above it, and otherwise the one that the dynamic loader finds.
///
/// # Errors
/// The sentence of the dynamic loader, and what to do.
pub fn open() -> Result<*mut c_void, String> {
    let named = std::env::var_os("TEGRARM_LIB").filter(|name| !name.is_empty());
    let path = match named {
        Some(name) => CString::new(name.as_bytes()).map_err(|_| "TEGRARM_LIB contains a NUL".to_owned())?,
        None => beside_us().unwrap_or_else(|| c"libtegrarm.so.0".to_owned()),
    };
    // SAFETY: the path is NUL-terminated, and the library's initialisers are those of libtegrarm.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: after a failure this is a NUL-terminated string, which stays valid until the next call on this thread.
    let why = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy();
    Err(format!("libtegrarm cannot be loaded: {why}; set TEGRARM_LIB to its path"))
}

/// The address of a symbol of a loaded library, or NULL if the library has no such symbol.
///
/// # Safety
/// `library` is a handle that [`open`] returned.
pub unsafe fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is one of `dlopen`, whose library stays loaded, and the name is NUL-terminated.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// The file of the library that this code is a part of, as the dynamic loader found it.
pub fn own_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address lies in this library, and the call fills the structure.
    if unsafe { libc::dladdr(own_path as *const () as *const c_void, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the structure was filled by the call, or it is zero.
    let name = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: a name that is not NULL is a string of the loader, and it is NUL-terminated.
    (!name.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).into())
}

/// The path of the library's file near the library that this code is a part of, if there is one.
fn beside_us() -> Option<CString> {
    let us = own_path()?;
    let here = us.parent()?;
    let near = [here.to_owned(), here.join("..")];
    let mut files = near.iter().flat_map(|folder| NAMES.map(|name| folder.join(name)));
    files.find(|file| file.exists()).and_then(|file| CString::new(file.as_os_str().as_bytes()).ok())
}
