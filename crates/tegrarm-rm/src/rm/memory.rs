//! Memory objects.

use super::gpu::Gpu;
use super::refused;
use super::store::{Overlay, Store};
use super::vaspace::{MapRequest, VaSpace};
use crate::status::{RmResult, fail};
use crate::tegra::{Backing, CacheMode, MapFlags, PAGE};
use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Mapping, Placement, Prot};
use tegrarm_lock::Mutex;

/// The size of the memory behind a buffer of the notifier type until the buffer is used: one page.
const UNTOUCHED: u64 = PAGE;

/// A buffer with a handle. It has the part that every handle of the buffer shares, and the places where the client of
/// this handle mapped it.
pub struct Memory {
    gpu: Arc<Gpu>,
    /// The number of bytes that the client asked for, rounded up to whole pages.
    pub size: u64,
    traits: Traits,
    content: Arc<Mutex<Content>>,
    /// The mappings of this handle. A call that needs this lock and that of `content` takes this one first.
    mapped: Mutex<Mapped>,
}

/// What the allocation parameters say about the use of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The CPU attribute, if the client names one.
    pub coherency: Option<CacheMode>,
    /// True if the GPU may keep lines of the buffer in its L2.
    pub gpu_cacheable: bool,
    /// True for an error notifier. Such a buffer is usually large and usually never touched.
    pub notifier: bool,
    /// True for system memory (class 0x3E or 0x71), false for what desktop RM would call video memory.
    pub system: bool,
    /// True for the client's own pages, which are mapped already.
    pub foreign: bool,
}

struct Content {
    store: Arc<Store>,
    /// True if `store` is one page that stands for `size` bytes that nobody has used yet.
    untouched: bool,
    /// True if that page was given to a user that keeps it: the kernel, which writes errors there.
    handed_out: bool,
    /// After a notifier grew: the notifier's first page, into which the kernel writes. It is mapped over the CPU's
    /// views.
    notifier: Option<Arc<Overlay>>,
    /// The GPU mappings that were made before the buffer was first used. They have no memory behind them yet.
    hollow: Vec<GpuPlace>,
    /// True if the buffer was mapped anywhere.
    used: bool,
    /// True if the CPU reads or writes the buffer.
    seen: bool,
}

/// The places where the client of one handle mapped the buffer.
#[derive(Default)]
struct Mapped {
    cpu: Vec<CpuView>,
    /// The cookies of the descriptors to which it was lent.
    lent: Vec<u64>,
    gpu: Vec<GpuPlace>,
}

/// A GPU address in a VA space.
struct GpuPlace {
    space: Weak<VaSpace>,
    va: u64,
}

impl GpuPlace {
    fn is(&self, space: &Arc<VaSpace>, va: u64) -> bool {
        self.va == va && std::ptr::eq(self.space.as_ptr(), Arc::as_ptr(space))
    }
}

struct CpuView {
    mapping: Mapping,
    store: Arc<Store>,
}

impl Traits {
    /// Reads the traits from `NV_MEMORY_ALLOCATION_PARAMS`.
    pub fn of(params: &NV_MEMORY_ALLOCATION_PARAMS, system: bool) -> Traits {
        let coherency = match params.attr >> 29 {
            NVOS32_ATTR_COHERENCY_WRITE_COMBINE => Some(CacheMode::WriteCombine),
            NVOS32_ATTR_COHERENCY_CACHED | NVOS32_ATTR_COHERENCY_WRITE_BACK | NVOS32_ATTR_COHERENCY_WRITE_THROUGH => {
                Some(CacheMode::InnerCacheable)
            }
            // The value 0 means "uncached" by its name, but every client that does not care about the attribute passes
            // it.
            _ => None,
        };
        Traits {
            coherency,
            gpu_cacheable: params.attr2 >> 2 & 3 != NVOS32_ATTR2_GPU_CACHEABLE_NO,
            notifier: system && params.type_ == NVOS32_TYPE_NOTIFIER,
            system,
            foreign: false,
        }
    }
}

