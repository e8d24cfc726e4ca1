//! `RM_MAP_MEMORY`, `RM_MAP_MEMORY_DMA`, their opposites, and `RM_DUP_OBJECT`.

use super::Rm;
use super::client::Client;
use super::context::{self, Inside};
use super::memory::GpuMapping;
use super::object::{Kind, Object, Tag};
use crate::status::{During, RmResult, fail};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Prot;

/// The arguments of `rm_map_memory`.
#[derive(Clone, Copy, Debug)]
pub struct MapRequest {
    /// The handle of the buffer or of the usermode object.
    pub memory: u32,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// The exact address, where the mapping replaces what is there. Without it the library chooses an address.
    pub at: Option<usize>,
    /// `NVOS33_FLAGS`.
    pub flags: u32,
}

/// The arguments of `rm_map_memory_dma`.
#[derive(Clone, Copy, Debug)]
pub struct DmaRequest {
    /// The handle of the object through which the memory is mapped.
    pub dma: u32,
    /// The handle of the buffer.
    pub memory: u32,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// `NVOS46_FLAGS`.
    pub flags: u32,
    /// The GPU address, if the flags say that it is fixed.
    pub dma_offset: u64,
}

/// A descriptor of a client. It becomes the file that the client maps.
#[derive(Clone, Copy, Debug)]
pub struct Borrower {
    /// The node as which the descriptor was opened.
    pub node: LentNode,
    /// The number of the descriptor.
    pub fd: RawFd,
}

/// The kind of node through which a client maps memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LentNode {
    /// `/dev/nvidiactl`, for system memory.
    Control,
    /// `/dev/nvidia0`, for everything else.
    Gpu,
}

impl LentNode {
    fn word(self) -> &'static str {
        match self {
            LentNode::Control => "a control node",
            LentNode::Gpu => "a GPU's node",
        }
    }
}

/// `NVOS46_FLAGS_DMA_OFFSET_FIXED`, bit 15.
const FIXED: u32 = NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << 15;
/// `NVOS46_FLAGS_ACCESS` and `NVOS33_FLAGS_ACCESS`, bits 0 and 1.
const ACCESS: u32 = 3;

impl Rm {
    /// `RM_MAP_MEMORY`: maps `length` bytes of a buffer, or the doorbell page, into this process. With `at`, the
    /// mapping replaces what is mapped there. Without `at`, a buffer goes to its GPU address if the library chose that
    /// address and the range is free, and to any free address otherwise. Returns the address.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles, INVALID_OBJECT for an object that cannot be mapped,
    /// INVALID_LIMIT and INVALID_BASE for a bad range, INVALID_OFFSET for an unaligned range.
    pub fn map_memory(&self, client: u32, device: u32, request: &MapRequest) -> RmResult<usize> {
        let MapRequest { memory, offset, length, at, flags } = *request;
        let _inside = context::enter(Inside::MapMemory);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        check_device(&client, device)?;
        let object = client.object(memory)?;
        if let Some(addr) = at.filter(|a| !a.is_multiple_of(crate::tegra::PAGE as usize)) {
            fail!(NV_ERR_INVALID_ADDRESS, "{addr:#x} is not a multiple of the page size");
        }
        let prot = if flags & ACCESS == NVOS33_FLAGS_ACCESS_READ_ONLY { Prot::Read } else { Prot::ReadWrite };
        let mapped = match &object.kind {
            Kind::Memory(memory) | Kind::ContextDma(memory) => memory.map_cpu(at, offset, length, prot, self.cpu_cache),
            Kind::Usermode(usermode) => usermode.map(at, offset, length),
            _ => fail!(NV_ERR_INVALID_OBJECT, "{object} cannot be mapped"),
        };
        mapped.during(|| format!("mapping {object} into the process"))
    }

    /// `RM_MAP_MEMORY` for a client that maps a descriptor itself: turns the client's descriptor into one of the buffer
    /// or of a doorbell page. Returns a cookie in place of an address. `at` and `flags` of the request are not used,
    /// because the client itself passes them to `mmap(2)`.
    ///
    /// # Errors
    /// Those of [`Rm::map_memory`]; INVALID_ARGUMENT for system memory on a GPU's node and for anything else on the
    /// control node; NOT_SUPPORTED for an offset other than 0, because the client's `mmap(2)` starts at 0.
    pub fn lend_memory(&self, client: u32, device: u32, request: &MapRequest, borrower: Borrower) -> RmResult<u64> {
        let _inside = context::enter(Inside::MapMemory);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        check_device(&client, device)?;
        let object = client.object(request.memory)?;
        let fits = match &object.kind {
            Kind::Memory(memory) | Kind::ContextDma(memory) if memory.is_system() => LentNode::Control,
            _ => LentNode::Gpu,
        };
        let (offset, length, onto) = (request.offset, request.length, borrower.fd);
        if borrower.node != fits {
            let (is, must) = (borrower.node.word(), fits.word());
            fail!(NV_ERR_INVALID_ARGUMENT, "descriptor {onto} is {is}; {object} maps through {must}");
        }
        let lent = match &object.kind {
            Kind::Memory(memory) | Kind::ContextDma(memory) => memory.lend(offset, length, self.cpu_cache, onto),
            Kind::Usermode(usermode) => usermode.lend(offset, length, onto),
            _ => fail!(NV_ERR_INVALID_OBJECT, "{object} cannot be mapped"),
        };
        lent.during(|| format!("lending {object} to descriptor {onto}"))
    }

