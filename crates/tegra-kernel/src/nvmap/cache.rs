//! CACHE: the checks of cache maintenance (docs/hardware/nvmap.md#cache). The host's caches are coherent, so a legal
//! request has nothing to do.

use super::buffer::{Allocation, Buffer};
use super::client::NvmapFile;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// The operations write back, invalidate, and both.
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
    let buffer: Arc<Buffer> = call.files.find(vma.file).ok_or(Errno::EADDRNOTAVAIL)?;
    let past = vma.offset + (end - vma.start) > handle.buffer.size;
    if !Arc::ptr_eq(&buffer, &handle.buffer) || past {
        return Err(Errno::EFAULT.into());
    }
    Ok(())
}

/// The handles of one list. Their number costs a program nothing, because all can lie in one page of zeros.
const LIST_HANDLES: u32 = 1 << 20;

/// Checks the lists of a maintenance request and does nothing else, as on T194 and T234
/// (docs/hardware/nvmap.md#cache-list).
pub(super) fn cache_list(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_cache_op_list) -> Reply {
    let element: u64 = if args.op.cast_unsigned() & NVMAP_ELEM_SIZE_U64 as u32 != 0 { 8 } else { 4 };
    let none = args.nr == 0 || args.nr > u32::MAX / 4;
    if none || args.handles == 0 || args.offsets == 0 || args.sizes == 0 {
        return Err(Errno::EINVAL.into());
    }
    if args.nr > LIST_HANDLES {
        return Err(Errno::ENOMEM
            .because(format!("{} handles: the simulator reads at most {LIST_HANDLES}", args.nr))
            .into());
    }
    let mut ids = Vec::new();
    read_list(call, args.handles, u64::from(args.nr) * 4, |ids_in| {
        ids.extend(ids_in.chunks_exact(4).filter_map(|id| id.try_into().ok()).map(u32::from_ne_bytes));
    })?;
    for list in [args.offsets, args.sizes] {
        read_list(call, list, u64::from(args.nr) * element, |_| ())?;
    }
    let mut buffers = Vec::new();
    for id in ids {
        let allocation = call.handle(file, id).ok_or(Errno::EINVAL)?.buffer.allocation();
        buffers.push(allocation.filter(|a| a.heap != NVMAP_HEAP_CARVEOUT_VPR).ok_or(Errno::EPERM)?);
    }
    // Either all buffers are of this kind or none of them is. The same holds for buffers from carveouts.
    let mixed = |is: &dyn Fn(&Allocation) -> bool| buffers.iter().any(is) && !buffers.iter().all(is);
    let reserved = |a: &Allocation| a.flags & NVMAP_HANDLE_CACHE_SYNC_AT_RESERVE != 0;
    if mixed(&reserved) || (buffers.iter().all(reserved) && mixed(&|a| a.heap == NVMAP_HEAP_IOVMM)) {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}

/// Reads a list of the caller piece by piece, because the caller chooses its length.
fn read_list(call: &Call<'_>, addr: u64, len: u64, mut each: impl FnMut(&[u8])) -> Reply {
    const PIECE: u64 = 64 << 10;
    let mut piece = [0; PIECE as usize];
    for at in (0..len).step_by(PIECE as usize) {
        let piece = &mut piece[..(len - at).min(PIECE) as usize];
        call.copy_in(addr.wrapping_add(at), piece)?;
        each(piece);
    }
    Ok(())
}
