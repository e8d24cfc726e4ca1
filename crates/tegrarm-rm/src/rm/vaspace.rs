//! VA spaces and the mappings in them.

use super::gpu::Gpu;
use super::store::Store;
use crate::status::{During, RmResult, fail};
use crate::tegra::{AddressSpace, MapFlags, PAGE, USER_VA_END, USER_VA_START};
use once_cell::sync::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;

/// The window in which kernels find their local memory, in VA spaces whose addresses the library chooses.
pub const LOCAL_WINDOW: Range<u64> = 0xfd_0000_0000..0xfd_4000_0000;
/// The window in which kernels find their shared memory, in the same VA spaces.
pub const SHARED_WINDOW: Range<u64> = 0xfe_0000_0000..0xfe_4000_0000;

/// Who chooses the addresses in a VA space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// The client chooses, through UVM or fixed offsets. Every address that it names is accepted.
    Client,
    /// The library chooses. The two shader windows are reserved, so that no buffer can lie in one.
    Library,
    /// The VA space is the device's implicit one. Fixed mappings in it are only recorded until a channel uses the
    /// space.
    Default,
}

/// An RM VA space: one nvgpu address space, which is made when it is first needed.
pub struct VaSpace {
    gpu: Arc<Gpu>,
    management: Management,
    /// The addresses.
    range: Range<u64>,
    /// The mappings. They are declared before `space`, so that their buffers are dropped before the address space
    /// closes.
    maps: Mutex<BTreeMap<u64, GpuMap>>,
    space: OnceCell<Arc<AddressSpace>>,
}

/// One GPU mapping.
#[derive(Clone)]
pub struct GpuMap {
    /// The length in bytes.
    pub len: u64,
    /// The store that is mapped.
    pub store: Arc<Store>,
    /// The offset of the first byte in the store.
    pub offset: u64,
    /// How the mapping was made, which decides how it is removed.
    how: How,
    flags: MapFlags,
    /// How many requests for this mapping exist. Each of them is undone once.
    count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The mapping is only recorded.
    Recorded,
    /// The kernel chose the address.
    Dynamic,
    /// The mapping lies in a reservation that was made for it.
    Reserved,
    /// The mapping lies in the reservation of a virtual memory object.
    Inside,
    /// The mapping is a sparse reservation without memory.
    Sparse,
}

/// A request for a mapping.
pub struct MapRequest<'a> {
    /// The buffer.
    pub store: &'a Arc<Store>,
    /// The offset of the first byte in the buffer.
    pub offset: u64,
    /// The length in bytes of address space, a multiple of the page size.
    pub len: u64,
    /// The GPU address, if the client chooses it.
    pub at: Option<u64>,
    /// The reservation of a virtual memory object in which the mapping must lie.
    pub within: Option<Range<u64>>,
    /// True if addresses are reserved sparsely and no memory is mapped. This is for buffers that nobody has used yet.
    pub sparse: bool,
    /// How the GPU may use the mapping.
    pub flags: MapFlags,
}

impl VaSpace {
    /// Makes a VA space with all addresses of the GPU, which uses no kernel resources yet.
    pub fn new(gpu: &Arc<Gpu>, management: Management) -> Arc<VaSpace> {
        VaSpace::with_range(gpu, management, USER_VA_START..USER_VA_END)
    }

    /// The same with the addresses of a range, whose ends are multiples of [`VA_UNIT`](crate::tegra::VA_UNIT).
    pub fn with_range(gpu: &Arc<Gpu>, management: Management, range: Range<u64>) -> Arc<VaSpace> {
        Arc::new(VaSpace { gpu: gpu.clone(), management, range, maps: Mutex::default(), space: OnceCell::new() })
    }

    /// Whether the library chooses the addresses, so that it can make CPU and GPU addresses equal.
    pub fn is_library_managed(&self) -> bool {
        self.management != Management::Client
    }

    /// The nvgpu address space. It is made now if it does not exist yet.
    ///
    /// # Errors
    /// NO_MEMORY when the kernel has no memory for it.
    pub fn space(&self) -> RmResult<&Arc<AddressSpace>> {
        self.space.get_or_try_init(|| {
            let space =
                self.gpu.ctrl.alloc_address_space(self.range.clone()).during(|| "creating a GPU address space")?;
            if self.management != Management::Client {
                let inside = |window: &Range<u64>| overlaps(window, &self.range);
                for window in [LOCAL_WINDOW, SHARED_WINDOW].into_iter().filter(inside) {
                    space
                        .reserve(Some(window.start), window.end - window.start, false)
                        .during(|| format!("reserving the shader window at {:#x}", window.start))?;
                }
            }
            Ok(Arc::new(space))
        })
    }

