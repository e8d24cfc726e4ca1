//! Memory for machine code of this CPU. It is first writable and then executable, and never both.
#![allow(unsafe_code)]

use crate::Errno;
use std::ptr::NonNull;

/// The addresses at which code may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any address.
    Full,
    /// Addresses below 2 GiB, for x86-64 code that contains addresses of 32 bits. On other CPUs this is the same as
    /// `Full`.
    Low,
}

/// An anonymous mapping, which is unmapped when it is dropped. After `seal`, its first part can be read and executed,
/// and the rest can be read and written.
#[derive(Debug)]
pub struct ExecMem {
    addr: NonNull<u8>,
    len: usize,
    sealed: bool,
}

// SAFETY: a mapping is an address range of the process, and no part of it belongs to one thread.
unsafe impl Send for ExecMem {}
// SAFETY: shared access gives only the address, and writing needs `&mut self`.
unsafe impl Sync for ExecMem {}

impl ExecMem {
    /// Maps `len` bytes, rounded up to pages. They are zero and writable.
    ///
    /// # Errors
    /// The errno of `mmap(2)`; `EINVAL` for a length of 0.
    pub fn new(len: usize, reach: Reach) -> Result<ExecMem, Errno> {
        let len = len.checked_next_multiple_of(page_size()).ok_or(Errno::ENOMEM)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | low_flag(reach);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: this makes a new anonymous mapping at an address that the kernel chooses.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(ExecMem { addr: NonNull::new(p.cast()).ok_or(Errno::ENOMEM)?, len, sealed: false })
    }

    /// The start address.
    pub fn addr(&self) -> usize {
        self.addr.as_ptr() as usize
    }

    /// The length in bytes, a multiple of the page size.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// `EINVAL` when the bytes do not fit, `EACCES` after [`ExecMem::seal`].
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        if self.sealed {
            return Err(Errno::EACCES);
        }
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the range lies in this writable mapping, and no reference points into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.addr.as_ptr().add(offset), bytes.len()) };
        Ok(())
    }

    /// Makes the first `code` bytes executable and no longer writable; `code` is a multiple of the page size.
    ///
    /// # Errors
    /// The errno of `mprotect(2)`, which is `EACCES` where a policy forbids executable memory; `EINVAL` for a bad
    /// length.
    pub fn seal(&mut self, code: usize) -> Result<(), Errno> {
        if code > self.len || !code.is_multiple_of(page_size()) {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the range is the start of this mapping.
        if unsafe { libc::mprotect(self.addr.as_ptr().cast(), code, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            return Err(Errno::last());
        }
        self.sealed = true;
        publish_code(self.addr(), code);
        Ok(())
    }
}

impl Drop for ExecMem {
    fn drop(&mut self) {
        // SAFETY: the range belongs to this value, and code that calls into it keeps this value alive.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

/// The size of a memory page, which is the unit of [`ExecMem::seal`].
pub fn page_size() -> usize {
    // SAFETY: this is a query, and none of its arguments is a pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(target_arch = "x86_64")]
fn low_flag(reach: Reach) -> libc::c_int {
    if reach == Reach::Low { libc::MAP_32BIT } else { 0 }
}

#[cfg(not(target_arch = "x86_64"))]
fn low_flag(_reach: Reach) -> libc::c_int {
    0
}

/// Makes written instructions visible to instruction fetch. x86-64 does this by itself.
#[cfg(not(target_arch = "aarch64"))]
fn publish_code(_start: usize, _len: usize) {}

/// Makes written instructions visible to instruction fetch. It cleans the data cache to the point of unification and
/// then invalidates the instruction cache, line by line, with the line sizes that CTR_EL0 gives.
#[cfg(target_arch = "aarch64")]
fn publish_code(start: usize, len: usize) {
    let ctr: u64;
    // SAFETY: CTR_EL0 is readable from user space on Linux.
    unsafe { std::arch::asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) };
    let (data, code) = (4usize << (ctr >> 16 & 0xf), 4usize << (ctr & 0xf));
    for line in (start & !(data - 1)..start + len).step_by(data) {
        // SAFETY: this is cache maintenance by address on memory that the process has mapped.
        unsafe { std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier has no operands.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in (start & !(code - 1)..start + len).step_by(code) {
        // SAFETY: this is cache maintenance by address on memory that the process has mapped.
        unsafe { std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers have no operands.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_stay_inside_and_before_the_seal() {
        let mut m = ExecMem::new(10, Reach::Full).unwrap();
        assert_eq!(m.len(), page_size());
        assert_eq!(m.write(m.len() - 1, &[1, 2]), Err(Errno::EINVAL));
        assert_eq!(m.write(usize::MAX, &[1, 2]), Err(Errno::EINVAL));
        assert_eq!(m.seal(1), Err(Errno::EINVAL));
        m.seal(page_size()).unwrap();
        assert_eq!(m.write(0, &[1]), Err(Errno::EACCES));
        assert!(ExecMem::new(0, Reach::Full).is_err());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn low_memory_is_low() {
        let m = ExecMem::new(4096, Reach::Low).unwrap();
        assert!(m.addr() + m.len() <= 1 << 31);
    }
}
