//! The memory behind memory objects: a buffer, the places where the CPU sees it, and the pages that are mapped over
//! those views.

use crate::status::{During, RmResult, fail};
use crate::tegra::{Backing, CacheMode, KernelError, Nvmap, PAGE, file_mappings};
use std::ops::Range;
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{File, Mapping, Placement, Prot, fds};
use tegrarm_lock::Mutex;

/// A buffer. Memory objects share it after `rm_dup_object`, and GPU mappings keep it alive.
pub struct Store {
    backing: Arc<Backing>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    views: Vec<View>,
    overlays: Vec<Weak<Overlay>>,
    /// True if a descriptor of the client refers to the buffer. The client can then map it without a call of the
    /// library.
    lent: bool,
}

/// A CPU mapping of a part of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    addr: u64,
    len: u64,
    offset: u64,
}

/// Pages of another buffer that must appear at `offset` of every CPU view of a store. nvgpu wants a channel's ring and
/// USERD as buffers of their own, but RM's client writes them inside one of its buffers. With the overlay, the client's
/// stores reach the buffers of nvgpu.
pub struct Overlay {
    source: Arc<Backing>,
    offset: u64,
    len: u64,
}

impl Overlay {
    /// Makes an overlay that shows pages of `source` from `offset` of a store on. `offset` is a multiple of the page
    /// size.
    pub fn new(source: &Arc<Backing>, offset: u64) -> Arc<Overlay> {
        Arc::new(Overlay { source: source.clone(), offset, len: source.size() })
    }

    /// The range of the store that the overlay hides.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Maps the overlay over the part of `view` that it hides.
    fn show(&self, view: View) -> RmResult<()> {
        replace(view, self.range(), |addr, offset, len| map_over(&self.source, addr, offset - self.offset, len))
    }
}

/// Calls `map(address, offset in the store, length)` for the part of `range` that `view` shows.
fn replace(view: View, range: Range<u64>, map: impl FnOnce(u64, u64, u64) -> RmResult<()>) -> RmResult<()> {
    let start = range.start.max(view.offset);
    let end = range.end.min(view.offset + view.len);
    if start >= end {
        return Ok(());
    }
    map(view.addr + (start - view.offset), start, end - start)
}

/// Replaces pages of this process. The range belongs to a view, and the owner of the view unmaps it.
fn map_over(source: &Backing, addr: u64, offset: u64, len: u64) -> RmResult<()> {
    let mapping = source
        .map_cpu(Placement::Replace(addr as usize), len, offset, Prot::ReadWrite)
        .during(|| format!("replacing {len:#x} bytes at {addr:#x}"))?;
    mapping.leak();
    Ok(())
}

impl Store {
    /// Allocates `size` bytes.
    ///
    /// # Errors
    /// NO_MEMORY when there is not that much memory.
    pub fn new(nvmap: &Arc<Nvmap>, size: u64, cache: CacheMode) -> RmResult<Arc<Store>> {
        let backing = Backing::new(nvmap, size, cache).during(|| format!("allocating {size:#x} bytes"))?;
        Ok(Store::of(backing))
    }

    /// Makes a store of a buffer that exists already.
    pub fn of(backing: Backing) -> Arc<Store> {
        Arc::new(Store { backing: Arc::new(backing), seen: Mutex::default() })
    }

    /// The buffer.
    pub fn backing(&self) -> &Arc<Backing> {
        &self.backing
    }

    /// The size in bytes, which is a whole number of pages.
    pub fn size(&self) -> u64 {
        self.backing.size()
    }

    /// Makes `onto`, a descriptor of the client, refer to the pages that the CPU must see in the first `len` bytes.
    ///
    /// # Errors
    /// NOT_SUPPORTED when these pages belong to more than one file, that is a channel's pages and the buffer's own; the
    /// errno of replacing the descriptor.
    pub fn lend(&self, len: u64, onto: RawFd) -> RmResult<()> {
        let mut seen = self.seen.lock();
        seen.overlays.retain(|o| o.strong_count() > 0);
        let covering = seen.overlays.iter().filter_map(Weak::upgrade).find(|o| o.range().start < len);
        let source = match covering {
            None => &self.backing,
            Some(ref o) if o.offset == 0 && o.len >= len => &o.source,
            Some(o) => fail!(
                NV_ERR_NOT_SUPPORTED,
                "a channel's pages lie over {:#x?} of the buffer: map it before allocating the channel",
                o.range()
            ),
        };
        let dmabuf = source.dmabuf()?;
        let replaced = fds::replace(dmabuf.as_fd(), onto);
        replaced.map_err(|errno| KernelError::new(format!("replacing descriptor {onto}"), errno))?;
        seen.lent = true;
        Ok(())
    }

