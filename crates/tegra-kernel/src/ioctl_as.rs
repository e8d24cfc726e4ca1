//! The `as` node, and the ioctls of address spaces (docs/hardware/nvgpu-address-space.md#address-space). They stand above channels,
//! because one of them names a channel.

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::OpenFile;
use super::space::{AddressSpace, area, map, regions, remap};
use crate::release::PerRelease;
use crate::rule::Because;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, nvgpu_alloc_as_args};
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::{Arg, Errno, Node};

pub(super) static TABLE: Table<AddressSpace> = Table {
    magic: NVGPU_AS_IOCTL_MAGIC as u8,
    last: PerRelease { r35: NVGPU_AS_IOCTL_LAST, r36: NVGPU_AS_IOCTL_LAST, r39: NVGPU_AS_IOCTL_LAST_R39 },
    max_arg: PerRelease {
        r35: NVGPU_AS_IOCTL_MAX_ARG_SIZE as usize,
        r36: NVGPU_AS_IOCTL_MAX_ARG_SIZE as usize,
        r39: NVGPU_AS_IOCTL_MAX_ARG_SIZE_R39 as usize,
    },
    copy_back: CopyBack::Errno,
    rows: rows! {
        ALL NVGPU_AS_IOCTL_BIND_CHANNEL => bind_channel;
        ALL NVGPU32_AS_IOCTL_ALLOC_SPACE => area::alloc_space_32;
        ALL NVGPU_AS_IOCTL_FREE_SPACE => area::free_space;
        ALL NVGPU_AS_IOCTL_UNMAP_BUFFER => map::unmap_buffer;
        ALL NVGPU_AS_IOCTL_ALLOC_SPACE => area::alloc_space;
        ALL NVGPU_AS_IOCTL_MAP_BUFFER_EX => map::map_buffer_ex;
        ALL NVGPU_AS_IOCTL_GET_VA_REGIONS => regions::get_va_regions;
        ALL NVGPU_AS_IOCTL_MAP_BUFFER_BATCH => map::map_buffer_batch;
        ALL NVGPU_AS_IOCTL_GET_SYNC_RO_MAP => regions::get_sync_ro_map;
        R39 NVGPU_AS_IOCTL_GET_SYNC_RO_MAP_V2 => regions::get_sync_ro_map_v2;
        ALL NVGPU_AS_IOCTL_MAPPING_MODIFY => map::mapping_modify;
        ALL NVGPU_AS_IOCTL_REMAP => remap::remap;
    },
};

impl OpenFile for AddressSpace {
    fn node(&self) -> Option<Node> {
        Some(Node::As)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }
}

/// Binds a channel. The binding is permanent: the reference to the address space lasts until the channel is freed.
fn bind_channel(call: &Call<'_>, space: &Arc<AddressSpace>, args: &mut nvgpu_as_bind_channel_args) -> Reply {
    call.channel(args.channel_fd as i32)?.bind_space(space)
}

impl Call<'_> {
    /// The caller's address space behind `fd`. Every error is `EINVAL`.
    pub(super) fn space(&self, fd: RawFd) -> Reply<Arc<AddressSpace>> {
        let other = || Errno::EINVAL.because(format!("descriptor {fd} is not an address space"));
        Ok(self.file(fd).ok_or_else(other)?)
    }
}

/// Opens the `as` node, which gives an address space with pages of 64 KiB and a range of its own. A GPU without big
/// pages refuses the open.
pub(super) fn open_node(call: &Call<'_>) -> Result<OwnedFd, Errno> {
    let mut args: nvgpu_alloc_as_args = zerocopy::FromZeros::new_zeroed();
    args.big_page_size = 64 << 10;
    args.flags = NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA;
    args.va_range_start = 64 << 20;
    args.va_range_end = 1 << 37;
    let space = AddressSpace::create(call, &args).map_err(|_| Errno::EINVAL)?;
    call.files.anonymous("as", Arc::new(space))
}
