//! Reads and writes what pointers from C point at.

use std::ffi::{CStr, c_char, c_void};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// A module or an object has at most this many bytes: 1 GiB.
pub const TEGRARM_IMAGE_SIZE: usize = 1_073_741_824;

/// Writes a result.
///
/// # Safety
/// `p` is NULL or valid for writes.
pub(super) unsafe fn give<T>(p: *mut T, value: T, name: &str) -> RmResult<()> {
    present(p, name)?;
    // SAFETY: `p` is not NULL and so valid for writes, as this function asks of its caller; alignment is not assumed.
    unsafe { p.write_unaligned(value) };
    Ok(())
}

/// Refuses NULL before anything is done that would have to be undone.
#[inline]
pub(super) fn present<T>(p: *const T, name: &str) -> RmResult<()> {
    if p.is_null() { Err(missing(name)) } else { Ok(()) }
}

#[cold]
fn missing(name: &str) -> RmError {
    RmError::new(NV_ERR_INVALID_POINTER, format!("{name} is NULL"))
}

/// # Safety
/// `p` is NULL or NUL-terminated, and stays so for as long as the result lives.
pub(super) unsafe fn text<'a>(p: *const c_char) -> RmResult<&'a str> {
    present(p, "name")?;
    // SAFETY: `p` is not NULL and so NUL-terminated, as this function asks of its caller.
    let text = unsafe { CStr::from_ptr(p) }.to_str();
    text.map_err(|_| RmError::new(NV_ERR_INVALID_ARGUMENT, "name is not UTF-8"))
}

/// Copies the bytes that a caller passed. A size that is wrong, such as the -1 of a failed `ftell`, gives a status and
/// does not end the process.
///
/// # Safety
/// `p` is NULL or valid for reads of `size` bytes, unless they are more than [`TEGRARM_IMAGE_SIZE`].
///
/// # Errors
/// `NV_ERR_INVALID_POINTER` for NULL, `NV_ERR_INVALID_ARGUMENT` for more bytes than that, and `NV_ERR_NO_MEMORY` if
/// there is no memory for the copy.
pub(super) unsafe fn bytes(p: *const c_void, size: usize, name: &str) -> RmResult<Vec<u8>> {
    present(p, name)?;
    if size > TEGRARM_IMAGE_SIZE {
        fail!(NV_ERR_INVALID_ARGUMENT, "{name} has {size:#x} bytes: TEGRARM_IMAGE_SIZE is {TEGRARM_IMAGE_SIZE:#x}");
    }
    let mut copy = Vec::new();
    if copy.try_reserve_exact(size).is_err() {
        fail!(NV_ERR_NO_MEMORY, "there is no memory for the {size:#x} bytes of {name}");
    }
    copy.resize(size, 0);
    // SAFETY: `p` is not NULL and so valid for reads of `size` bytes, as this function asks of its caller; the copy
    // is ours.
    unsafe { std::ptr::copy_nonoverlapping(p.cast(), copy.as_mut_ptr(), size) };
    Ok(copy)
}

/// Writes a result if the caller asked for it.
///
/// # Safety
/// `p` is NULL or valid for writes.
pub(super) unsafe fn give_any<T>(p: *mut T, value: T) {
    if !p.is_null() {
        // SAFETY: `p` is not NULL and so valid for writes, as this function asks of its caller; alignment is not assumed.
        unsafe { p.write_unaligned(value) };
    }
}

/// The largest size of a structure that is accepted. A larger number cannot come from a caller that set the field.
const MOST_EXTENDED: usize = 4096;

/// Reads a structure that later versions make longer. A caller who knows a later version than this one has more bytes,
/// which must be 0, because nobody here knows what they ask for.
///
/// # Safety
/// `p` is NULL or valid for reads of as many bytes as its first field, a size, says.
///
/// # Errors
/// `NV_ERR_INVALID_POINTER` for NULL, `NV_ERR_INVALID_PARAM_STRUCT` for a size that no version of the structure has, and
/// `NV_ERR_LIB_RM_VERSION_MISMATCH` if a byte behind the known fields is set.
#[inline]
pub(in super::super) unsafe fn extended<T: Copy>(p: *const T, name: &str) -> RmResult<T> {
    present(p, name)?;
    // SAFETY: the first field is there in every version of the structure.
    let size = unsafe { p.cast::<usize>().read_unaligned() };
    if size != size_of::<T>() {
        // SAFETY: `p` is valid for reads of `size` bytes, as this function asks of its caller.
        unsafe { check_extension(p, size, name) }?;
    }
    // SAFETY: `size` says that all fields are there.
    Ok(unsafe { p.read_unaligned() })
}

/// # Safety
/// `p` is valid for reads of `size` bytes.
#[cold]
unsafe fn check_extension<T>(p: *const T, size: usize, name: &str) -> RmResult<()> {
    let known = size_of::<T>();
    if size < known {
        let path = std::any::type_name::<T>();
        let what = path.rsplit_once("::").map_or(path, |(_, what)| what);
        fail!(NV_ERR_INVALID_PARAM_STRUCT, "{name}->size is {size}: set it to sizeof(struct {what})");
    }
    if size > MOST_EXTENDED {
        fail!(NV_ERR_INVALID_PARAM_STRUCT, "{name}->size is {size}: no version of the structure is that large");
    }
    // SAFETY: `p` is valid for reads of `size` bytes, as this function asks of its caller. The bytes behind the fields that are
    // known here are only read one by one and may have any value.
    if (known..size).any(|at| unsafe { p.cast::<u8>().add(at).read() } != 0) {
        fail!(
            NV_ERR_LIB_RM_VERSION_MISMATCH,
            "{name}->size is {size} and fields behind the first {known} bytes are set: this library is {} and does not know them",
            env!("CARGO_PKG_VERSION")
        );
    }
    Ok(())
}

/// Writes a structure that later versions make longer. It writes as many bytes as the caller has, but not more than the
/// structure has.
///
/// # Safety
/// `p` is NULL or valid for as many bytes as its first field, a size, says.
///
/// # Errors
/// `NV_ERR_INVALID_POINTER` for NULL, and `NV_ERR_INVALID_PARAM_STRUCT` if the size is smaller than the size field
/// itself.
pub(super) unsafe fn grown<T: Copy>(
    p: *mut T,
    mut found: T,
    set: impl FnOnce(&mut T, usize),
    name: &str,
) -> RmResult<()> {
    present(p, name)?;
    // SAFETY: the first field is there in every version of the structure.
    let size = unsafe { p.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() {
        fail!(NV_ERR_INVALID_PARAM_STRUCT, "{name}->size is {size}: set it to the size of the structure");
    }
    let size = size.min(size_of::<T>());
    set(&mut found, size);
    // SAFETY: the caller has at least `size` bytes, and `found` has no fewer.
    unsafe { std::ptr::copy_nonoverlapping((&raw const found).cast::<u8>(), p.cast::<u8>(), size) };
    Ok(())
}
