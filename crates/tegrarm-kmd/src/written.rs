//! For recordings: what the GPU wrote to memory that a program maps.
//!
//! A recorder makes its own mappings of the buffers that the program maps. Each time the program has seen that the GPU
//! finished work, the bytes that changed since the last time become one line of the recording. Some of them were
//! written by the program itself. They do no harm, because the program writes them again when it is replayed.
#![allow(unsafe_code)]

use crate::{Mapping, Placement, Prot};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use tegrarm_abi::nvmap::{NVMAP_IOC_FREE, NVMAP_IOC_GET_FD};

/// Mappings that are larger than this are not watched. No results are as large, and every wait would compare all of it.
const LARGEST: usize = 64 << 20;
/// One line has at most this many bytes. The rest is left out, and the line says so.
const MOST: usize = 16 << 20;
/// The unit in which a change is recorded.
const PIECE: usize = 64;
/// Memory is compared in this unit first, because most of it does not change.
const BLOCK: usize = 64 << 10;

/// Bytes of one file, at its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub on: String,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// What changed between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub runs: Vec<Run>,
    /// True if more had changed than one line may have.
    pub cut: bool,
}

/// The nvmap handle for which an ioctl of nvmap makes a descriptor.
pub(crate) fn handle_of_descriptor(request: u32, before: &[u8]) -> Option<u64> {
    let handle = before.get(4..8).filter(|_| request == NVMAP_IOC_GET_FD)?;
    Some(crate::describe::unsigned(handle))
}

/// The nvmap handle that an ioctl of nvmap frees.
pub(crate) fn freed_handle(request: u32, value: Option<u64>) -> Option<u64> {
    value.filter(|_| request == NVMAP_IOC_FREE)
}

/// The memory that a recorder watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The handles of descriptors that GET_FD made.
    handles: HashMap<String, u64>,
    views: Vec<View>,
}

#[derive(Debug)]
struct View {
    on: String,
    handle: u64,
    offset: u64,
    map: Mapping,
    /// The contents at the time when they were last recorded.
    known: Vec<u8>,
}

impl Watched {
    /// Notes that a descriptor of a handle was made.
    pub(crate) fn made(&mut self, label: &str, handle: u64) {
        self.handles.insert(label.to_owned(), handle);
    }

    /// Notes that the program mapped a part of a file. A part that is watched already is not watched a second time.
    pub(crate) fn mapped(&mut self, label: &str, fd: BorrowedFd<'_>, len: usize, offset: u64) {
        let Some(&handle) = self.handles.get(label) else { return };
        let inside = |v: &View| {
            v.handle == handle && v.offset <= offset && offset + len as u64 <= v.offset + v.known.len() as u64
        };
        if len > LARGEST || self.views.iter().any(inside) {
            return;
        }
        // If the mapping cannot be made, this part is not watched. The program's own mapping is not affected.
        let Ok(map) = Mapping::new(fd, Placement::Anywhere, len, Prot::Read, offset) else { return };
        let mut view = View { on: label.to_owned(), handle, offset, map, known: Vec::new() };
        view.known = view.now();
        self.views.push(view);
    }

    /// Notes that a handle was freed. The contents of its buffer are not recorded any more.
    pub(crate) fn freed(&mut self, handle: u64) {
        self.views.retain(|view| view.handle != handle);
        self.handles.retain(|_, h| *h != handle);
    }

    /// What has changed since the last call.
    pub(crate) fn changes(&mut self) -> Written {
        let mut written = Written::default();
        let mut left = MOST;
        for view in &mut self.views {
            let now = view.now();
            for (start, end) in differing(&view.known, &now) {
                if end - start > left {
                    written.cut = true;
                    continue;
                }
                left -= end - start;
                let bytes = now[start..end].to_vec();
                written.runs.push(Run { on: view.on.clone(), offset: view.offset + start as u64, bytes });
            }
            view.known = now;
        }
        written
    }
}

impl View {
    fn now(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.map.len()];
        // SAFETY: the mapping is as long as the vector, and both live until after the copy. Others may write the memory
        // meanwhile; then the copy has some of the old bytes, which are copied again the next time.
        unsafe { std::ptr::copy_nonoverlapping(self.map.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }
}

/// The ranges in which two contents of the same length differ, in whole pieces. Neighbouring ranges become one.
fn differing(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).enumerate().filter(|(_, (x, y))| x != y);
    let pieces = |(n, (x, y)): (usize, (_, _))| {
        let (x, y): (&[u8], &[u8]) = (x, y);
        let differ = x.chunks(PIECE).zip(y.chunks(PIECE)).enumerate().filter(|(_, (x, y))| x != y);
        differ.map(|(i, (_, y))| (n * BLOCK + i * PIECE, y.len())).collect::<Vec<_>>()
    };
    for (start, len) in blocks.flat_map(pieces) {
        match ranges.last_mut().filter(|last| last.1 == start) {
            Some(last) => last.1 = start + len,
            None => ranges.push((start, start + len)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::fd::AsFd;

    #[test]
    fn neighbours_are_one_range() {
        let (a, mut b) = (vec![0; 300], vec![0; 300]);
        assert_eq!(differing(&a, &b), []);
        (b[1], b[70], b[299]) = (1, 1, 1);
        assert_eq!(differing(&a, &b), [(0, 128), (256, 300)]);
        let (a, mut b) = (vec![0; 2 * BLOCK + 10], vec![0; 2 * BLOCK + 10]);
        (b[BLOCK - 1], b[BLOCK], b[2 * BLOCK + 9]) = (1, 1, 1);
        assert_eq!(differing(&a, &b), [(BLOCK - PIECE, BLOCK + PIECE), (2 * BLOCK, 2 * BLOCK + 10)]);
    }

    #[test]
    fn what_changed_is_told_once_until_the_handle_is_freed() {
        let fd = memfd_create("dmabuf", MFdFlags::MFD_CLOEXEC).expect("a memfd");
        nix::unistd::ftruncate(&fd, 8192).expect("a size");
        let mut watched = Watched::default();
        watched.mapped("dmabuf#1", fd.as_fd(), 4096, 4096);
        assert_eq!(watched.views.len(), 0, "a descriptor that comes from elsewhere");
        watched.made("dmabuf#1", 7);
        watched.mapped("dmabuf#1", fd.as_fd(), 4096, 4096);
        watched.made("dmabuf#2", 7);
        watched.mapped("dmabuf#2", fd.as_fd(), 4096, 4096);
        nix::sys::uio::pwrite(&fd, &[9; 8], 4096 + 64).expect("a write");
        let mut bytes = vec![0; 64];
        bytes[..8].fill(9);
        let run = Run { on: "dmabuf#1".into(), offset: 4096 + 64, bytes };
        assert_eq!(watched.changes(), Written { runs: vec![run], cut: false });
        assert_eq!(watched.changes(), Written::default());
        watched.freed(7);
        nix::sys::uio::pwrite(&fd, &[1; 8], 4096).expect("a write");
        assert_eq!(watched.changes(), Written::default());
    }
}
