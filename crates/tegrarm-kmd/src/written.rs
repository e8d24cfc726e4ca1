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
const LINE_BYTES: usize = 16 << 20;
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
        let mut known = vec![0; map.len()];
        read(&map, 0, &mut known);
        self.views.push(View { on: label.to_owned(), handle, offset, map, known });
    }

    /// Notes that a handle was freed. The contents of its buffer are not recorded any more.
    pub(crate) fn freed(&mut self, handle: u64) {
        self.views.retain(|view| view.handle != handle);
        self.handles.retain(|_, h| *h != handle);
    }

    /// What has changed since the last call. Memory is read a block at a time, because a block stays in the processor's
    /// cache from the copy to the comparison.
    pub(crate) fn changes(&mut self) -> Written {
        let (mut written, mut room) = (Written::default(), LINE_BYTES);
        let mut block = vec![0; BLOCK];
        for View { on, offset, map, known, .. } in &mut self.views {
            for (n, known) in known.chunks_mut(BLOCK).enumerate() {
                let now = &mut block[..known.len()];
                read(map, n * BLOCK, now);
                for (start, end) in differing(known, now) {
                    written.add(on, *offset + (n * BLOCK + start) as u64, &now[start..end], &mut room);
                }
                known.copy_from_slice(now);
            }
        }
        written
    }
}

impl Written {
    /// Notes that bytes of a file changed, if there is room for so many. They belong to the last run if they follow it.
    fn add(&mut self, on: &str, offset: u64, bytes: &[u8], room: &mut usize) {
        if bytes.len() > *room {
            self.cut = true;
            return;
        }
        *room -= bytes.len();
        let follows = |run: &&mut Run| run.on == on && run.offset + run.bytes.len() as u64 == offset;
        match self.runs.last_mut().filter(follows) {
            Some(run) => run.bytes.extend_from_slice(bytes),
            None => self.runs.push(Run { on: on.to_owned(), offset, bytes: bytes.to_vec() }),
        }
    }
}

/// Copies a part of a mapping.
fn read(map: &Mapping, start: usize, bytes: &mut [u8]) {
    assert!(start + bytes.len() <= map.len());
    // SAFETY: the part lies in the mapping, which lives until after the copy. Others may write the memory meanwhile; then
    // the copy has some of the old bytes, which are copied again the next time.
    unsafe { std::ptr::copy_nonoverlapping(map.as_ptr().add(start), bytes.as_mut_ptr(), bytes.len()) };
}

/// The ranges in which two blocks of the same length differ, in whole pieces. Neighbouring ranges become one.
fn differing(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    if a == b {
        return ranges;
    }
    let pieces = a.chunks(PIECE).zip(b.chunks(PIECE)).enumerate().filter(|(_, (x, y))| x != y);
    for (start, len) in pieces.map(|(i, (_, y))| (i * PIECE, y.len())) {
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
    }

    /// The ranges of one file that are told when some of its bytes change.
    fn told(size: usize, changed: &[usize]) -> Vec<(u64, usize)> {
        let fd = memfd_create("dmabuf", MFdFlags::MFD_CLOEXEC).expect("a memfd");
        nix::unistd::ftruncate(&fd, size as i64).expect("a size");
        let mut watched = Watched::default();
        watched.made("dmabuf#1", 7);
        watched.mapped("dmabuf#1", fd.as_fd(), size, 0);
        for &at in changed {
            nix::sys::uio::pwrite(&fd, &[1], at as i64).expect("a write");
        }
        let written = watched.changes();
        assert!(!written.cut);
        written.runs.iter().map(|run| (run.offset, run.bytes.len())).collect()
    }

    #[test]
    fn a_range_may_go_over_the_end_of_a_block() {
        let (block, piece) = (BLOCK as u64, PIECE as u64);
        let told = told(2 * BLOCK + 4096, &[BLOCK - 1, BLOCK, 2 * BLOCK + 4095]);
        assert_eq!(told, [(block - piece, 2 * PIECE), (2 * block + 4096 - piece, PIECE)]);
    }

    #[test]
    fn what_is_too_much_for_a_line_is_cut_and_said() {
        let (mut written, mut room) = (Written::default(), PIECE);
        written.add("dmabuf#1", 0, &[1; PIECE], &mut room);
        assert!(!written.cut);
        written.add("dmabuf#1", LINE_BYTES as u64, &[1], &mut room);
        assert!(written.cut);
        assert_eq!(written.runs.len(), 1);
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
