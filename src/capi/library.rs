//! The library's own functions.

use super::guard::{last_error, status};
use super::instance;
use super::objects::{NV_STATUS, NvU32};
use super::runtime::pointers::extended;
use once_cell::race::OnceBox;
use std::ffi::{CStr, c_char, c_void};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::profile::Profile;
use tegrarm_rm::status::{RmResult, fail};

/// What `tegrarm_init` takes in place of the environment. Set everything to 0, set `size` to
/// `sizeof(struct tegrarm_config)`, and then fill in the other fields. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_config {
    /// The size of the structure as the caller knows it.
    pub size: usize,
    /// What the environment variable `TEGRARM_BACKEND` would say: `nvgpu`, `sim`, `record:PATH`, `replay:PATH` or
    /// `sim,record:PATH`. With NULL the variable decides.
    pub backend: *const c_char,
}

/// NVIDIA's PCI vendor number, 0x10DE, for `tegrarm_device_profile.vendor`.
pub const TEGRARM_VENDOR_NVIDIA: u32 = 0x10DE;
/// Bytes of `tegrarm_device_profile.name`, with its NUL.
pub const TEGRARM_DEVICE_NAME_SIZE: usize = 64;

const _: () = assert!(TEGRARM_VENDOR_NVIDIA == tegrarm_rm::rm::profile::VENDOR);

/// The figures of a GPU that a scheduler needs. Set `size` to `sizeof(struct tegrarm_device_profile)` before the call.
/// At most that many bytes are written. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_device_profile {
    /// Before the call, how many bytes the caller has. After it, how many bytes are valid.
    pub size: usize,
    /// The PCI vendor number: `TEGRARM_VENDOR_NVIDIA`.
    pub vendor: u32,
    /// The name, with a NUL at its end.
    pub name: [c_char; TEGRARM_DEVICE_NAME_SIZE],
    /// True if the CPU and the GPU use the same memory. Pointers can be shared, and copies are not necessary.
    pub shared_memory: bool,
    /// How many bytes of memory there are.
    pub memory_size: u64,
    /// How many bytes per second go between the GPU and its memory at most.
    pub local_bandwidth: u64,
    /// How many bytes per second go between the memory of the CPU and that of the GPU at most.
    pub transfer_bandwidth: u64,
    /// True if the GPU has tensor cores.
    pub has_matrix_hw: bool,
    /// True if one instruction can reduce over a warp.
    pub has_simd_reduction: bool,
    /// How many streaming multiprocessors (SMs) are enabled.
    pub compute_units: u32,
    /// How many threads a warp has.
    pub simd_width: u32,
    /// How many threads a block can have.
    pub max_threads_per_group: u32,
    /// How many bytes of shared memory a block can have.
    pub shared_mem_size: u32,
    /// The SM version, `major << 8 | minor`. For sm_87, major is 8 and minor is 7.
    pub sm_version: u32,
    /// The highest clock of the GPU in hertz.
    pub max_clock_hz: u64,
    /// The identifier of the GPU, as the control `NV2080_CTRL_CMD_GPU_GET_GID_INFO` gives it.
    pub uuid: [u8; 16],
    /// True for a simulated GPU, false for a board.
    pub simulated: bool,
    /// The GPU address at which kernels see their local memory, in every address space whose addresses the library
    /// chooses. The window has 1 GiB.
    pub local_window: u64,
    /// The GPU address at which kernels see their shared memory in these address spaces. The window has 1 GiB.
    pub shared_window: u64,
    /// How many bytes per second can be copied from memory of the program into a buffer.
    pub copy_in_bandwidth: u64,
    /// How many bytes per second can be copied from a buffer into memory of the program.
    pub copy_out_bandwidth: u64,
    /// Operations per second with 32-bit floating-point numbers, without tensor cores. A multiply-add is two operations.
    pub scalar_rate_float32: u64,
    /// Operations per second with 16-bit floating-point numbers, without tensor cores.
    pub scalar_rate_float16: u64,
    /// Operations per second with 32-bit integers.
    pub scalar_rate_int32: u64,
    /// Operations per second of the tensor cores with 16-bit floating-point numbers, without sparsity, or 0.
    pub matrix_rate_float16: u64,
    /// Operations per second of the tensor cores with bfloat16 numbers, without sparsity, or 0.
    pub matrix_rate_bfloat16: u64,
    /// Operations per second of the tensor cores with 8-bit integers, without sparsity, or 0.
    pub matrix_rate_int8: u64,
    /// Nanoseconds that each of many launches takes if the program does not wait between them. 0 if it was not measured.
    pub launch_latency_ns: u64,
    /// True if the rates, the bandwidths and the latency were measured, as `tegrarm_device_measure` does. False if they follow from
    /// the design of the GPU; no program reaches those completely.
    pub measured: bool,
}

