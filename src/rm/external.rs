//! What UVM needs of the object tree: VA spaces it takes over, and its own references to memory.

use super::Rm;
use super::gpu::Gpu;
use super::memory::{GpuMapping, Memory};
use super::object::Kind;
use super::vaspace::VaSpace;
use crate::status::{RmResult, fail};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// A VA space that is filled through UVM. Outlives its handle.
#[derive(Clone)]
pub struct ExternalSpace(Arc<VaSpace>);

/// UVM's own reference to a memory object: what it maps stays when the handle is freed.
#[derive(Clone)]
pub struct ExternalMemory(Arc<Memory>);

/// Which part of which memory goes to which GPU addresses.
#[derive(Clone)]
pub struct Extent {
    /// The memory.
    pub memory: ExternalMemory,
    /// The VA space.
    pub space: ExternalSpace,
    /// First GPU address.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    /// First byte of the memory.
    pub offset: u64,
    /// Stores fault.
    pub read_only: bool,
}

/// An extent that is mapped; unmapped when dropped.
pub struct ExternalMapping(Extent);

/// The GPU's nodes, kept open.
pub struct Held(Arc<Gpu>);

impl Held {
    /// 16 bytes that name the GPU.
    pub fn uuid(&self) -> [u8; 16] {
        self.0.uuid()
    }

    /// What the kernel gives as its PCI device id; 0 inside a system on chip.
    pub fn pci_device_id(&self) -> u16 {
        self.0.characteristics().pci_device_id
    }

    /// Bytes of memory there are and bytes that are free.
    ///
    /// # Errors
    /// 0x59 when the kernel does not say.
    pub fn memory(&self) -> RmResult<(u64, u64)> {
        Ok((self.0.meminfo("MemTotal")?, self.0.meminfo("MemAvailable")?))
    }
}

impl Rm {
    /// Keeps the GPU's nodes open.
    ///
    /// # Errors
    /// Why there is no GPU.
    pub fn hold(&self) -> RmResult<Held> {
        self.gpu().map(Held)
    }

    /// A VA space for UVM to fill, with its address space made.
    ///
    /// # Errors
    /// 0x23 for an unknown client, 0x57 for an unknown object, 0x31 for an object that is not a VA space.
    pub fn external_space(&self, client: u32, vaspace: u32) -> RmResult<ExternalSpace> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(vaspace)?;
        let space = object.vaspace(NV_ERR_INVALID_OBJECT)?.clone();
        space.space()?;
        Ok(ExternalSpace(space))
    }

    /// A reference of UVM's own to a memory object.
    ///
    /// # Errors
    /// 0x23 for an unknown client, 0x57 for an unknown object, 0x31 for an object that is not memory.
    pub fn external_memory(&self, client: u32, memory: u32) -> RmResult<ExternalMemory> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(memory)?;
        let memory = object.memory(NV_ERR_INVALID_OBJECT)?;
        Ok(ExternalMemory(Arc::new(memory.duplicate())))
    }

    /// Whether a handle is a channel.
    ///
    /// # Errors
    /// 0x23 for an unknown client, 0x21 for an object that is not a channel.
    pub fn check_channel(&self, client: u32, channel: u32) -> RmResult<()> {
        match self.client(client, NV_ERR_INVALID_CLIENT)?.object(channel) {
            Ok(object) if matches!(object.kind, Kind::Channel(_)) => Ok(()),
            Ok(object) => fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel"),
            Err(e) => fail!(NV_ERR_INVALID_CHANNEL, "{}", e.text),
        }
    }
}

impl Extent {
    /// The part of it at `[va, va + len)`, which lies inside.
    #[must_use]
    pub fn part(&self, va: u64, len: u64) -> Extent {
        Extent { va, len, offset: self.offset + (va - self.va), ..self.clone() }
    }

    /// Maps it.
    ///
    /// # Errors
    /// As [`VaSpace::map`]; addresses that somebody else uses are 0x68.
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
    /// What is mapped where.
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
