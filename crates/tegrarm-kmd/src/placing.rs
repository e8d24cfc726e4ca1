//! Places shared anonymous memory where the GPU can have it at the same address.
//!
//! The GPU has addresses of 40 bits. A kernel with addresses of 47 or 48 bits puts new mappings far above them. A
//! frontend that registers its own pages asks for them at the address that the CPU has, so such pages have to lie low.
//!
//! The preload library compiles this file too. It allocates nothing and takes no lock, and it makes its system calls
//! directly, because the preload library has the names of libc's functions.

#![allow(unsafe_code)] // system calls, and the place of errno

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The start of the addresses that are given out. Below lie those that frontends choose themselves: they count up from
/// 0x10_0000_0000.
const START: u64 = 0x40_0000_0000;
/// The end of the addresses that are given out: 2^39.
const END: u64 = 1 << 39;
/// The next memory ends here. The addresses are given out from the top to the bottom, and then again from the top.
static NEXT: AtomicU64 = AtomicU64::new(END);

const PAGE: u64 = 4096;
/// From this size on memory is aligned, so that the kernel can use large pages for it.
const LARGE: u64 = 2 << 20;
/// The alignment of memory whose page size is the system's choice. No system has larger default pages with `MAP_HUGETLB`.
const LARGEST: u64 = 1 << 30;
/// Two mappings that were made at the same time can want the same addresses. The one that is refused tries again.
const ATTEMPTS: usize = 8;

/// Maps shared anonymous memory below 2^39. The arguments are those of `mmap(2)`.
///
/// The result is `None` if the call is of another kind, if the kernel would place the memory low by itself, or if there
/// is no room. The caller then makes its call as it is.
pub fn mmap(addr: *mut c_void, length: usize, prot: c_int, flags: c_int, offset: i64) -> Option<*mut c_void> {
    if !addr.is_null() || !is_shared_anonymous(flags) || (&raw const NEXT as u64) < END {
        return None;
    }
    let align = alignment(length as u64, flags);
    let len = (length as u64).checked_next_multiple_of(align.min(huge_page(flags).unwrap_or(PAGE)))?;
    let mut at = next(len, align)?;
    for _ in 0..ATTEMPTS {
        match map_exactly(at, length, prot, flags, offset) {
            Ok(address) => return Some(address),
            Err(libc::EEXIST) => at = highest_gap(len, align)?,
            Err(_) => return None,
        }
        NEXT.store(at, Ordering::Relaxed);
    }
    None
}

/// Whether flags ask for shared anonymous memory whose place is of no interest to the caller.
fn is_shared_anonymous(flags: c_int) -> bool {
    #[cfg(target_arch = "x86_64")]
    const PLACED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
    #[cfg(not(target_arch = "x86_64"))]
    const PLACED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    flags & libc::MAP_TYPE == libc::MAP_SHARED && flags & libc::MAP_ANONYMOUS != 0 && flags & PLACED == 0
}

/// The size of the pages that `MAP_HUGETLB` asks for. It is the largest if the system chooses.
fn huge_page(flags: c_int) -> Option<u64> {
    if flags & libc::MAP_HUGETLB == 0 {
        return None;
    }
    match flags >> libc::MAP_HUGE_SHIFT & libc::MAP_HUGE_MASK {
        0 => Some(LARGEST),
        bits => Some(1 << bits),
    }
}

fn alignment(length: u64, flags: c_int) -> u64 {
    huge_page(flags).unwrap_or(if length >= LARGE { LARGE } else { PAGE })
}

/// The highest aligned address at which `len` bytes end at or below `top`.
fn below(top: u64, len: u64, align: u64) -> Option<u64> {
    Some(top.checked_sub(len)? & !(align - 1)).filter(|at| *at >= START)
}

/// Takes the addresses below those that were given out last.
fn next(len: u64, align: u64) -> Option<u64> {
    let lower = |top| below(top, len, align).or_else(|| below(END, len, align));
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).ok().and_then(lower)
}