impl tegrarm_device_profile {
    pub(super) fn of(profile: &Profile) -> tegrarm_device_profile {
        let mut name = [0; TEGRARM_DEVICE_NAME_SIZE];
        for (to, from) in name[..TEGRARM_DEVICE_NAME_SIZE - 1].iter_mut().zip(profile.name.bytes()) {
            *to = from as c_char;
        }
        tegrarm_device_profile {
            size: size_of::<tegrarm_device_profile>(),
            vendor: profile.vendor,
            name,
            shared_memory: true,
            memory_size: profile.memory_size,
            local_bandwidth: profile.local_bandwidth,
            transfer_bandwidth: profile.transfer_bandwidth,
            has_matrix_hw: profile.has_matrix_hw,
            has_simd_reduction: profile.has_simd_reduction,
            compute_units: profile.compute_units,
            simd_width: profile.simd_width,
            max_threads_per_group: profile.max_threads_per_group,
            shared_mem_size: profile.shared_mem_size,
            sm_version: profile.sm_version,
            max_clock_hz: profile.max_clock_hz,
            uuid: profile.uuid,
            simulated: profile.simulated,
            local_window: profile.local_window,
            shared_window: profile.shared_window,
            copy_in_bandwidth: profile.copy_in_bandwidth,
            copy_out_bandwidth: profile.copy_out_bandwidth,
            scalar_rate_float32: profile.rates.scalar_float32,
            scalar_rate_float16: profile.rates.scalar_float16,
            scalar_rate_int32: profile.rates.scalar_int32,
            matrix_rate_float16: profile.rates.matrix_float16,
            matrix_rate_bfloat16: profile.rates.matrix_bfloat16,
            matrix_rate_int8: profile.rates.matrix_int8,
            launch_latency_ns: profile.launch_latency_ns,
            measured: profile.measured,
        }
    }
}

/// Returns the version of the library, for example `"0.1.0"`. The string is static. The call never fails.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Initialises the library with a configuration, or from the environment if `config` is NULL.
///
/// The call is optional: without it, the first call that needs the Resource Manager initialises the library from the
/// environment. It opens no device. Nothing at `config` is used after the call.
///
/// Errors:
/// - `NV_ERR_INVALID_STATE`: the library is initialised already. Call `tegrarm_shutdown` first.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `config->size` is smaller than the structure, or larger than any version of it can
///   be.
/// - `NV_ERR_LIB_RM_VERSION_MISMATCH`: a field is set that a later version of the library added.
/// - `NV_ERR_INVALID_ARGUMENT`: `config->backend`, or an environment variable that starts with `TEGRARM_`, has a value
///   that it cannot have.
/// - `NV_ERR_FEATURE_NOT_ENABLED`: this build of the library does not have the backend.
/// - `NV_ERR_OPERATING_SYSTEM`: a recording cannot be read or written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_init(config: *const tegrarm_config) -> NV_STATUS {
    status(|| {
        if config.is_null() {
            return instance::init(None);
        }
        // SAFETY: `config` is valid for `config->size` bytes, as `tegrarm_init` asks of its caller.
        let backend = unsafe { extended(config, "config") }?.backend;
        // SAFETY: `backend` is NULL or NUL-terminated, as `tegrarm_init` asks of its caller.
        let backend = unsafe { text(backend) }?;
        instance::init(backend)
    })
}

/// # Safety
/// `p` is NULL or NUL-terminated, and stays so for as long as the result lives.
unsafe fn text<'a>(p: *const c_char) -> RmResult<Option<&'a str>> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: `p` is not NULL and so NUL-terminated, as this function asks of its caller.
    match unsafe { CStr::from_ptr(p) }.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => fail!(NV_ERR_INVALID_ARGUMENT, "config->backend is not UTF-8"),
    }
}

/// Frees every client, closes every device, puts the GPU's clock back and forgets the configuration.
///
/// A program may call it at any time and any number of times. A later call of another function initialises the library
/// again. Errors: none of its own, only those that every function may return (`NV_ERR_GENERIC` and
/// `NV_ERR_INVALID_STATE` after a bug).
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_shutdown() -> NV_STATUS {
    status(|| {
        instance::shutdown();
        Ok(())
    })
}

/// Returns the name of a status, for example `"NV_ERR_INVALID_CLASS"`, or `"Unknown"` for a number without a name. The
/// string is static. The call never fails.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_status_name(status: NV_STATUS) -> *const c_char {
    names().iter().find(|(value, _)| *value == status).map_or(c"Unknown", |(_, name)| name.as_c_str()).as_ptr()
}

/// The names with a NUL at the end of each. They are made once.
fn names() -> &'static [(u32, std::ffi::CString)] {
    static NAMES: OnceBox<Vec<(u32, std::ffi::CString)>> = OnceBox::new();
    NAMES.get_or_init(|| {
        let entry =
            |c: &tegrarm_abi::layout::Const| Some((u32::try_from(c.value).ok()?, std::ffi::CString::new(c.name).ok()?));
        Box::new(STATUS_CONSTS.iter().filter_map(entry).collect())
    })
}

