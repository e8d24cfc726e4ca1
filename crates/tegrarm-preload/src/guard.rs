//! Protects the program from this library. A panic of the library becomes a failed call, and its messages cannot end
//! the program.

use crate::next;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the part of an exported function that deals with the library's own nodes. Without this, a panic would abort the
/// program that called its libc.
///
/// Calls that are passed on to libc are not made in `body`. If a thread that waits in such a call is cancelled
/// (`pthread_cancel`), its stack is unwound, and that must not be stopped here.
#[inline]
pub fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        next::set_errno(libc::EIO);
        failed
    })
}

/// Writes a line to standard error if that is possible. Writing to a pipe that nobody reads would raise SIGPIPE, which
/// ends a program.
pub fn say(text: &[u8]) {
    const SIGNAL: c_int = libc::SIGPIPE;
    // SAFETY: plain calls on signal sets of this frame and on a line of known length; the mask that was valid before is put back.
    unsafe {
        let (mut set, mut mask, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, SIGNAL);
        libc::sigpending(&raw mut pending);
        let was_pending = libc::sigismember(&raw const pending, SIGNAL) == 1;
        if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut mask) != 0 {
            return;
        }
        let written = libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        if written == -1 && next::errno() == libc::EPIPE && !was_pending {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
    }
}
