//! A mapping of a process, as the simulated kernel needs to know it.

use super::FileId;
use tegrarm_kmd::maps::{MMPermissions, MemoryMap};

/// One mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vma {
    /// The first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// True if it can be read.
    pub read: bool,
    /// True if it can be written.
    pub write: bool,
    /// True if it is shared, false if it is copy-on-write.
    pub shared: bool,
    /// The offset in the file at `start`.
    pub offset: u64,
    /// The file behind it. The inode is 0 for private anonymous memory.
    pub file: FileId,
}

impl From<MemoryMap> for Vma {
    fn from(map: MemoryMap) -> Vma {
        let (major, minor) = map.dev;
        let dev = nix::sys::stat::makedev(major as u64, minor as u64);
        Vma {
            start: map.address.0,
            end: map.address.1,
            read: map.perms.contains(MMPermissions::READ),
            write: map.perms.contains(MMPermissions::WRITE),
            shared: map.perms.contains(MMPermissions::SHARED),
            offset: map.offset,
            file: FileId { dev, ino: map.inode },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tegra_mm::{Backing, memfd};

    #[test]
    fn a_mapping_is_known_by_the_file_behind_it() {
        let file = memfd::create("vma", 8192).expect("memory");
        let id = FileId::of(&file).expect("a file");
        let backing = Backing::from_memfd(file, 8192).expect("mapped");
        let start = backing.as_ptr() as u64;
        let found = tegrarm_kmd::maps::own().into_iter().map(Vma::from).find(|vma| vma.file == id).expect("listed");
        let expected = Vma { start, end: start + 8192, read: true, write: true, shared: true, offset: 0, file: id };
        assert_eq!(found, expected);
    }
}
