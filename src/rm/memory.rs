//! Memory objects.

use super::gpu::Gpu;
use super::store::{Overlay, Store};
use super::vaspace::{MapRequest, VaSpace};
use crate::status::{RmResult, fail};
use crate::tegra::{Backing, CacheMode, MapFlags, PAGE};
use parking_lot::Mutex;
use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Mapping, Placement, Prot};

/// The size of the memory behind a buffer of the notifier type until it is used: one page.
const UNTOUCHED: u64 = PAGE;

/// A buffer with a handle: what every handle of it shares, and where this one mapped it.
pub struct Memory {
    gpu: Arc<Gpu>,
    /// Bytes the client asked for, rounded up to pages.
    pub size: u64,
    traits: Traits,
    content: Arc<Mutex<Content>>,
    /// Taken before `content` where both are.
    mapped: Mutex<Mapped>,
}

/// What the allocation parameters say about use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The CPU attribute, when the client names one.
    pub coherency: Option<CacheMode>,
    /// Lines may stay in the GPU's L2.
    pub gpu_cacheable: bool,
    /// An error notifier: usually large, usually never touched.
    pub notifier: bool,
    /// System memory (class 0x3E, 0x71), as opposed to what desktop RM would call video memory.
    pub system: bool,
    /// The client's own pages: they are mapped already.
    pub foreign: bool,
}

struct Content {
    store: Arc<Store>,
    /// `store` is one page that stands for `size` untouched bytes.
    untouched: bool,
    /// That page was handed to somebody who keeps it: the kernel, for errors.
    handed_out: bool,
    /// After a notifier grew: its first page, which the kernel writes, over the CPU's views.
    notifier: Option<Arc<Overlay>>,
    /// Mappings that were made before the buffer was used first. They have no memory behind them yet.
    hollow: Vec<GpuPlace>,
    /// Somebody mapped it somewhere.
    used: bool,
    /// The CPU looks at it.
    seen: bool,
}

/// Where one handle's client mapped the buffer.
#[derive(Default)]
struct Mapped {
    cpu: Vec<CpuView>,
    /// Descriptors it was lent to, by cookie.
    lent: Vec<u64>,
    gpu: Vec<GpuPlace>,
}

