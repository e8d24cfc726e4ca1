//! The functions that ask about files. They say that the library's nodes exist and are character devices that every
//! user may read and write.

use crate::paths::{self, Node};
use crate::{core, fds, next};
use std::ffi::{c_char, c_int, c_uint};

/// The access bits of the nodes.
const MODE: u32 = 0o666;
/// The `st_dev` of the file system that `/dev` usually has.
const DEVTMPFS: libc::dev_t = 6;

/// Changes a result so that it describes a character device.
///
/// # Safety
/// `out` is NULL or valid for writes of a filled or zeroed structure.
unsafe fn describe(node: Node, out: *mut libc::stat) -> c_int {
    if out.is_null() {
        return next::fail(libc::EFAULT);
    }
    // SAFETY: `out` is not NULL, so it is valid for writes, as this function asks of its caller.
    unsafe {
        (*out).st_mode = libc::S_IFCHR | MODE;
        (*out).st_rdev = node.device();
        (*out).st_size = 0;
        (*out).st_blocks = 0;
        (*out).st_nlink = 1;
        (*out).st_blksize = 4096;
    }
    0
}

/// Answers a call about a path that is a node's or hidden.
///
/// # Safety
/// `out` is NULL or valid for writes.
#[cold]
unsafe fn answer(node: Node, out: *mut libc::stat) -> c_int {
    if node == Node::Absent {
        return next::fail(libc::ENOENT);
    }
    if !out.is_null() {
        // SAFETY: `out` is not NULL, so it is valid for writes, as this function asks of its caller, and it is plain
        // data.
        unsafe {
            out.write_bytes(0, 1);
            (*out).st_dev = DEVTMPFS;
            (*out).st_ino = node.device();
        }
    }
    // SAFETY: `out` is NULL, or it was just zeroed and is valid for writes, as this function asks of its caller.
    unsafe { describe(node, out) }
}

/// The node behind a descriptor, if the caller is not the core itself.
#[inline]
fn node_of(fd: c_int) -> Option<Node> {
    if fds::is_known(fd) && !core::is_inside() { fds::node(fd) } else { None }
}

/// Defines functions that fill a `struct stat`: those of a path, and those of a descriptor.
macro_rules! stats {
    ($( path fn $name:ident($($arg:ident: $t:ty),*) = $node:expr; )* $( fd fn $fd_name:ident($($fd_arg:ident: $fd_t:ty),*) = $of:expr; )*) => {
        $(
            /// Tells what kind of file a path names.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $t),*, out: *mut libc::stat) -> c_int {
                // SAFETY: the path is NUL-terminated, because libc's function needs that too.
                match unsafe { $node } {
                    // SAFETY: this passes the caller's call on.
                    None => unsafe { next::$name($($arg),*, out) },
                    // SAFETY: this is the caller's structure.
                    Some(node) => unsafe { answer(node, out) },
                }
            }
        )*
        $(
            /// Tells what kind of file a descriptor refers to.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $fd_name($($fd_arg: $fd_t),*, out: *mut libc::stat) -> c_int {
                // SAFETY: this passes the caller's call on.
                let result = unsafe { next::$fd_name($($fd_arg),*, out) };
                match node_of($of).filter(|_| result == 0) {
                    None => result,
                    // SAFETY: this is the caller's structure, which is filled.
                    Some(node) => unsafe { describe(node, out) },
                }
            }
        )*
    };
}

stats! {
    path fn stat(path: *const c_char) = paths::node(path);
    path fn stat64(path: *const c_char) = paths::node(path);
    path fn lstat(path: *const c_char) = paths::node(path);
    path fn lstat64(path: *const c_char) = paths::node(path);
    path fn __xstat(version: c_int, path: *const c_char) = paths::node(path);
    path fn __xstat64(version: c_int, path: *const c_char) = paths::node(path);
    path fn __lxstat(version: c_int, path: *const c_char) = paths::node(path);
    path fn __lxstat64(version: c_int, path: *const c_char) = paths::node(path);
    fd fn fstat(fd: c_int) = fd;
    fd fn fstat64(fd: c_int) = fd;
    fd fn __fxstat(version: c_int, fd: c_int) = fd;
    fd fn __fxstat64(version: c_int, fd: c_int) = fd;
}

