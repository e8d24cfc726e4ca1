//! Libraries: images that every context loads for itself when it needs them.

use crate::context::{CONTEXTS, Context, current};
use crate::device::{arch, check_device};
use crate::fatbin;
use crate::functions::{FUNCTIONS, Function};
use crate::handles::Handles;
use crate::jit::Options;
use crate::modules::{self, MODULES, Module, machine_code};
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use std::ffi::CString;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// All libraries.
static LIBRARIES: Handles<Library> = Handles::new(7, "library", CUDA_ERROR_INVALID_HANDLE);
/// All kernels of libraries.
pub static KERNELS: Handles<LibraryKernel> = Handles::new(8, "kernel", CUDA_ERROR_INVALID_HANDLE);

/// A library.
pub struct Library {
    cubin: Vec<u8>,
    names: Vec<String>,
    /// The handles of the modules, one for each context that needed it.
    modules: Mutex<Vec<(usize, usize)>>,
    kernels: Mutex<Vec<(String, usize)>>,
}

/// A kernel of a library.
pub struct LibraryKernel {
    library: usize,
    name: CString,
    /// The values of attributes that were set: each context's function gets them.
    set: Mutex<Vec<(u32, i32)>>,
}

impl Library {
    /// The module of a context.
    fn module(&self, context: &Arc<Context>) -> Answer<Arc<Module>> {
        let mut modules = self.modules.lock();
        modules.retain(|(_, module)| MODULES.find(*module).is_some());
        if let Some((_, module)) = modules.iter().find(|(of, _)| *of == context.handle) {
            return MODULES.get(*module);
        }
        let made = modules::load(context, &self.cubin)?;
        modules.push((context.handle, made.handle));
        Ok(made)
    }

    /// Ends its modules.
    fn unload(&self) -> Answer {
        for (context, module) in self.modules.lock().drain(..) {
            if CONTEXTS.find(context).is_some() && MODULES.find(module).is_some() {
                modules::unload(module)?;
            }
        }
        Ok(())
    }

    /// The handle of the kernel with this name.
    fn kernel(&self, library: usize, name: &str) -> Answer<usize> {
        let mut kernels = self.kernels.lock();
        if let Some((_, handle)) = kernels.iter().find(|(other, _)| other == name) {
            return Ok(*handle);
        }
        let Some(text) = CString::new(name).ok().filter(|_| self.names.iter().any(|other| other == name)) else {
            fail!(CUDA_ERROR_NOT_FOUND, "the library has no kernel {name:?}, only: {}", self.names.join(", "))
        };
        let handle = KERNELS.add(Arc::new(LibraryKernel { library, name: text, set: Mutex::default() }))?;
        kernels.push((name.to_owned(), handle));
        Ok(handle)
    }
}

impl LibraryKernel {
    /// The handle of the function in the current context.
    pub fn function(&self) -> Answer<usize> {
        let context = current()?;
        let module = LIBRARIES.get(self.library)?.module(&context)?;
        let handle = module.function(&self.name.to_string_lossy())?;
        let function = FUNCTIONS.get(handle)?;
        for (attribute, value) in self.set.lock().iter() {
            function.set_attribute(*attribute, *value)?;
        }
        Ok(handle)
    }
}

fn load(bytes: Vec<u8>) -> Answer<usize> {
    let names = fatbin::kernels(&bytes);
    let made = Arc::new(Library { cubin: bytes, names, modules: Mutex::default(), kernels: Mutex::default() });
    if modules::loads_at_once() {
        let mut alive = CONTEXTS.all().into_iter().filter(|context| context.alive().is_ok());
        if let Err(error) = alive.try_for_each(|context| made.module(&context).map(drop)) {
            made.unload()?;
            return Err(error);
        }
    }
    LIBRARIES.add(made)
}

/// Loads all libraries in a new context, if they are loaded at once.
pub fn enter(context: usize) -> Answer {
    if modules::loads_at_once() {
        let context = CONTEXTS.get(context)?;
        LIBRARIES.all().into_iter().try_for_each(|library| library.module(&context).map(drop))?;
    }
    Ok(())
}

