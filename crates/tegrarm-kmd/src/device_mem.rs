//! Volatile access to memory a device may write.
#![allow(unsafe_code)]

use crate::Mapping;
use std::sync::atomic::{Ordering, fence};

/// A mapping seen as device memory: every access is volatile and bounds-checked, and no Rust reference into
/// it ever exists.
#[derive(Debug)]
pub struct DeviceMem {
    map: Mapping,
}

macro_rules! accessors {
    ($read:ident, $write:ident, $t:ty) => {
        /// Reads one little-endian word at byte `offset`.
        ///
        /// # Panics
        /// When the word lies outside the mapping or is not naturally aligned: a bug of the caller.
        pub fn $read(&self, offset: usize) -> $t {
            let p = self.at::<$t>(offset);
            // SAFETY: `at` checked bounds and alignment; the mapping lives as long as `self`.
            <$t>::from_le(unsafe { p.read_volatile() })
        }

        /// Writes one little-endian word at byte `offset`.
        ///
        /// # Panics
        /// As the read.
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

    /// Full barrier between stores to memory and the doorbell store that publishes them (`dmb sy` on AArch64).
    pub fn barrier() {
        fence(Ordering::SeqCst);
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier instruction has no operands and touches no memory of ours.
        unsafe {
            std::arch::asm!("dsb sy", options(nostack, preserves_flags));
        }
    }
}
