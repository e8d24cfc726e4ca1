//! Modules: machine code, its kernels and variables.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU64};
use super::handles::{BUFFERS, DEVICES, KERNELS, Known, Loaded, MODULES, unload};
use super::opaque::{tegrarm_buffer, tegrarm_device, tegrarm_kernel, tegrarm_module};
use super::pointers::{bytes, give, give_any, present, text};
use crate::runtime::device::buffer::Buffer;
use crate::runtime::device::module::Module;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use tegrarm_rm::status::RmResult;

/// Loads a cubin: machine code that NVRTC, ptxas or nvJitLink made for exactly this GPU, which is sm_87 on Orin.
///
/// `image` is the file, `size` bytes, and is not used after the call. `*module` is a new handle. Unload it with
/// `tegrarm_module_unload`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `module` or `image` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the file cannot be loaded. `tegrarm_last_error` names the section and the offset.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is more than `TEGRARM_IMAGE_SIZE`.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_load(
    device: *mut tegrarm_device,
    image: *const c_void,
    size: usize,
    module: *mut *mut tegrarm_module,
) -> NV_STATUS {
    status(|| {
        present(module, "module")?;
        let (device, device_handle) = (DEVICES.get(device)?, device.addr());
        // SAFETY: `image` is NULL or valid for reads of `size` bytes, as `tegrarm_module_load` asks of its caller.
        let loaded = device.load(&unsafe { bytes(image, size, "image") }?)?;
        let handle = MODULES.insert(Loaded { module: loaded, device: device_handle, kernels: Vec::new() })?;
        // SAFETY: `module` is not NULL and so valid for writes, as `tegrarm_module_load` asks of its caller.
        unsafe { give(module, handle, "module") }
    })
}

/// Unloads a module and its kernels when the work that the device was given before has finished. Their handles are
/// invalid afterwards.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `module` is not a loaded module.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_module_unload(module: *mut tegrarm_module) -> NV_STATUS {
    status(|| MODULES.remove(module).map(unload))
}

/// Finds a kernel by its name, which is mangled unless the kernel is `extern "C"`. `*kernel` is a new handle that lives
/// as long as the module.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `kernel` or `name` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `module` is not a loaded module, or it has no such kernel. `tegrarm_last_error` names
///   the kernels that it has.
/// - `NV_ERR_INVALID_ARGUMENT`: `name` is not UTF-8.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
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
        let handle = KERNELS.insert(Known { kernel: held.module.kernel(name)?, device: held.device })?;
        held.kernels.push(handle.addr());
        // SAFETY: `kernel` is not NULL and so valid for writes, as `tegrarm_module_kernel` asks of its caller.
        unsafe { give(kernel, handle, "kernel") }
    })
}

/// Finds a `__device__` or `__constant__` variable. `*address` is its GPU address, and `*size` is its size in bytes.
/// Each of the two may be NULL.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `name` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `module` is not a loaded module, or it has no such variable.
/// - `NV_ERR_INVALID_ARGUMENT`: `name` is not UTF-8.
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

/// Makes a buffer of a `__device__` or `__constant__` variable, for copies and fills of it. `*buffer` is a new handle. Free it
/// with `tegrarm_buffer_free`. The memory of the module stays until then, also if the module is unloaded before.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `name` or `buffer` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `module` is not a loaded module, or it has no such variable.
/// - `NV_ERR_INVALID_ARGUMENT`: `name` is not UTF-8, or the variable has no bytes.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_buffer(
    module: *mut tegrarm_module,
    name: *const c_char,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(buffer, "buffer")?;
        // SAFETY: `name` is NULL or NUL-terminated, as `tegrarm_module_buffer` asks of its caller.
        let made = Buffer::of_variable(&loaded(module)?, unsafe { text(name) }?)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_module_buffer` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(made)?, "buffer") }
    })
}

/// Waits for the work that the device was given before, then copies `size` bytes from `src` to the start of a variable.
/// The CPU copies.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `name` or `src` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `module` is not a loaded module, or it has no such variable.
/// - `NV_ERR_INVALID_ARGUMENT`: `name` is not UTF-8.
/// - `NV_ERR_INVALID_BASE`: the variable has fewer than `size` bytes.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_write(
    module: *mut tegrarm_module,
    name: *const c_char,
    src: *const c_void,
    size: usize,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `name` is NULL or NUL-terminated, as `tegrarm_module_write` asks of its caller.
        let name = unsafe { text(name) }?;
        let module = loaded(module)?;
        module.check_variable(name, size as u64)?;
        // SAFETY: `src` is NULL or valid for reads of `size` bytes, as `tegrarm_module_write` asks of its caller.
        module.write_variable(name, &unsafe { bytes(src, size, "src") }?)
    })
}

fn loaded(module: *const tegrarm_module) -> RmResult<Arc<Module>> {
    Ok(MODULES.hold_in_turn(module)?.module.clone())
}
