//! What this process has mapped where.

use std::ops::Range;
use std::os::fd::AsFd;
use tegrarm_kmd::File;

/// Addresses at which this process maps the first byte of `range` of `file` with all the rest of it behind, in one or
/// several pieces.
pub fn file_mappings(file: &File, range: &Range<u64>) -> Vec<u64> {
    let Ok(stat) = nix::sys::stat::fstat(file.as_fd()) else { return Vec::new() };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return Vec::new() };
    let dev = (u64::from(nix::libc::major(stat.st_dev)), u64::from(nix::libc::minor(stat.st_dev)));
    find(&maps, dev, stat.st_ino, range)
}

/// One line of the maps that shows a file.
struct Piece {
    start: u64,
    end: u64,
    /// First byte of the file.
    offset: u64,
    dev: (u64, u64),
    inode: u64,
}

fn find(maps: &str, dev: (u64, u64), inode: u64, range: &Range<u64>) -> Vec<u64> {
    let pieces: Vec<Piece> =
        maps.lines().filter_map(Piece::parse).filter(|p| p.inode == inode && p.dev == dev).collect();
    let starts = pieces.iter().filter(|p| (p.offset..p.offset + (p.end - p.start)).contains(&range.start));
    let addresses = starts.map(|p| p.start + (range.start - p.offset));
    addresses.filter(|addr| covers(&pieces, *addr, range)).collect()
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

impl Piece {
    /// `start-end perms offset major:minor inode path`
    fn parse(line: &str) -> Option<Piece> {
        let mut fields = line.split_ascii_whitespace();
        let hex = |s: &str| u64::from_str_radix(s, 16).ok();
        let (start, end) = fields.next()?.split_once('-')?;
        let offset = hex(fields.nth(1)?)?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        Some(Piece { start: hex(start)?, end: hex(end)?, offset, dev: (hex(major)?, hex(minor)?), inode })
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    const MAPS: &str = "1000000-1080000 rw-s 00000000 00:1 77 /memfd:a\n\
                        1080000-1081000 rw-s 00000000 00:1 99 /memfd:b\n\
                        1081000-1300000 rw-s 00081000 00:1 77 /memfd:a\n\
                        2000000-2080000 rw-s 00000000 00:1 77 /memfd:a\n\
                        2080000-2300000 rw-s 00080000 00:1 77 /memfd:a\n\
                        3000000-3001000 rw-s 00000000 00:2 99 /another/device\n";

    fn at(inode: u64, start: u64, len: u64) -> Vec<u64> {
        find(MAPS, (0, 1), inode, &(start..start + len))
    }

    #[test]
    fn a_range_is_found_wherever_the_same_bytes_of_the_same_file_lie() {
        assert_eq!(at(77, 0, 0x8_0000), [0x100_0000, 0x200_0000]);
        assert_eq!(at(77, 0x8_1000, 0x1000), [0x108_1000, 0x208_1000]);
        assert_eq!(at(77, 0x8_0000, 0x1000), [0x208_0000], "the first mapping has another file there");
        assert_eq!(at(77, 0, 0x8_1000), [0x200_0000], "another file in between");
        assert_eq!(at(99, 0, 0x1000), [0x108_0000], "the same number on another device is another file");
        assert!(at(99, 0, 0x2000).is_empty(), "more than is mapped");
    }
}
