//! MAP_BUFFER_EX, UNMAP_BUFFER, MAP_BUFFER_BATCH, MAPPING_MODIFY (docs/hardware/nvgpu-address-space.md#map-buffer-ex,
//! docs/hardware/nvgpu-address-space.md#unmap-buffer, docs/hardware/nvgpu-address-space.md#map-buffer-batch).

use super::{AddressSpace, Contents, Key, Mapping, PAGE, buffer_id};
use crate::dispatch::{Call, Reply};
use crate::nvmap::{Buffer, Dmabuf};
use crate::rule::Because;
use std::sync::Arc;
use tegra_mm::{Extent, PageAttributes, PageClass};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_kmd::Errno;

/// The position of the access field in the flags.
const ACCESS_SHIFT: u32 = 10;
const ACCESS_READ_ONLY: u32 = 1;
const ACCESS_READ_WRITE: u32 = 2;

/// A mapping that exists, as other modules see it.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub va: u64,
    pub size: u64,
    pub read_only: bool,
    buffer: Arc<Buffer>,
}

impl AddressSpace {
    /// MAP_BUFFER_EX, for the kernel's own use.
    pub(crate) fn map(&self, call: &Call<'_>, args: &nvgpu_as_map_buffer_ex_args) -> Reply<u64> {
        map(call, self, args)
    }

    /// Every mapping, sorted by address.
    pub(crate) fn mapped(&self) -> Vec<Mapped> {
        self.state.lock().mappings.iter().map(|(va, mapping)| mapping.at(*va)).collect()
    }

    /// The mapping that contains `va`.
    pub(crate) fn mapped_at(&self, va: u64) -> Option<Mapped> {
        let state = self.state.lock();
        let (start, mapping) = state.mappings.range(..=va).next_back()?;
        (va < start + mapping.size).then(|| mapping.at(*start))
    }
}

impl Mapped {
    /// The dmabuf of which it was made.
    pub(crate) fn dmabuf(&self) -> Dmabuf {
        Dmabuf { buffer: self.buffer.clone(), read_only: self.read_only }
    }
}

impl Mapping {
    fn at(&self, va: u64) -> Mapped {
        let ((_, read_only), _) = self.key;
        Mapped { va, size: self.size, read_only, buffer: self.buffer.clone() }
    }
}

/// A request for a mapping, after its flags were checked.
struct Request {
    dmabuf: Dmabuf,
    flags: u32,
    fixed: bool,
    writable: bool,
    buffer_offset: u64,
    mapping_size: u64,
    compr_kind: i16,
    incompr_kind: i16,
    offset: u64,
}

pub(crate) fn map_buffer_ex(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_map_buffer_ex_args,
) -> Reply {
    args.offset = map(call, space, args)?;
    Ok(())
}

/// Makes the checks in nvgpu's order and then the mapping. Returns its address.
pub(super) fn map(call: &Call<'_>, space: &AddressSpace, args: &nvgpu_as_map_buffer_ex_args) -> Reply<u64> {
    let request = Request::check(call, args)?;
    let pages = request.dmabuf.buffer.pages()?;
    if request.dmabuf.buffer.is_pinned() && request.dmabuf.buffer.read_only() && !request.asks_read_only() {
        return Err(Errno::EACCES.because("the process's own pages are read-only, and the mapping is not").into());
    }
    if request.dmabuf.read_only && request.access() == ACCESS_READ_WRITE {
        return Err(Errno::EINVAL.because("the dmabuf is read-only, and the flags ask for READ_WRITE").into());
    }
    let size = request.size()?;
    let mut state = space.state.lock();
    if let Some(va) = request.reuse(space, &mut state) {
        return Ok(va);
    }
    let key = request.check_place_and_kind(space, &state, size)?;
    let page_size = request.page_size(space, &state, size);
    if !request.buffer_offset.is_multiple_of(page_size) {
        return Err(Errno::ENOMEM.because("buffer_offset is not a multiple of the mapping's page size").into());
    }
    // The address 0, which only a program that divides the addresses itself may ask for, is none: the kernel takes one, and does not get
    // it back.
    let va = match request.fixed && request.offset != 0 {
        true => request.offset,
        false => state.place(space, size).ok_or_else(|| Errno::ENOMEM.because("no such range of addresses is free"))?,
    };
    let attributes = request.attributes(call, page_size);
    let (backing, offset) = (Some(pages), request.buffer_offset as usize);
    let extent = Extent { va, len: size, backing, offset, writable: request.writable, attributes };
    space.hw.update(|table| {
        // The mapping replaces the own pages of a sparse area.
        table.clear(va, va + size);
        if let Some(extent) = entries(request.flags, extent) {
            table.insert(extent);
        }
    });
    let Request { flags, fixed, writable, offset, .. } = request;
    let area = if fixed { state.area(offset).map(|(_, area)| area.sparse) } else { None };
    let (in_area, sparse) = (area.is_some(), area == Some(true));
    state.by_buffer.insert((key, va));
    let buffer = request.dmabuf.buffer;
    let mapping = Mapping { size, key, flags, refs: 1, fixed, in_area, sparse, writable, attributes, buffer };
    state.mappings.insert(va, mapping);
    Ok(va)
}

