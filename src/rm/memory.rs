//! Memory objects.

use super::gpu::Gpu;
use super::store::{Overlay, Store};
use super::vaspace::{MapRequest, VaSpace};
use crate::status::{RmResult, fail};
use crate::tegra::{Backing, CacheMode, MapFlags, PAGE};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Mapping, Placement, Prot};

/// A page nobody has touched: all that a buffer of the notifier type costs until somebody does.
const UNTOUCHED: u64 = PAGE;

/// A buffer with a handle.
pub struct Memory {
    gpu: Arc<Gpu>,
    /// Bytes the client asked for, rounded up to pages.
    pub size: u64,
    traits: Traits,
    inner: Mutex<Inner>,
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

struct Inner {
    store: Arc<Store>,
    /// `store` is one page that stands for `size` untouched bytes.
    untouched: bool,
    /// After a notifier grew: its first page, which the kernel writes, over the CPU's views.
    notifier: Option<Arc<Overlay>>,
    cpu: Vec<CpuView>,
    gpu: Vec<(Weak<VaSpace>, u64)>,
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
        let inner = Inner { store, untouched, notifier: None, cpu: Vec::new(), gpu: Vec::new() };
        Ok(Memory { gpu: gpu.clone(), size, traits, inner: Mutex::new(inner) })
    }

    /// Wraps a buffer that exists.
    pub fn of(gpu: &Arc<Gpu>, backing: Backing, traits: Traits) -> Memory {
        let store = Store::of(backing);
        let size = store.size();
        let inner = Inner { store, untouched: false, notifier: None, cpu: Vec::new(), gpu: Vec::new() };
        Memory { gpu: gpu.clone(), size, traits, inner: Mutex::new(inner) }
    }

    /// Another memory object over the same buffer.
    ///
    /// # Errors
    /// 0x51 when an untouched buffer must be allocated for it.
    pub fn duplicate(&self) -> RmResult<Memory> {
        let mut inner = self.inner.lock();
        self.touch(&mut inner)?;
        let copy =
            Inner { store: inner.store.clone(), untouched: false, notifier: None, cpu: Vec::new(), gpu: Vec::new() };
        Ok(Memory { gpu: self.gpu.clone(), size: self.size, traits: self.traits, inner: Mutex::new(copy) })
    }

