//! Access to memory of this process through pointers that a caller gave. The kernel makes the accesses, so that a bad
//! address gives an error and no crash.
#![allow(unsafe_code)]

use crate::Errno;
use nix::fcntl::OFlag;
use std::os::fd::AsRawFd;

/// Describes `len` bytes at an address, in a local buffer or behind a caller's pointer.
#[inline]
fn piece(addr: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: addr as usize as *mut libc::c_void, iov_len: len }
}

/// The memory of this process. A value is used for one call only, because a forked child is another process.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pid: libc::pid_t,
}

/// The piece that [`Own::write_both`] could not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// The first piece. Its contents are not defined.
    First,
    /// The second piece. The first one is written.
    Second,
}

impl Own {
    /// The memory of the calling process.
    #[inline]
    pub fn now() -> Own {
        // SAFETY: this is only a query.
        Own { pid: unsafe { libc::getpid() } }
    }

    /// Fills `into` from `addr`.
    ///
    /// # Errors
    /// `EFAULT` when the range cannot be read. The contents of `into` are not defined then.
    #[inline(always)]
    pub fn read(self, addr: u64, into: &mut [u8]) -> Result<(), Errno> {
        let (local, remote) = (piece(into.as_mut_ptr() as u64, into.len()), piece(addr, into.len()));
        // SAFETY: `local` is `into`, and the kernel checks the other address itself.
        let done = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        if done == into.len() as isize { Ok(()) } else { otherwise(|| piped_read(addr, into)) }
    }

    /// Copies `bytes` to `addr`.
    ///
    /// # Errors
    /// `EFAULT` when the range cannot be written.
    #[inline]
    pub fn write(self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        let (local, remote) = (piece(bytes.as_ptr() as u64, bytes.len()), piece(addr, bytes.len()));
        // SAFETY: `local` is only read. The caller gave `addr` for writing, so no other code relies on the bytes there,
        // and the kernel checks that the range is mapped writable.
        let done = unsafe { libc::process_vm_writev(self.pid, &local, 1, &remote, 1, 0) };
        if done == bytes.len() as isize { Ok(()) } else { otherwise(|| piped_write(addr, bytes)) }
    }

    /// Copies to two addresses with one system call.
    ///
    /// # Errors
    /// The piece that has the wrong address.
    #[inline(always)]
    pub fn write_both(self, first: (u64, &[u8]), second: (u64, &[u8])) -> Result<(), Unwritable> {
        let local = [first, second].map(|(_, bytes)| piece(bytes.as_ptr() as u64, bytes.len()));
        let remote = [first, second].map(|(addr, bytes)| piece(addr, bytes.len()));
        // SAFETY: the same as in `write`.
        let done = unsafe { libc::process_vm_writev(self.pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
        if done == (first.1.len() + second.1.len()) as isize {
            return Ok(());
        }
        if done < 0 && Errno::last() == Errno::ENOSYS {
            self.write(first.0, first.1).map_err(|_| Unwritable::First)?;
            return self.write(second.0, second.1).map_err(|_| Unwritable::Second);
        }
        Err(if done < first.1.len() as isize { Unwritable::First } else { Unwritable::Second })
    }
}

/// Runs `again` after a copy failed because the system call does not exist, as in qemu-user and in some sandboxes.
///
/// # Errors
/// `EFAULT`, or the error of `again`.
#[cold]
pub fn otherwise(again: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    if Errno::last() == Errno::ENOSYS { again() } else { Err(Errno::EFAULT) }
}

/// The size of one piece, which always fits into a pipe.
const PIECE: usize = 4096;

/// Does the same as [`Own::read`] through a pipe. When memory is written to a pipe, the kernel reads it and checks the
/// address.
///
/// # Errors
/// `EFAULT` when the range cannot be read; the errno of opening a pipe.
pub fn piped_read(addr: u64, into: &mut [u8]) -> Result<(), Errno> {
    let (out, into_pipe) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    for (piece, offset) in into.chunks_mut(PIECE).zip((0..).step_by(PIECE)) {
        let from = (addr + offset) as usize as *const libc::c_void;
        // SAFETY: only the kernel reads there, after it has checked that it may.
        if unsafe { libc::write(into_pipe.as_raw_fd(), from, piece.len()) } != piece.len() as isize {
            return Err(Errno::EFAULT);
        }
        if nix::unistd::read(&out, piece)? != piece.len() {
            return Err(Errno::EFAULT);
        }
    }
    Ok(())
}

/// Does the same as [`Own::write`] through a pipe.
///
/// # Errors
/// `EFAULT` when the range cannot be written; the errno of opening a pipe.
pub fn piped_write(addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    let (out, into_pipe) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    for (piece, offset) in bytes.chunks(PIECE).zip((0..).step_by(PIECE)) {
        if nix::unistd::write(&into_pipe, piece)? != piece.len() {
            return Err(Errno::EFAULT);
        }
        let to = (addr + offset) as usize as *mut libc::c_void;
        // SAFETY: as in `Own::write`, the kernel checks that the range can be written.
        if unsafe { libc::read(out.as_raw_fd(), to, piece.len()) } != piece.len() as isize {
            return Err(Errno::EFAULT);
        }
    }
    Ok(())
}

/// Copies `bytes` to `addr`.
///
/// # Errors
/// `EFAULT` when the range cannot be written.
pub(crate) fn write(addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    Own::now().write(addr, bytes)
}

/// The largest length that is accepted. No argument of nvgpu or nvmap names more; the kernel refuses larger lengths
/// too.
const ARGUMENT_BYTES: usize = 64 << 20;

/// Reads `len` bytes from `addr`.
///
/// # Errors
/// `EFAULT` when the range cannot be read or is longer than 64 MiB.
pub(crate) fn read(addr: u64, len: usize) -> Result<Vec<u8>, Errno> {
    if len > ARGUMENT_BYTES {
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
    fn a_pipe_does_the_same() {
        let mut there: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        let (addr, mut copy) = (there.as_mut_ptr() as u64, vec![0; 10_000]);
        assert_eq!(piped_read(addr, &mut copy), Ok(()));
        assert_eq!(copy, there);
        copy.iter_mut().for_each(|byte| *byte ^= 0x55);
        assert_eq!(piped_write(addr, &copy), Ok(()));
        assert_eq!(read(addr, 10_000), Ok(copy));
        assert_eq!(piped_read(16, &mut [0; 4]), Err(Errno::EFAULT));
        assert_eq!(piped_write(16, &[1]), Err(Errno::EFAULT));
    }

    #[test]
    fn a_bad_address_is_an_error() {
        assert_eq!(read(16, 4), Err(Errno::EFAULT));
        assert_eq!(write(16, &[1]), Err(Errno::EFAULT));
        assert_eq!(read(0, 0), Ok(Vec::new()));
        assert_eq!(read(16, usize::MAX / 2), Err(Errno::EFAULT));
    }
}
