//! A buffer: what an nvmap handle and a dmabuf stand for.

use super::heaps::Reservation;
use crate::process::FileId;
use parking_lot::Mutex;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use tegra_mm::{Backing, Kept, memfd};
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// Memory of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// Heap bit it came from.
    pub heap: u32,
    /// ALLOC's flags; VPR forces uncached.
    pub flags: u32,
    /// Effective alignment.
    pub align: u32,
}

/// What REGISTER_BUFFER attached (docs/hardware/nvgpu-ctrl.md#register-buffer).
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub metadata: Vec<u8>,
    pub mutable: bool,
}

/// A buffer. It lives as long as an id, an open dmabuf descriptor or a GPU mapping does.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Unique for the life of the kernel.
    pub serial: u64,
    /// Bytes, a multiple of 4096.
    pub size: u64,
    state: Mutex<Storage>,
    memory: OnceLock<Arc<Backing>>,
    /// Identity of the dmabuf file, once a descriptor exists.
    identity: OnceLock<FileId>,
    /// The dmabuf of FROM_VA pages, which cannot be mapped through it: an empty file.
    stub: OnceLock<Kept>,
    pub registration: Mutex<Option<Registration>>,
}

/// Where the buffer lies, once it is allocated, and what that takes from a heap.
#[derive(Debug, Default)]
struct Storage {
    allocation: Option<Allocation>,
    _reservation: Option<Reservation>,
}

/// A buffer as one descriptor of its dmabuf allows to use it.
#[derive(Clone, Debug)]
pub(crate) struct Dmabuf {
    pub buffer: Arc<Buffer>,
    pub read_only: bool,
}

impl Dmabuf {
    /// The pages for the kernel's own use. `ENOMEM` when the buffer has no pages, or protected ones, or ones that may not be
    /// written.
    pub(crate) fn kernel_view(&self) -> Result<Arc<Backing>, Errno> {
        let secure = self.buffer.allocation().is_some_and(|a| a.heap == NVMAP_HEAP_CARVEOUT_VPR);
        if secure || self.read_only { Err(Errno::ENOMEM) } else { self.buffer.pages() }
    }
}

impl Buffer {
    pub(super) fn new(serial: u64, size: u64) -> Buffer {
        Buffer {
            serial,
            size,
            state: Mutex::default(),
            memory: OnceLock::new(),
            identity: OnceLock::new(),
            stub: OnceLock::new(),
            registration: Mutex::new(None),
        }
    }

    /// A buffer made of a caller's pinned pages.
    pub(super) fn pinned(serial: u64, pages: Backing, allocation: Allocation) -> Buffer {
        let buffer = Buffer::new(serial, pages.len() as u64);
        buffer.state.lock().allocation = Some(allocation);
        buffer.memory.get_or_init(|| Arc::new(pages));
        buffer
    }

    /// Its memory, once ALLOC gave it some.
    pub(crate) fn allocation(&self) -> Option<Allocation> {
        self.state.lock().allocation
    }

    /// The pages, when allocated. `ENOMEM` before ALLOC: that is what pinning it fails with.
    pub(crate) fn pages(&self) -> Result<Arc<Backing>, Errno> {
        if self.allocation().is_none() {
            return Err(Errno::ENOMEM);
        }
        self.backing()
    }

    /// The file behind it, made on first need.
    fn backing(&self) -> Result<Arc<Backing>, Errno> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory.clone());
        }
        let len = usize::try_from(self.size).map_err(|_| Errno::ENOMEM)?;
        let fresh = Backing::anonymous("dmabuf", len).map_err(|_| Errno::ENOMEM)?;
        Ok(self.memory.get_or_init(|| Arc::new(fresh)).clone())
    }

    /// Gives it memory. `EEXIST` when it has some.
    pub(super) fn allocate(
        &self,
        reserve: impl FnOnce() -> Result<(Allocation, Reservation), Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.state.lock();
        if state.allocation.is_some() {
            return Err(Errno::EEXIST);
        }
        let (allocation, reservation) = reserve()?;
        self.backing()?;
        *state = Storage { allocation: Some(allocation), _reservation: Some(reservation) };
        Ok(())
    }

    /// Whether it consists of pages that may only be read.
    pub(crate) fn read_only(&self) -> bool {
        self.allocation().is_some_and(|a| a.flags & NVMAP_HANDLE_RO != 0 && self.is_pinned())
    }

    /// Whether it came from FROM_VA.
    pub(crate) fn is_pinned(&self) -> bool {
        self.memory.get().is_some_and(|m| m.memfd().is_none())
    }

    /// A new descriptor of its dmabuf, and the dmabuf's identity.
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
        // Out of the way first: what the program gets is the lowest number.
        let fd = if read_only { memfd::duplicate_read_only(&memfd::stow(fd)?)? } else { fd };
        Ok((fd, id))
    }

    /// Whether descriptor `fd` of this process is the simulator's own one of the dmabuf.
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