impl Memory {
    /// Allocates memory.
    ///
    /// # Errors
    /// NO_MEMORY when there is not that much memory.
    pub fn new(gpu: &Arc<Gpu>, size: u64, traits: Traits) -> RmResult<Memory> {
        let untouched = traits.notifier && size > UNTOUCHED;
        let cache = traits.coherency.unwrap_or(CacheMode::InnerCacheable);
        let store = Store::new(&gpu.nvmap, if untouched { UNTOUCHED } else { size }, cache);
        let store = store.map_err(|e| refused::explain(&**gpu.kmd(), size, e))?;
        let size = if untouched { size.next_multiple_of(PAGE) } else { store.size() };
        Ok(Memory::with(gpu, size, traits, Content::of(store, untouched)))
    }

    /// Wraps a buffer that exists already.
    pub fn of(gpu: &Arc<Gpu>, backing: Backing, traits: Traits) -> Memory {
        let store = Store::of(backing);
        Memory::with(gpu, store.size(), traits, Content::of(store, false))
    }

    fn with(gpu: &Arc<Gpu>, size: u64, traits: Traits, content: Content) -> Memory {
        let content = Arc::new(Mutex::new(content));
        Memory { gpu: gpu.clone(), size, traits, content, mapped: Mutex::default() }
    }

    /// Makes another memory object over the same buffer, without any mapping.
    pub fn duplicate(&self) -> Memory {
        let (gpu, content) = (self.gpu.clone(), self.content.clone());
        Memory { gpu, size: self.size, traits: self.traits, content, mapped: Mutex::default() }
    }

    /// Whether two handles have one content.
    pub fn is_same_as(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }

    /// Whether the memory is the client's own pages.
    pub fn is_foreign(&self) -> bool {
        self.traits.foreign
    }

    /// The GPU to which the memory belongs.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The buffer as it is now, for a user that keeps it. It is not exchanged any more after this.
    pub fn store(&self) -> Arc<Store> {
        let mut content = self.content.lock();
        content.handed_out = true;
        content.store.clone()
    }

    /// Makes a new descriptor of the buffer, for use outside the library.
    ///
    /// # Errors
    /// NOT_SUPPORTED for pages of the process itself, which cannot be mapped through a descriptor.
    pub fn export(&self) -> RmResult<OwnedFd> {
        if self.traits.foreign {
            fail!(NV_ERR_NOT_SUPPORTED, "memory made of the process's own pages has no descriptor for others to map");
        }
        let mut content = self.content.lock();
        self.touch(&mut content)?;
        let fd = content.store.backing().export()?;
        (content.used, content.handed_out) = (true, true);
        Ok(fd)
    }

    /// Whether the memory is system memory in the sense of desktop RM.
    pub fn is_system(&self) -> bool {
        self.traits.system
    }

    /// The range `offset..offset + len`, after a check that it lies in the object.
    ///
    /// # Errors
    /// INVALID_LIMIT for a length of 0, INVALID_BASE beyond the end.
    pub fn range(&self, offset: u64, len: u64) -> RmResult<Range<u64>> {
        if len == 0 {
            fail!(NV_ERR_INVALID_LIMIT, "a length of 0");
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(offset..end),
            _ => fail!(NV_ERR_INVALID_BASE, "{offset:#x}+{len:#x} is beyond the {:#x} bytes of the memory", self.size),
        }
    }

    /// Allocates the memory of an untouched buffer. If the kernel was already told to write errors into the one page
    /// that existed, that page stays the first one that the CPU sees.
    fn touch(&self, content: &mut Content) -> RmResult<()> {
        if !content.untouched {
            return Ok(());
        }
        let full = Store::new(&self.gpu.nvmap, self.size, CacheMode::InnerCacheable);
        let full = full.map_err(|e| refused::explain(&**self.gpu.kmd(), self.size, e))?;
        if content.handed_out {
            let first_page = Overlay::new(content.store.backing(), 0);
            full.cover(&first_page)?;
            content.notifier = Some(first_page);
        }
        for place in content.hollow.drain(..) {
            if let Some(space) = place.space.upgrade() {
                space.fill_sparse(place.va, &full)?;
            }
        }
        content.store = full;
        content.untouched = false;
        Ok(())
    }

    /// Prepares the buffer for a CPU mapping: afterwards it has memory, with an attribute that fits.
    fn show(&self, content: &mut Content, wanted: CacheMode) -> RmResult<()> {
        if self.traits.foreign {
            fail!(NV_ERR_NOT_SUPPORTED, "memory made of the process's own pages is mapped already: use its pointer");
        }
        self.touch(content)?;
        self.choose_attribute(content, wanted);
        Ok(())
    }

