//! Host objects: CPU machine code.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::handles::OBJECTS;
use super::opaque::tegrarm_object;
use super::pointers::{bytes, give, present, text};
use crate::runtime::elf::{LoadError, Problem};
use crate::runtime::hostobj::HostObject;
use crate::status::{RmError, RmResult, fail};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use tegrarm_abi::rm::status::*;

/// Loads a relocatable object of this CPU, x86-64 or AArch64 (what `cc -c` makes): its code is placed in executable memory
/// and can be called.
///
/// `names` and `addresses`, `count` of each, are what the object uses but does not define; NULL and 0 for a self-contained
/// one. They may lie anywhere in memory. `image` is not kept. `*object` is a new handle; unload it with
/// `tegrarm_object_unload`. Constructors and thread-local variables are refused. Errors: 0x3D NULL, 0x1F a file that
/// cannot be loaded (`tegrarm_last_error` names section and offset, or the symbols nobody defines), 0x51 no executable
/// memory.
///
/// # Safety
/// `image` is valid for reads of `size` bytes; `names` and `addresses` for reads of `count` pointers, the names are
/// NUL-terminated; `object` is NULL or valid for writes. What the object's functions do is its author's promise.
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

/// Finds a function or variable that the object exports. `*address` is callable, and valid until the object is unloaded.
/// Errors: 0x57 no such object or symbol, 0x3D NULL.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `address` is NULL or valid for writes.
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

/// Unloads an object: its functions must not be running, nor be called any more. Errors: 0x57 no such object.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_object_unload(object: *mut tegrarm_object) -> NV_STATUS {
    status(|| OBJECTS.remove(object).map(drop))
}