/// The function of a kernel in the current context, or in the primary context's if none is current.
fn of_kernel(handle: usize) -> Answer<Arc<Function>> {
    KERNELS.get(handle)?.function().and_then(|function| FUNCTIONS.get(function))
}

/// The function of a handle, which may be that of a kernel of a library too.
pub fn function(handle: usize) -> Answer<Arc<Function>> {
    if let Some(function) = FUNCTIONS.find(handle) {
        return Ok(function);
    }
    if handle == 0 {
        return Err(Error::new(CUDA_ERROR_INVALID_HANDLE, "the function is NULL".to_owned()));
    }
    of_kernel(handle)
}

pub mod rows {
    //! The functions of libraries.

    use super::*;
    use crate::pointers::Ptr;
    use std::ffi::{c_char, c_void};

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuLibraryLoadData(
        library: Ptr<usize>,
        code: Ptr<c_void>,
        names: Ptr<u32>,
        values: Ptr<usize>,
        count: u32,
        library_names: Ptr<u32>,
        _library_values: Ptr<usize>,
        library_count: u32,
    ) -> Answer {
        let options = begin(library, (count, names, values), (library_count, library_names), true)?;
        library.set(load(machine_code(fatbin::read(code, arch()?)?, &options)?)?, "library")
    }

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuLibraryLoadFromFile(
        library: Ptr<usize>,
        name: Ptr<c_char>,
        names: Ptr<u32>,
        values: Ptr<usize>,
        count: u32,
        library_names: Ptr<u32>,
        _library_values: Ptr<usize>,
        library_count: u32,
    ) -> Answer {
        let options = begin(library, (count, names, values), (library_count, library_names), false)?;
        let bytes = modules::file(&name.text("fileName")?)?;
        library.set(load(machine_code(fatbin::read_bytes(&bytes, arch()?)?, &options)?)?, "library")
    }

    /// What both ways to load a library check first. `in_memory` says that the image is the program's own memory. Returns the options of
    /// the compiler.
    fn begin(
        library: Ptr<usize>,
        (count, names, values): (u32, Ptr<u32>, Ptr<usize>),
        (library_count, library_names): (u32, Ptr<u32>),
        in_memory: bool,
    ) -> Answer<Options> {
        library.present("library")?;
        check_options(library_names, library_count, in_memory)?;
        Options::read(count, names, values)
    }

    fn check_options(names: Ptr<u32>, count: u32, in_memory: bool) -> Answer {
        for name in names.list(count as usize, "libraryOptions")? {
            match name {
                CU_LIBRARY_BINARY_IS_PRESERVED if in_memory => {}
                CU_LIBRARY_BINARY_IS_PRESERVED => {
                    fail!(CUDA_ERROR_INVALID_VALUE, "CU_LIBRARY_BINARY_IS_PRESERVED is for images in memory")
                }
                CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE => {
                    fail!(
                        CUDA_ERROR_NOT_SUPPORTED,
                        "CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE: CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS is 0"
                    )
                }
                other => fail!(CUDA_ERROR_INVALID_VALUE, "the library option {other}"),
            }
        }
        Ok(())
    }

    pub fn cuLibraryUnload(library: usize) -> Answer {
        let gone = LIBRARIES.remove(library)?;
        for (_, kernel) in gone.kernels.lock().drain(..) {
            let _ = KERNELS.remove(kernel);
        }
        gone.unload()
    }

    pub fn cuLibraryGetKernel(kernel: Ptr<usize>, library: usize, name: Ptr<c_char>) -> Answer {
        kernel.present("pKernel")?;
        kernel.set(LIBRARIES.get(library)?.kernel(library, &name.text("name")?)?, "pKernel")
    }

    pub fn cuLibraryGetKernelCount(count: Ptr<u32>, library: usize) -> Answer {
        count.present("count")?;
        count.set(LIBRARIES.get(library)?.names.len() as u32, "count")
    }

