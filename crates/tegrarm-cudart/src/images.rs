//! What programs register at their start: fat binaries, functions and variables; launches; errors of a thread.

use crate::calls::{self, *};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// A fat binary of the program. The driver loads it when something of it is first needed.
struct Image {
    wrapper: usize,
    /// The driver's library, or 0.
    library: Mutex<usize>,
}

/// A function or variable of the program, by the address of what the compiler made for it on the CPU.
#[derive(Clone)]
struct Entity {
    image: usize,
    name: CString,
}

/// A `__managed__` variable of the program, which takes the address from a pointer that the compiler made.
#[derive(Clone)]
struct Managed {
    pointer: usize,
    name: CString,
}

#[derive(Default)]
struct Registry {
    images: HashMap<usize, Arc<Image>>,
    functions: HashMap<usize, Entity>,
    kernels: HashMap<usize, usize>,
    variables: HashMap<usize, Entity>,
    /// The managed variables by their image.
    managed: HashMap<usize, Vec<Managed>>,
    /// The images whose managed variables the program uses.
    given: Vec<usize>,
    next: usize,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn registry<T>(work: impl FnOnce(&mut Registry) -> T) -> T {
    work(REGISTRY.lock().get_or_insert_default())
}

/// The driver's library of an image.
fn library(image: usize) -> Answer<usize> {
    let Some(image) = registry(|all| all.images.get(&image).cloned()) else { return Err(INVALID_FUNCTION) };
    let mut library = image.library.lock();
    if *library == 0 {
        cu!("cuLibraryLoadData", &raw mut *library, image.wrapper, 0, 0, 0, 0, 0, 0)?;
    }
    Ok(*library)
}

/// The driver's kernel for a function of the program. What is not registered is a kernel of a library, which the driver knows.
pub fn kernel(function: usize) -> Answer<usize> {
    if let Some(known) = registry(|all| all.kernels.get(&function).copied()) {
        return Ok(known);
    }
    let Some(entity) = registry(|all| all.functions.get(&function).cloned()) else {
        let mut count = 0usize;
        // The driver answers only for a handle of its own.
        return cu!("cuFuncGetParamCount", function, &raw mut count).map(|()| function).map_err(|_| INVALID_FUNCTION);
    };
    let mut kernel = 0usize;
    cu!("cuLibraryGetKernel", &raw mut kernel, library(entity.image)?, entity.name.as_ptr())
        .map_err(|code| if code == 500 { INVALID_FUNCTION } else { code })?;
    registry(|all| all.kernels.insert(function, kernel));
    Ok(kernel)
}

/// The function of the program whose kernel of the driver this is, if it has one.
pub fn function_of(kernel: usize) -> Option<usize> {
    registry(|all| all.kernels.iter().find(|(_, known)| **known == kernel).map(|(function, _)| *function))
}

/// Address and size of a variable of the program.
pub fn variable(symbol: usize) -> Answer<(usize, usize)> {
    let Some(entity) = registry(|all| all.variables.get(&symbol).cloned()) else { return Err(INVALID_SYMBOL) };
    let (mut address, mut size) = (0usize, 0usize);
    cu!("cuLibraryGetGlobal", &raw mut address, &raw mut size, library(entity.image)?, entity.name.as_ptr())
        .map_err(|code| if code == 500 { INVALID_SYMBOL } else { code })?;
    Ok((address, size))
}

/// Gives the program the addresses of an image's managed variables.
fn give_managed(image: usize) -> Answer {
    let all = registry(|all| all.managed.get(&image).cloned()).unwrap_or_default();
    for Managed { pointer, name } in all {
        let (mut address, mut size) = (0usize, 0usize);
        cu!("cuLibraryGetManaged", &raw mut address, &raw mut size, library(image)?, name.as_ptr())?;
        set(pointer, address)?;
        // The program's name of the variable stands for what the pointer points at.
        registry(|all| all.variables.insert(address, Entity { image, name }));
    }
    registry(|all| {
        if !all.given.contains(&image) {
            all.given.push(image);
        }
    });
    Ok(())
}

/// A new context has new variables, and the program does not ask a second time.
pub fn give_managed_again() -> Answer {
    registry(|all| all.given.clone()).into_iter().try_for_each(give_managed)
}

thread_local! {
    /// What `<<<...>>>` gave, for the function that the compiler made for the kernel.
    static CONFIGURATIONS: RefCell<Vec<(Dim3, Dim3, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// The runtime has its own number for a grid or a block of an impossible size.
fn check(grid: [u32; 3], block: [u32; 3]) -> Answer {
    const INVALID_CONFIGURATION: u32 = 9;
    let threads: u64 = block.iter().map(|count| u64::from(*count)).product();
    let fits = grid.iter().chain(&block).all(|count| *count > 0)
        && grid[0] <= i32::MAX as u32
        && grid[1].max(grid[2]) <= 65535
        && block[0].max(block[1]) <= 1024
        && block[2] <= 64
        && threads <= 1024;
    if fits { Ok(()) } else { Err(INVALID_CONFIGURATION) }
}

pub mod exports {
    //! The exported functions whose result is not an error of the runtime, or which the compiler calls.
    #![allow(
        unsafe_code,
        clippy::missing_safety_doc,
        reason = "the compiler calls them, and vouches for their pointers"
    )]
    #![allow(missing_docs, reason = "they have no documentation: their meaning is in the name")]

    use super::*;
    use crate::numbers::ERRORS;
    use std::ffi::c_char;

    /// Takes note of a fat binary. Returns its handle.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: usize) -> usize {
        registry(|all| {
            all.next += 16;
            let handle = all.next;
            all.images.insert(handle, Arc::new(Image { wrapper, library: Mutex::new(0) }));
            handle
        })
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_handle: usize) {}

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaUnregisterFatBinary(handle: usize) {
        let image = registry(|all| {
            all.functions.retain(|host, entity| {
                let stays = entity.image != handle;
                if !stays {
                    all.kernels.remove(host);
                }
                stays
            });
            all.variables.retain(|_, entity| entity.image != handle);
            all.managed.remove(&handle);
            all.given.retain(|image| *image != handle);
            all.images.remove(&handle)
        });
        let loaded = image.map_or(0, |image| *image.library.lock());
        if loaded != 0 {
            let _ = cu!("cuLibraryUnload", loaded);
        }
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaRegisterFunction(image: usize, host: usize, _device: usize, name: usize) {
        if let Ok(name) = calls::text(name) {
            registry(|all| all.functions.insert(host, Entity { image, name }));
        }
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaRegisterVar(image: usize, host: usize, _device: usize, name: usize) {
        if let Ok(name) = calls::text(name) {
            registry(|all| all.variables.insert(host, Entity { image, name }));
        }
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaRegisterManagedVar(image: usize, pointer: usize, _device: usize, name: usize) {
        if let Ok(name) = calls::text(name) {
            registry(|all| all.managed.entry(image).or_default().push(Managed { pointer, name }));
        }
    }

    /// The program calls this before it first uses a managed variable.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaInitModule(handle: usize) -> c_char {
        let code = calls::run(0, false, || give_managed(handle));
        if code != 0 {
            // There is no error that the program would look at: it would go on with a pointer that is NULL.
            let why = name(code).map_or("an unknown error".into(), |at| {
                calls::text(at).unwrap_or_default().to_string_lossy().into_owned()
            });
            calls::tell(&format!(
                "the __managed__ variables of the program get no memory ({why}). The program ends here."
            ));
            std::process::abort()
        }
        1
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) -> u32 {
        // The variables of a thread that ends may launch too, and the configurations have ended then.
        let pushed = CONFIGURATIONS.try_with(|all| all.borrow_mut().push((grid, block, shared, stream)));
        pushed.map_or_else(|_| failed(UNLOADING), |()| 0)
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaPopCallConfiguration(
        grid: usize,
        block: usize,
        shared: usize,
        stream: usize,
    ) -> u32 {
        let popped = CONFIGURATIONS.try_with(|all| all.borrow_mut().pop());
        let Some(last) = popped.ok().flatten() else { return failed(52) };
        let written = set(grid, last.0).and(set(block, last.1)).and(set(shared, last.2)).and(set(stream, last.3));
        written.err().map_or(0, failed)
    }

    /// What the stubs that nvcc makes launch with. They ask once and do not look at errors: so it is the function itself, and each launch
    /// finds the kernel or says why there is none.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaGetKernel(to: usize, function: usize) -> u32 {
        set(to, function).err().map_or(0, failed)
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaLaunchKernel(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        arguments: usize,
        shared: usize,
        stream: usize,
    ) -> u32 {
        calls::run(0, false, || rows::cudaLaunchKernel(kernel, grid, block, arguments, shared, stream))
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn __cudaLaunchKernel_ptsz(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        arguments: usize,
        shared: usize,
        stream: usize,
    ) -> u32 {
        calls::run(0, true, || rows::cudaLaunchKernel(kernel, grid, block, arguments, shared, stream))
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn cudaGetLastError() -> u32 {
        calls::last(true)
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn cudaPeekAtLastError() -> u32 {
        calls::last(false)
    }

    fn name(error: u32) -> Option<usize> {
        ERRORS.iter().find(|(number, _)| *number == error).map(|(_, name)| name.as_ptr() as usize)
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn cudaGetErrorName(error: u32) -> usize {
        name(error).unwrap_or(c"unrecognized error code".as_ptr() as usize)
    }

    /// The driver's sentence, which has the same number, or the name where the driver has none.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn cudaGetErrorString(error: u32) -> usize {
        let (mut text, known) = (0usize, name(error));
        match known {
            Some(name) if cu!("cuGetErrorString", error, &raw mut text).is_err() || text == 0 => name,
            Some(_) => text,
            None => c"unrecognized error code".as_ptr() as usize,
        }
    }

    /// `cudaChannelFormatDesc`.
    #[repr(C)]
    pub struct Channel([i32; 5]);

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, kind: i32) -> Channel {
        Channel([x, y, z, w, kind])
    }
}

pub mod rows {
    //! The functions of kernels and launches.

    use super::*;

    pub fn cudaLaunchKernel(
        function: usize,
        Dim3(grid): Dim3,
        Dim3(block): Dim3,
        arguments: usize,
        shared: usize,
        stream: usize,
    ) -> Answer {
        check(grid, block)?;
        let kernel = kernel(function)?;
        let ([x, y, z], [bx, by, bz]) = (grid, block);
        cu!("cuLaunchKernel", kernel, x, y, z, bx, by, bz, shared, stream, arguments, 0)
    }

    pub fn cudaLaunchCooperativeKernel(
        function: usize,
        Dim3(grid): Dim3,
        Dim3(block): Dim3,
        arguments: usize,
        shared: usize,
        stream: usize,
    ) -> Answer {
        check(grid, block)?;
        let kernel = kernel(function)?;
        let ([x, y, z], [bx, by, bz]) = (grid, block);
        cu!("cuLaunchCooperativeKernel", kernel, x, y, z, bx, by, bz, shared, stream, arguments)
    }

    /// The structure has the places of the driver's.
    pub fn cudaLaunchKernelExC([config, function, arguments]: [usize; 3]) -> Answer {
        let [grid, block]: [[u32; 3]; 2] = get(config)?;
        check(grid, block)?;
        cu!("cuLaunchKernelEx", config, kernel(function)?, arguments, 0)
    }

    pub fn cudaGetFuncBySymbol([to, function]: [usize; 2]) -> Answer {
        let mut found = 0usize;
        cu!("cuKernelGetFunction", &raw mut found, kernel(function)?)?;
        set(to, found)
    }

    pub fn cudaGetKernel([to, function]: [usize; 2]) -> Answer {
        set(to, kernel(function)?)
    }

    fn attribute(kernel: usize, attribute: u32) -> Answer<i32> {
        let mut value = 0i32;
        cu!("cuFuncGetAttribute", &raw mut value, attribute, kernel)?;
        Ok(value)
    }

    /// `cudaFuncAttributes`: three sizes, then numbers, in this order of the driver's attributes.
    pub fn cudaFuncGetAttributes([to, function]: [usize; 2]) -> Answer {
        const SIZES: [u32; 3] = [1, 2, 3];
        const NUMBERS: [u32; 13] = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14];
        let kernel = kernel(function)?;
        set(to, [0u8; 24 + 4 * 29])?;
        for (at, one) in SIZES.into_iter().enumerate() {
            set(to + 8 * at, attribute(kernel, one)? as usize)?;
        }
        for (at, one) in NUMBERS.into_iter().enumerate() {
            set(to + 24 + 4 * at, attribute(kernel, one)?)?;
        }
        Ok(())
    }

    pub fn cudaFuncSetAttribute([function, attribute, value]: [usize; 3]) -> Answer {
        cu!("cuFuncSetAttribute", kernel(function)?, attribute, value)
    }

    pub fn cudaKernelSetAttributeForDevice([kernel, attribute, value, device]: [usize; 4]) -> Answer {
        cu!("cuKernelSetAttribute", attribute, value, kernel, device)
    }

    pub fn cudaFuncSetCacheConfig([function, config]: [usize; 2]) -> Answer {
        cu!("cuFuncSetCacheConfig", kernel(function)?, config)
    }

    pub fn cudaFuncSetSharedMemConfig([function, config]: [usize; 2]) -> Answer {
        cu!("cuFuncSetSharedMemConfig", kernel(function)?, config)
    }

    pub fn cudaFuncGetName([to, function]: [usize; 2]) -> Answer {
        cu!("cuFuncGetName", to, kernel(function)?)
    }

    pub fn cudaFuncGetParamInfo([function, index, offset, size]: [usize; 4]) -> Answer {
        cu!("cuFuncGetParamInfo", kernel(function)?, index, offset, size)
    }

    pub fn cudaFuncGetParamCount([function, to]: [usize; 2]) -> Answer {
        cu!("cuFuncGetParamCount", kernel(function)?, to)
    }

    pub fn cudaOccupancyMaxActiveBlocksPerMultiprocessor([to, function, block, shared]: [usize; 4]) -> Answer {
        cu!("cuOccupancyMaxActiveBlocksPerMultiprocessor", to, kernel(function)?, block, shared)
    }

    pub fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        [to, function, block, shared, flags]: [usize; 5],
    ) -> Answer {
        cu!("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", to, kernel(function)?, block, shared, flags)
    }

    pub fn cudaOccupancyAvailableDynamicSMemPerBlock([to, function, blocks, block]: [usize; 4]) -> Answer {
        cu!("cuOccupancyAvailableDynamicSMemPerBlock", to, kernel(function)?, blocks, block)
    }

    pub fn cudaStreamUpdateCaptureDependencies_12([stream, list, count, flags]: [usize; 4]) -> Answer {
        cu!("cuStreamUpdateCaptureDependencies_v2", stream, list, 0, count, flags)
    }

    pub fn cudaStreamGetCaptureInfo_12([stream, status, id]: [usize; 3]) -> Answer {
        cu!("cuStreamGetCaptureInfo_v3", stream, status, id, 0, 0, 0, 0)
    }

    pub fn cudaEventCreate([to]: [usize; 1]) -> Answer {
        cu!("cuEventCreate", to, 0)
    }

    pub fn cudaStreamCreate([to]: [usize; 1]) -> Answer {
        cu!("cuStreamCreate", to, 0)
    }
}