impl Request {
    /// Checks rules 1 to 7 of docs/hardware/nvgpu-address-space.md#map-buffer-ex.
    fn check(call: &Call<'_>, args: &nvgpu_as_map_buffer_ex_args) -> Reply<Request> {
        if call.is_r35() && args.flags & NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35 == 0 {
            return Err(Errno::EINVAL.because("r35 needs the flag DIRECT_KIND_CTRL").into());
        }
        let dmabuf = call.dmabuf(args.dmabuf_fd as i32)?;
        let fixed = args.flags & NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET != 0;
        let size = dmabuf.buffer.size;
        let misplaced = !fixed && (args.offset != 0 || args.buffer_offset != 0 || args.mapping_size != 0);
        let outside = size.checked_sub(args.mapping_size).is_none_or(|rest| args.buffer_offset > rest);
        let access = args.flags >> ACCESS_SHIFT & 3;
        if misplaced {
            let rule = "offset, buffer_offset and mapping_size need FIXED_OFFSET";
            return Err(Errno::EINVAL.because(rule).into());
        }
        if outside {
            let rule = format!(
                "buffer_offset {:#x} and mapping_size {:#x} reach beyond the dmabuf's {size:#x} bytes",
                args.buffer_offset, args.mapping_size
            );
            return Err(Errno::EINVAL.because(rule).into());
        }
        if access == 3 {
            return Err(Errno::EINVAL.because("the access in the flags is READ_ONLY and READ_WRITE at once").into());
        }
        let unknown = args.flags & !known_flags(call.is_r35());
        if unknown != 0 {
            return Err(Errno::EINVAL.because(format!("this release does not know the flags {unknown:#x}")).into());
        }
        let writable = access != ACCESS_READ_ONLY && !(access == 0 && dmabuf.read_only);
        Ok(Request {
            dmabuf,
            // An ignored flag is no part of what two mappings are compared by.
            flags: args.flags & !NVGPU_AS_MAP_BUFFER_FLAGS_MAPPABLE_COMPBITS,
            fixed,
            writable,
            buffer_offset: args.buffer_offset,
            mapping_size: args.mapping_size,
            compr_kind: args.compr_kind,
            incompr_kind: args.incompr_kind,
            offset: args.offset,
        })
    }

    fn access(&self) -> u32 {
        self.flags >> ACCESS_SHIFT & 3
    }

    fn asks_read_only(&self) -> bool {
        self.access() == ACCESS_READ_ONLY || self.access() == 0 && self.dmabuf.read_only
    }

    /// Checks rule 10: the range consists of whole pages and lies inside the buffer.
    fn size(&self) -> Result<u64, Errno> {
        let total = self.dmabuf.buffer.size;
        let asked = if self.mapping_size == 0 { total } else { self.mapping_size };
        let size = asked.checked_next_multiple_of(PAGE).ok_or(Errno::EINVAL)?;
        if size > total - self.buffer_offset.min(total) {
            return Err(Errno::EINVAL.because("whole pages of the range reach beyond the end of the dmabuf"));
        }
        Ok(size)
    }

    fn key(&self) -> Key {
        let kind = if self.compr_kind >= 0 { self.compr_kind } else { self.incompr_kind };
        (buffer_id(&self.dmabuf.buffer, self.dmabuf.read_only), kind)
    }

