//! The functions of libc, or of another library that was preloaded after this one.
//!
//! Each function is looked up once, on first use. Looking up may allocate, and an allocator may open files. A call that
//! comes back here on the same thread during that time is made as a plain system call.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// One function of the next library.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

/// The name was looked up, and no such function exists.
const MISSING: *mut c_void = std::ptr::without_provenance_mut(1);

thread_local! {
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

impl Next {
    /// Makes the entry of the function with this name.
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The address of the function. It is `None` if there is no such function, and while it is being looked up.
    #[inline]
    pub fn get(&self) -> Option<*mut c_void> {
        let found = self.found.load(Ordering::Acquire);
        if found.is_null() { self.look() } else { Some(found).filter(|f| *f != MISSING) }
    }

    #[cold]
    fn look(&self) -> Option<*mut c_void> {
        if LOOKING.replace(true) {
            return None;
        }
        let errno = errno();
        // SAFETY: the name is NUL-terminated, and looking up changes nothing.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        set_errno(errno);
        LOOKING.set(false);
        if found.is_null() {
            found = MISSING;
        }
        self.found.store(found, Ordering::Release);
        Some(found).filter(|f| *f != MISSING)
    }
}

/// Declares the functions of the next library, each with a replacement for the time in which it cannot be found.
macro_rules! next {
    ($( $(#[$doc:meta])* fn $name:ident($($arg:ident: $t:ty),*) -> $r:ty = $else:expr; )*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The same as for the function itself.
            #[inline]
            pub unsafe fn $name($($arg: $t),*) -> $r {
                static NEXT: Next = Next::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without NUL"),
                });
                match NEXT.get() {
                    Some(f) => {
                        // SAFETY: the symbol is the function of this name, and this is its C prototype.
                        let f: unsafe extern "C" fn($($t),*) -> $r = unsafe { std::mem::transmute(f) };
                        // SAFETY: the arguments are what the function of this name takes, as this one asks of its caller.
                        unsafe { f($($arg),*) }
                    }
                    // SAFETY: the system call has the same meaning, and its arguments are those that this function asks
                    // of its caller.
                    None => unsafe { $else },
                }
            }
        )*
    };
}

/// This thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the location belongs to this thread and always exists.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: the location belongs to this thread and always exists.
    unsafe { *libc::__errno_location() = value };
}

/// Fails as a system call does: sets `errno` and returns -1.
#[cold]
pub fn fail(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

/// The replacement of a function that this libc does not have, so that no program really calls it. It is unsafe because
/// the functions that it replaces are.
unsafe fn no_such() -> c_int {
    fail(libc::ENOSYS)
}

/// Makes a `dup2(2)`. AArch64 does not have this system call.
unsafe fn plain_dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: any numbers may be passed, and the caller asked to replace `new`.
    unsafe {
        if old == new {
            return if libc::syscall(libc::SYS_fcntl, old, libc::F_GETFD) < 0 { -1 } else { new };
        }
        libc::syscall(libc::SYS_dup3, old, new, 0) as c_int
    }
}

/// Makes an `mmap(2)` while libc's own function cannot be found.
unsafe fn plain_mmap(
    addr: *mut c_void,
    length: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: this passes the caller's call on.
    unsafe { libc::syscall(libc::SYS_mmap, addr, length, prot, flags, fd, offset) as *mut c_void }
}

