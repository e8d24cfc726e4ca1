//! Sleeping until a word changes: futex(2).
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Sleeps while the word is `seen`, until somebody wakes it or `end` has come. It may return earlier, so the caller looks again.
pub fn wait(word: &AtomicU32, seen: u32, end: Option<Instant>) {
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        return;
    }
    let left = left.map(|left| libc::timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let limit = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the limit live longer than the call. The kernel reads both and writes neither.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, seen, limit) };
}

/// Wakes at most so many threads that sleep at the word.
pub fn wake(word: &AtomicU32, most: i32) {
    // SAFETY: the kernel uses the address only as a name, and wakes whoever sleeps under it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, most) };
}
