//! nvmap: handles, buffers and dmabufs (docs/hardware/nvmap.md#nvmap).

mod alloc;
mod buffer;
mod cache;
mod client;
mod from_va;
mod heaps;
mod ivm;
mod memory;
mod pages;
mod rw;

pub(super) use buffer::{Buffer, Dmabuf, Registration};
pub(super) use client::{Device, NvmapFile};

use super::dispatch::{self, Call, Reply, Stop, typed};
use super::files::{Mmap, OpenFile};
use super::release::Releases;
use crate::budget::Resource;
use crate::rule::Because;
use client::HandleRef;
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::{Arg, Errno, Node};

/// One nvmap ioctl. Handlers copy their arguments themselves and ignore the direction bits of the number.
struct NvmapRow {
    name: &'static str,
    number: u32,
    releases: Releases,
    /// The errno of a bad argument pointer.
    bad_pointer: Errno,
    /// True if the argument is copied back on success.
    out: bool,
    handler: fn(&Call<'_>, &Arc<NvmapFile>, &mut [u8]) -> Reply,
}

macro_rules! nvmap_rows {
    ($($releases:ident $name:ident, $out:expr, $bad:ident => $handler:expr;)*) => {
        &[$(NvmapRow {
            name: stringify!($name),
            number: $name,
            releases: Releases::$releases,
            bad_pointer: Errno::$bad,
            out: $out,
            handler: |call, file, bytes| typed(call, file, bytes, $handler),
        }),*]
    };
}

static ROWS: &[NvmapRow] = nvmap_rows! {
    ALL NVMAP_IOC_CREATE, true, EFAULT => create;
    ALL NVMAP_IOC_CREATE_64, true, EFAULT => create_64;
    R39 NVMAP_IOC_ALLOC_R39, false, EFAULT => alloc::alloc_r39;
    R36 NVMAP_IOC_ALLOC, false, EFAULT => alloc::alloc;
    R35 NVMAP_IOC_ALLOC_R35, false, EFAULT => alloc::alloc_r35;
    ALL NVMAP_IOC_WRITE, true, EFAULT => rw::write;
    ALL NVMAP_IOC_READ, true, EFAULT => rw::read;
    ALL NVMAP_IOC_CACHE, false, EFAULT => cache::cache;
    ALL NVMAP_IOC_CACHE_64, false, EFAULT => cache::cache_64;
    UNTIL_R36 NVMAP_IOC_CACHE_LIST, false, EFAULT => cache::cache_list;
    ALL NVMAP_IOC_GET_FD, true, EFAULT => get_fd;
    ALL NVMAP_IOC_FROM_FD, true, EFAULT => from_fd;
    ALL NVMAP_IOC_FROM_VA, true, EFAULT => from_va::from_va;
    ALL NVMAP_IOC_FROM_IVC_ID, false, EFAULT => ivm::from_ivc_id;
    ALL NVMAP_IOC_GET_IVC_ID, true, EFAULT => ivm::ivc_id;
    ALL NVMAP_IOC_GET_IVM_HEAPS, true, EFAULT => ivm::ivm_heaps;
    ALL NVMAP_IOC_GUP_TEST, true, EFAULT => pages::gup_test;
    UNTIL_R36 NVMAP_IOC_SET_TAG_LABEL, false, EFAULT => set_tag_label;
    ALL NVMAP_IOC_GET_AVAILABLE_HEAPS, true, EINVAL => heaps::available;
    UNTIL_R36 NVMAP_IOC_GET_HEAP_SIZE, true, EFAULT => heaps::size;
    SINCE_R36 NVMAP_IOC_PARAMETERS, true, ENODEV => heaps::parameters;
    R35 NVMAP_IOC_PARAMETERS_R35, true, ENODEV => heaps::parameters_r35;
    SINCE_R36 NVMAP_IOC_QUERY_HEAP_PARAMS, true, EFAULT => heaps::query;
    R39 NVMAP_IOC_QUERY_HEAP_PARAMS_NUMA, true, EFAULT => heaps::query_numa;
    R35 NVMAP_IOC_QUERY_HEAP_PARAMS_R35, true, EFAULT => heaps::query_r35;
    ALL NVMAP_IOC_DUP_HANDLE, true, EFAULT => duplicate;
    ALL NVMAP_IOC_ALLOC_IVM, false, EFAULT => ivm::alloc_ivm;
    ALL NVMAP_IOC_VPR_FLOOR_SIZE, false, EFAULT => ivm::vpr_floor_size;
    SINCE_R36 NVMAP_IOC_GET_SCIIPCID, false, EFAULT => ivm::sciipc_id;
    SINCE_R36 NVMAP_IOC_HANDLE_FROM_SCIIPCID, false, EFAULT => ivm::from_sciipc_id;
    R35 NVMAP_IOC_GET_SCIIPCID_R35, false, EFAULT => ivm::sciipc_id_r35;
    R35 NVMAP_IOC_HANDLE_FROM_SCIIPCID_R35, false, EFAULT => ivm::from_sciipc_id_r35;
    SINCE_R36 NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, false, EFAULT => pages::fd_for_range;
};

/// The name and number of every ioctl in this table.
pub(super) fn ioctls() -> impl Iterator<Item = (&'static str, u32)> {
    ROWS.iter().map(|row| (row.name, row.number))
}

impl OpenFile for NvmapFile {
    fn node(&self) -> Option<Node> {
        Some(Node::Nvmap)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        ioctl(call, &self, request, arg)
    }

