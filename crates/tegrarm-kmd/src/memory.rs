//! Memory of this process behind pointers that somebody else gave: reached the way the kernel would, so that a bad
//! address is an error, not a crash.
#![allow(unsafe_code)]

use crate::Errno;

/// `len` bytes at an address: of a local buffer, or of whatever the pointer points at.
#[inline]
fn piece(addr: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: addr as usize as *mut libc::c_void, iov_len: len }
}

/// The memory of this process, for as long as one call takes: a forked child is another process.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pid: libc::pid_t,
}

/// The first of two pieces that [`Own::write_both`] could not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// The first; nothing is promised about its contents.
    First,
    /// The second; the first is written.
    Second,
}

impl Own {
    /// The calling process's.
    #[inline]
    pub fn now() -> Own {
        // SAFETY: only asks.
        Own { pid: unsafe { libc::getpid() } }
    }

    /// Fills `into` from `addr`.
    ///
    /// # Errors
    /// `EFAULT` when the range is not readable; nothing is promised about `into` then.
    #[inline(always)]
    pub fn read(self, addr: u64, into: &mut [u8]) -> Result<(), Errno> {
        let (local, remote) = (piece(into.as_mut_ptr() as u64, into.len()), piece(addr, into.len()));
        // SAFETY: `local` is `into`; the kernel checks the other address itself.
        let done = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        if done == into.len() as isize { Ok(()) } else { Err(Errno::EFAULT) }
    }

    /// Copies `bytes` to `addr`.
    ///
    /// # Errors
    /// `EFAULT` when the range is not writable.
    #[inline]
    pub fn write(self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        let (local, remote) = (piece(bytes.as_ptr() as u64, bytes.len()), piece(addr, bytes.len()));
        // SAFETY: `local` is only read. Whoever gave `addr` gave it to be written, so nothing else relies on what is
        // there; the kernel checks that the range is mapped writable.
        let done = unsafe { libc::process_vm_writev(self.pid, &local, 1, &remote, 1, 0) };
        if done == bytes.len() as isize { Ok(()) } else { Err(Errno::EFAULT) }
    }

    /// Copies to two addresses with one system call.
    ///
    /// # Errors
    /// The piece whose address is wrong.
    #[inline(always)]
    pub fn write_both(self, first: (u64, &[u8]), second: (u64, &[u8])) -> Result<(), Unwritable> {
        let local = [first, second].map(|(_, bytes)| piece(bytes.as_ptr() as u64, bytes.len()));
        let remote = [first, second].map(|(addr, bytes)| piece(addr, bytes.len()));
        // SAFETY: as in `write`.
        let done = unsafe { libc::process_vm_writev(self.pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
        if done == (first.1.len() + second.1.len()) as isize {
            return Ok(());
        }
        Err(if done < first.1.len() as isize { Unwritable::First } else { Unwritable::Second })
    }
}

/// Copies `bytes` to `addr`.
///
/// # Errors
/// `EFAULT` when the range is not writable.
pub(crate) fn write(addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    Own::now().write(addr, bytes)
}

/// No argument of nvgpu or nvmap names more: a larger length is garbage that the kernel refuses, too.
const MOST: usize = 64 << 20;

/// `len` bytes from `addr`.
///
/// # Errors
/// `EFAULT` when the range is not readable, or longer than 64 MiB.
pub(crate) fn read(addr: u64, len: usize) -> Result<Vec<u8>, Errno> {
    if len > MOST {
        return Err(Errno::EFAULT);
    }
    let mut out = vec![0u8; len];
    Own::now().read(addr, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_both_ways() {
        let mut there = [1u8, 2, 3, 4];
        let addr = there.as_mut_ptr() as u64;
        assert_eq!(read(addr, 4), Ok(vec![1, 2, 3, 4]));
        assert_eq!(write(addr + 1, &[9, 8]), Ok(()));
        assert_eq!(read(addr, 4), Ok(vec![1, 9, 8, 4]));
    }

    #[test]
    fn a_bad_address_is_an_error() {
        assert_eq!(read(16, 4), Err(Errno::EFAULT));
        assert_eq!(write(16, &[1]), Err(Errno::EFAULT));
        assert_eq!(read(0, 0), Ok(Vec::new()));
        assert_eq!(read(16, usize::MAX / 2), Err(Errno::EFAULT));
    }
}