/// Copies the sentence of the last call that failed in this thread. It says what went wrong, with names and numbers,
/// and what to do about it.
///
/// At most `len` bytes are written, with the terminating NUL. `buf` may be NULL if `len` is 0. The result is the number
/// of bytes that the whole sentence needs, with its NUL. It is 1 if no call has failed in this thread. A later call
/// that succeeds does not change the sentence. The call never fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_last_error(buf: *mut c_char, len: usize) -> usize {
    last_error(|sentence| {
        if !buf.is_null() && len > 0 {
            let fit = cut(sentence, len - 1);
            // SAFETY: `fit` is shorter than `len`, and `buf` is valid for `len` bytes, as `tegrarm_last_error` asks of its
            // caller.
            unsafe {
                std::ptr::copy_nonoverlapping(fit.as_ptr(), buf.cast::<u8>(), fit.len());
                buf.add(fit.len()).write(0);
            }
        }
        sentence.len() + 1
    })
}

/// The longest start of `text` that fits into `room` bytes and does not end in the middle of a character.
fn cut(text: &str, room: usize) -> &str {
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Writes the number of GPUs to `*count`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `count` is NULL.
/// - `NV_ERR_CARD_NOT_PRESENT`: there is no GPU, or its driver is not loaded.
/// - `NV_ERR_INSUFFICIENT_PERMISSIONS`: the user may not open the GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_count(count: *mut NvU32) -> NV_STATUS {
    status(|| {
        if count.is_null() {
            fail!(NV_ERR_INVALID_POINTER, "count is NULL");
        }
        let number = instance::get()?.device_count()?;
        // SAFETY: `count` is not NULL, so it is valid for writes, as this function asks of its caller.
        unsafe { count.write_unaligned(number) };
        Ok(())
    })
}

/// Writes a description of the drivers' interface as text, for a report: the GPU's characteristics as bytes, the
/// release that they are taken for, and which allocation command nvmap knows. It also works with drivers that are not
/// known, where no other function works. At most `len` bytes are written, NUL included, and `*needed` becomes the
/// number of bytes that the whole text needs. `buf` may be NULL when `len` is 0.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `needed` is NULL, or `buf` is and `len` is not 0.
/// - `NV_ERR_CARD_NOT_PRESENT`, `NV_ERR_INSUFFICIENT_PERMISSIONS`: the GPU cannot be opened, as in
///   `tegrarm_device_count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_driver_report(buf: *mut c_char, len: usize, needed: *mut usize) -> NV_STATUS {
    status(|| {
        if needed.is_null() || (buf.is_null() && len > 0) {
            fail!(NV_ERR_INVALID_POINTER, "buf or needed is NULL");
        }
        let text = instance::get()?.driver_report()?;
        if len > 0 {
            let fit = cut(&text, len - 1);
            // SAFETY: `fit` is shorter than `len`, and `buf` is valid for `len` bytes, as `tegrarm_driver_report` asks of its
            // caller.
            unsafe {
                std::ptr::copy_nonoverlapping(fit.as_ptr(), buf.cast::<u8>(), fit.len());
                buf.add(fit.len()).write(0);
            }
        }
        // SAFETY: `needed` is not NULL, so it is valid for writes, as this function asks of its caller.
        unsafe { needed.write_unaligned(text.len() + 1) };
        Ok(())
    })
}

/// Writes the figures of GPU `index` to `*out`. `out->size` says how many bytes the caller has, and becomes the number
/// of bytes that are valid.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `out` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `out->size` is too small for any version of the structure.
/// - `NV_ERR_INVALID_DEVICE`: there is no GPU `index`. A Tegra has one, GPU 0.
/// - `NV_ERR_CARD_NOT_PRESENT`, `NV_ERR_INSUFFICIENT_PERMISSIONS`: the GPU cannot be opened, as in
///   `tegrarm_device_count`.
/// - `NV_ERR_OPERATING_SYSTEM`: Linux does not say how much memory there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_profile(index: NvU32, out: *mut tegrarm_device_profile) -> NV_STATUS {
    status(|| {
        if out.is_null() {
            fail!(NV_ERR_INVALID_POINTER, "out is NULL");
        }
        // SAFETY: every version of the structure has the first field.
        let size = unsafe { (&raw const (*out).size).read_unaligned() };
        let least = std::mem::offset_of!(tegrarm_device_profile, local_window);
        if size < least {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "out->size is {size}: set it to sizeof(struct tegrarm_device_profile)");
        }
        let mut profile = tegrarm_device_profile::of(&instance::get()?.device_profile(index)?);
        profile.size = size.min(size_of::<tegrarm_device_profile>());
        // SAFETY: at most `out->size` bytes are written. `out` is valid for that many, as `tegrarm_device_profile` asks of
        // its caller.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const profile).cast::<c_void>().cast::<u8>(), out.cast(), profile.size)
        };
        Ok(())
    })
}