    /// What the entries say of the pages. Of the two kinds, small pages have the incompressible one.
    fn attributes(&self, call: &Call<'_>, page_size: u64) -> PageAttributes {
        /// The architecture of ga10b, for which r35 has an erratum: it does not ask for the L3 cache.
        const GA10B: u32 = 0x170;
        let r35 = call.is_r35();
        let coherent =
            if r35 { NVGPU_AS_MAP_BUFFER_FLAGS_PLATFORM_ATOMIC_R35 } else { NVGPU_AS_MAP_BUFFER_FLAGS_SYSTEM_COHERENT };
        let kind = if page_size > PAGE { self.key().1 } else { self.incompr_kind };
        PageAttributes {
            kind: kind as u8,
            cacheable: self.flags & NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE != 0,
            coherent: self.flags & coherent != 0,
            l3: self.flags & NVGPU_AS_MAP_BUFFER_FLAGS_L3_ALLOC != 0 && !(r35 && call.board.chip.arch == GA10B),
        }
    }

    /// Finds a mapping that also serves this request and gives it one more reference.
    fn reuse(&self, space: &AddressSpace, state: &mut Contents) -> Option<u64> {
        if space.user_managed {
            return None;
        }
        let key = self.key();
        let va = match self.fixed {
            true => self.offset,
            false => state.by_buffer.range((key, 0)..).next().filter(|(k, _)| *k == key)?.1,
        };
        let mapping = state.mappings.get_mut(&va).filter(|m| m.key == key && m.flags == self.flags)?;
        mapping.refs += 1;
        Some(va)
    }

    /// The size of the pages of the mapping. In an area it is that of the area. Elsewhere big pages are used where they
    /// fit.
    fn page_size(&self, space: &AddressSpace, state: &Contents, size: u64) -> u64 {
        let area = if self.fixed { state.area(self.offset) } else { None };
        match area {
            Some((_, area)) => area.page_size,
            None if space.class(size) == PageClass::Big => space.big_page,
            None => PAGE,
        }
    }

    /// Checks rules 11 to 13: the address and the kind of the mapping.
    fn check_place_and_kind(&self, space: &AddressSpace, state: &Contents, size: u64) -> Result<Key, Errno> {
        let page_size = self.page_size(space, state, size);
        if self.fixed {
            let aligned = self.offset.is_multiple_of(page_size);
            if !aligned {
                let rule = format!("offset {:#x} is not a multiple of the page size {page_size:#x}", self.offset);
                return Err(Errno::EINVAL.because(rule));
            }
            let end = self.offset.checked_add(size).ok_or(Errno::EINVAL)?;
            // A program that divides the addresses itself need not have an area, and it may use the kernel's addresses, too.
            let room = match state.area(self.offset) {
                Some((start, area)) => end <= start + area.size,
                None => space.user_managed && end <= state.kernel.end(),
            };
            if !room {
                let rule = format!(
                    "{:#x}..{end:#x} lies in no area of ALLOC_SPACE, and the address space is not the program's to divide",
                    self.offset
                );
                return Err(Errno::EINVAL.because(rule));
            }
            if state.overlaps(self.offset, end) {
                return Err(Errno::EINVAL.because(format!("something is mapped in {:#x}..{end:#x}", self.offset)));
            }
        } else if space.user_managed {
            return Err(Errno::EINVAL.because("an address space with USERSPACE_MANAGED needs FIXED_OFFSET"));
        }
        // Compressible kinds need pages of the compression page size, and small pages do not have that size. The
        // incompressible kind is used instead, if there is one.
        let kind = |k: i16| (0..=255).contains(&k);
        if kind(self.compr_kind) && page_size > PAGE {
            return Ok(self.key());
        }
        if self.compr_kind >= 0 && self.incompr_kind == -1 {
            return Err(Errno::EINVAL.because("small pages cannot be compressed, and there is no incompr_kind"));
        }
        if kind(self.incompr_kind) {
            Ok(self.key())
        } else {
            Err(Errno::ENOMEM.because("there is no such incompr_kind"))
        }
    }
}