    /// `RM_UNMAP_MEMORY`: removes the mapping that starts at `addr`.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles. OBJECT_NOT_FOUND also when no mapping of the memory
    /// starts there.
    pub fn unmap_memory(&self, client: u32, device: u32, memory: u32, addr: usize) -> RmResult<()> {
        let _inside = context::enter(Inside::UnmapMemory);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        check_device(&client, device)?;
        let object = client.object(memory)?;
        match &object.kind {
            Kind::Memory(memory) | Kind::ContextDma(memory) => memory.unmap_cpu(addr),
            Kind::Usermode(usermode) => usermode.unmap(addr),
            _ => fail!(NV_ERR_INVALID_OBJECT, "{object} cannot be mapped"),
        }
    }

    /// `RM_MAP_MEMORY_DMA`: maps a part of a buffer into the VA space of the mapper. Returns the GPU address.
    ///
    /// # Errors
    /// INVALID_OBJECT_HANDLE when `dma` is not a mapper, INVALID_OBJECT when `memory` is not memory, and then those of
    /// the VA space.
    pub fn map_memory_dma(&self, client: u32, device: u32, request: &DmaRequest) -> RmResult<u64> {
        let _inside = context::enter(Inside::MapMemoryDma);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        check_device(&client, device)?;
        let mapper = client.object(request.dma)?;
        let mapper = mapper.virtual_range(NV_ERR_INVALID_OBJECT_HANDLE)?;
        let object = client.object(request.memory)?;
        let memory = object.memory(NV_ERR_INVALID_OBJECT)?;
        let at = (request.flags & FIXED != 0).then_some(request.dma_offset);
        if let Some(at) = at
            && !(at >= mapper.range.start && at.saturating_add(request.length) <= mapper.range.end)
        {
            fail!(
                NV_ERR_INVALID_ARGUMENT,
                "GPU address {at:#x}+{:#x} is outside the virtual memory {:#x}..{:#x}",
                request.length,
                mapper.range.start,
                mapper.range.end
            );
        }
        let mapping = GpuMapping {
            offset: request.offset,
            len: request.length,
            at,
            within: mapper.reserved.then(|| mapper.range.clone()),
            read_only: request.flags & ACCESS == NVOS46_FLAGS_ACCESS_READ_ONLY,
        };
        memory.map_gpu(&mapper.space, &mapping).during(|| format!("mapping {object} into the GPU"))
    }

    /// `RM_UNMAP_MEMORY_DMA`: removes the mapping that starts at `dma_offset`.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when no mapping of that memory starts there. For wrong handles, those of
    /// [`Rm::map_memory_dma`].
    pub fn unmap_memory_dma(&self, client: u32, device: u32, dma: u32, memory: u32, dma_offset: u64) -> RmResult<()> {
        let _inside = context::enter(Inside::UnmapMemoryDma);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        check_device(&client, device)?;
        let mapper = client.object(dma)?;
        let mapper = mapper.virtual_range(NV_ERR_INVALID_OBJECT_HANDLE)?;
        let object = client.object(memory)?;
        object.memory(NV_ERR_INVALID_OBJECT)?.unmap_gpu(&mapper.space, dma_offset)
    }

    /// `RM_DUP_OBJECT`: makes another handle for a buffer, possibly in another client of this process. The buffer lives
    /// until its last handle is freed. Returns the handle.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an object that is not memory. Otherwise those of an allocation.
    pub fn dup_object(&self, client: u32, parent: u32, wanted: u32, source_client: u32, source: u32) -> RmResult<u32> {
        let _inside = context::enter(Inside::DupObject);
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        let source = self.client(source_client, NV_ERR_INVALID_CLIENT)?.object(source)?;
        let parent = client.object(if parent == 0 { client.handle } else { parent })?;
        let Kind::Memory(memory) = &source.kind else {
            fail!(NV_ERR_INVALID_ARGUMENT, "{source} cannot be duplicated: only memory can");
        };
        if !source.class.parents.allow(parent.kind.tag()) {
            fail!(NV_ERR_INVALID_OBJECT_PARENT, "a duplicate of {source} cannot be a child of {parent}");
        }
        let copy = |_: &mut super::alloc::AllocCall| Ok(Kind::Memory(Arc::new(memory.duplicate())));
        self.make(&client, &parent, source.class, wanted, &mut [], copy)
    }
}

/// Checks `hDevice` of the mapping calls: it must be a device or subdevice of the client.
fn check_device(client: &Client, device: u32) -> RmResult<Arc<Object>> {
    let object = client.object(device)?;
    match object.kind.tag() {
        Tag::Device | Tag::Subdevice => Ok(object),
        _ => fail!(NV_ERR_INVALID_DEVICE, "hDevice: {object} is no device"),
    }
}
