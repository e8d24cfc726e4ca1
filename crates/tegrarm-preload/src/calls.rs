//! The functions that open, use, duplicate and close descriptors.

use crate::core;
use crate::{fds, next, paths, placing};
use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

/// Defines functions that take a path. They open the library's nodes themselves and pass other paths on.
macro_rules! opens {
    ($( fn $name:ident($($arg:ident: $t:ty),*) = $node:expr, $flags:ident; )*) => {
        $(
            /// Opens the node at the path. A path that is not a node's is passed on to libc.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $t),*) -> c_int {
                // SAFETY: the path is NUL-terminated, because libc's function needs that too.
                match unsafe { $node } {
                    // SAFETY: this passes the caller's call on.
                    None => unsafe { next::$name($($arg),*) },
                    Some(node) => core::open(node, $flags),
                }
            }
        )*
    };
}

opens! {
    fn open(path: *const c_char, flags: c_int, mode: c_uint) = paths::node(path), flags;
    fn open64(path: *const c_char, flags: c_int, mode: c_uint) = paths::node(path), flags;
    fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) = paths::node_at(dir, path), flags;
    fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) = paths::node_at(dir, path), flags;
    fn __open_2(path: *const c_char, flags: c_int) = paths::node(path), flags;
    fn __open64_2(path: *const c_char, flags: c_int) = paths::node(path), flags;
    fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) = paths::node_at(dir, path), flags;
    fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) = paths::node_at(dir, path), flags;
}

/// Answers an escape or UVM call on a descriptor of a node. Other ioctls are passed on.
///
/// # Safety
/// The same as for `ioctl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    if fds::is_ours(fd) {
        return core::ioctl(fd, request, arg);
    }
    let errno = next::errno();
    // SAFETY: this passes the caller's call on.
    let result = unsafe { next::ioctl(fd, request, arg) };
    if result == -1 && next::errno() == libc::ENOTTY && !core::is_inside() && fds::is_ours_by_now(fd) {
        next::set_errno(errno);
        return core::ioctl(fd, request, arg);
    }
    result
}

/// Defines functions that map a descriptor, or memory.
macro_rules! maps {
    ($( fn $name:ident(offset: $offset:ty); )*) => {
        $(
            /// Maps what RM_MAP_MEMORY gave to a node's descriptor. Other descriptors are passed on. A node that was
            /// given nothing cannot be mapped; the program must not find out that such a node is an empty file here.
            ///
            /// Shared memory without a file and without an address is placed where the GPU can have it at the same
            /// address, because a program may register it for the GPU later.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                addr: *mut c_void,
                length: usize,
                prot: c_int,
                flags: c_int,
                fd: c_int,
                offset: $offset,
            ) -> *mut c_void {
                if fd >= 0 && flags & libc::MAP_ANONYMOUS == 0 && is_bare_node(fd) {
                    next::set_errno(libc::EINVAL);
                    return libc::MAP_FAILED;
                }
                if !core::is_inside()
                    && let Some(address) = placing::mmap(addr, length, prot, flags, offset)
                {
                    return address;
                }
                // SAFETY: this passes the caller's call on.
                unsafe { next::$name(addr, length, prot, flags, fd, offset) }
            }
        )*
    };
}

maps! {
    fn mmap(offset: libc::off_t);
    fn mmap64(offset: libc::off64_t);
}

/// Whether a descriptor belongs to a node and was given nothing to map.
fn is_bare_node(fd: c_int) -> bool {
    !core::is_inside() && fds::is_ours(fd) && fds::node(fd).is_some()
}

/// Closes a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: c_int) -> c_int {
    if fds::is_known(fd) && !core::is_inside() && core::is_owner() {
        // This comes first: as soon as the descriptor is closed, another thread may get the same number for another
        // file.
        fds::forget(fd);
        return core::close(fd);
    }
    // A child of vfork(2) may do this too, although it changes its parent's table: the number is only looked up again.
    if !fds::is_known(fd) {
        fds::forget(fd);
    }
    // SAFETY: this passes the caller's call on.
    unsafe { next::close(fd) }
}

/// Notes a duplicate. The duplicate of a node's descriptor is a node's descriptor too.
fn duplicated(old: c_int, new: c_int) -> c_int {
    if new >= 0 && fds::is_known(old) && !core::is_inside() && core::is_owner() {
        fds::ours(new);
    }
    new
}

/// Duplicates a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: any number may be duplicated.
    duplicated(fd, unsafe { next::dup(fd) })
}

/// Duplicates a descriptor with some commands. Other commands are passed on.
///
/// # Safety
/// The same as for `fcntl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, cmd: c_int, arg: c_long) -> c_int {
    // SAFETY: this passes the caller's call on.
    let result = unsafe { next::fcntl(fd, cmd, arg) };
    if is_duplication(cmd) { duplicated(fd, result) } else { result }
}

/// Duplicates a descriptor with some commands. Other commands are passed on.
///
/// # Safety
/// The same as for `fcntl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, cmd: c_int, arg: c_long) -> c_int {
    // SAFETY: this passes the caller's call on.
    let result = unsafe { next::fcntl64(fd, cmd, arg) };
    if is_duplication(cmd) { duplicated(fd, result) } else { result }
}

fn is_duplication(cmd: c_int) -> bool {
    matches!(cmd, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)
}

/// Replaces a descriptor. If this closes a node's descriptor, the core must learn it, so a copy of that descriptor is
/// kept for the core to close.
fn replace(old: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if core::is_inside() || !core::is_owner() {
        return call();
    }
    let closes_ours = old != new && fds::is_known(new);
    // SAFETY: any number may be duplicated.
    let copy = if closes_ours { unsafe { next::fcntl(new, libc::F_DUPFD_CLOEXEC, 0) } } else { -1 };
    let result = call();
    if result >= 0 {
        match (fds::is_known(old), closes_ours) {
            (true, _) => fds::ours(new),
            (false, _) => fds::forget(new),
        }
    }
    if copy >= 0 {
        let errno = next::errno();
        core::close(copy);
        next::set_errno(errno);
    }
    result
}

/// Replaces a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: this passes the caller's call on.
    replace(old, new, || unsafe { next::dup2(old, new) })
}

/// Replaces a descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: this passes the caller's call on.
    replace(old, new, || unsafe { next::dup3(old, new, flags) })
}
