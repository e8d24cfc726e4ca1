//! Loading the library.

use crate::find;
use crate::header::Table;
use once_cell::race::OnceBox;
use std::ffi::{CStr, c_void};

/// The functions of the library, once it is loaded.
pub type Functions = Table;

/// The functions of libtegrarm, which the first call loads.
///
/// # Errors
/// A sentence that says why the library could not be loaded, or which function the one that was found does not have. Later calls return
/// the same sentence.
pub fn library() -> Result<&'static Functions, &'static str> {
    static LIBRARY: OnceBox<Result<Functions, String>> = OnceBox::new();
    LIBRARY.get_or_init(|| Box::new(load())).as_ref().map_err(String::as_str)
}

fn load() -> Result<Functions, String> {
    let library = find::open()?;
    let find = |name: &CStr| -> Result<*mut c_void, String> {
        // SAFETY: the handle is that of `find::open`.
        let found = unsafe { find::symbol(library, name) };
        if found.is_null() {
            let name = name.to_string_lossy();
            return Err(format!(
                "the libtegrarm that was found has no function {name}; it has another version than this library"
            ));
        }
        Ok(found)
    };
    // SAFETY: the addresses are those of libtegrarm's functions. A library of another version has another soname, or lacks a function.
    unsafe { Functions::fill(find) }
}
