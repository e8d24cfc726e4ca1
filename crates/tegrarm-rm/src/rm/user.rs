//! Access to memory of the calling process that parameters point at.

use crate::status::{RmError, RmResult};
use std::mem::MaybeUninit;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::memory::Own;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Copies from an address that a client gave. The kernel makes the copy, so a wrong address gives a status and no
/// signal.
///
/// # Errors
/// INVALID_POINTER when the range cannot be read.
#[inline]
pub fn read(addr: u64, into: &mut [u8]) -> RmResult<()> {
    match into.len() {
        0 => Ok(()),
        len => Own::now().read(addr, into).map_err(|_| bad_pointer("read", addr, len)),
    }
}

/// Copies to an address that a client gave.
///
/// # Errors
/// INVALID_POINTER when the range cannot be written.
#[inline]
pub fn write(addr: u64, from: &[u8]) -> RmResult<()> {
    match from.len() {
        0 => Ok(()),
        len => Own::now().write(addr, from).map_err(|_| bad_pointer("written", addr, len)),
    }
}

/// Runs `call` with a buffer of `len` zero bytes for the copy of an argument. A small buffer lies on the stack and a
/// large one on the heap.
#[inline(always)]
pub fn with_room<T>(len: usize, call: impl FnOnce(&mut [u8]) -> T) -> T {
    const FEW: usize = 32;
    const MORE: usize = 512;
    let (mut few, mut more, mut many) = ([0; FEW], MaybeUninit::<[u8; MORE]>::uninit(), Vec::new());
    // `call` stands in one place only, so that the compiler makes one copy of it, as a part of this function.
    call(if len <= FEW {
        &mut few[..len]
    } else if len <= MORE {
        &mut more.write([0; MORE])[..len]
    } else {
        many.resize(len, 0);
        &mut many
    })
}

/// Copies `len` bytes in, runs `call` on them, and copies them out again if `call` succeeds. An error in copying out is
/// returned beside the result, because the effect of `call` remains.
///
/// # Errors
/// Those of [`read`], and those of `call`.
pub fn with_copy<T>(
    addr: u64,
    len: usize,
    call: impl FnOnce(&mut [u8]) -> RmResult<T>,
) -> RmResult<(T, Option<RmError>)> {
    with_room(len, |bytes| {
        read(addr, bytes)?;
        let result = call(bytes)?;
        Ok((result, write(addr, bytes).err()))
    })
}

/// The error for an address that cannot be read or written.
#[cold]
pub fn bad_pointer(what: &str, addr: u64, len: usize) -> RmError {
    RmError::new(NV_ERR_INVALID_POINTER, format!("{len:#x} bytes at {addr:#x} cannot be {what}"))
}

/// Reads a list of `count` items.
///
/// # Errors
/// Those of [`read`].
pub fn read_list<T: FromBytes + IntoBytes + Immutable + Clone>(addr: u64, count: usize) -> RmResult<Vec<T>> {
    let mut items = vec![T::new_zeroed(); count];
    read(addr, items.as_mut_slice().as_mut_bytes())?;
    Ok(items)
}

/// Writes a list of items.
///
/// # Errors
/// Those of [`write()`].
pub fn write_list<T: IntoBytes + Immutable>(addr: u64, items: &[T]) -> RmResult<()> {
    write(addr, items.as_bytes())
}
