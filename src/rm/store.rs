//! Memory behind memory objects: a buffer, where the CPU sees it, and what is laid over those views.

use crate::status::{During, RmResult, fail};
use crate::tegra::{Backing, CacheMode, KernelError, Nvmap, PAGE, file_mappings};
use parking_lot::Mutex;
use std::ops::Range;
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{File, Mapping, Placement, Prot};

/// A buffer that memory objects share (after `rm_dup_object`) and GPU mappings keep alive.
pub struct Store {
    backing: Arc<Backing>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    views: Vec<View>,
    overlays: Vec<Weak<Overlay>>,
    /// A descriptor of the client's refers to it: the client maps it without our knowing.
    lent: bool,
}

/// A CPU mapping of part of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    addr: u64,
    len: u64,
    offset: u64,
}

/// Another buffer's pages that must appear at `offset` of every CPU view of a store. nvgpu wants a channel's ring
/// and USERD as buffers of their own, RM's client writes them inside one of its buffers: the overlay makes both right.
pub struct Overlay {
    source: Arc<Backing>,
    offset: u64,
    len: u64,
}

impl Overlay {
    /// Pages of `source` to be shown from `offset` of a store on. `offset` is a multiple of the page size.
    pub fn new(source: &Arc<Backing>, offset: u64) -> Arc<Overlay> {
        Arc::new(Overlay { source: source.clone(), offset, len: source.size() })
    }

    /// The bytes of the store it hides.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Puts it over the part of `view` it hides.
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

/// Replaces pages of this process. The range belongs to a view, so whoever owns the view unmaps it.
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
    /// 0x51 when there is not that much memory.
    pub fn new(nvmap: &Arc<Nvmap>, size: u64, cache: CacheMode) -> RmResult<Arc<Store>> {
        let backing = Backing::new(nvmap, size, cache).during(|| format!("allocating {size:#x} bytes"))?;
        Ok(Store::of(backing))
    }

    /// Wraps a buffer.
    pub fn of(backing: Backing) -> Arc<Store> {
        Arc::new(Store { backing: Arc::new(backing), seen: Mutex::default() })
    }

    /// The buffer.
    pub fn backing(&self) -> &Arc<Backing> {
        &self.backing
    }

    /// Bytes, whole pages.
    pub fn size(&self) -> u64 {
        self.backing.size()
    }

    /// Makes `onto`, a descriptor of the client's, refer to what the CPU shall see of the first `len` bytes.
    ///
    /// # Errors
    /// 0x56 when that is more than one file: a channel's pages and the buffer's own; the errno of the replacement.
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
        let lent = dmabuf.kmd().lend(dmabuf.as_fd(), onto);
        lent.map_err(|errno| KernelError::new(format!("replacing descriptor {onto}"), errno))?;
        seen.lent = true;
        Ok(())
    }

    /// Whether the client may have mapped it without our knowing.
    pub fn is_lent(&self) -> bool {
        self.seen.lock().lent
    }

    /// Maps part of it into this process, overlays included.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status; nothing stays mapped then, except what [`Placement::Replace`] destroyed.
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

    /// Forgets and removes a CPU mapping, overlays included.
    pub fn unmap(&self, mapping: Mapping) {
        let mut seen = self.seen.lock();
        if let Some(at) = seen.views.iter().position(|v| v.addr == mapping.addr() as u64) {
            seen.views.swap_remove(at);
        }
        // Under the lock: an overlay that appears or goes away meanwhile must not map into the freed range.
        drop(mapping);
    }

    /// Where mappings that the client made itself of a descriptor it was lent show all of `range`: addresses of its
    /// first byte.
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

    /// Whether some CPU mapping made here shows all of `range`.
    pub fn is_seen(&self, range: &Range<u64>) -> bool {
        self.seen.lock().views.iter().any(|v| v.offset <= range.start && range.end <= v.offset + v.len)
    }

    /// Lays `overlay` over every CPU mapping, present and future.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status; everything is as it was then.
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

    /// Takes `overlay` off: its ranges show the store's own pages again.
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

    /// Lays `overlay` over a mapping that somebody else made of this store: its byte 0 of `range` at `addr`.
    ///
    /// # Errors
    /// The errno of `mmap(2)` as a status.
    pub fn cover_foreign(&self, overlay: &Overlay, addr: u64) -> RmResult<()> {
        map_over(&overlay.source, addr, 0, overlay.len)
    }

    /// Undoes [`Store::cover_foreign`], if the overlay is still there.
    pub fn uncover_foreign(&self, overlay: &Overlay, addr: u64) {
        let shown = |file: Arc<File>| file_mappings(&file, &(0..overlay.len)).contains(&addr);
        let still_there = overlay.source.dmabuf().is_ok_and(shown);
        if still_there && let Err(e) = map_over(&self.backing, addr, overlay.offset, overlay.len) {
            tracing::warn!("{addr:#x} keeps showing a dead channel's pages: {e}");
        }
    }
}
