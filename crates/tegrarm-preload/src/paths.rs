//! Which paths are ours.

use std::ffi::{CStr, c_char, c_int};

/// Where all nodes are.
const PREFIX: &[u8] = b"/dev/nvidia";

/// A path that is ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// `/dev/nvidiactl`.
    Control,
    /// `/dev/nvidia0`.
    Gpu,
    /// `/dev/nvidia-uvm`.
    Uvm,
    /// `/dev/nvidia-uvm-tools`.
    UvmTools,
    /// `/dev/nvidia1` and so on: the GPU of a desktop, never to be reached by accident, but not there.
    Absent,
}

impl Node {
    /// Its path.
    pub fn path(self) -> &'static CStr {
        match self {
            Node::Control => c"/dev/nvidiactl",
            Node::Gpu => c"/dev/nvidia0",
            Node::Uvm => c"/dev/nvidia-uvm",
            Node::UvmTools => c"/dev/nvidia-uvm-tools",
            Node::Absent => c"",
        }
    }

    /// Its device number, as desktop drivers have it. UVM's major number is dynamic there.
    pub fn device(self) -> libc::dev_t {
        const NVIDIA: u32 = 195;
        const UVM: u32 = 510;
        match self {
            Node::Control => libc::makedev(NVIDIA, 255),
            Node::Gpu => libc::makedev(NVIDIA, 0),
            Node::Uvm | Node::Absent => libc::makedev(UVM, 0),
            Node::UvmTools => libc::makedev(UVM, 1),
        }
    }
}

/// The node a path names, if it is ours.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
#[inline]
pub unsafe fn node(path: *const c_char) -> Option<Node> {
    if path.is_null() {
        return None;
    }
    for (i, byte) in PREFIX.iter().enumerate() {
        // SAFETY: bytes up to here were equal, so none of them was the NUL: this one is still part of the string.
        if unsafe { *path.add(i) } as u8 != *byte {
            return None;
        }
    }
    // SAFETY: the prefix holds no NUL.
    let rest = unsafe { CStr::from_ptr(path.add(PREFIX.len())) }.to_bytes();
    of_rest(rest)
}

#[cold]
fn of_rest(rest: &[u8]) -> Option<Node> {
    match rest {
        b"ctl" => Some(Node::Control),
        b"0" => Some(Node::Gpu),
        b"-uvm" => Some(Node::Uvm),
        b"-uvm-tools" => Some(Node::UvmTools),
        _ if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit) => Some(Node::Absent),
        _ => None,
    }
}

/// The node that a path names relative to an open directory: absolute ones anywhere, others if the directory is `/dev`.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
#[inline]
pub unsafe fn node_at(dir: c_int, path: *const c_char) -> Option<Node> {
    /// What a relative path must start with to be worth a closer look.
    const RELATIVE: &[u8] = b"nvidia";
    // SAFETY: `path` is NULL or NUL-terminated, as this function asks of its caller.
    let found = unsafe { node(path) };
    if found.is_some() || path.is_null() {
        return found;
    }
    for (i, byte) in RELATIVE.iter().enumerate() {
        // SAFETY: `path` is NUL-terminated, and every byte before this one was none of it.
        if unsafe { *path.add(i) } as u8 != *byte {
            return None;
        }
    }
    // SAFETY: `path` is NUL-terminated, and begins with the bytes that are passed over.
    let rest = unsafe { CStr::from_ptr(path.add(RELATIVE.len())) }.to_bytes();
    of_rest(rest).filter(|_| is_dev(dir))
}

/// Whether a directory is `/dev`.
#[cold]
fn is_dev(dir: c_int) -> bool {
    let mut link = [0u8; 32];
    let name = crate::fds::link_name(dir, &mut link);
    let mut own = [0u8; 8];
    let len = if dir == libc::AT_FDCWD {
        // SAFETY: writes at most the array's length.
        unsafe { libc::readlink(c"/proc/self/cwd".as_ptr(), own.as_mut_ptr().cast(), own.len()) }
    } else {
        // SAFETY: writes at most the array's length; the name is NUL-terminated.
        unsafe { libc::readlink(name.as_ptr(), own.as_mut_ptr().cast(), own.len()) }
    };
    usize::try_from(len).is_ok_and(|len| &own[..len] == b"/dev")
}
