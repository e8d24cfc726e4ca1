//! What this process has mapped where.

use std::os::fd::AsFd;
use tegrarm_kmd::File;

/// Whether `[addr, addr + len)` of this process maps `file` from byte `offset` on, in one or several pieces.
pub fn file_is_mapped_at(file: &File, addr: u64, len: u64, offset: u64) -> bool {
    let Ok(stat) = nix::sys::stat::fstat(file.as_fd()) else { return false };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    covers(&maps, stat.st_ino, addr, len, offset)
}

fn covers(maps: &str, inode: u64, addr: u64, len: u64, offset: u64) -> bool {
    let mut next = addr;
    for (start, end, at, ino) in maps.lines().filter_map(parse) {
        if ino == inode && start <= next && next < end && at + (next - start) == offset + (next - addr) {
            next = end;
        }
        if next >= addr + len {
            return true;
        }
    }
    false
}

/// `start-end perms offset dev inode path`
fn parse(line: &str) -> Option<(u64, u64, u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let offset = hex(fields.nth(1)?)?;
    Some((hex(start)?, hex(end)?, offset, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::covers;

    const MAPS: &str = "1000000-1080000 rw-s 00000000 00:1 77 /memfd:a\n\
                        1080000-1081000 rw-s 00000000 00:1 99 /memfd:b\n\
                        1081000-1300000 rw-s 00081000 00:1 77 /memfd:a\n";

    #[test]
    fn a_range_is_found_only_where_the_same_bytes_of_the_same_file_lie() {
        assert!(covers(MAPS, 77, 0x100_0000, 0x8_0000, 0));
        assert!(covers(MAPS, 77, 0x108_1000, 0x1000, 0x8_1000));
        assert!(!covers(MAPS, 77, 0x108_1000, 0x1000, 0x1000), "other bytes of the file");
        assert!(!covers(MAPS, 77, 0x100_0000, 0x8_1000, 0), "another file in between");
        assert!(!covers(MAPS, 99, 0x100_0000, 0x1000, 0), "another file");
    }
}