/// Maps memory at an address, if nothing is mapped there. An error is an errno, and this thread's own `errno` stays.
fn map_exactly(at: u64, length: usize, prot: c_int, flags: c_int, offset: i64) -> Result<*mut c_void, c_int> {
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a mapping of new memory that replaces nothing.
    let (address, error) =
        keeping_errno(|| unsafe { libc::syscall(libc::SYS_mmap, at, length, prot, flags, -1, offset) });
    if address == -1 {
        return Err(error);
    }
    if address as u64 == at {
        return Ok(at as *mut c_void);
    }
    // A kernel before 4.17 does not know the flag and took the address as a hint. The memory lies elsewhere, where it is
    // as good as that of the call that the caller makes now.
    // SAFETY: the mapping was just made, and no other code knows it.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_munmap, address, length) });
    Err(libc::EEXIST)
}

/// The highest room of `len` bytes between the mappings of this process.
#[cold]
fn highest_gap(len: u64, align: u64) -> Option<u64> {
    let (mut end, mut found) = (START, None);
    let room = |from: u64, to: u64| below(to, len, align).filter(|at| *at >= from);
    each_mapping(&mut |start, stop| {
        found = room(end, start.min(END)).or(found);
        end = end.max(stop);
    })?;
    room(end, END).or(found)
}

/// Calls a function with the first and the last address of each mapping of this process, in order. The result is `None`
/// if they cannot be read.
fn each_mapping(seen: &mut dyn FnMut(u64, u64)) -> Option<()> {
    const PATH: &[u8] = b"/proc/self/maps\0";
    // SAFETY: the path is NUL-terminated.
    let open =
        || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, PATH.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let (fd, _) = keeping_errno(open);
    if fd < 0 {
        return None;
    }
    let (mut lines, mut bytes) = (Lines::default(), [0u8; 4096]);
    let count = loop {
        // SAFETY: at most so many bytes are written to the array.
        let (count, _) =
            keeping_errno(|| unsafe { libc::syscall(libc::SYS_read, fd, bytes.as_mut_ptr(), bytes.len()) });
        match usize::try_from(count) {
            Ok(read @ 1..) => bytes[..read].iter().for_each(|byte| lines.take(*byte, seen)),
            _ => break count,
        }
    };
    // SAFETY: this descriptor was opened here.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_close, fd) });
    (count == 0).then_some(())
}

/// The lines of `/proc/self/maps`, byte by byte: `START-END ...`, in hexadecimal digits.
#[derive(Default)]
struct Lines {
    start: u64,
    number: u64,
    is_past: bool,
}

impl Lines {
    fn take(&mut self, byte: u8, seen: &mut dyn FnMut(u64, u64)) {
        match byte {
            b'\n' => *self = Lines::default(),
            _ if self.is_past => {}
            b'-' => (self.start, self.number) = (self.number, 0),
            b' ' => {
                seen(self.start, self.number);
                self.is_past = true;
            }
            digit => self.number = self.number << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0)),
        }
    }
}

/// Makes a system call. The result is its own, and the errno if it failed. The thread's `errno` stays as it was.
fn keeping_errno(call: impl FnOnce() -> c_long) -> (c_long, c_int) {
    // SAFETY: the location belongs to this thread and always exists.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the same.
    let before = unsafe { *place };
    let result = call();
    // SAFETY: the same.
    let after = unsafe { *place };
    // SAFETY: the same.
    unsafe { *place = before };
    (result, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mappings_of(text: &str) -> Vec<(u64, u64)> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        text.bytes().for_each(|byte| lines.take(byte, &mut |start, end| found.push((start, end))));
        found
    }

    #[test]
    fn lines_are_read_byte_by_byte() {
        let text = "1000-2000 r-xp 00000000 08:02 1 /a-b c\n4000000000-7fffffffff rw-s 0 0:0 0\n";
        assert_eq!(mappings_of(text), [(0x1000, 0x2000), (0x40_0000_0000, 0x7f_ffff_ffff)]);
    }
}