    /// The address space for a channel. Mappings that were only recorded are made now.
    ///
    /// # Errors
    /// Those of [`VaSpace::space`], or that of one of those mappings.
    pub fn space_for_channel(&self) -> RmResult<&Arc<AddressSpace>> {
        let space = self.space()?;
        let mut maps = self.maps.lock();
        for (&va, map) in maps.iter_mut().filter(|(_, m)| m.how == How::Recorded) {
            // A buffer that nobody has used yet has fewer bytes of memory than of addresses.
            if map.offset + map.len > map.store.size() {
                space.reserve(Some(va), map.len, true).during(|| sparse_text(va, map.len))?;
                map.how = How::Sparse;
            } else {
                map_reserved(space, va, map)?;
                map.how = How::Reserved;
            }
        }
        Ok(space)
    }

    /// The mapping that contains `va`, and the address at which it starts.
    pub fn find(&self, va: u64) -> Option<(u64, GpuMap)> {
        let maps = self.maps.lock();
        let (start, map) = maps.range(..=va).next_back()?;
        (va < start + map.len).then(|| (*start, map.clone()))
    }

    /// Makes a mapping and returns its address.
    ///
    /// # Errors
    /// INVALID_OFFSET for a misaligned address, OUT_OF_RANGE for an address that the GPU does not have,
    /// PAGE_TABLE_NOT_AVAIL for an address in a shader window, INSUFFICIENT_RESOURCES for an address in use, NO_MEMORY
    /// when no addresses are left.
    pub fn map(&self, request: &MapRequest) -> RmResult<u64> {
        match request.at {
            Some(at) => self.map_at(at, request),
            None => match &request.within {
                Some(range) => self.map_within(range, request),
                None => self.map_anywhere(request),
            },
        }
    }

    fn map_at(&self, at: u64, request: &MapRequest) -> RmResult<u64> {
        let range = self.check_address(at, request.len)?;
        let how = self.how_fixed(request);
        let map = GpuMap {
            len: request.len,
            store: request.store.clone(),
            offset: request.offset,
            how,
            flags: request.flags,
            count: 1,
        };
        if !self.enter(&range, &map)? || how == How::Recorded {
            return Ok(at);
        }
        let made = self.space().and_then(|space| match how {
            How::Sparse => space.reserve(Some(at), map.len, true).map(drop).during(|| sparse_text(at, map.len)),
            How::Inside => map_inside(space, at, &map),
            _ => map_reserved(space, at, &map),
        });
        if let Err(e) = made {
            self.maps.lock().remove(&at);
            return Err(e);
        }
        Ok(at)
    }

    fn how_fixed(&self, request: &MapRequest) -> How {
        if self.management == Management::Default && self.space.get().is_none() {
            How::Recorded
        } else if request.sparse {
            How::Sparse
        } else if request.within.is_some() {
            How::Inside
        } else {
            How::Reserved
        }
    }

    fn check_address(&self, at: u64, len: u64) -> RmResult<Range<u64>> {
        if !at.is_multiple_of(PAGE) {
            fail!(NV_ERR_INVALID_OFFSET, "GPU address {at:#x} is not a multiple of {PAGE:#x}");
        }
        let end = at.saturating_add(len);
        if at < self.range.start || end > self.range.end {
            fail!(NV_ERR_OUT_OF_RANGE, "GPU addresses {at:#x}..{end:#x} are outside {:#x?}", self.range);
        }
        let range = at..end;
        for window in [LOCAL_WINDOW, SHARED_WINDOW] {
            if self.management == Management::Library && overlaps(&range, &window) {
                fail!(
                    NV_ERR_PAGE_TABLE_NOT_AVAIL,
                    "GPU addresses {at:#x}..{end:#x} lie in the shader window at {:#x}; a VA space allocated with flag 8 (externally owned) has none",
                    window.start
                );
            }
        }
        Ok(range)
    }

    /// Records a fixed mapping. The result is `false` if the same mapping is there already; it then counts one more
    /// request.
    fn enter(&self, range: &Range<u64>, map: &GpuMap) -> RmResult<bool> {
        let mut maps = self.maps.lock();
        if let Some((start, there)) = maps.range_mut(..range.end).next_back()
            && start + there.len > range.start
        {
            let same = *start == range.start && there.len == map.len && there.offset == map.offset;
            if same && Arc::ptr_eq(&there.store, &map.store) {
                there.count += 1;
                return Ok(false);
            }
            fail!(
                NV_ERR_INSUFFICIENT_RESOURCES,
                "GPU addresses {:#x}..{:#x} meet the mapping at {start:#x}..{:#x}: unmap it first",
                range.start,
                range.end,
                start + there.len
            );
        }
        maps.insert(range.start, map.clone());
        Ok(true)
    }

    fn map_within(&self, range: &Range<u64>, request: &MapRequest) -> RmResult<u64> {
        let gap = {
            let maps = self.maps.lock();
            let mut at = range.start;
            for (start, map) in maps.range(range.clone()) {
                if start - at >= request.len {
                    break;
                }
                at = start + map.len;
            }
            at
        };
        if gap.checked_add(request.len).is_none_or(|end| end > range.end) {
            fail!(
                NV_ERR_INSUFFICIENT_RESOURCES,
                "no {:#x} bytes are free in the virtual memory at {:#x}..{:#x}",
                request.len,
                range.start,
                range.end
            );
        }
        self.map_at(gap, request)
    }

