//! READ and WRITE: strided copies between a buffer and the caller (docs/hardware/nvmap.md#read-write).

use super::client::{HandleRef, NvmapFile};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegra_mm::Backing;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromBuffer,
    ToBuffer,
}

pub(super) fn read(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_rw_handle) -> Reply {
    rw(call, file, args, Direction::FromBuffer)
}

pub(super) fn write(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_rw_handle) -> Reply {
    rw(call, file, args, Direction::ToBuffer)
}

fn rw(call: &Call<'_>, file: &NvmapFile, args: &mut nvmap_rw_handle, direction: Direction) -> Reply {
    if args.addr == 0 || args.count == 0 || args.elem_size == 0 {
        return Err(Errno::EINVAL.because("addr, count and elem_size are not 0").into());
    }
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    let wanted = args.count.saturating_mul(args.elem_size);
    permitted(&handle, direction)?;
    let copied = allocated(&handle).and_then(|()| copy(call, &handle, args, direction));
    // The caller's count is replaced by the number of bytes copied, which is 0 when nothing was copied.
    call.copy_back_always.set(true);
    args.count = *copied.as_ref().unwrap_or(&0);
    match copied {
        Ok(bytes) if bytes < wanted => Err(Errno::EINTR.into()),
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn permitted(handle: &HandleRef, direction: Direction) -> Result<(), Errno> {
    let secure = handle.buffer.allocation().is_some_and(|a| a.heap == NVMAP_HEAP_CARVEOUT_VPR);
    let read_only = handle.read_only || handle.buffer.read_only();
    let forbidden = match direction {
        Direction::ToBuffer => read_only,
        Direction::FromBuffer => secure,
    };
    if forbidden { Err(Errno::EPERM.because("the buffer is read-only, or protected memory")) } else { Ok(()) }
}

fn allocated(handle: &HandleRef) -> Result<(), Errno> {
    let none = || Errno::EPERM.because("the handle has no memory yet (NVMAP_IOC_ALLOC)");
    handle.buffer.allocation().map(drop).ok_or_else(none)
}

/// Copies elements until one fails. Returns the number of bytes copied.
fn copy(call: &Call<'_>, handle: &HandleRef, args: &nvmap_rw_handle, direction: Direction) -> Result<u64, Errno> {
    // For products and sums that do not fit into the type, r39 has an errno of its own.
    let overflow = if call.is_r39() { Errno::EOVERFLOW } else { Errno::EINVAL };
    let size = handle.buffer.size;
    let (mut element, mut count) = (args.elem_size, args.count);
    let (mut in_buffer, mut in_user) = (args.hmem_stride, args.user_stride);
    if element == in_buffer && element == in_user && args.offset.is_multiple_of(8) {
        element = element.checked_mul(count).ok_or(overflow)?;
        (in_buffer, in_user, count) = (element, element, 1);
    }
    let last = in_buffer.checked_mul(count - 1).and_then(|s| s.checked_add(args.offset)?.checked_add(element));
    let last = last.ok_or(overflow)?;
    // The program's stride is held against the buffer, too.
    let inside = element <= size && args.offset < size && last <= size && in_user <= (size - args.offset) / count;
    if !inside || element > in_buffer || element > in_user {
        return Err(Errno::EINVAL.because("the elements lie outside of the buffer, or are larger than their strides"));
    }
    let pages = handle.buffer.pages()?;
    let mut done = 0;
    for i in 0..count {
        let (at, user) = (args.offset + i * in_buffer, args.addr.wrapping_add(i.wrapping_mul(in_user)));
        let moved = block(call, &pages, at, user, element, direction);
        done += moved;
        if moved < element {
            break;
        }
    }
    Ok(done)
}

/// Copies one block, piece by piece. Returns the number of bytes copied.
fn block(call: &Call<'_>, pages: &Backing, at: u64, user: u64, len: u64, direction: Direction) -> u64 {
    let mut piece = [0; 4096];
    let mut done = 0;
    while done < len {
        let bytes = &mut piece[..(len - done).min(4096) as usize];
        let (at, user) = ((at + done) as usize, user.wrapping_add(done));
        let moved = match direction {
            Direction::FromBuffer => pages.read(at, bytes) && call.process.write(user, bytes).is_ok(),
            Direction::ToBuffer => call.process.read(user, bytes).is_ok() && pages.write(at, bytes),
        };
        if !moved {
            break;
        }
        done += bytes.len() as u64;
    }
    done
}
