//! The memory that replaces a program's when the calls of its recording are made again.

use crate::describe::unsigned;
use crate::{Errno, Mapping, Placement, Prot, page_size};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::mem::offset_of;
use std::os::fd::AsFd;
use tegrarm_abi::nvmap::nvmap_create_handle_from_va;

/// The largest size of memory that is given for one pointer.
const POINTER_BYTES: usize = 64 << 20;

/// Memory for one call.
#[derive(Default)]
pub(crate) struct Lent {
    bytes: Vec<Mapping>,
    /// Shared pages, which a kernel can pin. They are needed after the call, too.
    pub pages: Vec<Mapping>,
}

impl Lent {
    /// Gives `len` bytes that begin with `contents`. They end where a page ends, and nothing can be accessed after them:
    /// a kernel that reads or writes more than the argument says gets `EFAULT`.
    pub(crate) fn bytes(&mut self, len: usize, contents: &[u8]) -> Option<u64> {
        let held = len.checked_next_multiple_of(page_size()).filter(|held| *held <= POINTER_BYTES)?;
        let (map, start) = (self::map(held, page_size(), held - len, contents).ok()?, held - len);
        let addr = (map.addr() + start) as u64;
        self.bytes.push(map);
        Some(addr)
    }

    /// Gives the pages that FROM_VA takes. If the argument names no size, it takes everything that is mapped there.
    pub(crate) fn pages(&mut self, argument: &[u8]) -> Option<u64> {
        let word = |at: usize, width: usize| argument.get(at..at + width).map_or(0, unsigned) as usize;
        let size = word(offset_of!(nvmap_create_handle_from_va, size), 4);
        let size64 = word(offset_of!(nvmap_create_handle_from_va, size64), 8);
        let named = if size == 0 { size64 } else { size };
        let len = named.max(1).checked_next_multiple_of(page_size()).filter(|len| *len <= POINTER_BYTES)?;
        let map = self::map(len, 0, 0, &[]).ok()?;
        let addr = map.addr() as u64;
        self.pages.push(map);
        Some(addr)
    }
}

/// Maps a new file of `len` bytes with some contents. `beyond` is how far the mapping goes over the end of the file.
fn map(len: usize, beyond: usize, start: usize, contents: &[u8]) -> Result<Mapping, Errno> {
    let fd = memfd_create("lent", MFdFlags::MFD_CLOEXEC)?;
    nix::unistd::ftruncate(&fd, len as i64)?;
    let room = contents.len().min(len - start);
    if nix::sys::uio::pwrite(&fd, &contents[..room], start as i64)? != room {
        return Err(Errno::ENOSPC);
    }
    Mapping::new(fd.as_fd(), Placement::Anywhere, len + beyond, Prot::ReadWrite, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{read, write};
    use tegrarm_abi::layout::{FromZeros, IntoBytes};

    #[test]
    fn nothing_lies_after_the_memory() {
        let mut lent = Lent::default();
        for len in [0, 1, 24, 4095, 4096, 5000] {
            let addr = lent.bytes(len, &[7; 9000]).expect("memory");
            assert_eq!(read(addr, len), Ok(vec![7; len]));
            assert_eq!(write(addr + len as u64, &[1]), Err(Errno::EFAULT), "{len}");
        }
        assert_eq!(lent.bytes(POINTER_BYTES + 1, &[]), None);
        assert_eq!(lent.bytes(usize::MAX, &[]), None);
    }

    #[test]
    fn pages_are_as_many_as_the_argument_names() {
        let mut args = nvmap_create_handle_from_va::new_zeroed();
        let mut lent = Lent::default();
        for (size, size64, len) in
            [(0, 0, Some(4096)), (5000, 0, Some(8192)), (0, 1 << 20, Some(1 << 20)), (0, 1 << 40, None)]
        {
            (args.size, args.size64) = (size, size64);
            assert_eq!(lent.pages(args.as_bytes()).and(lent.pages.last().map(Mapping::len)), len, "{size} {size64}");
        }
    }
}