    fn map_anywhere(&self, request: &MapRequest) -> RmResult<u64> {
        let space = self.space()?;
        let whole = request.offset == 0 && request.len == request.store.size();
        let (va, how) = if request.sparse {
            (space.reserve(None, request.len, true).during(|| sparse_text(0, request.len))?, How::Sparse)
        } else if whole {
            let dmabuf = request.store.backing().dmabuf()?;
            (space.map(&dmabuf, request.flags).during(|| map_text(request.len))?, How::Dynamic)
        } else {
            // The kernel maps a part of a buffer only at an address that it is given.
            let va = space.reserve(None, request.len, false).during(|| map_text(request.len))?;
            let dmabuf = request.store.backing().dmabuf();
            let mapped = dmabuf.and_then(|file| space.map_fixed(&file, va, request.offset, request.len, request.flags));
            if let Err(e) = mapped {
                space.unreserve(va, request.len);
                return Err(e).during(|| map_text(request.len));
            }
            (va, How::Reserved)
        };
        let map = GpuMap {
            len: request.len,
            store: request.store.clone(),
            offset: request.offset,
            how,
            flags: request.flags,
            count: 1,
        };
        // The kernel answers a repeated request with the mapping that it made before, and counts the requests.
        self.maps.lock().entry(va).and_modify(|m| m.count += 1).or_insert(map);
        Ok(va)
    }

    /// Undoes one request for the mapping that starts at `va`.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when no mapping of that memory starts there.
    pub fn unmap(&self, va: u64, store: Option<&Arc<Store>>) -> RmResult<()> {
        let mut maps = self.maps.lock();
        let Some(map) = maps.get_mut(&va).filter(|m| store.is_none_or(|s| Arc::ptr_eq(s, &m.store))) else {
            drop(maps);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "no mapping of that memory starts at GPU address {va:#x}");
        };
        map.count -= 1;
        let (how, len) = (map.how, map.len);
        let last = if map.count == 0 { maps.remove(&va) } else { None };
        drop(maps);
        if let Some(space) = self.space.get() {
            match how {
                How::Dynamic => space.unmap(va),
                How::Inside if last.is_some() => space.unmap(va),
                How::Reserved | How::Sparse if last.is_some() => space.unreserve(va, len),
                _ => {}
            }
        }
        Ok(())
    }

    /// Replaces a sparse mapping by real memory at the same address.
    ///
    /// # Errors
    /// The kernel's refusal. The address is not mapped any more then.
    pub fn fill_sparse(&self, va: u64, store: &Arc<Store>) -> RmResult<()> {
        let mut maps = self.maps.lock();
        let Some(map) = maps.get_mut(&va) else { return Ok(()) };
        let was = map.how;
        map.store = store.clone();
        if was != How::Sparse {
            return Ok(());
        }
        map.how = How::Reserved;
        let space = self.space()?;
        space.unreserve(va, map.len);
        let result = map_reserved(space, va, map);
        if result.is_err() {
            maps.remove(&va);
        }
        result
    }
}

fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn map_text(len: u64) -> String {
    format!("mapping {len:#x} bytes into the GPU")
}

fn sparse_text(at: u64, len: u64) -> String {
    format!("reserving {len:#x} sparse bytes of GPU addresses at {at:#x}")
}

/// Reserves `va` for the mapping and makes the mapping there.
fn map_reserved(space: &AddressSpace, va: u64, map: &GpuMap) -> RmResult<()> {
    space.reserve(Some(va), map.len, false).during(|| format!("reserving GPU addresses {va:#x}+{:#x}", map.len))?;
    map_inside(space, va, map).inspect_err(|_| space.unreserve(va, map.len))
}

fn map_inside(space: &AddressSpace, va: u64, map: &GpuMap) -> RmResult<()> {
    let dmabuf = map.store.backing().dmabuf()?;
    // A part of a buffer is named by its length. The length 0 means the whole buffer.
    space
        .map_fixed(&dmabuf, va, map.offset, map.len, map.flags)
        .map(drop)
        .during(|| format!("mapping {:#x} bytes at GPU address {va:#x}", map.len))
}

/// A virtual memory object. `rm_map_memory_dma` takes it as the mapper.
pub struct VirtualRange {
    /// The VA space in which it lies.
    pub space: Arc<VaSpace>,
    /// The range in which mappings must lie.
    pub range: Range<u64>,
    /// True if `range` is a reservation into which only this object maps.
    pub reserved: bool,
}

impl Drop for VirtualRange {
    fn drop(&mut self) {
        if !self.reserved {
            return;
        }
        // The mappings in the reservation are removed with it.
        self.space.maps.lock().retain(|va, m| !(m.how == How::Inside && self.range.contains(va)));
        if let Some(space) = self.space.space.get() {
            space.unreserve(self.range.start, self.range.end - self.range.start);
        }
    }
}
