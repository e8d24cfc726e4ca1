//! A buffer. Both nvmap handles and dmabufs stand for one.

use super::memory::Reservation;
use crate::budget::Share;
use crate::dispatch::{Call, Reply};
use crate::files::{Mmap, OpenFile, of_type};
use crate::process::FileId;
use crate::rule::{self, Because};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use tegra_mm::{Backing, Kept, memfd};
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::{Errno, Node};
use tegrarm_lock::Mutex;

/// The memory of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// The bit of the heap from which it came.
    pub heap: u32,
    /// The flags of ALLOC. VPR makes every buffer uncached.
    pub flags: u32,
    /// The alignment that was used.
    pub align: u32,
}

/// The data that REGISTER_BUFFER attached (docs/hardware/nvgpu-ctrl.md#register-buffer).
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub metadata: Vec<u8>,
    pub mutable: bool,
    /// Whether the buffer has compression tags.
    pub comptags: bool,
}

/// A buffer. It lives for as long as an id, an open dmabuf descriptor or a GPU mapping refers to it.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// A number that no other buffer of this kernel ever has.
    pub serial: u64,
    /// The size in bytes, a multiple of 4096.
    pub size: u64,
    /// The size that CREATE asked for, before it was rounded up.
    asked: u64,
    state: Mutex<Storage>,
    memory: OnceLock<Arc<Backing>>,
    /// The identity of the dmabuf file, after a descriptor was made.
    identity: OnceLock<FileId>,
    /// The dmabuf of pages from FROM_VA. It is an empty file, because these pages cannot be mapped through it.
    stub: OnceLock<Kept>,
    /// What was registered for the dmabuf, and for the read-only dmabuf.
    registrations: [Mutex<Option<Registration>>; 2],
    _share: Option<Share>,
}

/// The file of a buffer is its dmabuf (docs/hardware/nvmap.md#dmabuf-mmap).
impl OpenFile for Buffer {
    fn node(&self) -> Option<Node> {
        Some(Node::Dmabuf)
    }

    fn check_mmap(&self, call: &Call<'_>, asked: &Mmap) -> Result<(), Errno> {
        if asked.offset.checked_add(asked.len as u64).is_none_or(|end| end > self.size) {
            return Err(Errno::EINVAL.because("the range reaches beyond the end of the buffer"));
        }
        let none = || Errno::EPERM.because("the buffer has no memory yet (NVMAP_IOC_ALLOC)");
        let allocation = self.allocation().ok_or_else(none)?;
        let forbidden = allocation.heap == NVMAP_HEAP_CARVEOUT_VPR || (asked.write && self.read_only());
        if forbidden {
            return Err(Errno::EPERM.because("the buffer is protected memory, or read-only"));
        }
        if asked.write && call.read_only() { Err(Errno::EACCES) } else { Ok(()) }
    }

    fn own_view(&self) -> Option<usize> {
        Some(self.pages().ok()?.as_ptr() as usize)
    }

    fn is_memory(&self) -> bool {
        true
    }
}

/// The place of the buffer's pages, after the allocation, and the bytes that it takes from a heap.
#[derive(Debug)]
struct Storage {
    allocation: Option<Allocation>,
    /// The cacheability and the alignment that the last ALLOC asked for, also if it failed then.
    attributes: (u64, u64),
    _reservation: Option<Reservation>,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage { allocation: None, attributes: (u64::from(NVMAP_HANDLE_WRITE_COMBINE), 0), _reservation: None }
    }
}

/// A buffer, with the access that one descriptor of its dmabuf allows.
#[derive(Clone, Debug)]
pub(crate) struct Dmabuf {
    pub buffer: Arc<Buffer>,
    pub read_only: bool,
}

impl Dmabuf {
    /// What was registered for it. A read-only dmabuf of a buffer is another one.
    pub(crate) fn registration(&self) -> &Mutex<Option<Registration>> {
        &self.buffer.registrations[usize::from(self.read_only)]
    }

    /// The pages, for use by the kernel itself. The error is `ENOMEM` if the buffer has no pages, or protected pages,
    /// or pages that may not be written.
    pub(crate) fn kernel_view(&self) -> Result<Arc<Backing>, Errno> {
        let secure = self.buffer.allocation().is_some_and(|a| a.heap == NVMAP_HEAP_CARVEOUT_VPR);
        if secure || self.read_only {
            return Err(Errno::ENOMEM.because("the kernel cannot write the dmabuf: it is protected or read-only"));
        }
        self.buffer.pages()
    }
}

impl Buffer {
    pub(super) fn new(serial: u64, size: u64, asked: u64, share: Option<Share>) -> Buffer {
        Buffer {
            serial,
            size,
            asked,
            state: Mutex::default(),
            memory: OnceLock::new(),
            identity: OnceLock::new(),
            stub: OnceLock::new(),
            registrations: Default::default(),
            _share: share,
        }
    }