next! {
    /// `mmap(2)`.
    fn mmap(addr: *mut c_void, length: usize, prot: c_int, flags: c_int, fd: c_int, offset: libc::off_t) -> *mut c_void =
        plain_mmap(addr, length, prot, flags, fd, offset);
    /// `mmap64`.
    fn mmap64(addr: *mut c_void, length: usize, prot: c_int, flags: c_int, fd: c_int, offset: libc::off64_t) -> *mut c_void =
        plain_mmap(addr, length, prot, flags, fd, offset);
    /// `open(2)`.
    fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int;
    /// `open64`.
    fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int;
    /// `openat(2)`.
    fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        libc::syscall(libc::SYS_openat, dir, path, flags, mode) as c_int;
    /// `openat64`.
    fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int =
        libc::syscall(libc::SYS_openat, dir, path, flags, mode) as c_int;
    /// `open` of programs built with `_FORTIFY_SOURCE`.
    fn __open_2(path: *const c_char, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) as c_int;
    /// The same as `__open_2`.
    fn __open64_2(path: *const c_char, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) as c_int;
    /// The same as `__open_2`.
    fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_openat, dir, path, flags, 0) as c_int;
    /// The same as `__open_2`.
    fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_openat, dir, path, flags, 0) as c_int;
    /// `ioctl(2)`.
    fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int =
        libc::syscall(libc::SYS_ioctl, fd, request, arg) as c_int;
    /// `close(2)`.
    fn close(fd: c_int) -> c_int = libc::syscall(libc::SYS_close, fd) as c_int;
    /// `dup(2)`.
    fn dup(fd: c_int) -> c_int = libc::syscall(libc::SYS_dup, fd) as c_int;
    /// `dup2(2)`.
    fn dup2(old: c_int, new: c_int) -> c_int = plain_dup2(old, new);
    /// `dup3(2)`.
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = libc::syscall(libc::SYS_dup3, old, new, flags) as c_int;
    /// `fcntl(2)`.
    fn fcntl(fd: c_int, cmd: c_int, arg: c_long) -> c_int = libc::syscall(libc::SYS_fcntl, fd, cmd, arg) as c_int;
    /// `fcntl64`.
    fn fcntl64(fd: c_int, cmd: c_int, arg: c_long) -> c_int = libc::syscall(libc::SYS_fcntl, fd, cmd, arg) as c_int;
    /// `access(2)`.
    fn access(path: *const c_char, mode: c_int) -> c_int =
        libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, mode) as c_int;
    /// `faccessat(3)`.
    fn faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int = no_such();
    /// `euidaccess(3)`.
    fn euidaccess(path: *const c_char, mode: c_int) -> c_int = no_such();
    /// `eaccess(3)`.
    fn eaccess(path: *const c_char, mode: c_int) -> c_int = no_such();
    /// `stat(2)`.
    fn stat(path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// `stat64`.
    fn stat64(path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// `lstat(2)`.
    fn lstat(path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// `lstat64`.
    fn lstat64(path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// `fstat(2)`.
    fn fstat(fd: c_int, out: *mut libc::stat) -> c_int = libc::syscall(libc::SYS_fstat, fd, out) as c_int;
    /// `fstat64`.
    fn fstat64(fd: c_int, out: *mut libc::stat) -> c_int = libc::syscall(libc::SYS_fstat, fd, out) as c_int;
    /// `fstatat(2)`.
    fn fstatat(dir: c_int, path: *const c_char, out: *mut libc::stat, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_newfstatat, dir, path, out, flags) as c_int;
    /// `fstatat64`.
    fn fstatat64(dir: c_int, path: *const c_char, out: *mut libc::stat, flags: c_int) -> c_int =
        libc::syscall(libc::SYS_newfstatat, dir, path, out, flags) as c_int;
    /// `statx(2)`.
    fn statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut libc::statx) -> c_int =
        libc::syscall(libc::SYS_statx, dir, path, flags, mask, out) as c_int;
    /// `stat` of programs built before glibc 2.33.
    fn __xstat(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __xstat64(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __lxstat(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __lxstat64(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __fxstat(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __fxstat64(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int = no_such();
    /// The same as `__xstat`.
    fn __fxstatat(version: c_int, dir: c_int, path: *const c_char, out: *mut libc::stat, flags: c_int) -> c_int =
        no_such();
    /// The same as `__xstat`.
    fn __fxstatat64(version: c_int, dir: c_int, path: *const c_char, out: *mut libc::stat, flags: c_int) -> c_int =
        no_such();
}