    /// The GPU it belongs to.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The buffer as it is now.
    pub fn store(&self) -> Arc<Store> {
        self.inner.lock().store.clone()
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

    /// Allocates what an untouched buffer only pretended to have. The kernel may already have been told to write
    /// errors into the one page there was, so that page goes on being the first one the CPU sees.
    fn touch(&self, inner: &mut Inner) -> RmResult<()> {
        if !inner.untouched {
            return Ok(());
        }
        let full = Store::new(&self.gpu.nvmap, self.size, CacheMode::InnerCacheable)?;
        let first_page = Overlay::new(inner.store.backing(), 0);
        full.cover(&first_page)?;
        for (space, va) in &inner.gpu {
            if let Some(space) = space.upgrade() {
                space.fill_sparse(*va, &full)?;
            }
        }
        inner.store = full;
        inner.untouched = false;
        inner.notifier = Some(first_page);
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
        if self.traits.foreign {
            fail!(NV_ERR_NOT_SUPPORTED, "memory made of the process's own pages is mapped already: use its pointer");
        }
        let mut inner = self.inner.lock();
        self.touch(&mut inner)?;
        self.choose_attribute(&mut inner, wanted);
        let mapping = match at {
            Some(addr) => inner.store.map(Placement::Replace(addr), offset, len, prot)?,
            None => map_near_gpu(&inner, range, prot)?,
        };
        let addr = mapping.addr();
        let store = inner.store.clone();
        inner.cpu.push(CpuView { mapping, store });
        Ok(addr)
    }

    /// nvmap fixes the CPU attribute when it allocates, RM's client only says by mapping that the CPU matters: as
    /// long as nobody has used the buffer, it can be exchanged for one with the attribute that fits.
    fn choose_attribute(&self, inner: &mut Inner, wanted: CacheMode) {
        let unused = inner.cpu.is_empty() && inner.gpu.is_empty() && Arc::strong_count(&inner.store) == 1;
        let fits = self.traits.coherency.is_some() || inner.store.backing().cache() == Some(wanted);
        if fits || !unused || inner.notifier.is_some() || inner.store.has_overlays() {
            return;
        }
        match Store::new(&self.gpu.nvmap, self.size, wanted) {
            Ok(store) => inner.store = store,
            Err(e) => tracing::debug!("{:#x} bytes keep their CPU attribute: {e}", self.size),
        }
    }

    /// Undoes [`Memory::map_cpu`].
    ///
    /// # Errors
    /// 0x57 when it is not mapped there.
    pub fn unmap_cpu(&self, addr: usize) -> RmResult<()> {
        let mut inner = self.inner.lock();
        let Some(at) = inner.cpu.iter().position(|v| v.mapping.addr() == addr) else {
            drop(inner);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the memory is not mapped at {addr:#x}");
        };
        let view = inner.cpu.swap_remove(at);
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
        let mut inner = self.inner.lock();
        let request = MapRequest {
            store: &inner.store,
            offset: range.start,
            len: mapping.len.next_multiple_of(PAGE),
            at: mapping.at,
            within: mapping.within.clone(),
            sparse: inner.untouched,
            flags: MapFlags { cacheable: self.is_gpu_cacheable(&inner), read_only: mapping.read_only },
        };
        let va = space.map(&request)?;
        inner.gpu.push((Arc::downgrade(space), va));
        Ok(va)
    }

    /// The GPU may keep lines of a buffer the CPU does not look at.
    fn is_gpu_cacheable(&self, inner: &Inner) -> bool {
        self.traits.gpu_cacheable && self.traits.coherency.is_none() && !self.traits.foreign && inner.cpu.is_empty()
    }

    /// Undoes [`Memory::map_gpu`].
    ///
    /// # Errors
    /// 0x57 when it is not mapped there.
    pub fn unmap_gpu(&self, space: &Arc<VaSpace>, va: u64) -> RmResult<()> {
        let mut inner = self.inner.lock();
        let here = |(s, v): &(Weak<VaSpace>, u64)| *v == va && std::ptr::eq(s.as_ptr(), Arc::as_ptr(space));
        let Some(at) = inner.gpu.iter().position(here) else {
            drop(inner);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the memory is not mapped at GPU address {va:#x}");
        };
        inner.gpu.swap_remove(at);
        space.unmap(va, Some(&inner.store))
    }
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
fn map_near_gpu(inner: &Inner, range: Range<u64>, prot: Prot) -> RmResult<Mapping> {
    let len = range.end - range.start;
    let placed = inner.gpu.iter().find_map(|(space, va)| {
        let space = space.upgrade().filter(|s| s.is_library_managed())?;
        let (start, map) = space.find(*va)?;
        let inside = map.offset <= range.start && range.end <= map.offset + map.len;
        inside.then(|| start + (range.start - map.offset))
    });
    if let Some(va) = placed {
        match inner.store.map(Placement::ExactlyIfFree(va as usize), range.start, len, prot) {
            Ok(mapping) => return Ok(mapping),
            Err(e) => tracing::warn!("{len:#x} bytes at GPU address {va:#x} get another CPU address: {e}"),
        }
    }
    inner.store.map(Placement::Anywhere, range.start, len, prot)
}

impl Drop for Memory {
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        for CpuView { mapping, store } in inner.cpu.drain(..) {
            store.unmap(mapping);
        }
        for (space, va) in inner.gpu.drain(..) {
            if let Some(space) = space.upgrade()
                && let Err(e) = space.unmap(va, Some(&inner.store))
            {
                tracing::debug!("nothing to unmap: {e}");
            }
        }
    }
}
