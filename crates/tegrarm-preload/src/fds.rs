//! Which descriptors are ours.
//!
//! One byte per number. It answers every call on other people's descriptors; calls on ours are checked again by the
//! core, which knows a file from its identity, so a number that changed hands unseen is found out and corrected.

use crate::paths::Node;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

/// Descriptors the table has room for. Higher numbers are asked about one by one.
const SIZE: usize = 1 << 16;

/// Not looked at yet: nothing, somebody else's, or inherited through exec.
const UNKNOWN: u8 = 0;
const FOREIGN: u8 = 1;
const OURS: u8 = 2;

static TABLE: [AtomicU8; SIZE] = [const { AtomicU8::new(UNKNOWN) }; SIZE];

/// What the core calls the files behind our descriptors, as links of `/proc/self/fd` show it.
const LABEL: &[u8] = b"/memfd:tegrarm:nvidia";

/// Whether a descriptor is ours, as far as is known.
#[inline]
pub fn is_ours(fd: c_int) -> bool {
    match TABLE.get(fd as usize) {
        Some(entry) => match entry.load(Ordering::Relaxed) {
            FOREIGN => false,
            OURS => true,
            _ => look(fd, Some(entry)),
        },
        None => fd >= 0 && look(fd, None),
    }
}

/// Whether a descriptor is known to be ours; does not look.
#[inline]
pub fn is_known(fd: c_int) -> bool {
    TABLE.get(fd as usize).map_or(fd >= SIZE as c_int, |entry| entry.load(Ordering::Relaxed) == OURS)
}

#[cold]
fn look(fd: c_int, entry: Option<&AtomicU8>) -> bool {
    let mut target = [0u8; 64];
    let ours = link(fd, &mut target).is_some_and(|name| name.starts_with(LABEL));
    if let Some(entry) = entry {
        entry.store(if ours { OURS } else { FOREIGN }, Ordering::Relaxed);
    }
    ours
}

/// A descriptor became one of ours.
pub fn ours(fd: c_int) {
    set(fd, OURS);
}

/// A descriptor became somebody else's.
pub fn foreign(fd: c_int) {
    set(fd, FOREIGN);
}

/// A descriptor was closed: its number may become anybody's, also by ways that nobody here sees.
#[inline]
pub fn forget(fd: c_int) {
    set(fd, UNKNOWN);
}

/// Looks at a descriptor again that was somebody else's: one of ours may have come by a raw system call or through a
/// socket, under a number that was known.
#[cold]
pub fn is_ours_by_now(fd: c_int) -> bool {
    fd >= 0 && look(fd, TABLE.get(fd as usize))
}

fn set(fd: c_int, what: u8) {
    if let Some(entry) = TABLE.get(fd as usize) {
        entry.store(what, Ordering::Relaxed);
    }
}

/// The node behind one of our descriptors; `None` when it was lent something else meanwhile.
#[cold]
pub fn node(fd: c_int) -> Option<Node> {
    let mut target = [0u8; 64];
    let name = link(fd, &mut target)?.strip_prefix(b"/memfd:tegrarm:")?.strip_suffix(b" (deleted)")?;
    match name {
        b"nvidiactl" => Some(Node::Control),
        b"nvidia0" => Some(Node::Gpu),
        b"nvidia-uvm" => Some(Node::Uvm),
        b"nvidia-uvm-tools" => Some(Node::UvmTools),
        _ => None,
    }
}

/// Where `/proc/self/fd/N` points, as much of it as fits.
fn link(fd: c_int, target: &mut [u8]) -> Option<&[u8]> {
    let mut name = [0u8; 32];
    let path = link_name(fd, &mut name);
    let errno = crate::next::errno();
    // SAFETY: the path is NUL-terminated; at most `target.len()` bytes are written.
    let len = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    crate::next::set_errno(errno);
    target.get(..usize::try_from(len).ok()?)
}

/// `/proc/self/fd/N`, written without allocating.
pub fn link_name(fd: c_int, name: &mut [u8; 32]) -> &CStr {
    const START: &[u8] = b"/proc/self/fd/";
    name[..START.len()].copy_from_slice(START);
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (fd.max(0) as u32, 0);
    loop {
        digits[count] = b'0' + (rest % 10) as u8;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for (i, digit) in digits[..count].iter().rev().enumerate() {
        name[START.len() + i] = *digit;
    }
    name[START.len() + count] = 0;
    CStr::from_bytes_until_nul(name).unwrap_or(c"")
}
