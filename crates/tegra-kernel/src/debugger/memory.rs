//! GPU memory as a debugger sees it: the mappings of the channel's address space, and their contents.

use super::session::Debugger;
use crate::dispatch::{Call, Reply, Stop};
use crate::rule::Because;
use crate::space::AddressSpace;
use crate::space::map::Mapped;
use std::sync::Arc;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// The largest piece of memory that `kmalloc` gives.
const KMALLOC_MAX: usize = 4 << 20;
/// The number of bytes that ACCESS_FB_MEMORY copies at a time.
const FB_FRAGMENT: u64 = 4096;

/// Checks that an array is not too large for one allocation of the kernel. The error is `ENOMEM`.
fn check_array<T>(count: u32) -> Result<(), Errno> {
    if count as usize > KMALLOC_MAX / size_of::<T>() { Err(Errno::ENOMEM) } else { Ok(()) }
}

/// The address space of the session's channel. If the channel has none, the call is refused here. A board's kernel
/// crashes.
fn space(session: &Debugger) -> Result<Arc<AddressSpace>, Errno> {
    let channel = session.channel().ok_or(Errno::EINVAL)?;
    let space = channel.state.lock().space.clone();
    space.ok_or_else(|| {
        tracing::error!("a debugger looks at a channel without an address space: a board's kernel crashes here");
        Errno::EINVAL
    })
}

/// Lists the mappings in a range. Neighbours with the same access are joined. If the caller has no room, the answer is
/// the number of entries.
pub(super) fn get_mappings(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_get_mappings_args,
) -> Reply {
    if args.va_lo > args.va_hi {
        return Err(Errno::EINVAL.into());
    }
    session.channel().ok_or(Errno::EINVAL)?;
    let room = args.count as usize;
    if room > 0 && args.ops_buffer == 0 {
        return Err(Errno::EINVAL.into());
    }
    check_array::<nvgpu_dbg_gpu_get_mappings_entry>(args.count)?;
    let entries = list(&space(session)?.mapped(), args.va_lo, args.va_hi, room);
    args.count = entries.len() as u32;
    // The flag is set as soon as the room is used up, whether or not another mapping follows.
    if entries.len() == room && room > 0 {
        args.has_more = 1;
    }
    if room > 0 { call.copy_out(args.ops_buffer, entries.as_bytes()) } else { Ok(()) }
}

fn list(mapped: &[Mapped], start: u64, end: u64, room: usize) -> Vec<nvgpu_dbg_gpu_get_mappings_entry> {
    let mut entries: Vec<nvgpu_dbg_gpu_get_mappings_entry> = Vec::new();
    let (mut key, mut read_only) = (start, false);
    for mapping in mapped {
        let after = mapping.va + mapping.size;
        // A mapping that ends where the range begins is listed with no bytes.
        if key > after {
            continue;
        }
        key = key.max(mapping.va);
        if key >= end {
            break;
        }
        let size = end.min(after) - key;
        match entries.last_mut() {
            Some(last) if last.gpu_va + last.size == mapping.va && read_only == mapping.read_only => last.size += size,
            _ => entries.push(nvgpu_dbg_gpu_get_mappings_entry { gpu_va: key, size }),
        }
        if entries.len() == room {
            break;
        }
        read_only = mapping.read_only;
    }
    entries
}

/// Reads or writes ranges of the channel's address space. The first bad range ends the call.
pub(super) fn access_gpu_va(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_va_access_args,
) -> Reply {
    session.channel().ok_or(Errno::EINVAL)?;
    if args.count == 0 {
        return Err(Errno::EINVAL.into());
    }
    check_array::<nvgpu_dbg_gpu_va_access_entry>(args.count)?;
    let ops: Vec<nvgpu_dbg_gpu_va_access_entry> = call.copy_in_array(args.ops_buf, args.count as usize)?;
    let space = space(session)?;
    for op in ops {
        if op.size == 0 || op.gpu_va & 3 != 0 {
            return Err(Errno::EINVAL.into());
        }
        access(call, &space, u32::from(args.cmd), &op)?;
    }
    Ok(())
}

/// The bytes of one access. The simulator keeps all of them during the call.
const ACCESS_BYTES: u32 = 64 << 20;

fn access(call: &Call<'_>, space: &AddressSpace, cmd: u32, op: &nvgpu_dbg_gpu_va_access_entry) -> Reply {
    let write = cmd == NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_WRITE;
    let size = op.size as usize;
    if op.size > ACCESS_BYTES || u64::from(op.size) > call.board.config.mem_total {
        return Err(Errno::ENOMEM
            .because(format!("{size} bytes: the simulator copies at most {ACCESS_BYTES} at a time"))
            .into());
    }
    let mut data = vec![0; size];
    if write {
        call.copy_in(op.data, &mut data)?;
    }
    if !size.is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    let (mut va, mut left) = (op.gpu_va, size);
    while left > 0 {
        let mapping = space.mapped_at(va).ok_or(Errno::EINVAL)?;
        if cmd != NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_READ && !write || write && mapping.read_only {
            return Err(Errno::EINVAL.into());
        }
        let offset = (va - mapping.va) as usize;
        let piece = left.min(mapping.size as usize - offset);
        let memory = mapping.dmabuf().kernel_view()?;
        // The driver does two surprising things, which are kept. The offset counts from the beginning of the buffer,
        // even if the mapping begins elsewhere in it. And the piece of every mapping begins where the piece of the
        // first mapping begins.
        let inside = match write {
            true => memory.write(offset, &data[..piece]),
            false => memory.read(offset, &mut data[..piece]),
        };
        if !inside {
            return Err(Errno::EINVAL.into());
        }
        va += piece as u64;
        left -= piece;
    }
    if write { Ok(()) } else { call.copy_out(op.data, &data) }
}

/// Checks an access to video memory and then refuses with `EINVAL`, because an integrated GPU has no video memory.
pub(super) fn access_fb(call: &Call<'_>, _: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_access_fb_memory_args) -> Reply {
    if args.offset & 3 != 0 || args.size == 0 || args.size & 3 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = call.dmabuf(args.dmabuf_fd).map_err(|_| Errno::EINVAL)?.buffer.size;
    if args.offset.checked_add(args.size).is_none_or(|end| end > size) {
        return Err(Errno::EINVAL.into());
    }
    if args.cmd == NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY_CMD_WRITE {
        let mut first = vec![0; args.size.min(FB_FRAGMENT) as usize];
        call.copy_in(args.buffer, &mut first).map_err(|_| Stop::Uncopied(first.len()))?;
    }
    Err(Errno::EINVAL.into())
}
