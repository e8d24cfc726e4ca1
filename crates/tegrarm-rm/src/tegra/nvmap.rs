//! nvmap: memory handles, and the dmabuf descriptors that are made of them.

use super::error::{call, call_value};
use super::release::call_as;
use super::{KernelError, PAGE, Release, nodes};
use nix::unistd::{Whence, lseek};
use once_cell::sync::OnceCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::{NVMAP_IOC_ALLOC_R35, nvmap_alloc_handle_r35};
use tegrarm_abi::nvgpu::r39::{NVMAP_IOC_ALLOC_R39, nvmap_alloc_handle_r39};
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::{Errno, File, Kmd, Mapping, Node, Placement, Prot, Tally, tally};
use tegrarm_lock::Mutex;
use zerocopy::FromZeros;

/// The CPU attribute of a buffer. nvmap fixes it at the allocation for all later CPU mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// Write-combined, for memory that the CPU only writes, such as control structures.
    WriteCombine,
    /// Cached and IO-coherent with the GPU, for data that the CPU reads.
    InnerCacheable,
}

/// Allocations of at least the first size are made with the alignment that comes second.
const HUGE: (u64, u32) = (8 << 20, 2 << 20);
/// The tag of the allocation. nvmap keeps accounts by tag, and writes a line to the kernel log for tag 0.
const TAG: u32 = 0x0900 << 16;
/// The number of descriptors that are kept open, for the buffers that were mapped last. Mapping a fresh buffer into the
/// GPU and then into the CPU therefore asks for one descriptor and not for two. The number is small, because thousands
/// of buffers must not use up the 1024 descriptors of a process.
const OPEN_FDS: usize = 16;

/// The nvmap client of this process.
pub struct Nvmap {
    file: File,
    release: Release,
    open: Mutex<VecDeque<(u32, Arc<File>)>>,
    /// Shows other processes how much memory this process has. It is made with the first memory.
    tally: OnceCell<Tally>,
}

impl Nvmap {
    /// Opens the node and finds out its release. nvmap is another kernel module than nvgpu and can be of another
    /// release. `likely` is nvgpu's release.
    ///
    /// # Errors
    /// The errno of `open(2)` with the name of the node; `ENOTSUP` when the release is not known.
    pub fn open(kmd: &Arc<dyn Kmd>, likely: Release) -> Result<Arc<Nvmap>, KernelError> {
        let file = nodes::open(kmd, Node::Nvmap, nodes::NVMAP)?;
        let release = generation(&file, likely)?;
        Ok(Arc::new(Nvmap { file, release, open: Mutex::default(), tally: OnceCell::new() }))
    }

    fn create(&self, size: u64) -> Result<u32, KernelError> {
        if let Ok(size) = u32::try_from(size) {
            let mut args = nvmap_create_handle { size, handle: 0 };
            call(&self.file, NVMAP_IOC_CREATE, &mut args)?;
            return Ok(args.handle);
        }
        // CREATE_64 reads a size of eight bytes and writes the handle into the first four of them.
        let mut args = nvmap_create_handle { size: size as u32, handle: (size >> 32) as u32 };
        call(&self.file, NVMAP_IOC_CREATE_64, &mut args)?;
        Ok(args.size)
    }

    fn alloc(&self, handle: u32, cache: CacheMode, align: u32) -> Result<(), KernelError> {
        let cache = match cache {
            CacheMode::WriteCombine => NVMAP_HANDLE_WRITE_COMBINE,
            CacheMode::InnerCacheable => NVMAP_HANDLE_INNER_CACHEABLE,
        };
        let (heap_mask, flags) = (NVMAP_HEAP_IOVMM, TAG | cache);
        let mut args = nvmap_alloc_handle { handle, heap_mask, flags, align, numa_nid: -1 };
        match self.release {
            Release::R36 => call(&self.file, NVMAP_IOC_ALLOC, &mut args),
            Release::R35 => call_as::<nvmap_alloc_handle_r35, _>(&self.file, NVMAP_IOC_ALLOC_R35, &mut args),
            // The structure has an address field for a heap that is not asked for here. The field stays 0.
            Release::R39 => call_as::<nvmap_alloc_handle_r39, _>(&self.file, NVMAP_IOC_ALLOC_R39, &mut args),
        }
    }

    fn tally(&self) -> &Tally {
        self.tally.get_or_init(|| Tally::new(tally::Source::Memory))
    }

    fn get_fd(&self, handle: u32) -> Result<File, KernelError> {
        let mut args = nvmap_create_handle { size: 0, handle };
        call(&self.file, NVMAP_IOC_GET_FD, &mut args)?;
        File::from_output(self.file.kmd(), Node::Dmabuf, args.size as i32)
            .map_err(|errno| KernelError::new("NVMAP_IOC_GET_FD", errno))
    }

