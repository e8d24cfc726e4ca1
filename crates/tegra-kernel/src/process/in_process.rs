//! The caller is this process itself.
#![allow(unsafe_code)]

use super::{FileId, Process, Vma};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use tegra_mm::Backing;
use tegrarm_kmd::memory::{otherwise, piped_read, piped_write};
use tegrarm_kmd::{Errno, Mapping, maps};

/// This process. Its memory is accessed with `process_vm_readv` and `process_vm_writev` on its own pid, so that a bad
/// pointer gives `EFAULT` and no crash.
#[derive(Debug)]
pub struct InProcess {
    pid: i32,
}

impl InProcess {
    /// This process as it is now. A forked child is another process.
    pub fn new() -> InProcess {
        InProcess { pid: nix::unistd::getpid().as_raw() }
    }

    fn vmas(&self) -> impl Iterator<Item = Vma> {
        maps::own().into_iter().map(Vma::from)
    }
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `f` on a descriptor number, which may be any number.
fn with_fd<R>(fd: RawFd, f: impl FnOnce(BorrowedFd<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: the descriptor is borrowed for one system call, which checks the number itself.
    f(unsafe { BorrowedFd::borrow_raw(fd) })
}

impl Process for InProcess {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn is_self(&self) -> bool {
        true
    }

    fn file_id(&self, fd: RawFd) -> Result<FileId, Errno> {
        let stat = with_fd(fd, |fd| nix::sys::stat::fstat(fd))?;
        Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
    }

    fn read_only(&self, fd: RawFd) -> bool {
        with_fd(fd, |fd| fcntl(fd, FcntlArg::F_GETFL))
            .is_ok_and(|flags| OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE == OFlag::O_RDONLY)
    }

    fn install(&self, file: OwnedFd) -> Result<RawFd, Errno> {
        Ok(file.into_raw_fd())
    }

    fn close(&self, fd: RawFd) {
        // SAFETY: the caller asked to close exactly this descriptor of its own.
        unsafe { libc::close(fd) };
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Errno> {
        let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: buf.len() };
        // SAFETY: the call writes only into `buf`, at most its length. The system call checks the other address.
        let copied = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        if copied == buf.len() as isize { Ok(()) } else { otherwise(|| piped_read(addr, buf)) }
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the call reads only from `bytes`. It writes where the caller of the ioctl asked, if that is writable.
        let copied = unsafe { libc::process_vm_writev(self.pid, &local, 1, &remote, 1, 0) };
        // A short count means that a page in the range is bad.
        if copied == bytes.len() as isize { Ok(()) } else { otherwise(|| piped_write(addr, bytes)) }
    }

    fn vma(&self, addr: u64) -> Option<Vma> {
        self.vmas().find(|vma| vma.end > addr)
    }

    fn maps(&self, file: FileId, except: u64) -> bool {
        self.vmas().any(|vma| vma.file == file && vma.start != except)
    }

    fn pin(&self, addr: u64, len: u64, write: bool) -> Result<Backing, Errno> {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        let mut at = addr;
        let mut single = None;
        for vma in self.vmas().filter(|vma| vma.end > addr).take_while(|vma| vma.start < end) {
            if vma.start > at || !vma.read || (write && !vma.write) {
                return Err(Errno::EINVAL);
            }
            single = (vma.start <= addr && vma.end >= end).then_some(vma);
            at = vma.end;
        }
        if at < end {
            return Err(Errno::EINVAL);
        }
        let pages = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
        if single.is_some_and(|vma| vma.shared && vma.write)
            && let Some(alias) = alias(addr, pages)
        {
            return Ok(alias);
        }
        let start = NonNull::new(addr as *mut u8).ok_or(Errno::EINVAL)?;
        // SAFETY: the pages are mapped now. Private memory of a program in the same process cannot be kept in a better
        // way, and by the contract of FROM_VA the program keeps it mapped while the GPU uses it.
        Ok(unsafe { Backing::from_pages(start, pages, ()) })
    }

    fn may_reschedule(&self) -> bool {
        const CAP_SYS_NICE: u32 = 23;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        effective
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
            .is_some_and(|caps| caps >> CAP_SYS_NICE & 1 == 1)
    }
}

/// Makes a second mapping of shared pages, which stays when the program removes its own.
fn alias(addr: u64, len: usize) -> Option<Backing> {
    // SAFETY: with an old size of 0, mremap leaves the old mapping alone and maps the same shared pages once more, at
    // an address that the kernel chooses.
    let second = unsafe { libc::mremap(addr as *mut libc::c_void, 0, len, libc::MREMAP_MAYMOVE) };
    if second == libc::MAP_FAILED {
        return None;
    }
    let start = NonNull::new(second.cast())?;
    // SAFETY: no other code knows the new range.
    let map = unsafe { Mapping::from_raw(start, len) };
    // SAFETY: the backing owns the mapping.
    Some(unsafe { Backing::from_pages(start, len, map) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_pointers_are_efault() {
        let me = InProcess::new();
        let mut word = [0; 4];
        for addr in [0, 1, u64::MAX, 0x1000] {
            assert_eq!(me.read(addr, &mut word), Err(Errno::EFAULT));
            assert_eq!(me.write(addr, &word), Err(Errno::EFAULT));
        }
        let value = 0x1234_5678_u32;
        me.read(&raw const value as u64, &mut word).unwrap();
        assert_eq!(u32::from_ne_bytes(word), value);
    }

    #[test]
    fn bad_descriptors_are_ebadf() {
        let me = InProcess::new();
        assert_eq!(me.file_id(-1), Err(Errno::EBADF));
        assert_eq!(me.file_id(i32::MAX), Err(Errno::EBADF));
    }
}
