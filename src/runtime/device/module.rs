//! Machine code that is loaded on a device.

use crate::runtime::device::Device;
use crate::runtime::launch::images::LaunchImages;
use crate::runtime::launch::params::{Home, Layout};
use crate::runtime::library::Library;
use crate::runtime::memory::Memory;
use crate::runtime::memory::heap::Piece;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::{Cubin, Kernel};
use tegrarm_lock::Mutex;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// A loaded module.
pub struct Module {
    device: Arc<Device>,
    cubin: Arc<Cubin>,
    memory: Piece,
    home: Home,
}

/// A kernel of a loaded module.
pub struct KernelRef {
    module: Arc<Module>,
    index: usize,
    layout: Layout,
    ready: Mutex<LaunchImages>,
    /// The launch images for queues other than the device's own, by the numbers of the queues.
    others: Vec<(u64, LaunchImages)>,
}

impl Module {
    /// Loads a cubin for a GPU of this compute capability.
    ///
    /// # Errors
    /// Those of [`Device::load`].
    pub fn load(device: &Arc<Device>, image: &[u8], capability: u32) -> RmResult<Arc<Module>> {
        let bad =
            |e: tegrarm_images::elf::LoadError| RmError::new(NV_ERR_INVALID_ARGUMENT, format!("loading a module: {e}"));
        let cubin = Cubin::parse_with(image, capability, Library::functions_for(capability)).map_err(bad)?;
        let mut home = Home { module: 0, library: 0 };
        let mut functions = 0;
        if !cubin.outside().is_empty() {
            let library = device.base().library_for(&cubin)?;
            (home.library, functions) = (library.state(), library.code());
        }
        let memory = device.base().code().take(cubin.memory_size())?;
        home.module = memory.va();
        let bytes = cubin.place_with(home.module, functions).map_err(bad)?;
        memory.write(0, &bytes)?;
        memory.zero_from(bytes.len() as u64)?;
        let cubin = Arc::new(cubin);
        device.loaded(home.module, &cubin);
        Ok(Arc::new(Module { device: device.clone(), cubin, memory, home }))
    }

    /// The addresses at which its kernels find the parts of the module.
    #[inline]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The device on which the module is loaded.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Finds the kernel with this name.
    ///
    /// # Errors
    /// `NV_ERR_OBJECT_NOT_FOUND` with the names that exist.
    pub fn kernel(self: &Arc<Module>, name: &str) -> RmResult<KernelRef> {
        let kernels = self.cubin.kernels();
        match kernels.iter().position(|k| k.name == name) {
            Some(index) => Ok(KernelRef {
                module: self.clone(),
                index,
                layout: Layout::of(&kernels[index]),
                ready: Mutex::new(LaunchImages::new(&kernels[index])),
                others: Vec::new(),
            }),
            None => {
                let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
                fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no kernel '{name}', only: {}", names.join(", "))
            }
        }
    }

    /// The kernel with this number.
    ///
    /// # Panics
    /// There are fewer kernels. Numbers come from [`Module::kernel`].
    pub fn kernel_at(&self, index: usize) -> &Kernel {
        &self.cubin.kernels()[index]
    }

    /// The GPU address and the size of a `__device__` or `__constant__` variable.
    ///
    /// # Errors
    /// `NV_ERR_OBJECT_NOT_FOUND` if the module has no variable with this name.
    pub fn variable(&self, name: &str) -> RmResult<(u64, u64)> {
        match self.cubin.variable(name) {
            Some(v) => Ok((self.memory.va() + v.offset, v.size)),
            None => fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no variable '{name}'"),
        }
    }

    /// The block of memory in which the module lies.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        self.memory.block()
    }

    /// Checks that a variable has this many bytes, and returns its GPU address.
    ///
    /// # Errors
    /// Those of [`Module::variable`], and `NV_ERR_INVALID_BASE` if it has fewer bytes.
    pub fn check_variable(&self, name: &str, bytes: u64) -> RmResult<u64> {
        let (at, size) = self.variable(name)?;
        if bytes > size {
            fail!(NV_ERR_INVALID_BASE, "{bytes} bytes for the variable '{name}' of {size}");
        }
        Ok(at)
    }

    /// Waits for the GPU, and then copies bytes into a variable.
    ///
    /// # Errors
    /// Those of [`Module::check_variable`], and the channel's fault.
    pub fn write_variable(&self, name: &str, bytes: &[u8]) -> RmResult<()> {
        let at = self.check_variable(name, bytes.len() as u64)?;
        self.device.synchronize()?;
        self.memory.write(at - self.memory.va(), bytes)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.device.finish_all();
        self.device.unloaded(self.home.module);
    }
}

impl KernelRef {
    /// The kernel's description.
    pub fn kernel(&self) -> &Kernel {
        self.module.kernel_at(self.index)
    }

    /// The number of the kernel in the module.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The launch images of the kernel for the device's own queue.
    pub fn ready(&self) -> &Mutex<LaunchImages> {
        &self.ready
    }

    /// The layout of its arguments.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// For a caller that has the kernel alone: the module, the layout of arguments, and the launch images for the device's own
    /// queue.
    #[inline]
    pub fn parts(&mut self) -> (&Arc<Module>, &Layout, &mut LaunchImages) {
        (&self.module, &self.layout, self.ready.get_mut())
    }

    /// For a caller that has the kernel alone: the layout of arguments, and the launch images for the queue with this number, if
    /// the queue has any.
    #[inline]
    pub fn images_for(&mut self, queue: u64) -> Option<(&Layout, &mut LaunchImages)> {
        if queue == 0 {
            return Some((&self.layout, self.ready.get_mut()));
        }
        let (_, ready) = self.others.iter_mut().find(|(number, _)| *number == queue)?;
        Some((&self.layout, ready))
    }

    /// For a caller that has the kernel alone: the module, the index, the layout of arguments, and the launch images for the queue
    /// with this number.
    pub fn parts_on(&mut self, queue: u64) -> (&Arc<Module>, usize, &Layout, &mut LaunchImages) {
        if queue == 0 {
            return (&self.module, self.index, &self.layout, self.ready.get_mut());
        }
        let found = self.others.iter().position(|(number, _)| *number == queue);
        let at = found.unwrap_or_else(|| {
            // Images for queues that have ended are removed.
            let queues = self.module.device.queues();
            self.others.retain(|(number, _)| matches!(queues.find(*number), Ok(Some(_))));
            self.others.push((queue, LaunchImages::new(self.module.kernel_at(self.index))));
            self.others.len() - 1
        });
        (&self.module, self.index, &self.layout, &mut self.others[at].1)
    }

    /// The module that the kernel belongs to.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }
}

impl Drop for KernelRef {
    fn drop(&mut self) {
        let device = &self.module.device;
        device.finish(self.ready.get_mut().last());
        for (queue, ready) in &self.others {
            if let Ok(Some(queue)) = device.queues().find(*queue) {
                device.finish(queue.fence_of(ready.last()));
            }
        }
    }
}
