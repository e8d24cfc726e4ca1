//! Functions: kernels of modules, and their attributes.

use crate::context::{CONTEXTS, Context};
use crate::kernels::{Kernel, KernelAttributes};
use crate::libraries::KERNELS;
use crate::machine::Size;
use crate::modules::Module;
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// All functions. The handle of a function is that of its kernel in libtegrarm, so that a launch can be given to libtegrarm as it is.
pub static FUNCTIONS: Functions = Functions(RwLock::new(BTreeMap::new()));

/// A table of functions.
pub struct Functions(RwLock<BTreeMap<usize, Arc<Function>>>);

impl Functions {
    /// Adds a function, and returns its handle.
    pub fn add(&self, function: Arc<Function>) -> usize {
        let handle = function.kernel.handle;
        self.0.write().insert(handle, function);
        handle
    }

    /// Finds the function of a handle, or nothing.
    pub fn find(&self, handle: usize) -> Option<Arc<Function>> {
        self.0.read().get(&handle).cloned()
    }

    /// Finds the function of a handle.
    pub fn get(&self, handle: usize) -> Answer<Arc<Function>> {
        match self.find(handle) {
            Some(function) => Ok(function),
            None => fail!(CUDA_ERROR_INVALID_HANDLE, "{handle:#x} is not a function, or its module has been unloaded"),
        }
    }

    /// Ends the functions for which `ends` is true.
    pub fn remove_all(&self, ends: impl Fn(&Function) -> bool) {
        self.0.write().retain(|_, function| !ends(function));
    }
}

/// What a block has of shared memory without asking for more.
pub const SHARED: u32 = 48 << 10;

/// The registers of an SM, which a block may have.
const REGISTERS: u64 = 64 << 10;

/// A function.
pub struct Function {
    /// The handle of its module.
    pub module: usize,
    /// The handle of its context.
    pub context: usize,
    /// Its name.
    pub name: CString,
    /// The kernel of libtegrarm.
    pub kernel: Kernel,
    /// What is known of it.
    pub attributes: KernelAttributes,
    /// Offset and size of each parameter.
    pub layout: Vec<(u32, u32)>,
    /// How much dynamic shared memory a launch may have.
    pub dynamic: AtomicI32,
    /// The preferred part of shared memory, which the GPU chooses itself.
    carveout: AtomicI32,
}

impl Function {
    /// A function of a module.
    pub fn new(module: &Module, name: CString, kernel: Kernel) -> Answer<Function> {
        let attributes = kernel.attributes()?;
        let layout: Answer<Vec<_>> = (0..attributes.parameters).map(|index| kernel.parameter(index)).collect();
        let dynamic = AtomicI32::new(SHARED.saturating_sub(attributes.shared_size) as i32);
        let (module, context) = (module.handle, module.context);
        Ok(Function {
            module,
            context,
            name,
            kernel,
            attributes,
            layout: layout?,
            dynamic,
            carveout: AtomicI32::new(-1),
        })
    }

    /// Fails unless it is a function of this context.
    pub fn belongs_to(&self, context: &Context) -> Answer {
        if self.context != context.handle {
            fail!(CUDA_ERROR_INVALID_HANDLE, "{:?} and the stream belong to two contexts", self.name);
        }
        Ok(())
    }