    /// Maps a part of the memory into this process and returns the address. With `at`, the mapping replaces what is
    /// there. Without `at`, it goes to the buffer's GPU address if the library chose that address and the range is
    /// free, and to any free address otherwise.
    ///
    /// # Errors
    /// INVALID_LIMIT and INVALID_BASE for a bad range, INVALID_OFFSET for an offset that is not a multiple of the page
    /// size, NO_MEMORY and OPERATING_SYSTEM from the kernel.
    pub fn map_cpu(&self, at: Option<usize>, offset: u64, len: u64, prot: Prot, wanted: CacheMode) -> RmResult<usize> {
        let range = self.range(offset, len)?;
        if !offset.is_multiple_of(PAGE) {
            fail!(NV_ERR_INVALID_OFFSET, "offset {offset:#x} is not a multiple of the page size {PAGE:#x}");
        }
        let mut mapped = self.mapped.lock();
        let mut content = self.content.lock();
        self.show(&mut content, wanted)?;
        let store = content.store.clone();
        let mapping = match at {
            Some(addr) => store.map(Placement::Replace(addr), offset, len, prot)?,
            None => map_near_gpu(&store, &mapped.gpu, range, prot)?,
        };
        (content.used, content.seen) = (true, true);
        let addr = mapping.addr();
        mapped.cpu.push(CpuView { mapping, store });
        Ok(addr)
    }

    /// Makes `onto`, a descriptor of the client, refer to the buffer, so that the client's own `mmap(2)` at offset 0
    /// maps it. Returns a cookie for [`Memory::unmap_cpu`].
    ///
    /// # Errors
    /// INVALID_LIMIT and INVALID_BASE for a bad range, NOT_SUPPORTED for a part that does not start at the start of the
    /// buffer or that shows a channel's pages.
    pub fn lend(&self, offset: u64, len: u64, wanted: CacheMode, onto: RawFd) -> RmResult<u64> {
        self.range(offset, len)?;
        if offset != 0 {
            fail!(
                NV_ERR_NOT_SUPPORTED,
                "offset {offset:#x}: a descriptor shows a buffer from its start; map from offset 0, or use rm_map_memory"
            );
        }
        let mut mapped = self.mapped.lock();
        let mut content = self.content.lock();
        self.show(&mut content, wanted)?;
        content.store.lend(len, onto)?;
        (content.used, content.seen) = (true, true);
        let cookie = next_cookie();
        mapped.lent.push(cookie);
        Ok(cookie)
    }

    /// Exchanges the buffer for one whose CPU attribute fits. nvmap fixes the attribute when it allocates, but RM's
    /// clients tell only by mapping that the CPU uses the buffer. The exchange is possible for as long as the buffer
    /// was not used.
    fn choose_attribute(&self, content: &mut Content, wanted: CacheMode) {
        let unused = !content.used && !content.handed_out && Arc::strong_count(&content.store) == 1;
        let fits = self.traits.coherency.is_some() || content.store.backing().cache() == Some(wanted);
        if fits || !unused {
            return;
        }
        match Store::new(&self.gpu.nvmap, self.size, wanted) {
            Ok(store) => content.store = store,
            Err(e) => tracing::debug!("{:#x} bytes keep their CPU attribute: {e}", self.size),
        }
    }

