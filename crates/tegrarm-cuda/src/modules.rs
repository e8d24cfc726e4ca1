//! Modules: machine code that is loaded in a context, its kernels and variables.

use crate::allocations::{self, Kind};
use crate::context::{CONTEXTS, Context, current};
use crate::device::arch;
use crate::fatbin::{self, Code};
use crate::functions::{FUNCTIONS, Function};
use crate::handles::Handles;
use crate::jit::{self, Input, Options, input};
use crate::kernels;
use crate::numbers::*;
use crate::pointers::Ptr;
use crate::result::{Answer, Error, fail};
use once_cell::race::OnceBool;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// All modules.
pub static MODULES: Handles<Module> = Handles::new(5, "module", CUDA_ERROR_INVALID_HANDLE);

/// A module.
pub struct Module {
    /// Its handle.
    pub handle: usize,
    /// The handle of its context.
    pub context: usize,
    /// The names of its kernels.
    pub names: Vec<String>,
    /// The functions that were asked for: the name and the handle.
    functions: Mutex<Vec<(String, usize)>>,
    /// The names of its `__managed__` variables.
    managed: Vec<String>,
    /// The variables that were asked for: the name, the address and the size.
    variables: Mutex<Vec<(String, u64, u64)>>,
    loaded: kernels::Module,
}

/// Whether every context loads a library at once: CUDA_MODULE_LOADING is EAGER. Otherwise it does so when it needs the library. A module is
/// loaded whole by the function that makes it, so that both are the same for it.
pub fn loads_at_once() -> bool {
    static AT_ONCE: OnceBool = OnceBool::new();
    AT_ONCE.get_or_init(|| std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER"))
}

/// Machine code of an image, which is compiled if it is PTX.
pub fn machine_code(code: Code, options: &Options) -> Answer<Vec<u8>> {
    match code {
        Code::Cubin(bytes) => Ok(bytes),
        Code::Ptx(bytes) if !is_ptx(&bytes) => {
            fail!(CUDA_ERROR_INVALID_IMAGE, "the image is neither a cubin, nor a fat binary, nor PTX")
        }
        Code::Ptx(bytes) => {
            options.check_target(arch()?)?;
            jit::compile(&[Input { kind: input::PTX, bytes, name: "the module".into() }], options, arch()?)
        }
    }
}

fn is_ptx(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|text| text == b".version")
}

/// Loads machine code in a context. Returns the handle.
pub fn load(context: &Context, cubin: &[u8]) -> Answer<Arc<Module>> {
    context.alive()?;
    let loaded = context.told(kernels::Module::load(&context.device, cubin)).map_err(|error| match error.code {
        CUDA_ERROR_INVALID_VALUE => Error { code: CUDA_ERROR_INVALID_IMAGE, ..error },
        _ => error,
    })?;
    let (names, managed) = (fatbin::kernels(cubin), fatbin::managed(cubin));
    let (_, module) = MODULES.add_with(|handle| Module {
        handle,
        context: context.handle,
        names,
        functions: Mutex::default(),
        managed,
        variables: Mutex::default(),
        loaded,
    })?;
    Ok(module)
}

/// Ends the modules of a context.
pub fn forget(context: usize) {
    FUNCTIONS.remove_all(|function| function.context == context);
    drop(MODULES.remove_all(|module| module.context == context));
}

/// Unloads a module.
pub fn unload(handle: usize) -> Answer {
    let module = MODULES.remove(handle)?;
    if let Some(context) = CONTEXTS.find(module.context) {
        // CUDA allows work that still uses the module. It finishes first.
        let _ = context.synchronize();
    }
    FUNCTIONS.remove_all(|function| function.module == handle);
    allocations::remove_all(
        |allocation| matches!(allocation.kind, Kind::Variable(of) | Kind::ManagedVariable(of) if of == handle),
    );
    Ok(())
}

impl Module {
    /// The handle of the function with this name.
    pub fn function(&self, name: &str) -> Answer<usize> {
        let mut functions = self.functions.lock();
        if let Some((_, handle)) = functions.iter().find(|(other, _)| other == name) {
            return Ok(*handle);
        }
        let Ok(text) = CString::new(name) else { fail!(CUDA_ERROR_INVALID_VALUE, "a name with a NUL") };
        let kernel = self.loaded.kernel(&text).map_err(not_found)?;
        let handle = FUNCTIONS.add(Arc::new(Function::new((self.handle, self.context), text, kernel)?));
        functions.push((name.to_owned(), handle));
        Ok(handle)
    }

