//! Functions: kernels of modules, their attributes, and launches that are kept.

use crate::context::{CONTEXTS, Context};
use crate::device::{arch, profile};
use crate::kernels::{Kernel, KernelAttributes};
use crate::machine::Size;
use crate::numbers::*;
use crate::order::Stream;
use crate::pointers::{Ptr, at, copy_bytes};
use crate::result::{Answer, fail};
use crate::structures::Attributes;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use tegrarm_lock::RwLock;

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
    /// A function of a module, which has a context: their handles.
    pub fn new((module, context): (usize, usize), name: CString, kernel: Kernel) -> Answer<Function> {
        let attributes = kernel.attributes()?;
        let layout: Answer<Vec<_>> = (0..attributes.parameters).map(|index| kernel.parameter(index)).collect();
        let dynamic = AtomicI32::new(SHARED.saturating_sub(attributes.shared_size) as i32);
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
            let room = u64::from(self.kernel.blocks_per_sm(block, shared)?) * u64::from(profile()?.compute_units);
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
            CU_FUNC_ATTRIBUTE_PTX_VERSION | CU_FUNC_ATTRIBUTE_BINARY_VERSION => arch()? as i32,
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

/// The keys of the array `extra`: CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// Where the values of the parameters are: one address for each, in an array of the caller or in a list made here.
pub enum Values {
    /// An array of the caller.
    Array(usize),
    /// A list.
    List(Vec<usize>),
}

/// Finds the values of the parameters of a launch.
pub fn values(function: &Function, params: Ptr<usize>, extra: Ptr<usize>) -> Answer<Values> {
    match (params.is_null(), extra.is_null()) {
        (false, false) => fail!(CUDA_ERROR_INVALID_VALUE, "{:?}: kernelParams and extra are both given", function.name),
        (false, true) => Ok(Values::Array(params.address())),
        (true, true) if function.layout.is_empty() => Ok(Values::List(Vec::new())),
        (true, true) => {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{:?} has {} parameters, and no values are given",
                function.name,
                function.layout.len()
            )
        }
        (true, false) => packed(function, extra),
    }
}

/// The values in a buffer that `extra` names.
fn packed(function: &Function, extra: Ptr<usize>) -> Answer<Values> {
    let (mut buffer, mut size, mut place) = (0, 0, extra.address());
    loop {
        let (key, value) = (at::<usize>(place).get("extra")?, place + size_of::<usize>());
        match key {
            0 => break,
            BUFFER_POINTER => buffer = at::<usize>(value).get("extra")?,
            BUFFER_SIZE => size = at::<usize>(at::<usize>(value).get("extra")?).get("the size of the parameters")?,
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the key {other} in extra"),
        }
        place += 2 * size_of::<usize>();
    }
    let needed = function.layout.iter().map(|(offset, size)| offset + size).max().unwrap_or(0) as usize;
    if size < needed || (buffer == 0 && needed != 0) {
        fail!(CUDA_ERROR_INVALID_VALUE, "{:?} has {needed} bytes of parameters, and {size} are given", function.name);
    }
    Ok(Values::List(function.layout.iter().map(|(offset, _)| buffer + *offset as usize).collect()))
}

/// A launch that is kept, with the values of its parameters.
pub struct Launch {
    /// The function or kernel as the program named it.
    pub handle: usize,
    /// The function.
    pub function: Arc<Function>,
    /// Its size.
    pub size: Size,
    /// The attributes that the program gave.
    pub attributes: Attributes,
    /// The address of the value of each parameter, in `_values`.
    pub addresses: Vec<usize>,
    _values: Vec<u64>,
}

impl Launch {
    /// Keeps a launch.
    pub fn keep(
        handle: usize,
        function: Arc<Function>,
        size: Size,
        params: Ptr<usize>,
        extra: Ptr<usize>,
    ) -> Answer<Launch> {
        function.check(&size)?;
        let given = match values(&function, params, extra)? {
            Values::Array(first) => at::<usize>(first).list(function.layout.len(), "kernelParams")?,
            Values::List(list) => list,
        };
        let end = function.layout.iter().map(|(offset, size)| offset + size).max().unwrap_or(0) as usize;
        let values = vec![0u64; end.div_ceil(8)];
        let first = values.as_ptr() as usize;
        let addresses: Vec<usize> = function.layout.iter().map(|(offset, _)| first + *offset as usize).collect();
        for ((to, from), (_, size)) in addresses.iter().zip(&given).zip(&function.layout) {
            if *from == 0 {
                fail!(CUDA_ERROR_INVALID_VALUE, "{:?}: the address of a parameter's value is NULL", function.name);
            }
            copy_bytes(*to, *from, *size as usize);
        }
        Ok(Launch { handle, function, size, attributes: Attributes::default(), addresses, _values: values })
    }

    /// The same launch with other attributes, of which one says whether all blocks run at the same time.
    pub fn with(&self, attributes: Attributes) -> Answer<Launch> {
        let size = Size { cooperative: attributes.number(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) != 0, ..self.size };
        let values = at(self.addresses.as_ptr() as usize);
        Ok(Launch { attributes, ..Launch::keep(self.handle, self.function.clone(), size, values, at(0))? })
    }

    /// Gives it to a stream.
    pub fn give(&self, context: &Context, stream: &Stream) -> Answer {
        self.function.belongs_to(context)?;
        let (first, count) = (self.addresses.as_ptr() as usize, self.addresses.len());
        context.submit(stream, |queue| queue.launch(self.function.kernel.handle, &self.size, first, count)).map(drop)
    }
}