/// Defines functions that name a file by a directory and a path. With an empty path, the descriptor of the directory is
/// the file itself.
macro_rules! stats_at {
    ($( fn $name:ident($($version:ident: c_int,)?); )*) => {
        $(
            /// Tells what kind of file a path names. With an empty path, the descriptor is meant.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                $($version: c_int,)?
                dir: c_int,
                path: *const c_char,
                out: *mut libc::stat,
                flags: c_int,
            ) -> c_int {
                // SAFETY: the path is NUL-terminated, because libc's function needs that too.
                if let Some(node) = unsafe { paths::node_at(dir, path) } {
                    // SAFETY: this is the caller's structure.
                    return unsafe { answer(node, out) };
                }
                // SAFETY: this passes the caller's call on.
                let result = unsafe { next::$name($($version,)? dir, path, out, flags) };
                // SAFETY: the path is NULL or NUL-terminated, because libc's function needs that too.
                match unsafe { itself(dir, path, flags) }.filter(|_| result == 0) {
                    None => result,
                    // SAFETY: this is the caller's structure, which is filled.
                    Some(node) => unsafe { describe(node, out) },
                }
            }
        )*
    };
}

stats_at! {
    fn fstatat();
    fn fstatat64();
    fn __fxstatat(version: c_int,);
    fn __fxstatat64(version: c_int,);
}

/// The node behind a descriptor, for a call that has an empty path.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
unsafe fn itself(dir: c_int, path: *const c_char, flags: c_int) -> Option<Node> {
    // SAFETY: `path` is not NULL, so it is NUL-terminated, as this function asks of its caller.
    let empty = flags & libc::AT_EMPTY_PATH != 0 && !path.is_null() && unsafe { *path } == 0;
    if empty { node_of(dir) } else { None }
}

/// Tells what kind of file a path names. With an empty path, the descriptor is meant.
///
/// # Safety
/// The same as for `statx(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    out: *mut libc::statx,
) -> c_int {
    // SAFETY: the path is NUL-terminated, because libc's function needs that too.
    let by_path = unsafe { paths::node_at(dir, path) };
    let node = match by_path {
        Some(Node::Absent) => return next::fail(libc::ENOENT),
        Some(node) => {
            if out.is_null() {
                return next::fail(libc::EFAULT);
            }
            // SAFETY: this is the caller's structure, which is plain data.
            unsafe { out.write_bytes(0, 1) };
            node
        }
        None => {
            // SAFETY: this passes the caller's call on.
            let result = unsafe { next::statx(dir, path, flags, mask, out) };
            // SAFETY: the path is NULL or NUL-terminated, because libc's function needs that too.
            match unsafe { itself(dir, path, flags) }.filter(|_| result == 0) {
                None => return result,
                Some(node) => node,
            }
        }
    };
    // SAFETY: this is the caller's structure, which is zeroed or filled.
    unsafe {
        (*out).stx_mask |= libc::STATX_BASIC_STATS;
        (*out).stx_mode = (libc::S_IFCHR | MODE) as u16;
        (*out).stx_rdev_major = libc::major(node.device());
        (*out).stx_rdev_minor = libc::minor(node.device());
        (*out).stx_nlink = 1;
        (*out).stx_size = 0;
    }
    0
}

/// Defines functions that ask whether a path may be used.
macro_rules! accesses {
    ($( fn $name:ident($($arg:ident: $t:ty),*) = $node:expr, $mode:ident; )*) => {
        $(
            /// Tells whether a path may be used. The library's nodes may be read and written.
            ///
            /// # Safety
            /// The same as for libc's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $t),*) -> c_int {
                // SAFETY: the path is NUL-terminated, because libc's function needs that too.
                match unsafe { $node } {
                    // SAFETY: this passes the caller's call on.
                    None => unsafe { next::$name($($arg),*) },
                    Some(Node::Absent) => next::fail(libc::ENOENT),
                    Some(_) if $mode & libc::X_OK != 0 => next::fail(libc::EACCES),
                    Some(_) => 0,
                }
            }
        )*
    };
}

accesses! {
    fn access(path: *const c_char, mode: c_int) = paths::node(path), mode;
    fn faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) = paths::node_at(dir, path), mode;
    fn euidaccess(path: *const c_char, mode: c_int) = paths::node(path), mode;
    fn eaccess(path: *const c_char, mode: c_int) = paths::node(path), mode;
}