    /// A buffer made of a caller's pinned pages.
    pub(super) fn pinned(serial: u64, pages: Backing, allocation: Allocation, share: Option<Share>) -> Buffer {
        let size = pages.len() as u64;
        let buffer = Buffer::new(serial, size, size, share);
        *buffer.state.lock() = Storage {
            allocation: Some(allocation),
            attributes: (u64::from(allocation.flags & NVMAP_HANDLE_CACHE_FLAG), u64::from(allocation.align)),
            _reservation: None,
        };
        buffer.memory.get_or_init(|| Arc::new(pages));
        buffer
    }

    /// Its memory, after ALLOC.
    pub(crate) fn allocation(&self) -> Option<Allocation> {
        self.state.lock().allocation
    }

    /// The pages. The error is `ENOMEM` before ALLOC, as for pinning such a buffer.
    pub(crate) fn pages(&self) -> Result<Arc<Backing>, Errno> {
        if self.allocation().is_none() {
            return Err(Errno::ENOMEM.because("the handle has no memory yet (NVMAP_IOC_ALLOC)"));
        }
        self.backing()
    }

    /// The file behind it, which is made when it is first needed.
    fn backing(&self) -> Result<Arc<Backing>, Errno> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory.clone());
        }
        let asked = usize::try_from(self.asked).map_err(|_| Errno::ENOMEM)?;
        let fresh = Backing::anonymous("dmabuf", asked).map_err(|_| Errno::ENOMEM)?;
        Ok(self.memory.get_or_init(|| Arc::new(fresh)).clone())
    }

    /// Its cacheability and its alignment, which ALLOC says.
    pub(super) fn attributes(&self) -> (u64, u64) {
        self.state.lock().attributes
    }

    /// Gives memory to the buffer. The error is `EEXIST` if it has memory already.
    pub(super) fn allocate(
        &self,
        attributes: (u64, u64),
        reserve: impl FnOnce() -> Result<(Allocation, Reservation), Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.state.lock();
        if state.allocation.is_some() {
            return Err(Errno::EEXIST.because("the handle has memory already"));
        }
        state.attributes = attributes;
        let (allocation, reservation) = reserve()?;
        self.backing()?;
        *state = Storage { allocation: Some(allocation), attributes, _reservation: Some(reservation) };
        Ok(())
    }

    /// Whether its pages may only be read.
    pub(crate) fn read_only(&self) -> bool {
        self.allocation().is_some_and(|a| a.flags & NVMAP_HANDLE_RO != 0 && self.is_pinned())
    }

    /// Whether it was made by FROM_VA.
    pub(crate) fn is_pinned(&self) -> bool {
        self.memory.get().is_some_and(|m| m.memfd().is_none())
    }

    /// Makes a new descriptor of its dmabuf. Returns the descriptor and the dmabuf's identity.
    pub(super) fn descriptor(&self, read_only: bool) -> Result<(OwnedFd, FileId), Errno> {
        let memory = self.backing()?;
        let fd = match memory.memfd() {
            Some(file) => file.duplicate(),
            None => self.stub()?.duplicate(),
        }?;
        let id = match self.identity.get() {
            Some(id) => *id,
            None => *self.identity.get_or_init(|| FileId::of(&fd).unwrap_or(FileId { dev: 0, ino: 0 })),
        };
        // The other descriptor is moved to a high number first, so that the program gets the lowest free number.
        let fd = if read_only { memfd::duplicate_read_only(&memfd::stow(fd)?)? } else { fd };
        Ok((fd, id))
    }

    /// Whether descriptor `fd` of this process is the simulator's own descriptor of the dmabuf.
    pub(super) fn is_kept_on(&self, fd: RawFd) -> bool {
        let memory = self.memory.get().and_then(|m| m.memfd());
        memory.into_iter().chain(self.stub.get()).any(|kept| kept.is_on(fd))
    }

    fn stub(&self) -> Result<&Kept, Errno> {
        if let Some(fd) = self.stub.get() {
            return Ok(fd);
        }
        let fresh = Kept::new(memfd::create("dmabuf", 0)?)?;
        Ok(self.stub.get_or_init(|| fresh))
    }
}

impl Call<'_> {
    /// The caller's dmabuf behind `fd`. The error is `EBADF` if the descriptor is closed, and `EINVAL` if it is not a
    /// dmabuf.
    pub(crate) fn dmabuf(&self, fd: RawFd) -> Reply<Dmabuf> {
        let closed = |_: &Errno| rule::note(format!("descriptor {fd} is not open, or not of this board"));
        let file = self.files.object(self.process, fd).inspect_err(closed)?;
        let other = || Errno::EINVAL.because(format!("descriptor {fd} is not a dmabuf"));
        let buffer: Arc<Buffer> = of_type(file).ok_or_else(other)?;
        let read_only = buffer.read_only() || self.process.read_only(fd);
        Ok(Dmabuf { buffer, read_only })
    }
}
