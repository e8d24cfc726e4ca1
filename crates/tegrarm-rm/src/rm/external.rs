//! The parts of the object tree that UVM needs: VA spaces that it takes over, and its own references to memory.

use super::Rm;
use super::gpu::Gpu;
use super::memory::{GpuMapping, Memory};
use super::object::Kind;
use super::vaspace::VaSpace;
use crate::status::{RmResult, fail};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// A VA space that is filled through UVM. It outlives its handle.
#[derive(Clone)]
pub struct ExternalSpace(Arc<VaSpace>);

/// UVM's own reference to a memory object. What UVM has mapped therefore stays when the handle is freed.
#[derive(Clone)]
pub struct ExternalMemory(Arc<Memory>);

/// The object through which a client registered its own pages, and its memory.
#[derive(Clone)]
pub struct OwnPages {
    client: u32,
    handle: u32,
    memory: ExternalMemory,
}

impl ExternalMemory {
    /// The object, if the memory is the client's own pages.
    #[must_use]
    pub fn own_pages(&self, client: u32, handle: u32) -> Option<OwnPages> {
        self.0.is_foreign().then(|| OwnPages { client, handle, memory: self.clone() })
    }
}

impl OwnPages {
    /// Whether an extent is a part of these pages.
    #[must_use]
    pub fn contain(&self, extent: &Extent) -> bool {
        self.memory.0.is_same_as(&extent.memory.0)
    }
}

/// The connection of a part of a memory object with GPU addresses.
#[derive(Clone)]
pub struct Extent {
    /// The memory.
    pub memory: ExternalMemory,
    /// The VA space.
    pub space: ExternalSpace,
    /// The first GPU address.
    pub va: u64,
    /// The length in bytes.
    pub len: u64,
    /// The offset of the first byte in the memory.
    pub offset: u64,
    /// True if stores of the GPU fault.
    pub read_only: bool,
    /// The object of the memory, if it is the client's own pages. It ends with its last mapping.
    pub own: Option<OwnPages>,
}

/// An extent that is mapped. Dropping it unmaps the extent.
pub struct ExternalMapping(Extent);

/// The GPU's nodes, kept open.
pub struct Held(Arc<Gpu>);

impl Held {
    /// The 16 bytes that identify the GPU.
    pub fn uuid(&self) -> [u8; 16] {
        self.0.uuid()
    }

    /// The PCI device id that the kernel reports. It is 0 for a GPU inside a system on chip.
    pub fn pci_device_id(&self) -> u16 {
        self.0.characteristics().pci_device_id
    }

    /// The total and the free memory in bytes.
    ///
    /// # Errors
    /// OPERATING_SYSTEM when the kernel does not say.
    pub fn memory(&self) -> RmResult<(u64, u64)> {
        Ok((self.0.meminfo("MemTotal")?, self.0.meminfo("MemAvailable")?))
    }
}

impl Rm {
    /// Keeps the GPU's nodes open.
    ///
    /// # Errors
    /// The reason why there is no GPU.
    pub fn hold(&self) -> RmResult<Held> {
        self.gpu().map(Held)
    }

    /// A VA space for UVM to fill. Its address space is made here.
    ///
    /// # Errors
    /// INVALID_CLIENT for an unknown client, OBJECT_NOT_FOUND for an unknown object, INVALID_OBJECT for an object that
    /// is not a VA space.
    pub fn external_space(&self, client: u32, vaspace: u32) -> RmResult<ExternalSpace> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(vaspace)?;
        let space = object.vaspace(NV_ERR_INVALID_OBJECT)?.clone();
        space.space()?;
        Ok(ExternalSpace(space))
    }

    /// Makes UVM's own reference to a memory object.
    ///
    /// # Errors
    /// INVALID_CLIENT for an unknown client, OBJECT_NOT_FOUND for an unknown object, INVALID_OBJECT for an object that
    /// is not memory.
    pub fn external_memory(&self, client: u32, memory: u32) -> RmResult<ExternalMemory> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(memory)?;
        let memory = object.memory(NV_ERR_INVALID_OBJECT)?;
        Ok(ExternalMemory(Arc::new(memory.duplicate())))
    }

    /// Frees an object of the client's own pages, whose last mapping has ended. A handle that means something else by now
    /// stays.
    pub fn end_own_pages(&self, pages: &OwnPages) {
        let object = self.client(pages.client, NV_ERR_INVALID_CLIENT).and_then(|client| client.object(pages.handle));
        let same = |object: &super::object::Object| {
            object.memory(NV_ERR_INVALID_OBJECT).is_ok_and(|memory| memory.is_same_as(&pages.memory.0))
        };
        if object.is_ok_and(|object| same(&object))
            && let Err(e) = self.free(pages.client, pages.handle)
        {
            tracing::warn!("freeing the pages {:#x} of client {:#x}: {e}", pages.handle, pages.client);
        }
    }

    /// Checks that a handle is a channel.
    ///
    /// # Errors
    /// INVALID_CLIENT for an unknown client, INVALID_CHANNEL for an object that is not a channel.
    pub fn check_channel(&self, client: u32, channel: u32) -> RmResult<()> {
        match self.client(client, NV_ERR_INVALID_CLIENT)?.object(channel) {
            Ok(object) if matches!(object.kind, Kind::Channel(_)) => Ok(()),
            Ok(object) => fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel"),
            Err(e) => fail!(NV_ERR_INVALID_CHANNEL, "{}", e.text),
        }
    }
}

impl Extent {
    /// The part of the extent at `[va, va + len)`, which must lie inside it.
    #[must_use]
    pub fn part(&self, va: u64, len: u64) -> Extent {
        Extent { va, len, offset: self.offset + (va - self.va), ..self.clone() }
    }

    /// Maps the extent.
    ///
    /// # Errors
    /// The same as those of [`VaSpace::map`]. Addresses that are in use otherwise give UVM_ADDRESS_IN_USE.
    pub fn map(self) -> RmResult<ExternalMapping> {
        let request = GpuMapping {
            offset: self.offset,
            len: self.len,
            at: Some(self.va),
            within: None,
            read_only: self.read_only,
        };
        self.memory.0.map_gpu(&self.space.0, &request).map_err(|mut e| {
            if e.status == NV_ERR_INSUFFICIENT_RESOURCES {
                e.status = NV_ERR_UVM_ADDRESS_IN_USE;
            }
            e
        })?;
        Ok(ExternalMapping(self))
    }
}

impl ExternalMapping {
    /// The extent that is mapped.
    pub fn extent(&self) -> &Extent {
        &self.0
    }
}

impl Drop for ExternalMapping {
    fn drop(&mut self) {
        if let Err(e) = self.0.memory.0.unmap_gpu(&self.0.space.0, self.0.va) {
            tracing::warn!("UVM mapping at {:#x}: {e}", self.0.va);
        }
    }
}
