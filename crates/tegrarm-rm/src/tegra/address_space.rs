//! An nvgpu address space: reservations and GPU mappings.

use super::{Channel, KernelError, Release, call};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::r35::NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35;
use tegrarm_kmd::File;
use zerocopy::FromZeros;

/// The GPU page size that every mapping can use.
pub const PAGE: u64 = 4096;
/// The first address of an address space.
pub const USER_VA_START: u64 = 2 << 20;
/// The first address behind the end. nvgpu puts 4 GiB of its own right behind it. The ring lies there, and must stay
/// below 2^40, because its base register has 40 bits.
pub const USER_VA_END: u64 = 0xff_0000_0000;
/// The ends of an address space are multiples of this (docs/hardware/nvgpu-address-space.md#alloc-as).
pub const VA_UNIT: u64 = 2 << 20;

/// How the GPU may use a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapFlags {
    /// True if lines may stay in the GPU's L2. This is allowed only for memory that the CPU does not use.
    pub cacheable: bool,
    /// True if stores of the GPU fault.
    pub read_only: bool,
}

/// An address space. Its mappings live for as long as the address space, or a channel that is bound to it.
pub struct AddressSpace {
    file: File,
    release: Release,
}

impl AddressSpace {
    pub(super) fn from_file(file: File, release: Release) -> AddressSpace {
        AddressSpace { file, release }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Reserves `len` bytes, at `at` or at an address that the kernel chooses. A sparse reservation reads as zero and
    /// drops stores. A plain one faults until something is mapped into it. Returns the first address.
    ///
    /// # Errors
    /// `ENOMEM` when the kernel's allocator refuses: the range is misaligned, out of bounds or occupied, or no room is left.
    pub fn reserve(&self, at: Option<u64>, len: u64, sparse: bool) -> Result<u64, KernelError> {
        let fixed = if at.is_some() { NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET } else { 0 };
        let mut args = nvgpu_as_alloc_space_args {
            pages: len / PAGE,
            page_size: PAGE as u32,
            flags: fixed | if sparse { NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE } else { 0 },
            o_a_offset: at.unwrap_or(PAGE),
            padding: [0; 2],
        };
        call(&self.file, NVGPU_AS_IOCTL_ALLOC_SPACE, &mut args)?;
        Ok(args.o_a_offset)
    }

    /// Gives a reservation back and unmaps everything in it.
    pub fn unreserve(&self, at: u64, len: u64) {
        let mut args =
            nvgpu_as_free_space_args { offset: at, pages: len / PAGE, page_size: PAGE as u32, padding: [0; 3] };
        if let Err(e) = call(&self.file, NVGPU_AS_IOCTL_FREE_SPACE, &mut args) {
            tracing::warn!("GPU addresses {at:#x}+{len:#x} are lost: {e}");
        }
    }

    /// Maps a whole buffer at an address that the kernel chooses. Returns the address.
    ///
    /// # Errors
    /// `ENOMEM` when no addresses are left or the memory cannot be pinned.
    pub fn map(&self, dmabuf: &File, flags: MapFlags) -> Result<u64, KernelError> {
        self.map_buffer(dmabuf, self.flag_bits(flags), 0, 0, 0)
    }

    /// Maps `len` bytes from `offset` of a buffer at `at`, inside a reservation.
    ///
    /// # Errors
    /// `EINVAL` outside of a reservation or over another mapping; `ENOMEM` as in [`AddressSpace::map`].
    pub fn map_fixed(
        &self,
        dmabuf: &File,
        at: u64,
        offset: u64,
        len: u64,
        flags: MapFlags,
    ) -> Result<u64, KernelError> {
        let bits = self.flag_bits(flags) | NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        self.map_buffer(dmabuf, bits, at, offset, len)
    }

    fn flag_bits(&self, flags: MapFlags) -> u32 {
        let access =
            if flags.read_only { NVGPU_AS_MAP_BUFFER_ACCESS_READ_ONLY } else { NVGPU_AS_MAP_BUFFER_ACCESS_DEFAULT };
        let cacheable = if flags.cacheable { NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE } else { 0 };
        // r35 refuses a request without this bit. Later releases refuse a request with it.
        let kinds = match self.release {
            Release::R35 => NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35,
            Release::R36 | Release::R39 => 0,
        };
        kinds | cacheable | access << NVGPU_AS_MAP_BUFFER_FLAGS_ACCESS_BITMASK_OFFSET
    }

    fn map_buffer(&self, dmabuf: &File, flags: u32, at: u64, offset: u64, len: u64) -> Result<u64, KernelError> {
        let mut args = nvgpu_as_map_buffer_ex_args {
            flags,
            // -1 means no compressible kind. Kind 0 is pitch-linear.
            compr_kind: -1,
            incompr_kind: 0,
            dmabuf_fd: dmabuf.raw() as u32,
            page_size: PAGE as u32,
            buffer_offset: offset,
            mapping_size: len,
            offset: at,
        };
        call(&self.file, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &mut args)?;
        Ok(args.offset)
    }

    /// Removes the mapping that starts at `at`. It does not wait for the GPU.
    pub fn unmap(&self, at: u64) {
        if let Err(e) = call(&self.file, NVGPU_AS_IOCTL_UNMAP_BUFFER, &mut nvgpu_as_unmap_buffer_args { offset: at }) {
            tracing::warn!("the GPU mapping at {at:#x} is lost: {e}");
        }
    }

    /// Maps all syncpoints of the system for reading. Only the first call asks the kernel.
    ///
    /// # Errors
    /// `ENOMEM` if no addresses are left, `EINVAL` if the kernel has no syncpoints.
    pub fn syncpoints(&self) -> Result<nvgpu_as_get_sync_ro_map_args, KernelError> {
        let mut args = nvgpu_as_get_sync_ro_map_args::new_zeroed();
        call(&self.file, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &mut args)?;
        Ok(args)
    }

    /// Binds a channel to the address space. The binding lasts for the life of the channel, and it must be made before
    /// the channel is bound to a TSG.
    ///
    /// # Errors
    /// `EINVAL` when the channel is bound already.
    pub fn bind(&self, channel: &Channel) -> Result<(), KernelError> {
        let mut args = nvgpu_as_bind_channel_args { channel_fd: channel.file().raw() as u32 };
        call(&self.file, NVGPU_AS_IOCTL_BIND_CHANNEL, &mut args)
    }
}
