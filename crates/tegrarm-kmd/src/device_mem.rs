//! Volatile access to memory that a device may write.
#![allow(unsafe_code)]

use crate::Mapping;
use std::sync::atomic::{Ordering, fence};

/// A mapping that is used as device memory: every access is volatile and bounds-checked, and no Rust reference into it
/// ever exists.
#[derive(Debug)]
pub struct DeviceMem {
    map: Mapping,
}

macro_rules! accessors {
    ($read:ident, $write:ident, $t:ty) => {
        /// Reads one little-endian word at byte `offset`.
        ///
        /// # Panics
        /// When the word lies outside the mapping or is not naturally aligned, which is a bug of the caller.
        pub fn $read(&self, offset: usize) -> $t {
            let p = self.at::<$t>(offset);
            // SAFETY: `at` checked bounds and alignment; the mapping lives as long as `self`.
            <$t>::from_le(unsafe { p.read_volatile() })
        }

        /// Writes one little-endian word at byte `offset`.
        ///
        /// # Panics
        /// In the same cases as the read.
        pub fn $write(&self, offset: usize, value: $t) {
            let p = self.at::<$t>(offset);
            // SAFETY: `at` checked bounds and alignment; the mapping lives as long as `self`.
            unsafe { p.write_volatile(value.to_le()) }
        }
    };
}

impl DeviceMem {
    /// Wraps a mapping.
    pub fn new(map: Mapping) -> DeviceMem {
        DeviceMem { map }
    }

    /// The mapping behind it.
    pub fn mapping(&self) -> &Mapping {
        &self.map
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        let size = size_of::<T>();
        assert!(
            offset.is_multiple_of(size) && offset.checked_add(size).is_some_and(|end| end <= self.map.len()),
            "access of {size} bytes at {offset:#x} of a {:#x}-byte mapping",
            self.map.len()
        );
        self.map.as_ptr().wrapping_add(offset).cast()
    }

    accessors!(read_u32, write_u32, u32);
    accessors!(read_u64, write_u64, u64);

    /// A full barrier between stores to memory and the doorbell store that publishes them (`dsb sy` on AArch64).
    #[inline]
    pub fn barrier() {
        fence(Ordering::SeqCst);
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier instruction has no operands and changes no memory.
        unsafe {
            std::arch::asm!("dsb sy", options(nostack, preserves_flags));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Placement, Prot};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    fn memory() -> (File, DeviceMem) {
        let fd = memfd_create("test", MFdFlags::MFD_CLOEXEC).expect("a memfd");
        nix::unistd::ftruncate(&fd, 4096).expect("a size");
        let map = Mapping::new(fd.as_fd(), Placement::Anywhere, 4096, Prot::ReadWrite, 0).expect("a mapping");
        (File::from(fd), DeviceMem::new(map))
    }

    #[test]
    fn words_are_little_endian_and_reach_the_file() {
        let (file, mem) = memory();
        mem.write_u32(0x8c, 0x0102_0304);
        mem.write_u64(0xff8, 0x1122_3344_5566_7788);
        DeviceMem::barrier();
        let mut bytes = [0u8; 4];
        file.read_exact_at(&mut bytes, 0x8c).expect("a read");
        assert_eq!(bytes, [4, 3, 2, 1]);
        assert_eq!((mem.read_u32(0x8c), mem.read_u64(0xff8)), (0x0102_0304, 0x1122_3344_5566_7788));
        file.write_all_at(&[9, 0, 0, 0], 0x88).expect("a write");
        assert_eq!(mem.read_u32(0x88), 9);
        assert_eq!(mem.mapping().len(), 4096);
    }

    #[test]
    #[should_panic(expected = "access of 4 bytes at 0x1000")]
    fn the_end_is_checked() {
        memory().1.read_u32(4096);
    }

    #[test]
    #[should_panic(expected = "access of 8 bytes at 0xffc")]
    fn a_word_across_the_end_is_checked() {
        memory().1.write_u64(4092, 0);
    }

    #[test]
    #[should_panic(expected = "access of 4 bytes at 0x2")]
    fn alignment_is_checked() {
        memory().1.write_u32(2, 0);
    }

    #[test]
    #[should_panic(expected = "access of 8 bytes at 0xfffffffffffffff8")]
    fn an_overflow_is_checked() {
        memory().1.read_u64(usize::MAX - 7);
    }
}
