//! GET_VA_REGIONS and the read-only map of all syncpoints.

use super::{AddressSpace, PAGE};
use crate::dispatch::{Call, Reply};
use crate::syncpoint;
use std::sync::Arc;
use tegra_mm::{Backing, Extent, PageClass, SYNCPOINT_STRIDE};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

pub(crate) fn get_va_regions(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_get_va_regions_args,
) -> Reply {
    let state = space.state.lock();
    let sizes = std::iter::once(PAGE).chain((space.big_page != 0).then_some(space.big_page));
    let regions: Vec<_> = sizes
        .enumerate()
        .map(|(i, page_size)| {
            let allocator = &state.user[i.min(state.user.len() - 1)];
            nvgpu_as_va_region {
                offset: allocator.start(),
                page_size: page_size as u32,
                reserved: 0,
                pages: (allocator.end() - allocator.start()) / page_size,
            }
        })
        .collect();
    drop(state);
    let fit = args.buf_size as usize / size_of::<nvgpu_as_va_region>();
    call.copy_out(args.buf_addr, regions[..fit.min(regions.len())].as_bytes())?;
    args.buf_size = size_of_val(regions.as_slice()) as u32;
    Ok(())
}

pub(crate) fn get_sync_ro_map(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_get_sync_ro_map_args,
) -> Reply {
    args.base_gpuva = space.map_syncpoints(call.board.syncpoints.aperture()?)?;
    args.sync_size = SYNCPOINT_STRIDE as u32;
    args.num_syncpoints = syncpoint::COUNT;
    Ok(())
}

/// GET_SYNC_RO_MAP of r39, which has a region for each host1x. There is one host1x.
pub(crate) fn get_sync_ro_map_v2(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_get_sync_ro_map_v2_args,
) -> Reply {
    args.num_syncpoint_regions = 1;
    args.regions[0] = nvgpu_as_syncpoint_region_description {
        base_gpuva: space.map_syncpoints(call.board.syncpoints.aperture()?)?,
        sync_size: SYNCPOINT_STRIDE as u32,
        num_syncpoints: syncpoint::COUNT,
    };
    Ok(())
}

impl AddressSpace {
    /// Maps the whole syncpoint aperture read-only. It is mapped once, and stays for the life of the space.
    pub(crate) fn map_syncpoints(&self, aperture: Arc<Backing>) -> Result<u64, Errno> {
        let mut state = self.state.lock();
        if let Some(va) = state.sync_ro {
            return Ok(va);
        }
        let va = state.kernel.alloc(syncpoint::APERTURE, PageClass::Small).ok_or(Errno::ENOMEM)?;
        let len = syncpoint::APERTURE;
        let extent = Extent { va, len, backing: Some(aperture), ..Extent::default() };
        self.write(extent);
        state.sync_ro = Some(va);
        Ok(va)
    }
}
