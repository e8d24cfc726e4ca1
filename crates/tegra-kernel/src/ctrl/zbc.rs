//! The ioctls of the tables of zero-bandwidth clears.

use super::node::Ctrl;
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;

pub(super) fn set_table(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_zbc_set_table_args) -> Reply {
    let tables = &call.board.clears;
    match args.type_ {
        NVGPU_ZBC_TYPE_COLOR => tables.colors.lock().add((args.color_ds, args.color_l2), args.format)?,
        NVGPU_ZBC_TYPE_DEPTH => tables.depths.lock().add(args.depth, args.format)?,
        NVGPU_ZBC_TYPE_STENCIL => tables.stencils.lock().add(args.stencil, args.format)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(())
}

/// Answers a query of an entry. The query of type 0 returns the number of colors.
pub(super) fn query_table(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_zbc_query_table_args) -> Reply {
    let tables = &call.board.clears;
    (args.format, args.ref_cnt) = match args.type_ {
        NVGPU_ZBC_TYPE_INVALID => {
            args.index_size = tables.colors.lock().room as u32;
            (0, 0)
        }
        NVGPU_ZBC_TYPE_COLOR => {
            let entry = tables.colors.lock().entry(args.index_size)?;
            (args.color_ds, args.color_l2) = entry.value;
            (entry.format, entry.references)
        }
        NVGPU_ZBC_TYPE_DEPTH => {
            let entry = tables.depths.lock().entry(args.index_size)?;
            args.depth = entry.value;
            (entry.format, entry.references)
        }
        NVGPU_ZBC_TYPE_STENCIL => {
            let entry = tables.stencils.lock().entry(args.index_size)?;
            args.stencil = entry.value;
            (entry.format, entry.references)
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    Ok(())
}
