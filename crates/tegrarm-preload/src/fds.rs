//! Remembers which descriptors belong to the library's nodes.
//!
//! The table has one byte per number. It answers all calls on descriptors that are not a node's. Calls on a node's
//! descriptor are checked again by the core, which knows a file by its identity. A number that was closed and reused
//! unseen is therefore noticed and corrected.

use crate::paths::Node;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

/// The number of descriptors in the table. A higher number is looked up each time.
const SIZE: usize = 1 << 16;

/// The descriptor was not looked up yet. It may be closed, another file, or a node that was inherited through exec.
const UNKNOWN: u8 = 0;
const FOREIGN: u8 = 1;
const OURS: u8 = 2;

static TABLE: [AtomicU8; SIZE] = [const { AtomicU8::new(UNKNOWN) }; SIZE];

/// The start of the core's names for the files behind nodes, as links of `/proc/self/fd` show them.
const LABEL: &[u8] = b"/memfd:tegrarm:nvidia";

/// Whether a descriptor is a node's, as far as the table knows.
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

/// Whether the table says that a descriptor is a node's. This does not look the descriptor up.
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

/// Notes that a descriptor is a node's.
pub fn ours(fd: c_int) {
    set(fd, OURS);
}

/// Notes that a descriptor is not a node's.
pub fn foreign(fd: c_int) {
    set(fd, FOREIGN);
}

/// Notes that a descriptor was closed. Its number may get any file next, also through calls that this library does not
/// see.
#[inline]
pub fn forget(fd: c_int) {
    set(fd, UNKNOWN);
}

/// Looks up again a descriptor that was not a node's. A node's descriptor may have come through a raw system call or a
/// socket and may have got a number that the table knew.
#[cold]
pub fn is_ours_by_now(fd: c_int) -> bool {
    fd >= 0 && look(fd, TABLE.get(fd as usize))
}

fn set(fd: c_int, what: u8) {
    if let Some(entry) = TABLE.get(fd as usize) {
        entry.store(what, Ordering::Relaxed);
    }
}

/// The node behind a node's descriptor. It is `None` if another file was lent to the descriptor meanwhile.
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

/// The target of the link `/proc/self/fd/N`, as much of it as fits.
fn link(fd: c_int, target: &mut [u8]) -> Option<&[u8]> {
    let mut name = [0u8; 32];
    let path = link_name(fd, &mut name);
    let errno = crate::next::errno();
    // SAFETY: the path is NUL-terminated, and at most `target.len()` bytes are written.
    let len = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    crate::next::set_errno(errno);
    target.get(..usize::try_from(len).ok()?)
}

/// The path `/proc/self/fd/N`, made without allocating.
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