    /// Returns a descriptor of the buffer: one of the few that are kept open, or a new one.
    fn dmabuf(&self, handle: u32) -> Result<Arc<File>, KernelError> {
        if let Some((_, file)) = self.open.lock().iter().find(|(h, _)| *h == handle) {
            return Ok(file.clone());
        }
        let mut file = self.get_fd(handle)?;
        if file.raw() == 0 {
            // nvgpu takes descriptor 0 for "none". While this code holds it, the next descriptor gets another number.
            let other = self.get_fd(handle)?;
            file = other;
        }
        let file = Arc::new(file);
        let mut open = self.open.lock();
        open.push_back((handle, file.clone()));
        let evicted = if open.len() > OPEN_FDS { open.pop_front() } else { None };
        drop(open);
        drop(evicted);
        Ok(file)
    }

    fn free(&self, handle: u32) {
        let closed = {
            let mut open = self.open.lock();
            open.iter().position(|(h, _)| *h == handle).and_then(|at| open.remove(at))
        };
        drop(closed);
        if let Err(e) = call_value(&self.file, NVMAP_IOC_FREE, u64::from(handle)) {
            tracing::warn!("nvmap handle {handle:#x} is lost: {e}");
        }
    }
}

/// The command numbers that ALLOC has on the releases.
pub(super) const ALLOCS: [(Release, u32); 3] =
    [(Release::R35, NVMAP_IOC_ALLOC_R35), (Release::R36, NVMAP_IOC_ALLOC), (Release::R39, NVMAP_IOC_ALLOC_R39)];

/// Sends ALLOC for no handle under one command number. A kernel that knows the command answers `EINVAL` and changes
/// nothing. A kernel that does not know it answers `ENOTTY`.
pub(super) fn ask_alloc(file: &File, release: Release) -> Result<(), Errno> {
    match release {
        Release::R35 => file.ioctl(NVMAP_IOC_ALLOC_R35, &mut nvmap_alloc_handle_r35::new_zeroed()),
        Release::R36 => file.ioctl(NVMAP_IOC_ALLOC, &mut nvmap_alloc_handle::new_zeroed()),
        Release::R39 => file.ioctl(NVMAP_IOC_ALLOC_R39, &mut nvmap_alloc_handle_r39::new_zeroed()),
    }
}

/// The release whose ALLOC the node knows. `likely` is tried first, because the kernel writes a line to its log for
/// each unknown command.
fn generation(file: &File, likely: Release) -> Result<Release, KernelError> {
    let others = ALLOCS.map(|(release, _)| release).into_iter().filter(|release| *release != likely);
    for release in std::iter::once(likely).chain(others) {
        match ask_alloc(file, release) {
            Err(Errno::EINVAL) => return Ok(release),
            Err(Errno::ENOTTY) => {}
            Err(errno) => return Err(KernelError::new("asking nvmap which NVMAP_IOC_ALLOC it knows", errno)),
            Ok(()) => {
                let text =
                    format!("NVMAP_IOC_ALLOC of {release:?} with handle 0 succeeds, which no known kernel does: it");
                return Err(KernelError::new(text, Errno::ENOTSUP));
            }
        }
    }
    let known = ALLOCS.map(|(release, number)| format!("{number:#x} ({release:?})")).join(", ");
    let text = format!(
        "nvmap knows none of the commands that NVMAP_IOC_ALLOC has been, {known}; `python -m tegrarm doctor` prints what \
         it answers for a report; finding one"
    );
    Err(KernelError::new(text, Errno::ENOTSUP))
}

/// One buffer: an nvmap handle with memory, or a dmabuf of another driver. It is given back when it is dropped. CPU and
/// GPU mappings that still exist then keep the memory alive.
pub struct Backing {
    nvmap: Arc<Nvmap>,
    source: Source,
    size: u64,
    cache: Option<CacheMode>,
    /// Whether it counts as memory of this process. Pages of the program and shares of other buffers do not: they are counted elsewhere.
    counted: bool,
}

enum Source {
    Handle(u32),
    /// A dmabuf of another driver. nvmap has no handles for such buffers, so the descriptor stays open.
    Descriptor(Arc<File>),
}

/// The lowest number of a handle. For a dmabuf of another driver FROM_FD answers with a descriptor, and descriptors are
/// always smaller.
const FIRST_HANDLE: u32 = 0x4000_0000;

impl Backing {
    /// Allocates zeroed memory behind the SMMU. `size` is rounded up to whole pages.
    ///
    /// # Errors
    /// `ENOMEM` when there is not enough memory; otherwise the errno of CREATE or ALLOC.
    pub fn new(nvmap: &Arc<Nvmap>, size: u64, cache: CacheMode) -> Result<Backing, KernelError> {
        let rounded = size.checked_next_multiple_of(PAGE).filter(|s| *s <= i64::MAX as u64 && *s > 0);
        let asked = size;
        let size = rounded.ok_or_else(|| KernelError::new(format!("sizing {size:#x} bytes"), Errno::ENOMEM))?;
        let align = if size >= HUGE.0 { HUGE.1 } else { PAGE as u32 };
        // nvmap rounds up itself. It notes what was asked for, by which a simulated kernel knows the end of the buffer.
        let handle = nvmap.create(asked)?;
        let source = Source::Handle(handle);
        let mut backing = Backing { nvmap: nvmap.clone(), source, size, cache: Some(cache), counted: false };
        nvmap.alloc(handle, cache, align)?;
        nvmap.tally().add(size);
        backing.counted = true;
        Ok(backing)
    }