    /// Whether the client may have mapped the buffer without a call of the library.
    pub fn is_lent(&self) -> bool {
        self.seen.lock().lent
    }

    /// Maps a part of the buffer into this process, with its overlays.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status. Nothing stays mapped then. What [`Placement::Replace`] has replaced is lost.
    pub fn map(&self, at: Placement, offset: u64, len: u64, prot: Prot) -> RmResult<Mapping> {
        let len = len.next_multiple_of(PAGE);
        let mapping = self.backing.map_cpu(at, len, offset, prot)?;
        let view = View { addr: mapping.addr() as u64, len, offset };
        let mut seen = self.seen.lock();
        seen.overlays.retain(|o| o.strong_count() > 0);
        for overlay in seen.overlays.iter().filter_map(Weak::upgrade) {
            overlay.show(view)?;
        }
        seen.views.push(view);
        Ok(mapping)
    }

    /// Removes a CPU mapping with its overlays and forgets it.
    pub fn unmap(&self, mapping: Mapping) {
        let mut seen = self.seen.lock();
        if let Some(at) = seen.views.iter().position(|v| v.addr == mapping.addr() as u64) {
            seen.views.swap_remove(at);
        }
        // This happens under the lock: an overlay that appears or goes away at the same time must not map pages into
        // the freed range.
        drop(mapping);
    }

    /// The mappings that the client itself made of a lent descriptor and that show all of `range`. The result is the
    /// addresses of the first byte of `range`.
    ///
    /// # Errors
    /// The errno of asking for a descriptor.
    pub fn foreign_views(&self, range: &Range<u64>) -> RmResult<Vec<u64>> {
        let seen = self.seen.lock();
        if !seen.lent {
            return Ok(Vec::new());
        }
        let dmabuf = self.backing.dmabuf()?;
        let kernels = dmabuf.kmd().own_view(dmabuf.as_fd()).map(|addr| addr as u64 + range.start);
        let ours = |addr: u64| seen.views.iter().any(|v| v.addr <= addr && addr < v.addr + v.len);
        let found = file_mappings(&dmabuf, range).into_iter();
        Ok(found.filter(|addr| Some(*addr) != kernels && !ours(*addr)).collect())
    }

    /// Whether a CPU mapping that the library made shows all of `range`.
    pub fn is_seen(&self, range: &Range<u64>) -> bool {
        self.seen.lock().views.iter().any(|v| v.offset <= range.start && range.end <= v.offset + v.len)
    }

    /// Maps `overlay` over every CPU mapping, those that exist and those that are made later.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status. Nothing is changed then.
    pub fn cover(&self, overlay: &Arc<Overlay>) -> RmResult<()> {
        let mut seen = self.seen.lock();
        for (done, view) in seen.views.iter().enumerate() {
            if let Err(e) = overlay.show(*view) {
                seen.views[..done].iter().for_each(|v| self.restore(*v, overlay));
                return Err(e);
            }
        }
        seen.overlays.push(Arc::downgrade(overlay));
        Ok(())
    }

    /// Removes `overlay`: its ranges show the store's own pages again.
    pub fn uncover(&self, overlay: &Arc<Overlay>) {
        let mut seen = self.seen.lock();
        seen.overlays.retain(|o| !std::ptr::eq(o.as_ptr(), Arc::as_ptr(overlay)));
        seen.views.iter().for_each(|v| self.restore(*v, overlay));
    }

    fn restore(&self, view: View, overlay: &Overlay) {
        let plain = |addr, offset, len| map_over(&self.backing, addr, offset, len);
        if let Err(e) = replace(view, overlay.range(), plain) {
            tracing::warn!("{:#x} keeps showing a dead channel's pages: {e}", view.addr);
        }
    }

    /// Maps `overlay` over a mapping of this store that the library did not make. `addr` is the address at which that
    /// mapping shows the first byte of the overlay's range.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status.
    pub fn cover_foreign(&self, overlay: &Overlay, addr: u64) -> RmResult<()> {
        map_over(&overlay.source, addr, 0, overlay.len)
    }

    /// Undoes [`Store::cover_foreign`], if the overlay is still mapped there.
    pub fn uncover_foreign(&self, overlay: &Overlay, addr: u64) {
        let shown = |file: Arc<File>| file_mappings(&file, &(0..overlay.len)).contains(&addr);
        let still_there = overlay.source.dmabuf().is_ok_and(shown);
        if still_there && let Err(e) = map_over(&self.backing, addr, overlay.offset, overlay.len) {
            tracing::warn!("{addr:#x} keeps showing a dead channel's pages: {e}");
        }
    }
}
