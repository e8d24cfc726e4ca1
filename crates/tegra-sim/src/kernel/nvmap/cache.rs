//! CACHE: the checks of cache maintenance (nvgpu-rules §3.5). The host's caches are coherent, so a legal
//! request has nothing left to do.

use super::NvmapFile;
use crate::kernel::dispatch::{Call, Reply};
use crate::kernel::files::Object;
use std::sync::Arc;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// Write back, invalidate, both.
const OPS: std::ops::RangeInclusive<i32> = 0..=2;

pub(super) fn cache(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_cache_op) -> Reply {
    maintain(call, file, args.addr, args.handle, u64::from(args.len), args.op)
}

pub(super) fn cache_64(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_cache_op_64) -> Reply {
    maintain(call, file, args.addr, args.handle, args.len, args.op)
}

fn maintain(call: &Call<'_>, file: &NvmapFile, addr: u64, id: u32, len: u64, op: i32) -> Reply {
    if addr == 0 || !OPS.contains(&op) {
        return Err(Errno::EINVAL.into());
    }
    let handle = call.handle(file, id).ok_or(Errno::EINVAL)?;
    let end = addr.checked_add(len).ok_or(Errno::EADDRNOTAVAIL)?;
    let vma = call.process.vma(addr).filter(|vma| vma.start <= addr && end <= vma.end).ok_or(Errno::EADDRNOTAVAIL)?;
    let Some(Object::Dmabuf(buffer)) = call.kernel.files.get(vma.file) else {
        return Err(Errno::EADDRNOTAVAIL.into());
    };
    let past = vma.offset + (end - vma.start) > handle.buffer.size;
    if !Arc::ptr_eq(&buffer, &handle.buffer) || past {
        return Err(Errno::EFAULT.into());
    }
    Ok(())
}

/// Whole-list maintenance does nothing on T194 and T234 (nvgpu-rules §3.2): accepted as it is there.
pub(super) fn cache_list(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut nvmap_cache_op_list) -> Reply {
    Ok(())
}
