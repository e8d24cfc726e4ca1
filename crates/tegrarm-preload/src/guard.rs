//! What stands between the program and this library: a panic of ours is a failed call, and what we say cannot end the program.

use crate::next;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what an export does about our own nodes. A panic would otherwise abort the program that called its libc.
///
/// Calls that are passed on to libc stay outside: cancelling a thread that waits in one (`pthread_cancel`) unwinds it, which must
/// not be stopped here.
#[inline]
pub fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        next::set_errno(libc::EIO);
        failed
    })
}

/// Writes a line to standard error, if that can be done. A pipe that nobody reads would be SIGPIPE, which ends a program.
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
