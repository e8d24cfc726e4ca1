//! Finds the addresses at which this process maps bytes of a file.

use nix::libc::{major, minor};
use std::ops::Range;
use std::os::fd::AsFd;
use tegrarm_kmd::File;
use tegrarm_kmd::maps::{self, MemoryMap};

/// The addresses at which this process maps the first byte of `range` of `file`, if all the rest of the range follows
/// it, in one piece or several.
pub fn file_mappings(file: &File, range: &Range<u64>) -> Vec<u64> {
    let Ok(stat) = nix::sys::stat::fstat(file.as_fd()) else { return Vec::new() };
    let dev = (major(stat.st_dev) as i32, minor(stat.st_dev) as i32);
    let is_file = |m: &MemoryMap| (m.dev, m.inode) == (dev, stat.st_ino);
    let pieces: Vec<Piece> = maps::own().iter().filter(|m| is_file(m)).map(Piece::of).collect();
    find(&pieces, range)
}

/// One mapping of the file.
struct Piece {
    start: u64,
    end: u64,
    /// The offset of its first byte in the file.
    offset: u64,
}

impl Piece {
    fn of(map: &MemoryMap) -> Piece {
        Piece { start: map.address.0, end: map.address.1, offset: map.offset }
    }
}

fn find(pieces: &[Piece], range: &Range<u64>) -> Vec<u64> {
    let starts = pieces.iter().filter(|p| (p.offset..p.offset + (p.end - p.start)).contains(&range.start));
    let addresses = starts.map(|p| p.start + (range.start - p.offset));
    addresses.filter(|addr| covers(pieces, *addr, range)).collect()
}

fn covers(pieces: &[Piece], addr: u64, range: &Range<u64>) -> bool {
    let (mut next, end) = (addr, addr + (range.end - range.start));
    for p in pieces {
        if p.start <= next && next < p.end && p.offset + (next - p.start) == range.start + (next - addr) {
            next = p.end;
        }
    }
    next >= end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of one file, each with start, end and offset. Another file is mapped at 0x1080000.
    const PIECES: [(u64, u64, u64); 4] = [
        (0x100_0000, 0x108_0000, 0),
        (0x108_1000, 0x130_0000, 0x8_1000),
        (0x200_0000, 0x208_0000, 0),
        (0x208_0000, 0x230_0000, 0x8_0000),
    ];

    fn at(start: u64, len: u64) -> Vec<u64> {
        find(&PIECES.map(|(start, end, offset)| Piece { start, end, offset }), &(start..start + len))
    }

    #[test]
    fn a_range_is_found_wherever_the_same_bytes_of_the_file_lie() {
        assert_eq!(at(0, 0x8_0000), [0x100_0000, 0x200_0000]);
        assert_eq!(at(0x8_1000, 0x1000), [0x108_1000, 0x208_1000]);
        assert_eq!(at(0x8_0000, 0x1000), [0x208_0000], "the first mapping has another file there");
        assert_eq!(at(0, 0x8_1000), [0x200_0000], "another file in between");
        assert!(at(0, 0x40_0000).is_empty(), "more than is mapped");
    }
}
