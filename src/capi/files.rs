//! The file door: desktop RM's device nodes as functions.

use super::guard::{errno, report};
use super::instance;
use crate::files::Refused;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use tegrarm_kmd::Errno;

/// Opens `/dev/nvidiactl`, `/dev/nvidia0`, `/dev/nvidia-uvm` or `/dev/nvidia-uvm-tools`, as `open(2)` would.
///
/// Returns a descriptor, a real one: it can be duplicated, inherited, polled and closed; of `flags`, `O_CLOEXEC` counts.
/// Clients allocated through it are freed when its last descriptor is closed with `rm_close`. Returns -1 with errno
/// ENOENT for another path, ENODEV or EACCES when there is no GPU (`tegrarm_last_error` says why), EMFILE, EFAULT.
/// Thread-safe.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_open(path: *const c_char, flags: c_int) -> c_int {
    errno(-1, || {
        if path.is_null() {
            return Err(Refused::new(Errno::EFAULT, "path is NULL"));
        }
        // SAFETY: not NULL, so NUL-terminated, as this function asks of its caller.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        instance::door().open(&instance::get, &path, flags & libc::O_CLOEXEC != 0)
    })
}

/// One ioctl of a descriptor that `rm_open` returned, as `ioctl(2)`.
///
/// Returns 0 when the call was understood: what RM thinks of it is in the structure's status. Returns -1 with errno
/// EINVAL for a number, size or node that is wrong, EFAULT for a bad `argp`, EBADF for a closed descriptor, ENOTTY for
/// one that is no RM node. Sentences of both kinds of failure: `tegrarm_last_error`. Thread-safe. Nothing is kept of
/// `argp`, and a bad pointer in or behind it is a failure, not a signal.
#[unsafe(no_mangle)]
pub extern "C" fn rm_ioctl(fd: c_int, request: c_ulong, argp: *mut c_void) -> c_int {
    errno(-1, || {
        if let Some(e) = instance::door().ioctl(&instance::get, fd, request, argp as u64)? {
            report(&e);
        }
        Ok(0)
    })
}

/// Maps a descriptor that RM_MAP_MEMORY named, as `mmap(2)`; other descriptors that are no RM nodes are mapped too.
///
/// A program may as well call `mmap(2)` itself. Returns MAP_FAILED with errno EINVAL for an RM node without something to
/// map, otherwise `mmap(2)`'s. Thread-safe.
///
/// # Safety
/// As `mmap(2)`: MAP_FIXED replaces what is there.
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
        instance::door().check_mmap(fd)?;
        // SAFETY: mmap(2) itself: what it does to the range at `addr` is what the caller of `rm_mmap` asked for.
        let mapped = unsafe { libc::mmap(addr, length, prot, flags, fd, offset) };
        if mapped == libc::MAP_FAILED {
            return Err(Refused::new(Errno::last(), format!("mmap of descriptor {fd} failed")));
        }
        Ok(mapped)
    })
}

/// Closes a descriptor, as `close(2)`; any descriptor. Returns -1 with errno EBADF when it is not open. Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn rm_close(fd: c_int) -> c_int {
    errno(-1, || instance::door().close(fd).map(|()| 0))
}
