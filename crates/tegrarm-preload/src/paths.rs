//! Finds the paths that belong to the library's nodes.

use std::ffi::{CStr, c_char, c_int};

/// The start of the paths of all nodes.
const PREFIX: &[u8] = b"/dev/nvidia";

/// A path that this library answers for.
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
    /// `/dev/nvidia1` and so on, the other GPUs of a desktop. Such a node never exists here, and a program must not
    /// reach a real one by accident.
    Absent,
}

impl Node {
    /// The path of the node.
    pub fn path(self) -> &'static CStr {
        match self {
            Node::Control => c"/dev/nvidiactl",
            Node::Gpu => c"/dev/nvidia0",
            Node::Uvm => c"/dev/nvidia-uvm",
            Node::UvmTools => c"/dev/nvidia-uvm-tools",
            Node::Absent => c"",
        }
    }

    /// The device number of the node, as in desktop drivers. There, UVM's major number is dynamic.
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

/// The node that a path names, if the path belongs to this library.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
#[inline]
pub unsafe fn node(path: *const c_char) -> Option<Node> {
    if path.is_null() {
        return None;
    }
    for (i, byte) in PREFIX.iter().enumerate() {
        // SAFETY: the bytes before this one were equal to the prefix, so none of them was the NUL, and this byte is
        // still part of the string.
        if unsafe { *path.add(i) } as u8 != *byte {
            return None;
        }
    }
    // SAFETY: the prefix contains no NUL.
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

/// The node that a path names relative to an open directory. Absolute paths are compared in any case, and relative ones
/// only if the directory is `/dev`.
///
/// # Safety
/// `path` is NULL or NUL-terminated.
#[inline]
pub unsafe fn node_at(dir: c_int, path: *const c_char) -> Option<Node> {
    /// The start that a relative path must have before the directory is looked up.
    const RELATIVE: &[u8] = b"nvidia";
    // SAFETY: `path` is NULL or NUL-terminated, as this function asks of its caller.
    let found = unsafe { node(path) };
    if found.is_some() || path.is_null() {
        return found;
    }
    for (i, byte) in RELATIVE.iter().enumerate() {
        // SAFETY: `path` is NUL-terminated, and no byte before this one was the NUL.
        if unsafe { *path.add(i) } as u8 != *byte {
            return None;
        }
    }
    // SAFETY: `path` is NUL-terminated and begins with the bytes that are skipped.
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
        // SAFETY: the call writes at most the length of the array.
        unsafe { libc::readlink(c"/proc/self/cwd".as_ptr(), own.as_mut_ptr().cast(), own.len()) }
    } else {
        // SAFETY: the call writes at most the length of the array, and the name is NUL-terminated.
        unsafe { libc::readlink(name.as_ptr(), own.as_mut_ptr().cast(), own.len()) }
    };
    usize::try_from(len).is_ok_and(|len| &own[..len] == b"/dev")
}