/// A GPU address.
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
    /// Reads `NV_MEMORY_ALLOCATION_PARAMS`.
    pub fn of(params: &NV_MEMORY_ALLOCATION_PARAMS, system: bool) -> Traits {
        let coherency = match params.attr >> 29 {
            NVOS32_ATTR_COHERENCY_WRITE_COMBINE => Some(CacheMode::WriteCombine),
            NVOS32_ATTR_COHERENCY_CACHED | NVOS32_ATTR_COHERENCY_WRITE_BACK | NVOS32_ATTR_COHERENCY_WRITE_THROUGH => {
                Some(CacheMode::InnerCacheable)
            }
            // 0 is "uncached" by name, and what every client that does not care leaves there.
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
    /// Allocates.
    ///
    /// # Errors
    /// 0x51 when there is not that much memory.
    pub fn new(gpu: &Arc<Gpu>, size: u64, traits: Traits) -> RmResult<Memory> {
        let untouched = traits.notifier && size > UNTOUCHED;
        let cache = traits.coherency.unwrap_or(CacheMode::InnerCacheable);
        let store = Store::new(&gpu.nvmap, if untouched { UNTOUCHED } else { size }, cache)?;
        let size = if untouched { size.next_multiple_of(PAGE) } else { store.size() };
        Ok(Memory::with(gpu, size, traits, Content::of(store, untouched)))
    }

    /// Wraps a buffer that exists.
    pub fn of(gpu: &Arc<Gpu>, backing: Backing, traits: Traits) -> Memory {
        let store = Store::of(backing);
        Memory::with(gpu, store.size(), traits, Content::of(store, false))
    }

    fn with(gpu: &Arc<Gpu>, size: u64, traits: Traits, content: Content) -> Memory {
        let content = Arc::new(Mutex::new(content));
        Memory { gpu: gpu.clone(), size, traits, content, mapped: Mutex::default() }
    }

    /// Another memory object over the same buffer, mapped nowhere.
    pub fn duplicate(&self) -> Memory {
        let (gpu, content) = (self.gpu.clone(), self.content.clone());
        Memory { gpu, size: self.size, traits: self.traits, content, mapped: Mutex::default() }
    }

    /// The GPU it belongs to.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The buffer as it is now, for somebody who keeps it.
    pub fn store(&self) -> Arc<Store> {
        let mut content = self.content.lock();
        content.handed_out = true;
        content.store.clone()
    }

    /// A new descriptor of the buffer, for somebody else.
    ///
    /// # Errors
    /// 0x56 for pages of the process itself, which nobody can map through one.
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

    /// Whether it is system memory in desktop RM's sense.
    pub fn is_system(&self) -> bool {
        self.traits.system
    }

    /// `offset..offset + len`, checked against the object.
    ///
    /// # Errors
    /// 0x2E for a length of 0, 0x20 beyond the end.
    pub fn range(&self, offset: u64, len: u64) -> RmResult<Range<u64>> {
        if len == 0 {
            fail!(NV_ERR_INVALID_LIMIT, "a length of 0");
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(offset..end),
            _ => fail!(NV_ERR_INVALID_BASE, "{offset:#x}+{len:#x} is beyond the {:#x} bytes of the memory", self.size),
        }
    }

    /// Allocates what an untouched buffer only pretended to have. Where the kernel was already told to write errors
    /// into the one page there was, that page goes on being the first one the CPU sees.
    fn touch(&self, content: &mut Content) -> RmResult<()> {
        if !content.untouched {
            return Ok(());
        }
        let full = Store::new(&self.gpu.nvmap, self.size, CacheMode::InnerCacheable)?;
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

    /// Makes the buffer one that the CPU can look at: memory is there, with the attribute that fits.
    fn show(&self, content: &mut Content, wanted: CacheMode) -> RmResult<()> {
        if self.traits.foreign {
            fail!(NV_ERR_NOT_SUPPORTED, "memory made of the process's own pages is mapped already: use its pointer");
        }
        self.touch(content)?;
        self.choose_attribute(content, wanted);
        Ok(())
    }

    /// Maps part of it into this process. Returns the address. With `at` it replaces what is there, otherwise it
    /// goes to the buffer's GPU address when the library chose that one and the range is free, else anywhere.
    ///
    /// # Errors
    /// 0x2E, 0x20 for a bad range, 0x37 for an offset off page boundaries, 0x51, 0x59.
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

    /// Makes `onto`, a descriptor of the client's, the buffer, so that its own `mmap(2)` at offset 0 maps it. Returns
    /// a cookie for [`Memory::unmap_cpu`].
    ///
    /// # Errors
    /// 0x2E, 0x20 for a bad range, 0x56 for a part that does not start with the buffer or shows a channel's pages.
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

    /// nvmap fixes the CPU attribute when it allocates, RM's client only says by mapping that the CPU matters: as
    /// long as nobody has used the buffer, it can be exchanged for one with the attribute that fits.
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
    /// 0x57 when it is not mapped there.
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

    /// Maps part of it into a VA space. Returns the GPU address.
    ///
    /// # Errors
    /// As [`VaSpace::map`], 0x2E and 0x20 for a bad range.
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

    /// The GPU may keep lines of a buffer the CPU does not look at.
    fn is_gpu_cacheable(&self, content: &Content) -> bool {
        self.traits.gpu_cacheable && self.traits.coherency.is_none() && !self.traits.foreign && !content.seen
    }

    /// Undoes [`Memory::map_gpu`].
    ///
    /// # Errors
    /// 0x57 when it is not mapped there.
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

/// What a client that maps a lent descriptor gets as its address: a number no mapping can have.
pub fn next_cookie() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    NEXT.fetch_add(PAGE, Ordering::Relaxed)
}

/// A GPU mapping somebody wants of a memory object.
pub struct GpuMapping {
    /// First byte, a multiple of the page size.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The address, when the client chooses.
    pub at: Option<u64>,
    /// The reservation it must lie in, if any.
    pub within: Option<Range<u64>>,
    /// Stores fault.
    pub read_only: bool,
}

/// Maps `range` at the GPU address the library gave it, if that range of this process is free, else anywhere.
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