    /// The address and the size of the variable with this name.
    pub fn variable(&self, name: &str) -> Answer<(u64, u64)> {
        let mut variables = self.variables.lock();
        if let Some((_, address, size)) = variables.iter().find(|(other, ..)| other == name) {
            return Ok((*address, *size));
        }
        let Ok(text) = CString::new(name) else { fail!(CUDA_ERROR_INVALID_VALUE, "a name with a NUL") };
        let (buffer, size) = self.loaded.variable(&text).map_err(not_found)?;
        let managed = self.is_managed(name);
        if managed && buffer.pointer as u64 != buffer.address {
            fail!(
                CUDA_ERROR_OUT_OF_MEMORY,
                "the process uses the addresses that the managed variable {name:?} has for the GPU"
            );
        }
        let kind = if managed { Kind::ManagedVariable(self.handle) } else { Kind::Variable(self.handle) };
        let made = allocations::add(self.context, kind, buffer, 0, size);
        variables.push((name.to_owned(), made.address, made.size));
        Ok((made.address, made.size))
    }

    /// Whether the variable with this name is managed memory.
    pub fn is_managed(&self, name: &str) -> bool {
        self.managed.iter().any(|other| other == name)
    }
}

fn not_found(error: Error) -> Error {
    if error.code == CUDA_ERROR_INVALID_HANDLE { Error { code: CUDA_ERROR_NOT_FOUND, ..error } } else { error }
}

/// Reads a file.
pub fn file(name: &str) -> Answer<Vec<u8>> {
    match std::fs::read(name) {
        Ok(bytes) => Ok(bytes),
        Err(why) => fail!(CUDA_ERROR_FILE_NOT_FOUND, "{name}: {why}"),
    }
}

pub mod rows {
    //! The functions of modules.

    use super::*;
    use std::ffi::c_char;

    fn load_image(module: Ptr<usize>, image: Ptr<c_void>, options: &Options) -> Answer {
        module.present("module")?;
        image.present("image")?;
        let context = current()?;
        let cubin = machine_code(fatbin::read(image, arch()?)?, options)?;
        module.set(load(&context, &cubin)?.handle, "module")
    }

    pub fn cuModuleLoad(module: Ptr<usize>, name: Ptr<c_char>) -> Answer {
        module.present("module")?;
        let (context, name) = (current()?, name.text("fname")?);
        let cubin = machine_code(fatbin::read_bytes(&file(&name)?, arch()?)?, &Options::default())?;
        module.set(load(&context, &cubin)?.handle, "module")
    }

    pub fn cuModuleLoadData(module: Ptr<usize>, image: Ptr<c_void>) -> Answer {
        load_image(module, image, &Options::default())
    }

    pub fn cuModuleLoadDataEx(
        module: Ptr<usize>,
        image: Ptr<c_void>,
        count: u32,
        names: Ptr<u32>,
        values: Ptr<usize>,
    ) -> Answer {
        load_image(module, image, &Options::read(count, names, values)?)
    }

    pub fn cuModuleLoadFatBinary(module: Ptr<usize>, image: Ptr<c_void>) -> Answer {
        load_image(module, image, &Options::default())
    }

    pub fn cuModuleUnload(module: usize) -> Answer {
        current()?;
        unload(module)
    }

    pub fn cuModuleGetFunction(function: Ptr<usize>, module: usize, name: Ptr<c_char>) -> Answer {
        function.present("hfunc")?;
        current()?;
        function.set(MODULES.get(module)?.function(&name.text("name")?)?, "hfunc")
    }

    pub fn cuModuleGetGlobal_v2(address: Ptr<u64>, size: Ptr<usize>, module: usize, name: Ptr<c_char>) -> Answer {
        current()?;
        let (at, bytes) = MODULES.get(module)?.variable(&name.text("name")?)?;
        address.set_any(at);
        size.set_any(bytes as usize);
        Ok(())
    }

    pub fn cuModuleGetFunctionCount(count: Ptr<u32>, module: usize) -> Answer {
        count.set(MODULES.get(module)?.names.len() as u32, "count")
    }

    pub fn cuModuleEnumerateFunctions(functions: Ptr<usize>, room: u32, module: usize) -> Answer {
        functions.present("functions")?;
        let module = MODULES.get(module)?;
        for (at, name) in module.names.iter().take(room as usize).enumerate() {
            functions.set_at(at, module.function(name)?);
        }
        Ok(())
    }

    pub fn cuModuleGetLoadingMode(mode: Ptr<u32>) -> Answer {
        mode.set(if loads_at_once() { CU_MODULE_EAGER_LOADING } else { CU_MODULE_LAZY_LOADING }, "mode")
    }
}
