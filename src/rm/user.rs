//! Memory of the calling process that parameters point at.

use crate::status::{RmError, RmResult};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::io::{IoSlice, IoSliceMut};
use tegrarm_abi::rm::status::*;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Copies from an address a client gave. The kernel does the copying, so a wrong address is a status, not a signal.
///
/// # Errors
/// 0x3D when the range cannot be read.
pub fn read(addr: u64, into: &mut [u8]) -> RmResult<()> {
    let len = into.len();
    if len == 0 {
        return Ok(());
    }
    let remote = [RemoteIoVec { base: addr as usize, len }];
    match process_vm_readv(Pid::this(), &mut [IoSliceMut::new(into)], &remote) {
        Ok(done) if done == len => Ok(()),
        _ => Err(bad_pointer("read", addr, len)),
    }
}

/// Copies to an address a client gave.
///
/// # Errors
/// 0x3D when the range cannot be written.
pub fn write(addr: u64, from: &[u8]) -> RmResult<()> {
    let len = from.len();
    if len == 0 {
        return Ok(());
    }
    let remote = [RemoteIoVec { base: addr as usize, len }];
    match process_vm_writev(Pid::this(), &[IoSlice::new(from)], &remote) {
        Ok(done) if done == len => Ok(()),
        _ => Err(bad_pointer("written", addr, len)),
    }
}

/// Parameters up to this size are copied to the stack.
const SMALL: usize = 256;

/// Copies `len` bytes in, calls, and copies them out again if that succeeded. A failure to copy out comes beside the
/// result, since what was done is done.
///
/// # Errors
/// As [`read`]; the call's own.
pub fn with_copy<T>(
    addr: u64,
    len: usize,
    call: impl FnOnce(&mut [u8]) -> RmResult<T>,
) -> RmResult<(T, Option<RmError>)> {
    let mut small = [0u8; SMALL];
    let mut large = Vec::new();
    let bytes = if len <= SMALL {
        &mut small[..len]
    } else {
        large.resize(len, 0);
        &mut large[..]
    };
    read(addr, bytes)?;
    let result = call(bytes)?;
    Ok((result, write(addr, bytes).err()))
}

fn bad_pointer(what: &str, addr: u64, len: usize) -> RmError {
    RmError::new(NV_ERR_INVALID_POINTER, format!("{len:#x} bytes at {addr:#x} cannot be {what}"))
}

/// Reads `count` items.
///
/// # Errors
/// As [`read`].
pub fn read_list<T: FromBytes + IntoBytes + Immutable + Clone>(addr: u64, count: usize) -> RmResult<Vec<T>> {
    let mut items = vec![T::new_zeroed(); count];
    read(addr, items.as_mut_slice().as_mut_bytes())?;
    Ok(items)
}

/// Writes items.
///
/// # Errors
/// As [`write`].
pub fn write_list<T: IntoBytes + Immutable>(addr: u64, items: &[T]) -> RmResult<()> {
    write(addr, items.as_bytes())
}
