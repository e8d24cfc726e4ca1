//! MAP_BUFFER_BATCH: first unmaps, then maps (docs/hardware/nvgpu-address-space.md#map-buffer-batch).

use super::{AddressSpace, map};
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_kmd::Errno;

/// The value of `map_buffer_batch_limit` in the characteristics.
pub(crate) const LIMIT: u32 = 256;

/// Performs a batch. The first failure stops it. As on a board, the address of a mapping that was not fixed is never
/// written back.
pub(super) fn map_buffer_batch(
    call: &Call<'_>,
    space: &Arc<AddressSpace>,
    args: &mut nvgpu_as_map_buffer_batch_args,
) -> Reply {
    if args.num_unmaps > LIMIT || args.num_maps > LIMIT {
        return Err(Errno::EINVAL.into());
    }
    for i in 0..u64::from(args.num_unmaps) {
        let at = args.unmaps.wrapping_add(i * size_of::<nvgpu_as_unmap_buffer_args>() as u64);
        map::unmap(space, call.copy_in_as::<nvgpu_as_unmap_buffer_args>(at)?.offset);
    }
    for i in 0..u64::from(args.num_maps) {
        let at = args.maps.wrapping_add(i * size_of::<nvgpu_as_map_buffer_ex_args>() as u64);
        map::map(call, space, &call.copy_in_as(at)?)?;
    }
    Ok(())
}
