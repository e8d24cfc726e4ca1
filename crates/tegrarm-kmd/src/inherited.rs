//! Mappings that a forked child does not get.
//!
//! nvgpu and nvmap mark the mappings of their files as not to be copied (docs/hardware/nvgpu-overview.md#fork). A child
//! of fork(2) that continues to use its parent's pointers is therefore ended by SIGSEGV, and gets no explanation. The
//! library asks for the same on every kernel and remembers where its mappings are. In a child it puts pages there that
//! no access is allowed to. The first access prints a sentence that says what is wrong, and then ends the child as
//! before.
#![allow(unsafe_code)]

use crate::maps::{self, MMPermissions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use tegrarm_lock::{ForkOnce, ProcessMutex};

/// The start and the length of every mapping of this process that its children do not get.
type Ranges = BTreeMap<usize, usize>;

/// What is known of the mappings. A program may unmap some of them by itself, which the library does not see.
struct Withheld {
    ranges: Ranges,
    /// With this many ranges, those that are not mapped any more are taken out. Then there may be twice as many as were
    /// left, so that the work for each mapping stays the same on average.
    sweep_at: usize,
}

/// The library does not look for ranges that are not mapped any more while there are fewer.
const FEW: usize = 256;

static RANGES: ProcessMutex<Withheld> = ProcessMutex::new(Withheld { ranges: Ranges::new(), sweep_at: FEW });

/// Notes that children do not get `len` bytes at `start`, and tells the system. The mapping may have replaced a part of
/// another one.
pub(crate) fn withhold(start: usize, len: usize) {
    watch_forks();
    // If this fails, the child inherits the mapping, and no guard is placed over it.
    // SAFETY: the advice changes what fork(2) copies, and nothing about the memory itself.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_DONTFORK) };
    let mut withheld = RANGES.lock();
    clear(&mut withheld.ranges, start, len);
    withheld.ranges.insert(start, len);
    if withheld.ranges.len() >= withheld.sweep_at {
        withheld.sweep();
    }
}

/// Forgets `len` bytes at `start`, and everything that was mapped over a part of them. They are about to be unmapped.
pub(crate) fn forget(start: usize, len: usize) {
    clear(&mut RANGES.lock().ranges, start, len);
}

impl Withheld {
    /// Takes out what is not mapped any more. Where `/proc` does not exist, everything stays.
    fn sweep(&mut self) {
        let shared = maps::own().into_iter().filter(|map| map.perms.contains(MMPermissions::SHARED));
        let mapped: Vec<(usize, usize)> = shared.map(|map| (map.address.0 as usize, map.address.1 as usize)).collect();
        if !mapped.is_empty() {
            self.ranges = still_mapped(&self.ranges, &mapped);
        }
        self.sweep_at = FEW.max(2 * self.ranges.len());
    }
}

/// The parts of the ranges that lie in mappings, which are given by their starts and ends and are sorted.
fn still_mapped(ranges: &Ranges, mapped: &[(usize, usize)]) -> Ranges {
    let mut kept = Ranges::new();
    for (&start, &len) in ranges {
        let end = start + len;
        let first = mapped.partition_point(|(_, mapped_end)| *mapped_end <= start);
        let mut piece: Option<(usize, usize)> = None;
        for &(from, to) in mapped[first..].iter().take_while(|(from, _)| *from < end) {
            let (from, to) = (from.max(start), to.min(end));
            piece = match piece {
                Some((begin, until)) if until == from => Some((begin, to)),
                before => {
                    kept.extend(before.map(|(begin, until)| (begin, until - begin)));
                    Some((from, to))
                }
            };
        }
        kept.extend(piece.map(|(begin, until)| (begin, until - begin)));
    }
    kept
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

fn watch_forks() {
    static WATCHED: ForkOnce = ForkOnce::new();
    WATCHED.call(|| {
        // A child runs its handlers in the order in which they were given, so it finds the mutex free in `in_child`.
        RANGES.watch();
        // SAFETY: the functions stay at their addresses for as long as this code is loaded.
        unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
    });
}

/// The process that called fork(2) last, as its child knows it.
static PARENT: AtomicU32 = AtomicU32::new(0);

extern "C" fn before() {
    PARENT.store(std::process::id(), Ordering::Relaxed);
}

extern "C" fn in_child() {
    let ranges = std::mem::take(&mut RANGES.lock().ranges);
    let guarded: Vec<(usize, usize)> = ranges.into_iter().filter(|(start, len)| guard(*start, *len)).collect();
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

    #[test]
    fn only_what_is_mapped_stays() {
        let stays = |ranges: &[(usize, usize)], mapped: &[(usize, usize)]| -> Vec<(usize, usize)> {
            still_mapped(&ranges.iter().copied().collect(), mapped).into_iter().collect()
        };
        let two = [(10, 10), (30, 10)];
        assert_eq!(stays(&two, &[(0, 100)]), two);
        assert_eq!(stays(&two, &[(10, 15), (15, 20), (30, 40)]), two, "one range in two mappings");
        assert_eq!(stays(&two, &[(0, 10), (20, 30), (40, 50)]), []);
        assert_eq!(stays(&two, &[(0, 12), (14, 16), (18, 35)]), [(10, 2), (14, 2), (18, 2), (30, 5)]);
    }

    /// A program unmaps memory of its own that was given to the GPU, and the library does not see that.
    #[test]
    fn ranges_that_a_program_unmaps_are_forgotten() {
        use crate::{Mapping, Placement, Prot};
        use nix::sys::memfd::{MFdFlags, memfd_create};
        use std::os::fd::AsFd;
        let file = memfd_create("withheld", MFdFlags::MFD_CLOEXEC).expect("a file");
        nix::unistd::ftruncate(&file, 4096).expect("room");
        // Only this test uses addresses from here on.
        let map = |page: usize| {
            let at = Placement::ExactlyIfFree(0x6_0000_0000 + 2 * page * 4096);
            let map = Mapping::new(file.as_fd(), at, 4096, Prot::ReadWrite, 0).expect("mapped");
            map.withheld_from_children().leak()
        };
        let stays = map(0);
        for page in 1..20 * FEW {
            // SAFETY: the range was leaked just now. It is one page, and no other code knows it.
            unsafe { libc::munmap(map(page) as *mut libc::c_void, 4096) };
        }
        assert!(RANGES.lock().ranges.len() <= 2 * FEW, "{} ranges", RANGES.lock().ranges.len());
        assert_eq!(RANGES.lock().ranges.get(&stays), Some(&4096));
    }
}
