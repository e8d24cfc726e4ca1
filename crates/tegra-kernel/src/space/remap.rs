//! REMAP: points pages of a sparse area at pages of buffers (docs/hardware/nvgpu-address-space.md#remap).

use super::{AddressSpace, Contents, sparse_extent};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegra_mm::{Extent, PageAttributes};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// The page sizes that an operation may name.
const PAGE_SIZES: [(u32, u64); 3] = [
    (NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_4K, 4 << 10),
    (NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_64K, 64 << 10),
    (NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_128K, 128 << 10),
];
/// The operations of one call. Their number costs a program nothing, because all can lie in one page of zeros.
const CALL_OPERATIONS: u32 = 1 << 20;
const MAP_FLAGS: u32 = NVGPU_AS_REMAP_OP_FLAGS_CACHEABLE | NVGPU_AS_REMAP_OP_FLAGS_ACCESS_NO_WRITE;

/// The effect of one operation on a range.
struct Step {
    va: u64,
    len: u64,
    extent: Extent,
}

/// Checks all operations before the first takes effect. The number of operations that are done is returned even on
/// error.
pub(crate) fn remap(call: &Call<'_>, space: &Arc<AddressSpace>, args: &mut nvgpu_as_remap_args) -> Reply {
    call.copy_back_always.set(true);
    let count = std::mem::take(&mut args.num_ops);
    if count == 0 {
        return Ok(());
    }
    if count > CALL_OPERATIONS {
        return Err(Errno::ENOMEM
            .because(format!("{count} operations: the simulator reads at most {CALL_OPERATIONS}"))
            .into());
    }
    let mut ops = Vec::new();
    for i in 0..u64::from(count) {
        let at = args.ops.wrapping_add(i * size_of::<nvgpu_as_remap_op>() as u64);
        ops.push(call.copy_in_as::<nvgpu_as_remap_op>(at)?);
    }
    let state = space.state.lock();
    let steps = plan(call, &state, &ops)?;
    space.hw.update(|table| {
        for step in steps {
            table.clear(step.va, step.va + step.len);
            table.insert(step.extent);
            args.num_ops += 1;
        }
    });
    drop(state);
    write_back(call, args, &ops)
}

/// Writes each operation back as the driver does: the kinds are its own, and every other field is that of the last
/// operation.
fn write_back(call: &Call<'_>, args: &mut nvgpu_as_remap_args, ops: &[nvgpu_as_remap_op]) -> Reply {
    let Some(last) = ops.last() else { return Ok(()) };
    for (i, op) in (0..).zip(ops) {
        let back = nvgpu_as_remap_op { compr_kind: op.compr_kind, incompr_kind: op.incompr_kind, ..*last };
        let at = args.ops.wrapping_add(u64::from(i) * size_of::<nvgpu_as_remap_op>() as u64);
        if let Err(error) = call.copy_out(at, back.as_bytes()) {
            args.num_ops = i;
            return Err(error);
        }
    }
    Ok(())
}

fn plan(call: &Call<'_>, state: &Contents, ops: &[nvgpu_as_remap_op]) -> Reply<Vec<Step>> {
    let page_size = page_size(&ops[0])?;
    let first = ops[0].virt_offset_in_pages.checked_mul(page_size).ok_or(Errno::EINVAL)?;
    let area = state.area(first).filter(|(_, a)| a.sparse && a.page_size == page_size);
    let none = || Errno::EINVAL.because("the first operation lies in no sparse area of its page size");
    let (start, area) = area.ok_or_else(none)?;
    let end = start + area.size;
    // Each number of pages is compared with the pages of the size that the operation names up to the end of the address space.
    for op in ops {
        let most = state.kernel.end() / self::page_size(op)?;
        let pages = [op.num_pages, op.mem_offset_in_pages, op.virt_offset_in_pages];
        if pages.iter().any(|pages| *pages > most) {
            return Err(Errno::EINVAL
                .because("an operation names more pages of its size than the address space has")
                .into());
        }
    }
    ops.iter().map(|op| step(call, op, page_size, start..end)).collect()
}

/// The page size that an operation names. Its other flags are checked here.
fn page_size(op: &nvgpu_as_remap_op) -> Result<u64, Errno> {
    let allowed = if op.mem_handle == 0 { 0 } else { MAP_FLAGS };
    let size = PAGE_SIZES.iter().find(|(flag, _)| op.flags & !allowed == *flag);
    size.map(|(_, size)| *size).ok_or_else(|| Errno::EINVAL.because("the flags name no page size, or more than one"))
}

/// Plans one operation. Pages in the address space have the size of the area's pages, whatever size the operation names.
/// Only the bounds of the buffer are checked with the size that the operation names, as in the driver.
fn step(call: &Call<'_>, op: &nvgpu_as_remap_op, page: u64, area: std::ops::Range<u64>) -> Reply<Step> {
    let named = page_size(op)?;
    let bytes = |pages: u64, page: u64| pages.checked_mul(page).ok_or(Errno::EINVAL);
    let (va, len) = (bytes(op.virt_offset_in_pages, page)?, bytes(op.num_pages, page)?);
    let end = va.checked_add(len).ok_or(Errno::EINVAL)?;
    if len == 0 || va < area.start || end > area.end {
        return Err(Errno::EINVAL.because("an operation is empty, or leaves the area of the first").into());
    }
    if op.mem_handle == 0 {
        let clean = op.compr_kind == -1 && op.incompr_kind == -1 && op.mem_offset_in_pages == 0;
        let rule = "an operation without a buffer has kinds of -1 and no offset";
        let step = || Step { va, len, extent: sparse_extent(va, len) };
        return if clean { Ok(step()) } else { Err(Errno::EINVAL.because(rule).into()) };
    }
    let dmabuf = call.dmabuf(op.mem_handle as i32).map_err(|_| Errno::EINVAL)?;
    if dmabuf.read_only && op.flags & NVGPU_AS_REMAP_OP_FLAGS_ACCESS_NO_WRITE == 0 {
        return Err(Errno::EINVAL.because("the dmabuf is read-only, and the flags lack ACCESS_NO_WRITE").into());
    }
    let buffer = dmabuf.buffer;
    // No page beyond the buffer is mapped either, if the operation names smaller pages than the area has.
    for page in [named, page] {
        let end = bytes(op.mem_offset_in_pages, page)?.checked_add(bytes(op.num_pages, page)?);
        if end.is_none_or(|end| end > buffer.size) {
            return Err(Errno::EINVAL.because("an operation reaches beyond the end of its buffer").into());
        }
    }
    let offset = bytes(op.mem_offset_in_pages, page)? as usize;
    let writable = op.flags & NVGPU_AS_REMAP_OP_FLAGS_ACCESS_NO_WRITE == 0;
    // The compressible kind is written without compression tags, too.
    let kind = if op.compr_kind == -1 { op.incompr_kind } else { op.compr_kind } as u8;
    let cacheable = op.flags & NVGPU_AS_REMAP_OP_FLAGS_CACHEABLE != 0;
    let attributes = PageAttributes { kind, cacheable, ..PageAttributes::default() };
    let extent = Extent { va, len, backing: Some(buffer.pages()?), offset, writable, attributes };
    Ok(Step { va, len, extent })
}