    /// Checks the size of a launch, with CUDA's results.
    pub fn check(&self, size: &Size) -> Answer {
        let Size { grid, block, shared, cooperative } = *size;
        let threads = u64::from(block[0]) * u64::from(block[1]) * u64::from(block[2]);
        let fits = grid.iter().chain(&block).all(|count| *count > 0)
            && grid[0] <= i32::MAX as u32
            && grid[1].max(grid[2]) <= 65535
            && block[0].max(block[1]) <= 1024
            && block[2] <= 64
            && threads <= 1024;
        if !fits {
            fail!(CUDA_ERROR_INVALID_VALUE, "{:?}: a grid of {grid:?} with blocks of {block:?}", self.name);
        }
        if threads > u64::from(self.attributes.max_threads) {
            // More than __launch_bounds__ allows is another mistake than too few registers for so many threads.
            let (most, registers) = (self.attributes.max_threads, u64::from(self.attributes.registers));
            let lacks = threads.next_multiple_of(32) * registers.next_multiple_of(8) > REGISTERS;
            let code = if lacks { CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES } else { CUDA_ERROR_INVALID_VALUE };
            fail!(code, "{:?}: a block of {threads} threads: {most} can be", self.name);
        }
        let most = self.dynamic.load(Ordering::Relaxed);
        if i64::from(shared) > i64::from(most) {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{:?}: {shared} bytes of dynamic shared memory, and {most} are allowed: cuFuncSetAttribute allows more",
                self.name
            );
        }
        if cooperative {
            let room = u64::from(self.kernel.blocks_per_sm(block, shared)?)
                * u64::from(crate::device::profile()?.compute_units);
            let blocks = u64::from(grid[0]) * u64::from(grid[1]) * u64::from(grid[2]);
            if blocks > room {
                fail!(
                    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                    "{:?}: {blocks} blocks, and the GPU has room for {room} at once",
                    self.name
                );
            }
        }
        Ok(())
    }

    /// The value of an attribute.
    pub fn attribute(&self, attribute: u32) -> Answer<i32> {
        let known = &self.attributes;
        Ok(match attribute {
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => known.max_threads as i32,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => known.shared_size as i32,
            CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => known.constant_size as i32,
            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => {
                if known.stack_size == u32::MAX {
                    0
                } else {
                    known.stack_size as i32
                }
            }
            CU_FUNC_ATTRIBUTE_NUM_REGS => known.registers as i32,
            // The cubin does not say from which PTX it was made: the newest is the one of the GPU itself.
            CU_FUNC_ATTRIBUTE_PTX_VERSION | CU_FUNC_ATTRIBUTE_BINARY_VERSION => crate::modules::arch()? as i32,
            CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => self.dynamic.load(Ordering::Relaxed),
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => self.carveout.load(Ordering::Relaxed),
            CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET..CU_FUNC_ATTRIBUTE_MAX => 0,
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {other} of a function"),
        })
    }

    /// Changes an attribute.
    pub fn set_attribute(&self, attribute: u32, value: i32) -> Answer {
        match attribute {
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let most = self.attributes.max_dynamic_shared;
                if value < 0 || value as u32 > most {
                    fail!(
                        CUDA_ERROR_INVALID_VALUE,
                        "{:?}: {value} bytes of dynamic shared memory: {most} can be",
                        self.name
                    );
                }
                let before = self.dynamic.swap(value, Ordering::Relaxed);
                if value < before
                    && let Some(context) = CONTEXTS.find(self.context)
                {
                    // A launch may have had more before. From now on, the sizes of each launch are checked again.
                    context.on_stack.close();
                }
                Ok(())
            }
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
                self.carveout.store(value, Ordering::Relaxed);
                Ok(())
            }
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH..=CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
                fail!(CUDA_ERROR_NOT_SUPPORTED, "clusters came with compute capability 9.0")
            }
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a function cannot be {value}"),
        }
    }
}

/// The function of a handle, which may be that of a kernel of a library too.
pub fn function(handle: usize) -> Answer<Arc<Function>> {
    if let Some(function) = FUNCTIONS.find(handle) {
        return Ok(function);
    }
    if handle == 0 {
        return Err(Error::new(CUDA_ERROR_INVALID_HANDLE, "the function is NULL".to_owned()));
    }
    KERNELS.get(handle)?.function().and_then(|handle| FUNCTIONS.get(handle))
}

pub mod rows {
    //! The functions of functions.

    use super::*;
    use crate::pointers::Ptr;

    pub fn cuFuncGetAttribute(value: Ptr<i32>, attribute: u32, handle: usize) -> Answer {
        value.present("pi")?;
        value.set(function(handle)?.attribute(attribute)?, "pi")
    }

    pub fn cuFuncSetAttribute(handle: usize, attribute: u32, value: i32) -> Answer {
        function(handle)?.set_attribute(attribute, value)
    }

    pub fn cuFuncSetCacheConfig(handle: usize, config: u32) -> Answer {
        if config > CU_FUNC_CACHE_PREFER_EQUAL {
            fail!(CUDA_ERROR_INVALID_VALUE, "the cache configuration {config}");
        }
        function(handle).map(drop)
    }

    pub fn cuFuncSetSharedMemConfig(handle: usize, config: u32) -> Answer {
        if config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE {
            fail!(CUDA_ERROR_INVALID_VALUE, "the configuration {config} of shared memory");
        }
        function(handle).map(drop)
    }

    pub fn cuFuncGetModule(module: Ptr<usize>, handle: usize) -> Answer {
        module.present("hmod")?;
        module.set(function(handle)?.module, "hmod")
    }

    /// The name stays valid for as long as the function does.
    pub fn cuFuncGetName(name: Ptr<usize>, handle: usize) -> Answer {
        name.present("name")?;
        name.set(function(handle)?.name.as_ptr() as usize, "name")
    }

    pub fn cuFuncGetParamInfo(handle: usize, index: usize, offset: Ptr<usize>, size: Ptr<usize>) -> Answer {
        offset.present("paramOffset")?;
        let function = function(handle)?;
        let Some((at, bytes)) = function.layout.get(index) else {
            return Err(Error::plain(CUDA_ERROR_INVALID_VALUE));
        };
        size.set_any(*bytes as usize);
        offset.set(*at as usize, "paramOffset")
    }

    pub fn cuFuncGetParamCount(handle: usize, count: Ptr<usize>) -> Answer {
        count.present("paramCount")?;
        count.set(function(handle)?.layout.len(), "paramCount")
    }

    pub fn cuFuncIsLoaded(state: Ptr<u32>, handle: usize) -> Answer {
        state.present("state")?;
        function(handle)?;
        state.set(CU_FUNCTION_LOADING_STATE_LOADED, "state")
    }

    pub fn cuFuncLoad(handle: usize) -> Answer {
        let function = function(handle)?;
        if CONTEXTS.find(function.context).is_none() {
            return Err(Error::plain(CUDA_ERROR_CONTEXT_IS_DESTROYED));
        }
        Ok(())
    }
}
