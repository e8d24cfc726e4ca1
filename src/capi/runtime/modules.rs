//! Modules: machine code, its kernels and variables.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU64};
use super::handles::{DEVICES, KERNELS, Loaded, MODULES, unload};
use super::opaque::{tegrarm_device, tegrarm_kernel, tegrarm_module};
use super::pointers::{bytes, give, give_any, present, text};
use crate::runtime::module::Module;
use crate::status::RmResult;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Loads a cubin: machine code of NVRTC, ptxas or nvJitLink for exactly this GPU (sm_87 on Orin).
///
/// `image` is not kept. `*module` is a new handle; unload it with `tegrarm_module_unload`. Errors: 0x57 no such
/// device, 0x3D NULL, 0x1F a file that cannot be loaded (`tegrarm_last_error` names section and offset), 0x51 out of
/// memory.
///
/// # Safety
/// `image` is valid for reads of `size` bytes; `module` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_load(
    device: *mut tegrarm_device,
    image: *const c_void,
    size: usize,
    module: *mut *mut tegrarm_module,
) -> NV_STATUS {
    status(|| {
        present(module, "module")?;
        let device = DEVICES.get(device)?;
        // SAFETY: `image` is NULL or valid for reads of `size` bytes, as `tegrarm_module_load` asks of its caller.
        let loaded = device.load(&unsafe { bytes(image, size, "image") }?)?;
        let handle = MODULES.insert(Loaded { module: loaded, kernels: Vec::new() })?;
        // SAFETY: `module` is not NULL and so valid for writes, as `tegrarm_module_load` asks of its caller.
        unsafe { give(module, handle, "module") }
    })
}

/// Unloads a module and its kernels, after the work given so far. Errors: 0x57 no such module.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_module_unload(module: *mut tegrarm_module) -> NV_STATUS {
    status(|| MODULES.remove(module).map(unload))
}

/// Finds a kernel by its name (`extern "C"`, or mangled). `*kernel` is a new handle that lives as long as the module.
/// Errors: 0x57 no such module, or no such kernel (`tegrarm_last_error` names those there are), 0x3D NULL.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `kernel` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_kernel(
    module: *mut tegrarm_module,
    name: *const c_char,
    kernel: *mut *mut tegrarm_kernel,
) -> NV_STATUS {
    status(|| {
        present(kernel, "kernel")?;
        // SAFETY: `name` is NULL or NUL-terminated, as `tegrarm_module_kernel` asks of its caller.
        let name = unsafe { text(name) }?;
        // Held until the kernel has its handle, so that the module cannot be unloaded meanwhile and leave it behind.
        let mut held = MODULES.hold_in_turn(module)?;
        let handle = KERNELS.insert(held.module.kernel(name)?)?;
        held.kernels.push(handle.addr());
        // SAFETY: `kernel` is not NULL and so valid for writes, as `tegrarm_module_kernel` asks of its caller.
        unsafe { give(kernel, handle, "kernel") }
    })
}

/// Finds a `__device__` or `__constant__` variable: `*address` is its GPU address, `*size` its bytes; either may be
/// NULL. Errors: 0x57 no such module or variable, 0x3D NULL.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `address` and `size` are NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_variable(
    module: *mut tegrarm_module,
    name: *const c_char,
    address: *mut NvU64,
    size: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `name` is NULL or NUL-terminated, as `tegrarm_module_variable` asks of its caller.
        let (at, len) = loaded(module)?.variable(unsafe { text(name) }?)?;
        // SAFETY: `address` and `size` are NULL or valid for writes, as `tegrarm_module_variable` asks of its caller.
        unsafe {
            give_any(address, at);
            give_any(size, len);
        }
        Ok(())
    })
}

/// Waits for the work given so far, then copies `size` bytes to the start of a variable. Errors: 0x57 no such module
/// or variable, 0x3D NULL, 0x20 more bytes than it has, 0x62 the device was stopped by a fault.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `from` is valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_write(
    module: *mut tegrarm_module,
    name: *const c_char,
    from: *const c_void,
    size: usize,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `name` is NULL or NUL-terminated; `from` is NULL or valid for reads of `size` bytes, as
        // `tegrarm_module_write` asks of its caller.
        let (name, from) = unsafe { (text(name)?, bytes(from, size, "from")?) };
        loaded(module)?.write_variable(name, &from)
    })
}

fn loaded(module: *const tegrarm_module) -> RmResult<Arc<Module>> {
    Ok(MODULES.hold_in_turn(module)?.module.clone())
}
