//! Reads and writes what pointers of the caller point at.

use crate::abi::{NVML_ERROR_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_INSUFFICIENT_SIZE, NVML_ERROR_INVALID_ARGUMENT};
use crate::result::Answer;
use std::ffi::{CStr, c_char};

/// Writes a result.
///
/// # Safety
/// `to` is NULL or valid for a write.
pub unsafe fn give<T>(to: *mut T, value: T) -> Answer {
    present(to)?;
    // SAFETY: `to` is not NULL and so valid, as this function asks of its caller. Alignment is not assumed.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads an argument that is passed by its address.
///
/// # Safety
/// `from` is NULL or valid for a read.
pub unsafe fn take<T: Copy>(from: *const T) -> Answer<T> {
    present(from)?;
    // SAFETY: `from` is not NULL and so valid, as this function asks of its caller. Alignment is not assumed.
    Ok(unsafe { from.read_unaligned() })
}

/// Refuses NULL.
pub fn present<T>(pointer: *const T) -> Answer {
    if pointer.is_null() { Err(NVML_ERROR_INVALID_ARGUMENT) } else { Ok(()) }
}

/// Checks the first field of a structure with a version.
///
/// # Safety
/// `structure` is NULL or begins with a readable number.
pub unsafe fn version<T>(structure: *const T, wanted: u32) -> Answer {
    // SAFETY: the structure begins with the number, as this function asks of its caller.
    let version = unsafe { take(structure.cast::<u32>()) }?;
    if version == wanted { Ok(()) } else { Err(NVML_ERROR_ARGUMENT_VERSION_MISMATCH) }
}

/// Writes a text with its NUL into a buffer of `size` bytes.
///
/// # Safety
/// `to` is NULL or valid for writes of `size` bytes.
pub unsafe fn text(to: *mut c_char, size: u32, from: &str) -> Answer {
    present(to)?;
    if (size as usize) <= from.len() {
        return Err(NVML_ERROR_INSUFFICIENT_SIZE);
    }
    // SAFETY: the text and its NUL have at most `size` bytes, for which `to` is valid, as this function asks of its caller.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len());
        to.add(from.len()).write(0);
    }
    Ok(())
}

/// Reads a text. One that is not UTF-8 names nothing that there is.
///
/// # Safety
/// `from` is NULL or NUL-terminated.
pub unsafe fn string(from: *const c_char) -> Answer<String> {
    present(from)?;
    // SAFETY: `from` is not NULL and so NUL-terminated, as this function asks of its caller.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Writes a list in the way of NVML: `*count` says how much room there is, and becomes how many items there are.
///
/// # Safety
/// `count` is NULL or valid for a read and a write, and `items` is NULL or valid for writes of `*count` items.
pub unsafe fn list<T>(count: *mut u32, items: *mut T, found: Vec<T>) -> Answer {
    // SAFETY: `count` is as this function asks of its caller.
    let room = unsafe { take(count) }? as usize;
    if room > 0 && room >= found.len() {
        present(items)?;
    }
    // SAFETY: as above.
    unsafe { give(count, found.len() as u32) }?;
    if room < found.len() {
        return Err(NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (at, item) in found.into_iter().enumerate() {
        // SAFETY: there is room for all items, for which `items` is valid, as this function asks of its caller.
        unsafe { items.add(at).write_unaligned(item) };
    }
    Ok(())
}

/// A text in an array of C. What has no room is left out, and there is always a NUL.
pub fn array<const N: usize>(from: &str) -> [c_char; N] {
    let mut to = [0; N];
    for (to, from) in to[..N - 1].iter_mut().zip(from.bytes()) {
        *to = from as c_char;
    }
    to
}

/// The text in an array of C.
pub fn of_array(from: &[c_char]) -> String {
    let bytes: Vec<u8> = from.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