    pub fn cuLibraryEnumerateKernels(kernels: Ptr<usize>, room: u32, library: usize) -> Answer {
        kernels.present("kernels")?;
        let found = LIBRARIES.get(library)?;
        for (at, name) in found.names.iter().take(room as usize).enumerate() {
            kernels.set_at(at, found.kernel(library, name)?);
        }
        Ok(())
    }

    pub fn cuLibraryGetModule(module: Ptr<usize>, library: usize) -> Answer {
        module.present("pMod")?;
        module.set(LIBRARIES.get(library)?.module(&current()?)?.handle, "pMod")
    }

    pub fn cuLibraryGetGlobal(address: Ptr<u64>, size: Ptr<usize>, library: usize, name: Ptr<c_char>) -> Answer {
        let module = LIBRARIES.get(library)?.module(&current()?)?;
        let (at, bytes) = module.variable(&name.text("name")?)?;
        address.set_any(at);
        size.set_any(bytes as usize);
        Ok(())
    }

    pub fn cuLibraryGetManaged(address: Ptr<u64>, size: Ptr<usize>, library: usize, name: Ptr<c_char>) -> Answer {
        let (module, name) = (LIBRARIES.get(library)?.module(&current()?)?, name.text("name")?);
        if !module.is_managed(&name) {
            fail!(CUDA_ERROR_NOT_FOUND, "the library has no __managed__ variable {name:?}");
        }
        let (at, bytes) = module.variable(&name)?;
        address.set_any(at);
        size.set_any(bytes as usize);
        Ok(())
    }

    pub fn cuKernelGetFunction(function: Ptr<usize>, kernel: usize) -> Answer {
        function.present("pFunc")?;
        function.set(KERNELS.get(kernel)?.function()?, "pFunc")
    }

    pub fn cuKernelGetLibrary(library: Ptr<usize>, kernel: usize) -> Answer {
        library.present("pLib")?;
        library.set(KERNELS.get(kernel)?.library, "pLib")
    }

    /// The name stays valid for as long as the kernel does.
    pub fn cuKernelGetName(name: Ptr<usize>, kernel: usize) -> Answer {
        name.present("name")?;
        name.set(KERNELS.get(kernel)?.name.as_ptr() as usize, "name")
    }

    pub fn cuKernelGetAttribute(value: Ptr<i32>, attribute: u32, kernel: usize, device: i32) -> Answer {
        value.present("pi")?;
        check_device(device)?;
        value.set(of_kernel(kernel)?.attribute(attribute)?, "pi")
    }

    pub fn cuKernelSetAttribute(attribute: u32, value: i32, kernel: usize, device: i32) -> Answer {
        check_device(device)?;
        of_kernel(kernel)?.set_attribute(attribute, value)?;
        let kernel = KERNELS.get(kernel)?;
        let mut set = kernel.set.lock();
        set.retain(|(other, _)| *other != attribute);
        set.push((attribute, value));
        Ok(())
    }

    pub fn cuKernelSetCacheConfig(kernel: usize, config: u32, device: i32) -> Answer {
        check_device(device)?;
        if config > CU_FUNC_CACHE_PREFER_EQUAL {
            fail!(CUDA_ERROR_INVALID_VALUE, "the cache configuration {config}");
        }
        KERNELS.get(kernel).map(drop)
    }

    pub fn cuKernelGetParamInfo(kernel: usize, index: usize, offset: Ptr<usize>, size: Ptr<usize>) -> Answer {
        offset.present("paramOffset")?;
        let function = of_kernel(kernel)?;
        let Some((at, bytes)) = function.layout.get(index) else { return Err(Error::plain(CUDA_ERROR_INVALID_VALUE)) };
        size.set_any(*bytes as usize);
        offset.set(*at as usize, "paramOffset")
    }

    pub fn cuKernelGetParamCount(kernel: usize, count: Ptr<usize>) -> Answer {
        count.present("paramCount")?;
        count.set(of_kernel(kernel)?.layout.len(), "paramCount")
    }
}
