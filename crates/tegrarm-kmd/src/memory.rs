//! Memory behind the pointers in ioctl arguments, reached the way the kernel would: a bad address is an error,
//! not a crash of the recorder.
#![allow(unsafe_code)]

use crate::Errno;

fn remote(addr: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: addr as usize as *mut libc::c_void, iov_len: len }
}

fn whole(done: isize, wanted: usize) -> Result<(), Errno> {
    match done {
        n if n == wanted as isize => Ok(()),
        n if n < 0 => Err(Errno::last()),
        _ => Err(Errno::EFAULT),
    }
}

/// No argument of nvgpu or nvmap names more: a larger length is garbage that the kernel refuses, too.
const MOST: usize = 64 << 20;

/// Copies `len` bytes from `addr` of this process.
///
/// # Errors
/// `EFAULT` when the range is not readable, or longer than 64 MiB.
pub(crate) fn read(addr: u64, len: usize) -> Result<Vec<u8>, Errno> {
    if len > MOST {
        return Err(Errno::EFAULT);
    }
    let mut out = vec![0u8; len];
    if len == 0 {
        return Ok(out);
    }
    let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: len };
    // SAFETY: `local` is `out`, exactly `len` bytes; the kernel checks the other address itself.
    whole(unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote(addr, len), 1, 0) }, len)?;
    Ok(out)
}

/// Copies `bytes` to `addr` of this process.
///
/// # Errors
/// `EFAULT` when the range is not writable.
pub(crate) fn write(addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: `local` is only read. The caller passed `addr` to an ioctl for the kernel to write, so nothing
    // else relies on what is there; the kernel checks that the range is mapped writable.
    let done = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote(addr, bytes.len()), 1, 0) };
    whole(done, bytes.len())
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
