//! Host objects, which are machine code for the CPU.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::handles::OBJECTS;
use super::opaque::tegrarm_object;
use super::pointers::{bytes, give, present, text};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use tegrarm_abi::rm::status::*;
use tegrarm_images::elf::{LoadError, Problem};
use tegrarm_images::hostobj::HostObject;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// An object is loaded with at most this many symbols.
pub const TEGRARM_OBJECT_SYMBOLS: usize = 1_048_576;

/// Loads a relocatable object for this CPU, x86-64 or AArch64, as `cc -c` makes it. Its code is placed in executable
/// memory, where it can be called.
///
/// `image` is the file, `size` bytes, and is not used after the call. `names` and `addresses` have `count` entries
/// each: the symbols that the object uses and does not define, and where they are. They may lie anywhere in memory. An
/// object that needs no symbols takes NULL, NULL and 0. An object with constructors or thread-local variables is
/// refused. `*object` is a new handle. Unload it with `tegrarm_object_unload`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `object`, `image`, `names`, `addresses` or one of the names is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: the file cannot be loaded, or a name is not UTF-8. `tegrarm_last_error` names the
///   section and the offset, or the symbols that are not defined.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is more than `TEGRARM_IMAGE_SIZE`, or `count` more than
///   `TEGRARM_OBJECT_SYMBOLS`.
/// - `NV_ERR_NO_MEMORY`: the system gives no executable memory, or no memory for a copy of the file.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_object_load(
    image: *const c_void,
    size: usize,
    names: *const *const c_char,
    addresses: *const *const c_void,
    count: usize,
    object: *mut *mut tegrarm_object,
) -> NV_STATUS {
    status(|| {
        present(object, "object")?;
        // SAFETY: `image` is NULL or valid for reads of `size` bytes; `names` and `addresses` are NULL or valid for
        // reads of `count` pointers, the names NUL-terminated, as `tegrarm_object_load` asks of its caller.
        let (image, known) = unsafe { (bytes(image, size, "image")?, pairs(names, addresses, count)?) };
        let loaded = HostObject::load(&image, &|name| known.get(name).copied()).map_err(refused)?;
        let handle = OBJECTS.insert(loaded)?;
        // SAFETY: `object` is not NULL and so valid for writes, as `tegrarm_object_load` asks of its caller.
        unsafe { give(object, handle, "object") }
    })
}

/// # Safety
/// Both are NULL or valid for reads of `count` pointers; names are NULL or NUL-terminated.
unsafe fn pairs(
    names: *const *const c_char,
    addresses: *const *const c_void,
    count: usize,
) -> RmResult<HashMap<String, u64>> {
    if count > TEGRARM_OBJECT_SYMBOLS {
        fail!(NV_ERR_INVALID_ARGUMENT, "{count:#x} symbols: TEGRARM_OBJECT_SYMBOLS is {TEGRARM_OBJECT_SYMBOLS:#x}");
    }
    let mut known = HashMap::new();
    for index in 0..count {
        present(names, "names")?;
        present(addresses, "addresses")?;
        // SAFETY: `index` is below `count` and neither is NULL, so that both are valid there, as this function asks of its
        // caller.
        let (name, address) = unsafe { (text(names.add(index).read())?, addresses.add(index).read()) };
        known.insert(name.to_owned(), address as u64);
    }
    Ok(known)
}

fn refused(e: LoadError) -> RmError {
    let status = if matches!(e.problem(), Problem::Memory { .. }) { NV_ERR_NO_MEMORY } else { NV_ERR_INVALID_ARGUMENT };
    RmError::new(status, format!("loading an object: {e}"))
}

/// Finds a function or a variable that an object exports. `*address` is its address, which is valid until the object is
/// unloaded.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `address` or `name` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `name` is not UTF-8.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `object` is not a loaded object, or it exports no such symbol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_object_symbol(
    object: *mut tegrarm_object,
    name: *const c_char,
    address: *mut *mut c_void,
) -> NV_STATUS {
    status(|| {
        present(address, "address")?;
        // SAFETY: `name` is NULL or NUL-terminated, as `tegrarm_object_symbol` asks of its caller.
        let name = unsafe { text(name) }?;
        let held = OBJECTS.hold_in_turn(object)?;
        let Some(found) = held.symbol(name) else {
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the object exports no '{name}'");
        };
        // SAFETY: `address` is not NULL and so valid for writes, as `tegrarm_object_symbol` asks of its caller.
        unsafe { give(address, found as *mut c_void, "address") }
    })
}

/// Unloads an object. No thread may be in one of its functions, and nothing may call them any more.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `object` is not a loaded object.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_object_unload(object: *mut tegrarm_object) -> NV_STATUS {
    status(|| OBJECTS.remove(object).map(drop))
}
