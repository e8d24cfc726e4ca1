//! Machine code on a device.

use super::cubin::{Cubin, Kernel};
use super::device::Device;
use super::heap::Piece;
use super::prepared::Prepared;
use crate::status::{RmError, RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// A loaded module.
pub struct Module {
    device: Arc<Device>,
    cubin: Cubin,
    memory: Piece,
}

/// A kernel of a loaded module.
pub struct KernelRef {
    module: Arc<Module>,
    index: usize,
    local_memory: u32,
    prepared: Mutex<Prepared>,
}

impl Module {
    /// Loads a cubin for a GPU of this compute capability.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn load(device: &Arc<Device>, image: &[u8], capability: u32) -> RmResult<Arc<Module>> {
        let bad = |e: super::elf::LoadError| RmError::new(NV_ERR_INVALID_ARGUMENT, format!("loading a module: {e}"));
        let cubin = Cubin::parse(image, capability).map_err(bad)?;
        let memory = device.code().take(cubin.memory_size())?;
        let bytes = cubin.place(memory.va()).map_err(bad)?;
        memory.write(0, &bytes)?;
        memory.zero_from(bytes.len() as u64)?;
        Ok(Arc::new(Module { device: device.clone(), cubin, memory }))
    }

    /// Its GPU address.
    #[inline]
    pub fn address(&self) -> u64 {
        self.memory.va()
    }

    /// The device it is loaded on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The kernel of a name.
    ///
    /// # Errors
    /// 0x57 with the names there are.
    pub fn kernel(self: &Arc<Module>, name: &str) -> RmResult<KernelRef> {
        let kernels = self.cubin.kernels();
        match kernels.iter().position(|k| k.name == name) {
            Some(index) => Ok(KernelRef {
                module: self.clone(),
                index,
                local_memory: kernels[index].local_memory(),
                prepared: Mutex::new(Prepared::new(&kernels[index])),
            }),
            None => {
                let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
                fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no kernel '{name}', only: {}", names.join(", "))
            }
        }
    }

    /// GPU address and size of a `__device__` or `__constant__` variable.
    ///
    /// # Errors
    /// 0x57 when there is none of that name.
    pub fn variable(&self, name: &str) -> RmResult<(u64, u64)> {
        match self.cubin.variable(name) {
            Some(v) => Ok((self.memory.va() + v.offset, v.size)),
            None => fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no variable '{name}'"),
        }
    }

    /// Waits for the GPU, then copies bytes into a variable.
    ///
    /// # Errors
    /// As [`Module::variable`]; 0x20 when they do not fit; the channel's fault.
    pub fn write_variable(&self, name: &str, bytes: &[u8]) -> RmResult<()> {
        let (at, size) = self.variable(name)?;
        if bytes.len() as u64 > size {
            fail!(NV_ERR_INVALID_BASE, "{} bytes for the variable '{name}' of {size}", bytes.len());
        }
        self.device.synchronize()?;
        self.memory.write(at - self.memory.va(), bytes)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.device.synchronize();
    }
}

impl KernelRef {
    /// Its description.
    #[inline]
    pub fn kernel(&self) -> &Kernel {
        &self.module.cubin.kernels()[self.index]
    }

    /// Local memory each of its threads needs.
    #[inline]
    pub fn local_memory(&self) -> u32 {
        self.local_memory
    }

    /// Its last launch, from which the next one is made.
    #[inline]
    pub fn prepared(&self) -> &Mutex<Prepared> {
        &self.prepared
    }

    /// The module it belongs to.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }
}
