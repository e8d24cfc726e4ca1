//! What one UVM file knows: its GPU, the VA space it fills, its address ranges.

use super::ranges::Ranges;
use crate::rm::ExternalSpace;
use crate::status::{RmResult, fail};
use std::collections::BTreeSet;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::nv_uuid;

/// One UVM file after UVM_INITIALIZE.
pub struct Space {
    /// UVM_INITIALIZE's flags.
    pub flags: u64,
    /// Declared before `vaspace`: mappings go before the VA space.
    pub ranges: Ranges,
    /// The VA space that mappings go to.
    pub vaspace: Option<ExternalSpace>,
    /// The GPU's identifier, once it is registered.
    gpu: Option<[u8; 16]>,
    /// Range groups there are.
    pub groups: BTreeSet<u64>,
    /// The next one's id.
    pub next_group: u64,
}

impl Space {
    /// Nothing registered, nothing mapped.
    pub fn new(flags: u64) -> Space {
        Space { flags, ranges: Ranges::default(), vaspace: None, gpu: None, groups: BTreeSet::new(), next_group: 1 }
    }

    /// Registers the GPU.
    ///
    /// # Errors
    /// 0x26 when it is registered.
    pub fn register(&mut self, uuid: [u8; 16]) -> RmResult<()> {
        if self.gpu.is_some() {
            fail!(NV_ERR_INVALID_DEVICE, "the GPU is registered with this UVM file already");
        }
        self.gpu = Some(uuid);
        Ok(())
    }

    /// Forgets the GPU and what it has mapped.
    pub fn unregister(&mut self) {
        self.unlink();
        self.gpu = None;
    }

    /// Forgets the VA space and what is mapped in it; ranges stay.
    pub fn unlink(&mut self) {
        self.ranges.unmap_all();
        self.vaspace = None;
    }

    /// Checks that `uuid` is a registered GPU.
    ///
    /// # Errors
    /// 0x26.
    pub fn check_gpu(&self, uuid: &nv_uuid) -> RmResult<()> {
        if self.gpu != Some(uuid.uuid) {
            fail!(NV_ERR_INVALID_DEVICE, "GPU {:02x?} is not registered: UVM_REGISTER_GPU first", uuid.uuid);
        }
        Ok(())
    }

    /// The VA space that mappings go to.
    ///
    /// # Errors
    /// 0x26 before UVM_REGISTER_GPU_VASPACE.
    pub fn vaspace(&self) -> RmResult<&ExternalSpace> {
        match &self.vaspace {
            Some(space) => Ok(space),
            None => fail!(NV_ERR_INVALID_DEVICE, "no VA space to map into: UVM_REGISTER_GPU_VASPACE first"),
        }
    }
}
