//! The file door: desktop RM's device nodes as functions.

use super::guard::{errno, report};
use super::instance;
use crate::files::Refused;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use tegrarm_kmd::{Errno, placing};

/// Opens `/dev/nvidiactl`, `/dev/nvidia0`, `/dev/nvidia-uvm` or `/dev/nvidia-uvm-tools`, as `open(2)` would.
///
/// The result is a real file descriptor: a program can duplicate it, poll it and pass it on to a child process, where
/// it is as if just opened. Of `flags` only `O_CLOEXEC` counts. The clients that were allocated through an open file
/// are freed when `rm_close` closes its last descriptor.
///
/// Errors: the result is -1, and `errno` is
/// - `EFAULT`: `path` is NULL.
/// - `ENOENT`: `path` is none of these nodes.
/// - `EACCES`: the user may not open the GPU.
/// - `ENODEV`: there is no GPU, or it cannot be used. `tegrarm_last_error` says why.
/// - `EMFILE`, `ENFILE`: the process or the system has no descriptor left.
/// - `EIO`: the library met a bug in itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_open(path: *const c_char, flags: c_int) -> c_int {
    errno(-1, || {
        if path.is_null() {
            return Err(Refused::new(Errno::EFAULT, "path is NULL"));
        }
        // SAFETY: `path` is not NULL, so it is NUL-terminated, as this function asks of its caller.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        instance::door().open(&instance::get, &path, flags & libc::O_CLOEXEC != 0)
    })
}

/// Makes one ioctl of a descriptor that `rm_open` returned, as `ioctl(2)`.
///
/// The result is 0 if the call was understood. What the Resource Manager thinks of it is then in the status of the
/// structure at `argp`. After both kinds of failure `tegrarm_last_error` has a sentence. Nothing at `argp` is used
/// after the call. A bad pointer, at `argp` or in the structure, makes the call fail and never ends the process with a
/// signal.
///
/// Errors: the result is -1, and `errno` is
/// - `EBADF`: the descriptor is not open.
/// - `ENOTTY`: the descriptor is not a node of the Resource Manager.
/// - `EINVAL`: the node has no such request, or the size of its structure is wrong.
/// - `EFAULT`: the structure at `argp` cannot be read or written.
/// - `EIO`: the library met a bug in itself.
#[unsafe(no_mangle)]
pub extern "C" fn rm_ioctl(fd: c_int, request: c_ulong, argp: *mut c_void) -> c_int {
    errno(-1, || {
        if let Some(e) = instance::door().ioctl(&instance::get, fd, request, argp as u64)? {
            report(&e);
        }
        Ok(0)
    })
}

/// Maps a descriptor to which the escape RM_MAP_MEMORY gave something to map, as `mmap(2)`. `addr` and the other
/// arguments are those of `mmap(2)`, so that MAP_FIXED replaces what is mapped in the range. A descriptor that is not a
/// node of the Resource Manager is mapped as well. A program may just as well call `mmap(2)` itself.
///
/// With `addr` NULL and the flags MAP_SHARED and MAP_ANONYMOUS the result is new memory of the process below 2^39, if
/// there is room. The GPU has addresses of 40 bits, and `mmap(2)` itself places such memory above them. Only memory that
/// lies low can be registered for the GPU at the address that it has for the CPU (UVM_CREATE_EXTERNAL_RANGE, and then
/// NV01_MEMORY_SYSTEM_OS_DESCRIPTOR).
///
/// Errors: the result is `MAP_FAILED`, and `errno` is
/// - `EINVAL`: the descriptor is a node that has nothing to map.
/// - `EIO`: the library met a bug in itself.
/// - any that `mmap(2)` sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_mmap(
    addr: *mut c_void,
    length: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    errno(libc::MAP_FAILED, || {
        if let Some(address) = placing::mmap(addr, length, prot, flags, offset) {
            return Ok(address);
        }
        instance::door().check_mmap(fd)?;
        // SAFETY: this is mmap(2) itself. What it does to the range at `addr` is what the caller of `rm_mmap` asked
        // for.
        let mapped = unsafe { libc::mmap(addr, length, prot, flags, fd, offset) };
        if mapped == libc::MAP_FAILED {
            return Err(Refused::new(Errno::last(), format!("mmap of descriptor {fd} failed")));
        }
        Ok(mapped)
    })
}

/// Closes a descriptor, as `close(2)`. It may be any descriptor of the process.
///
/// Errors: the result is -1, and `errno` is
/// - `EBADF`: the descriptor is not open.
/// - `EIO`: the library met a bug in itself.
#[unsafe(no_mangle)]
pub extern "C" fn rm_close(fd: c_int) -> c_int {
    errno(-1, || instance::door().close(fd).map(|()| 0))
}
