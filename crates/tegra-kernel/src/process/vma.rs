//! A process's memory map, as `/proc/PID/maps` tells it.

use super::FileId;

/// One mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vma {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Readable.
    pub read: bool,
    /// Writable.
    pub write: bool,
    /// Shared, not copy-on-write.
    pub shared: bool,
    /// Offset in the file of `start`.
    pub offset: u64,
    /// The file behind it; inode 0 for private anonymous memory.
    pub file: FileId,
}

impl Vma {
    /// Reads one line of a maps file; `None` when it is not one.
    pub fn parse(line: &str) -> Option<Vma> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let flags = words.next()?.as_bytes();
        let offset = words.next()?;
        let (major, minor) = words.next()?.split_once(':')?;
        let hex = |s: &str| u64::from_str_radix(s, 16).ok();
        let dev = nix::sys::stat::makedev(hex(major)?, hex(minor)?);
        Some(Vma {
            start: hex(start)?,
            end: hex(end)?,
            read: flags.first() == Some(&b'r'),
            write: flags.get(1) == Some(&b'w'),
            shared: flags.get(3) == Some(&b's'),
            offset: hex(offset)?,
            file: FileId { dev, ino: words.next()?.parse().ok()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maps_line_is_read() {
        let line = "7f0000000000-7f0000002000 rw-s 00001000 00:01 1036   /memfd:dmabuf (deleted)";
        let vma = Vma::parse(line).unwrap();
        assert_eq!((vma.start, vma.end, vma.offset), (0x7f00_0000_0000, 0x7f00_0000_2000, 0x1000));
        assert!(vma.read && vma.write && vma.shared);
        assert_eq!(vma.file, FileId { dev: nix::sys::stat::makedev(0, 1), ino: 1036 });
        assert_eq!(Vma::parse("nonsense"), None);
    }
}
