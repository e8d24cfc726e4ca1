//! The state of one UVM file: its GPU, the VA space that it fills and its address ranges.

use super::ranges::Ranges;
use std::collections::BTreeSet;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::nv_uuid;
use tegrarm_rm::rm::ExternalSpace;
use tegrarm_rm::status::{RmResult, fail};

/// The state of a UVM file after UVM_INITIALIZE.
pub struct Space {
    /// The flags of UVM_INITIALIZE.
    pub flags: u64,
    /// The address ranges. They are declared before `vaspace`, because the mappings in them must be dropped before the
    /// VA space.
    pub ranges: Ranges,
    /// The VA space into which memory is mapped.
    pub vaspace: Option<ExternalSpace>,
    /// The GPU's identifier, after it was registered.
    gpu: Option<[u8; 16]>,
    /// The identifiers of the range groups that exist.
    pub groups: BTreeSet<u64>,
    /// The identifier of the next range group.
    pub next_group: u64,
}

impl Space {
    /// A state in which no GPU is registered and nothing is mapped.
    pub fn new(flags: u64) -> Space {
        Space { flags, ranges: Ranges::default(), vaspace: None, gpu: None, groups: BTreeSet::new(), next_group: 1 }
    }

    /// Registers the GPU.
    ///
    /// # Errors
    /// INVALID_DEVICE when a GPU is registered already.
    pub fn register(&mut self, uuid: [u8; 16]) -> RmResult<()> {
        if self.gpu.is_some() {
            fail!(NV_ERR_INVALID_DEVICE, "the GPU is registered with this UVM file already");
        }
        self.gpu = Some(uuid);
        Ok(())
    }

    /// Forgets the GPU and unmaps what is mapped on it.
    pub fn unregister(&mut self) {
        self.unlink();
        self.gpu = None;
    }

    /// Forgets the VA space and unmaps what is mapped in it. The ranges stay.
    pub fn unlink(&mut self) {
        self.ranges.unmap_all();
        self.vaspace = None;
    }

    /// Checks that `uuid` is a registered GPU.
    ///
    /// # Errors
    /// INVALID_DEVICE when it is not.
    pub fn check_gpu(&self, uuid: &nv_uuid) -> RmResult<()> {
        if self.gpu != Some(uuid.uuid) {
            fail!(NV_ERR_INVALID_DEVICE, "GPU {:02x?} is not registered: UVM_REGISTER_GPU first", uuid.uuid);
        }
        Ok(())
    }

    /// The VA space into which memory is mapped.
    ///
    /// # Errors
    /// INVALID_DEVICE when UVM_REGISTER_GPU_VASPACE was not called yet.
    pub fn vaspace(&self) -> RmResult<&ExternalSpace> {
        match &self.vaspace {
            Some(space) => Ok(space),
            None => fail!(NV_ERR_INVALID_DEVICE, "no VA space to map into: UVM_REGISTER_GPU_VASPACE first"),
        }
    }
}
