//! Mappings that a forked child does not get.
//!
//! nvgpu and nvmap mark the mappings of their files as not to be copied (docs/hardware/nvgpu-overview.md#fork). A child
//! of fork(2) that continues to use its parent's pointers is therefore ended by SIGSEGV, and gets no explanation. The
//! library asks for the same on every kernel and remembers where its mappings are. In a child it puts pages there that
//! no access is allowed to. The first access prints a sentence that says what is wrong, and then ends the child as
//! before.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The start and the length of every mapping of this process that its children do not get.
type Ranges = BTreeMap<usize, usize>;

static RANGES: Mutex<Ranges> = Mutex::new(Ranges::new());

thread_local! {
    /// The lock of [`RANGES`] while its thread is inside fork(2). The parent and the child each release it.
    static HELD: Cell<Option<MutexGuard<'static, Ranges>>> = const { Cell::new(None) };
}

/// Notes that children do not get `len` bytes at `start`, and tells the system. The mapping may have replaced a part of
/// another one.
pub(crate) fn withhold(start: usize, len: usize) {
    watch_forks();
    // If this fails, the child inherits the mapping, and no guard is placed over it.
    // SAFETY: the advice changes what fork(2) copies, and nothing about the memory itself.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_DONTFORK) };
    let mut ranges = ranges();
    clear(&mut ranges, start, len);
    ranges.insert(start, len);
}

/// Forgets `len` bytes at `start`, and everything that was mapped over a part of them. They are about to be unmapped.
pub(crate) fn forget(start: usize, len: usize) {
    clear(&mut ranges(), start, len);
}

/// Takes `len` bytes at `start` out of the ranges. What a range has on either side of them stays.
fn clear(ranges: &mut Ranges, start: usize, len: usize) {
    let end = start.saturating_add(len);
    while let Some((at, size)) = ranges.range(..end).next_back().map(|(at, size)| (*at, *size)) {
        if at + size <= start {
            return;
        }
        ranges.remove(&at);
        if at + size > end {
            ranges.insert(end, at + size - end);
        }
        if at < start {
            ranges.insert(at, start - at);
        }
    }
}

fn ranges() -> MutexGuard<'static, Ranges> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay at their addresses for as long as this code is loaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    });
}

/// The process that called fork(2) last, as its child knows it.
static PARENT: AtomicU32 = AtomicU32::new(0);

extern "C" fn before() {
    PARENT.store(std::process::id(), Ordering::Relaxed);
    // When a thread ends, its variables are destroyed. The lock is then not held, and the child finds it as it was.
    let _ = HELD.try_with(|held| held.set(Some(ranges())));
}

extern "C" fn after() {
    let _ = HELD.try_with(Cell::take);
}

extern "C" fn in_child() {
    let Ok(Some(mut ranges)) = HELD.try_with(Cell::take) else { return };
    let mut guarded: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (start, len) in std::mem::take(&mut *ranges) {
        if guard(start, len) {
            guarded.push((start, len));
        }
    }
    drop(ranges);
    if !guarded.is_empty() {
        // The list is never freed, because a signal handler may read it at any time. A child of this child has its own
        // copy.
        GUARDED.store(Box::into_raw(Box::new(guarded)), Ordering::Release);
        answer_accesses();
    }
}

/// Puts pages without access at a range that is free. The result is false if the range is not free.
fn guard(start: usize, len: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the flags replace no mapping.
    let at = unsafe { libc::mmap(start as *mut libc::c_void, len, libc::PROT_NONE, flags, -1, 0) };
    if at != libc::MAP_FAILED && at as usize != start {
        // Kernels before 4.17 treat the address as a hint only.
        // SAFETY: the mapping was made just now, and no other code knows it.
        unsafe { libc::munmap(at, len) };
    }
    at as usize == start
}

/// The guarded ranges of this process.
static GUARDED: AtomicPtr<Vec<(usize, usize)>> = AtomicPtr::new(null_mut());
/// The action that SIGSEGV had before.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

fn answer_accesses() {
    // SAFETY: all-zero actions are valid, and `on_fault` is a handler of the kind that SA_SIGINFO asks for.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_fault as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGSEGV, &raw const new, &raw mut old) == 0 && old.sa_sigaction != new.sa_sigaction {
            BEFORE.store(Box::into_raw(Box::new(old)), Ordering::Release);
        }
    }
}

/// If a guarded page was accessed, prints which one. Then restores the earlier action of the signal. The access is
/// repeated and fails again. This calls only functions that a signal handler may call.
extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system gives a handler that was installed with SA_SIGINFO a valid `info`.
    let address = unsafe { (*info).si_addr() } as usize;
    let guarded = GUARDED.load(Ordering::Acquire);
    // SAFETY: the pointer is null or that of a vector which is never changed and never freed.
    let guarded = unsafe { guarded.as_ref() };
    let hit = guarded.and_then(|g| g.iter().find(|(start, len)| (*start..start + len).contains(&address)));
    if let Some((start, len)) = hit {
        let mut text = Text { bytes: [0; 512], len: 0 };
        // A text that does not fit is cut.
        let _ = writeln!(
            text,
            "libtegrarm: process {} was forked from process {}, whose GPU memory it does not have: {address:#x} lies in \
             {len:#x} bytes at {start:#x} that the parent had mapped. Open the device in the child.",
            std::process::id(),
            PARENT.load(Ordering::Relaxed),
        );
        // SAFETY: the buffer has the length that is passed. An error cannot be reported to anyone.
        unsafe { libc::write(2, text.bytes.as_ptr().cast(), text.len) };
    }
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: the action is the one that the system gave, or the default one, which is all zeros.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        let action = if before.is_null() { &raw const default } else { before.cast_const() };
        libc::sigaction(libc::SIGSEGV, action, null_mut());
    }
}

/// A text on the stack.
struct Text {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let n = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleared(before: &[(usize, usize)], start: usize, len: usize) -> Vec<(usize, usize)> {
        let mut ranges: Ranges = before.iter().copied().collect();
        clear(&mut ranges, start, len);
        ranges.into_iter().collect()
    }

    #[test]
    fn ranges_are_cut_as_mmap_and_munmap_cut_them() {
        let two = [(10, 10), (30, 10)];
        assert_eq!(cleared(&two, 20, 10), two);
        assert_eq!(cleared(&two, 0, 10), two);
        assert_eq!(cleared(&two, 10, 10), [(30, 10)]);
        assert_eq!(cleared(&two, 12, 3), [(10, 2), (15, 5), (30, 10)]);
        assert_eq!(cleared(&two, 15, 20), [(10, 5), (35, 5)]);
        assert_eq!(cleared(&two, 0, usize::MAX), []);
    }
}