    fn check_mmap(&self, _: &Call<'_>, _: &Mmap) -> Result<(), Errno> {
        Err(Errno::EPERM.because("buffers are mapped through their dmabufs (NVMAP_IOC_GET_FD)"))
    }
}

/// Answers one ioctl on the nvmap node. A number that is not known gives `ENOTTY` (docs/hardware/nvmap.md#dispatcher).
fn ioctl(call: &Call<'_>, file: &Arc<NvmapFile>, request: u32, mut arg: Arg<'_>) -> Result<i32, Errno> {
    if request == NVMAP_IOC_FREE {
        return free(call, file, &arg);
    }
    let generation = call.board.config.l4t.generation();
    let known = |row: &&NvmapRow| row.number == request && row.releases.contains(generation);
    let row = ROWS.iter().find(known);
    let row = row.ok_or_else(|| Errno::ENOTTY.because("this release of nvmap has no ioctl of that number and size"))?;
    // The largest structure of nvmap has 72 bytes.
    let mut buffer = [0; 72];
    let bytes = &mut buffer[..(request >> 16 & 0x3fff) as usize];
    dispatch::fetch(call.process, &arg, bytes).map_err(|_| row.bad_pointer)?;
    let reply = (row.handler)(call, file, bytes);
    tracing::trace!(target: "tegra_sim::ioctl", name = row.name, ?reply);
    if row.out && (reply.is_ok() || call.copy_back_always.get()) {
        dispatch::store(call.process, &mut arg, bytes).map_err(|_| row.bad_pointer)?;
    }
    match reply {
        Ok(()) => Ok(0),
        Err(Stop::Errno(errno)) => Err(errno),
        Err(Stop::Uncopied(_)) => Err(Errno::EFAULT),
    }
}

fn create(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_create_handle) -> Reply {
    args.handle = new_handle(call, file, u64::from(args.size))?;
    Ok(())
}

/// CREATE_64 uses the same eight bytes as CREATE: they contain the size on entry and the handle at offset 0 on return.
fn create_64(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut [u32; 2]) -> Reply {
    args[0] = new_handle(call, file, u64::from(args[1]) << 32 | u64::from(args[0]))?;
    Ok(())
}

fn new_handle(call: &Call<'_>, file: &NvmapFile, size: u64) -> Reply<u32> {
    let rounded = size.checked_next_multiple_of(4096).filter(|_| size > 0);
    let rounded = rounded.ok_or_else(|| Errno::EINVAL.because("a buffer of no bytes, or of more than there are"))?;
    let mapping = call.board.take(Resource::Mappings, call.process, 1)?;
    let buffer = file.device.new_buffer(rounded, size, mapping);
    call.add_handle(file, HandleRef { buffer, read_only: false })
}

/// Frees a handle. The value of the argument is the handle. This call never fails.
fn free(call: &Call<'_>, file: &NvmapFile, arg: &Arg<'_>) -> Result<i32, Errno> {
    let Arg::Value(value) = arg else { return Ok(0) };
    let number = *value as u32;
    if call.dmabuf_fd(number).is_some() {
        // Of another process it is seen, like its other closes.
        if call.process.is_self() {
            call.files.close(call.process, number as RawFd);
        }
        call.process.close(number as RawFd);
    } else {
        file.client.remove(number);
    }
    Ok(0)
}

fn get_fd(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_create_handle) -> Reply {
    match call.handle(file, args.handle) {
        Some(handle) => args.size = call.install_dmabuf(&handle)? as u32,
        // The number is not an id, so it counts as a descriptor. A dmabuf of nvmap is refused, and there are no other
        // dmabufs.
        None => {
            call.dmabuf(args.handle as RawFd)?;
            return Err(Errno::EINVAL.into());
        }
    }
    Ok(())
}

fn from_fd(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_create_handle) -> Reply {
    let Dmabuf { buffer, read_only } = call.dmabuf(args.size as RawFd)?;
    if buffer.allocation().is_none() {
        return Err(Errno::EINVAL.because("the buffer has no memory yet (NVMAP_IOC_ALLOC)").into());
    }
    args.handle = call.add_handle(file, HandleRef { buffer, read_only })?;
    Ok(())
}

fn duplicate(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_duplicate_handle) -> Reply {
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    let read_only = args.access_flags == NVMAP_HANDLE_RO;
    if handle.read_only && !read_only {
        return Err(Errno::EPERM.because("the handle is read-only, and its duplicate would not be").into());
    }
    // After it has refused the handle, the driver takes its number for a descriptor of another exporter's dmabuf.
    if handle.buffer.allocation().is_none() {
        return Err(Errno::EBADF.because("the handle has no memory yet (NVMAP_IOC_ALLOC)").into());
    }
    args.dup_handle = call.add_handle(file, HandleRef { buffer: handle.buffer, read_only })?;
    Ok(())
}

fn set_tag_label(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_set_tag_label) -> Reply {
    // Longer labels are cut. An empty label removes the tag's label.
    const MAX: usize = 31;
    let mut label = vec![0; (args.len as usize).min(MAX)];
    call.copy_in(args.addr, &mut label)?;
    Ok(file.device.label_tag(args.tag, label)?)
}