    /// Undoes [`Memory::map_cpu`] or [`Memory::lend`].
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when it is not mapped there.
    pub fn unmap_cpu(&self, addr: usize) -> RmResult<()> {
        let mut mapped = self.mapped.lock();
        if let Some(at) = mapped.lent.iter().position(|cookie| *cookie == addr as u64) {
            mapped.lent.swap_remove(at);
            return Ok(());
        }
        let Some(at) = mapped.cpu.iter().position(|v| v.mapping.addr() == addr) else {
            drop(mapped);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the memory is not mapped at {addr:#x}");
        };
        let view = mapped.cpu.swap_remove(at);
        view.store.unmap(view.mapping);
        Ok(())
    }

    /// Maps a part of the memory into a VA space and returns the GPU address.
    ///
    /// # Errors
    /// Those of [`VaSpace::map`]; INVALID_LIMIT and INVALID_BASE for a bad range.
    pub fn map_gpu(&self, space: &Arc<VaSpace>, mapping: &GpuMapping) -> RmResult<u64> {
        let range = self.range(mapping.offset, mapping.len)?;
        if !range.start.is_multiple_of(PAGE) {
            fail!(NV_ERR_INVALID_OFFSET, "offset {:#x} is not a multiple of the page size {PAGE:#x}", range.start);
        }
        let mut mapped = self.mapped.lock();
        let mut content = self.content.lock();
        let request = MapRequest {
            store: &content.store,
            offset: range.start,
            len: mapping.len.next_multiple_of(PAGE),
            at: mapping.at,
            within: mapping.within.clone(),
            sparse: content.untouched,
            flags: MapFlags { cacheable: self.is_gpu_cacheable(&content), read_only: mapping.read_only },
        };
        let va = space.map(&request)?;
        content.used = true;
        if content.untouched {
            content.hollow.push(GpuPlace { space: Arc::downgrade(space), va });
        }
        mapped.gpu.push(GpuPlace { space: Arc::downgrade(space), va });
        Ok(va)
    }

    /// Whether the GPU may keep lines of the buffer in its cache. It may if the CPU does not use the buffer.
    fn is_gpu_cacheable(&self, content: &Content) -> bool {
        self.traits.gpu_cacheable && self.traits.coherency.is_none() && !self.traits.foreign && !content.seen
    }

    /// Undoes [`Memory::map_gpu`].
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when it is not mapped there.
    pub fn unmap_gpu(&self, space: &Arc<VaSpace>, va: u64) -> RmResult<()> {
        let mut mapped = self.mapped.lock();
        let Some(at) = mapped.gpu.iter().position(|place| place.is(space, va)) else {
            drop(mapped);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the memory is not mapped at GPU address {va:#x}");
        };
        mapped.gpu.swap_remove(at);
        self.content.lock().unmap(space, va)
    }
}

impl Content {
    fn of(store: Arc<Store>, untouched: bool) -> Content {
        Content { store, untouched, handed_out: false, notifier: None, hollow: Vec::new(), used: false, seen: false }
    }

    fn unmap(&mut self, space: &Arc<VaSpace>, va: u64) -> RmResult<()> {
        if let Some(at) = self.hollow.iter().position(|place| place.is(space, va)) {
            self.hollow.swap_remove(at);
        }
        space.unmap(va, Some(&self.store))
    }
}

/// A number that a client gets as an address when it maps a lent descriptor itself. No mapping can have this number as
/// its address.
pub fn next_cookie() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    NEXT.fetch_add(PAGE, Ordering::Relaxed)
}

/// A request for a GPU mapping of a memory object.
pub struct GpuMapping {
    /// The offset of the first byte, a multiple of the page size.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The GPU address, if the client chooses it.
    pub at: Option<u64>,
    /// The reservation in which the mapping must lie, if there is one.
    pub within: Option<Range<u64>>,
    /// True if stores of the GPU fault.
    pub read_only: bool,
}

/// Maps `range` at the GPU address that the library gave it, if this process has that range of addresses free, and
/// otherwise at any free address.
fn map_near_gpu(store: &Arc<Store>, places: &[GpuPlace], range: Range<u64>, prot: Prot) -> RmResult<Mapping> {
    let len = range.end - range.start;
    let placed = places.iter().find_map(|place| {
        let space = place.space.upgrade().filter(|s| s.is_library_managed())?;
        let (start, map) = space.find(place.va)?;
        let inside = map.offset <= range.start && range.end <= map.offset + map.len;
        inside.then(|| start + (range.start - map.offset))
    });
    if let Some(va) = placed {
        match store.map(Placement::ExactlyIfFree(va as usize), range.start, len, prot) {
            Ok(mapping) => return Ok(mapping),
            Err(e) => tracing::warn!("{len:#x} bytes at GPU address {va:#x} get another CPU address: {e}"),
        }
    }
    store.map(Placement::Anywhere, range.start, len, prot)
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mapped = self.mapped.get_mut();
        for CpuView { mapping, store } in mapped.cpu.drain(..) {
            store.unmap(mapping);
        }
        for place in mapped.gpu.drain(..) {
            if let Some(space) = place.space.upgrade()
                && let Err(e) = self.content.lock().unmap(&space, place.va)
            {
                tracing::debug!("nothing to unmap: {e}");
            }
        }
    }
}
