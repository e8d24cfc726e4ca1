//! The file door: desktop RM's device nodes as functions. Refused, loudly, until it is built.

use super::guard::remember;
use std::ffi::{c_char, c_int, c_ulong, c_void};

fn refuse(function: &str) {
    remember(format!("{function}: the file door is not built yet; use the object door (rm_alloc and its siblings)"));
    nix::errno::Errno::ENOSYS.set();
}

/// Opens `/dev/nvidiactl`, `/dev/nvidia0` or `/dev/nvidia-uvm`, as `open(2)` would. Returns -1 with errno ENOSYS: not
/// built yet.
#[unsafe(no_mangle)]
pub extern "C" fn rm_open(path: *const c_char, flags: c_int) -> c_int {
    let _ = (path, flags);
    refuse("rm_open");
    -1
}

/// One ioctl of a descriptor that `rm_open` returned, as `ioctl(2)`. Returns -1 with errno ENOSYS: not built yet.
#[unsafe(no_mangle)]
pub extern "C" fn rm_ioctl(fd: c_int, request: c_ulong, argp: *mut c_void) -> c_int {
    let _ = (fd, request, argp);
    refuse("rm_ioctl");
    -1
}

/// Maps a descriptor that `rm_open` returned, as `mmap(2)`. Returns MAP_FAILED with errno ENOSYS: not built yet.
#[unsafe(no_mangle)]
pub extern "C" fn rm_mmap(
    addr: *mut c_void,
    length: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let _ = (addr, length, prot, flags, fd, offset);
    refuse("rm_mmap");
    libc::MAP_FAILED
}

/// Closes a descriptor that `rm_open` returned, as `close(2)`. Returns -1 with errno ENOSYS: not built yet.
#[unsafe(no_mangle)]
pub extern "C" fn rm_close(fd: c_int) -> c_int {
    let _ = fd;
    refuse("rm_close");
    -1
}