    /// Wraps pages of this process. `va` must be a multiple of the page size, and `size` is in bytes.
    ///
    /// # Errors
    /// `EINVAL` when a page is missing or, unless `read_only`, not writable.
    pub fn from_va(nvmap: &Arc<Nvmap>, va: u64, size: u64, read_only: bool) -> Result<Backing, KernelError> {
        let flags = NVMAP_HANDLE_INNER_CACHEABLE | TAG | if read_only { NVMAP_HANDLE_RO } else { 0 };
        let mut args = nvmap_create_handle_from_va { va, size: 0, flags, size64: size };
        call(&nvmap.file, NVMAP_IOC_FROM_VA, &mut args)?;
        // The kernel writes the handle into the first four bytes of the size.
        let size = size.next_multiple_of(PAGE);
        Ok(Backing {
            nvmap: nvmap.clone(),
            source: Source::Handle(args.size64 as u32),
            size,
            cache: None,
            counted: false,
        })
    }

    /// Takes a share of a buffer that exists already. It may come from this process, from another process or from
    /// another driver. The descriptor stays the caller's.
    ///
    /// # Errors
    /// The errno of `lseek(2)` or FROM_FD for a descriptor that is not a dmabuf; `EINVAL` for an empty buffer.
    pub fn import(nvmap: &Arc<Nvmap>, fd: BorrowedFd<'_>) -> Result<Backing, KernelError> {
        let number = fd.as_raw_fd();
        let failed = |errno| KernelError::new(format!("asking for the size of descriptor {number}"), errno);
        let size = lseek(fd, 0, Whence::SeekEnd).map_err(failed)? as u64;
        if size == 0 {
            return Err(failed(Errno::EINVAL));
        }
        let mut args = nvmap_create_handle { size: number as u32, handle: 0 };
        call(&nvmap.file, NVMAP_IOC_FROM_FD, &mut args)?;
        let source = if args.handle >= FIRST_HANDLE {
            Source::Handle(args.handle)
        } else {
            let file = File::from_output(nvmap.file.kmd(), Node::Dmabuf, args.handle as i32);
            Source::Descriptor(Arc::new(file.map_err(|errno| KernelError::new("NVMAP_IOC_FROM_FD", errno))?))
        };
        Ok(Backing { nvmap: nvmap.clone(), source, size, cache: None, counted: false })
    }

    /// Makes a new descriptor of the buffer, for use outside the library.
    ///
    /// # Errors
    /// The errno of GET_FD; `EMFILE` when the process has no descriptor left.
    pub fn export(&self) -> Result<OwnedFd, KernelError> {
        match &self.source {
            Source::Handle(handle) => self.nvmap.get_fd(*handle).map(OwnedFd::from),
            Source::Descriptor(file) => file
                .as_fd()
                .try_clone_to_owned()
                .map_err(|e| KernelError::new("duplicating a dmabuf's descriptor", of_io(&e))),
        }
    }

    /// The size in bytes, a multiple of the page size.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The CPU attribute. It is `None` for pages of the process itself, which are mapped already.
    pub fn cache(&self) -> Option<CacheMode> {
        self.cache
    }

    /// The nvmap client through which it was allocated.
    pub fn nvmap(&self) -> &Arc<Nvmap> {
        &self.nvmap
    }

    /// A descriptor of the buffer.
    ///
    /// # Errors
    /// The errno of GET_FD; `EMFILE` when the process has no descriptor left.
    pub fn dmabuf(&self) -> Result<Arc<File>, KernelError> {
        match &self.source {
            Source::Handle(handle) => self.nvmap.dmabuf(*handle),
            Source::Descriptor(file) => Ok(file.clone()),
        }
    }

    /// Maps `len` bytes from `offset` into this process.
    ///
    /// # Errors
    /// The errno of `mmap(2)`; `EEXIST` when [`Placement::ExactlyIfFree`] meets an occupied range.
    pub fn map_cpu(&self, at: Placement, len: u64, offset: u64, prot: Prot) -> Result<Mapping, KernelError> {
        let len = usize::try_from(len).map_err(|_| KernelError::new("mmap of a dmabuf", Errno::ENOMEM))?;
        self.dmabuf()?.mmap(at, len, prot, offset).map_err(|errno| KernelError::new("mmap of a dmabuf", errno))
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Source::Handle(handle) = self.source {
            self.nvmap.free(handle);
        }
        if self.counted {
            self.nvmap.tally().sub(self.size);
        }
    }
}

fn of_io(e: &std::io::Error) -> Errno {
    Errno::from_raw(e.raw_os_error().unwrap_or_default())
}
