//! ALLOC_SPACE and FREE_SPACE: reserved ranges (docs/hardware/nvgpu-address-space.md#alloc-space).

use super::{AddressSpace, Area, PAGE, sparse_extent};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegra_mm::PageClass;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_kmd::Errno;

pub(crate) fn alloc_space_32(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu32_as_alloc_space_args,
) -> Reply {
    let mut wide = nvgpu_as_alloc_space_args {
        pages: u64::from(args.pages),
        page_size: args.page_size,
        flags: args.flags,
        o_a_offset: args.o_a_offset,
        padding: [0; 2],
    };
    alloc_space(call, space, &mut wide)?;
    args.o_a_offset = wide.o_a_offset;
    Ok(())
}

impl AddressSpace {
    /// Reserves an area of small pages for the kernel's own use, at any address.
    pub(crate) fn reserve_area(&self, size: u64) -> Result<u64, Errno> {
        let mut state = self.state.lock();
        let start = state.user[0].alloc(size, PageClass::Small).ok_or(Errno::ENOMEM)?;
        state.areas.insert(start, Area { size, page_size: PAGE, sparse: false });
        Ok(start)
    }
}

pub(crate) fn alloc_space(_: &Call<'_>, space: &Arc<AddressSpace>, args: &mut nvgpu_as_alloc_space_args) -> Reply {
    let page_size = u64::from(args.page_size);
    let big = space.big_page != 0 && page_size == space.big_page;
    if page_size != PAGE && !big {
        let rule = format!("page_size {page_size:#x} is neither 0x1000 nor the address space's big page size");
        return Err(Errno::EINVAL.because(rule).into());
    }
    let size = args.pages.checked_mul(page_size).ok_or(Errno::ENOMEM)?;
    let class = if big { PageClass::Big } else { PageClass::Small };
    let mut state = space.state.lock();
    let start = if args.flags & NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET != 0 {
        let outside = || Errno::ENOMEM.because("o_a_offset lies outside of the address space");
        let allocator = AddressSpace::allocator(&mut state, args.o_a_offset).ok_or_else(outside)?;
        let taken = args.o_a_offset.is_multiple_of(page_size) && allocator.alloc_fixed(args.o_a_offset, size, class);
        let rule = "the range at o_a_offset is in use, or does not begin at a page";
        taken.then_some(args.o_a_offset).ok_or_else(|| Errno::ENOMEM.because(rule))?
    } else {
        let allocator = if big { state.user.len() - 1 } else { 0 };
        let full = || Errno::ENOMEM.because("no such range of addresses is free");
        state.user[allocator].alloc(size, class).ok_or_else(full)?
    };
    let sparse = args.flags & NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE != 0;
    if sparse {
        space.hw.update(|table| {
            // A sparse area that was freed here may have left its entries.
            table.clear(start, start + size);
            table.insert(sparse_extent(start, size));
        });
    }
    state.areas.insert(start, Area { size, page_size, sparse });
    args.o_a_offset = start;
    Ok(())
}

/// Frees the area around an address, and drops one reference to each mapping inside. This never fails.
pub(crate) fn free_space(_: &Call<'_>, space: &Arc<AddressSpace>, args: &mut nvgpu_as_free_space_args) -> Reply {
    let mut state = space.state.lock();
    let area = state.area(args.offset).map(|(start, area)| (start, area.size, area.sparse));
    let Some((start, size, sparse)) = area else { return Ok(()) };
    let inside: Vec<u64> =
        state.mappings.range(start..start + size).filter(|(_, m)| m.in_area).map(|(va, _)| *va).collect();
    let gone: Vec<_> = inside.into_iter().filter_map(|va| state.put(space, va)).collect();
    state.areas.remove(&start);
    if sparse {
        // The driver writes sparse entries when it frees a sparse area, not empty ones: nothing faults there.
        space.hw.update(|table| {
            table.clear(start, start + size);
            table.insert(sparse_extent(start, size));
        });
    }
    if let Some(allocator) = AddressSpace::allocator(&mut state, start) {
        allocator.free(start);
    }
    drop(state);
    drop(gone);
    Ok(())
}
