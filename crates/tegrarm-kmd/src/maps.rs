//! The mappings of a process, as the kernel lists them. The library and the simulator read `/proc/PID/maps` here only.
//! The one exception is the supervisor's handler of SIGBUS, which must not allocate memory and has a small reader of
//! its own.

pub use procfs_core::process::{MMPermissions, MMapPath, MemoryMap};
use procfs_core::{FromBufRead, process::MemoryMaps};
use std::fs::File;
use std::io::BufReader;

/// Every mapping of this process, sorted by address. The list is empty if `/proc` does not exist or has an unknown
/// format.
pub fn own() -> Vec<MemoryMap> {
    read("/proc/self/maps")
}

/// Every mapping of another process or thread, sorted by address. The list is empty if the process does not exist or
/// may not be inspected.
pub fn of(pid: i32) -> Vec<MemoryMap> {
    read(&format!("/proc/{pid}/maps"))
}

fn read(path: &str) -> Vec<MemoryMap> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    match MemoryMaps::from_buf_read(BufReader::new(file)) {
        Ok(maps) => maps.0,
        Err(error) => {
            tracing::warn!(target: "tegrarm::kmd", %error, "{path} was not understood");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, Placement, Prot};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::fd::AsFd;

    #[test]
    fn a_mapping_of_ours_is_listed_with_its_file() {
        let file = memfd_create("listed", MFdFlags::MFD_CLOEXEC).expect("a file");
        nix::unistd::ftruncate(&file, 8192).expect("room");
        let mapping = Mapping::new(file.as_fd(), Placement::Anywhere, 4096, Prot::ReadWrite, 4096).expect("mapped");
        let at = mapping.addr() as u64;
        let found = own().into_iter().find(|m| m.address.0 == at).expect("it is listed");
        assert!(of(std::process::id() as i32).contains(&found), "by its number, too");
        assert_eq!((found.address.1 - at, found.offset), (4096, 4096));
        assert_eq!(found.inode, nix::sys::stat::fstat(&file).expect("a file").st_ino);
        assert!(found.perms.contains(MMPermissions::SHARED | MMPermissions::WRITE));
        assert_eq!(found.pathname, MMapPath::Path("/memfd:listed (deleted)".into()));
    }
}