/// What the GPU finds in the page table. With UNMAPPED_PTE the entries are empty, in a sparse area too.
fn entries(flags: u32, extent: Extent) -> Option<Extent> {
    (flags & NVGPU_AS_MAP_BUFFER_FLAGS_UNMAPPED_PTE == 0).then_some(extent)
}

/// The flags that a release knows on these chips, including those that it ignores.
fn known_flags(r35: bool) -> u32 {
    const COMMON: u32 = NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET
        | NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE
        | NVGPU_AS_MAP_BUFFER_FLAGS_UNMAPPED_PTE
        | NVGPU_AS_MAP_BUFFER_FLAGS_MAPPABLE_COMPBITS
        | NVGPU_AS_MAP_BUFFER_FLAGS_L3_ALLOC
        | 3 << ACCESS_SHIFT;
    if r35 {
        COMMON
            | NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35
            | NVGPU_AS_MAP_BUFFER_FLAGS_IO_COHERENT_R35
            | NVGPU_AS_MAP_BUFFER_FLAGS_PLATFORM_ATOMIC_R35
    } else {
        COMMON | NVGPU_AS_MAP_BUFFER_FLAGS_SYSTEM_COHERENT
    }
}

/// Drops a reference to the mapping at an address. This never fails: an address at which no mapping starts is ignored.
pub(crate) fn unmap_buffer(_: &Call<'_>, space: &Arc<AddressSpace>, args: &mut nvgpu_as_unmap_buffer_args) -> Reply {
    unmap(space, args.offset);
    Ok(())
}

pub(super) fn unmap(space: &AddressSpace, va: u64) {
    // The buffer may end with its mapping, and that must not happen under the lock.
    let gone = space.state.lock().put(space, va);
    drop(gone);
}

/// Changes the kind of pages of a mapping. The driver writes the entries anew, and it counts `buffer_offset` from the start
/// of the buffer, not from the start of the mapping.
pub(crate) fn mapping_modify(
    _: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_mapping_modify_args,
) -> Reply {
    let state = space.state.lock();
    let mapping = state.mappings.get(&args.map_address);
    let mapping = mapping.ok_or_else(|| Errno::EINVAL.because("no mapping begins at map_address"))?;
    let aligned = args.buffer_offset.is_multiple_of(PAGE) && args.buffer_size.is_multiple_of(PAGE);
    let inside = args.buffer_offset.checked_add(args.buffer_size).is_some_and(|end| end <= mapping.size);
    // The compressible kind is for mappings with compression tags, and there are none.
    if !aligned || !inside || args.incompr_kind == -1 {
        let rule = "the range is not of whole pages inside the mapping, or there is no such kind";
        return Err(Errno::EINVAL.because(rule).into());
    }
    let (va, offset) = (args.map_address + args.buffer_offset, args.buffer_offset as usize);
    let backing = Some(mapping.buffer.pages()?);
    let attributes = PageAttributes { kind: args.incompr_kind as u8, ..mapping.attributes };
    let extent = Extent { va, len: args.buffer_size, backing, offset, writable: mapping.writable, attributes };
    if extent.len > 0 {
        space.hw.update(|table| {
            table.clear(va, extent.end());
            if let Some(extent) = entries(mapping.flags, extent) {
                table.insert(extent);
            }
        });
    }
    Ok(())
}

/// The value of `map_buffer_batch_limit` in the characteristics.
pub(crate) const BATCH_LIMIT: u32 = 256;

/// Performs a batch. The first failure stops it. As on a board, the address of a mapping that was not fixed is never
/// written back.
pub(crate) fn map_buffer_batch(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_map_buffer_batch_args,
) -> Reply {
    if args.num_unmaps > BATCH_LIMIT || args.num_maps > BATCH_LIMIT {
        return Err(Errno::EINVAL.into());
    }
    for i in 0..u64::from(args.num_unmaps) {
        let at = args.unmaps.wrapping_add(i * size_of::<nvgpu_as_unmap_buffer_args>() as u64);
        unmap(space, call.copy_in_as::<nvgpu_as_unmap_buffer_args>(at)?.offset);
    }
    for i in 0..u64::from(args.num_maps) {
        let at = args.maps.wrapping_add(i * size_of::<nvgpu_as_map_buffer_ex_args>() as u64);
        map(call, space, &call.copy_in_as(at)?)?;
    }
    Ok(())
}
