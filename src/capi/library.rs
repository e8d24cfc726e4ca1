//! The library's own functions.

use super::guard::{last_error, status};
use super::instance;
use super::objects::{NV_STATUS, NvU32};
use crate::rm::profile::Profile;
use crate::status::{RmResult, fail};
use std::ffi::{CStr, c_char, c_void};
use tegrarm_abi::rm::status::*;

/// What `tegrarm_init` takes instead of the environment. Zero it, set `size` to `sizeof`, fill in the rest; later
/// versions only append fields.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct tegrarm_config {
    /// `sizeof(struct tegrarm_config)` as the caller knows it.
    pub size: usize,
    /// As `TEGRARM_BACKEND`: `nvgpu`, `sim`, `record:PATH`, `replay:PATH`, `sim,record:PATH`. NULL: the environment's.
    pub backend: *const c_char,
}

/// What a scheduler wants to know about a device. Set `size` to `sizeof` before the call; at most that many bytes are
/// written, and `size` becomes the number that is valid. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_device_profile {
    /// In: bytes the caller has. Out: bytes that are valid.
    pub size: usize,
    /// PCI vendor id: 0x10DE.
    pub vendor: u32,
    /// Name, NUL-terminated.
    pub name: [c_char; 64],
    /// CPU and GPU use the same memory: pointers can be shared, copies are unnecessary.
    pub shared_memory: bool,
    /// Bytes of memory.
    pub memory_size: u64,
    /// Peak bytes per second between GPU and memory.
    pub local_bandwidth: u64,
    /// Peak bytes per second between CPU memory and GPU memory.
    pub transfer_bandwidth: u64,
    /// Has tensor cores.
    pub has_matrix_hw: bool,
    /// Can reduce across a warp in one instruction.
    pub has_simd_reduction: bool,
    /// Streaming multiprocessors that are enabled.
    pub compute_units: u32,
    /// Threads of a warp.
    pub simd_width: u32,
    /// Threads a block can have.
    pub max_threads_per_group: u32,
    /// Bytes of shared memory a block can have.
    pub shared_mem_size: u32,
    /// SM version, `major << 8 | minor`: 0x807 is sm_87.
    pub sm_version: u32,
    /// Highest clock in hertz.
    pub max_clock_hz: u64,
    /// Identifier, the same as RM's GID control gives.
    pub uuid: [u8; 16],
    /// The virtual Orin, not a board.
    pub simulated: bool,
    /// First GPU address of the local memory window (1 GiB) of VA spaces whose addresses the library chooses.
    pub local_window: u64,
    /// First GPU address of their shared memory window (1 GiB).
    pub shared_window: u64,
}

impl tegrarm_device_profile {
    fn of(profile: &Profile) -> tegrarm_device_profile {
        let mut name = [0; 64];
        for (to, from) in name[..63].iter_mut().zip(profile.name.bytes()) {
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
        }
    }
}

/// Version of the library, for example `"0.1.0"`. The string is static. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// A `tegrarm_config::size` above this is garbage.
const MOST_CONFIG: usize = 4096;

/// Initialises the library with a configuration, or from the environment when `config` is NULL. Optional: the first
/// call of any other function does the latter. Opens no device.
///
/// Thread-safe. Errors: 0x40 initialised already, 0x1F a bad configuration, 0x6A fields that a later version of the
/// library added are set, 0x6D a backend that this build does not have, 0x59 a recording that cannot be used.
///
/// # Safety
/// `config` is NULL or points at `config->size` bytes; its strings are NULL or NUL-terminated. Nothing is kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_init(config: *const tegrarm_config) -> NV_STATUS {
    status(|| {
        if config.is_null() {
            return instance::init(None);
        }
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*config).size).read_unaligned() };
        if size < size_of::<tegrarm_config>() {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "config->size is {size}: set it to sizeof(struct tegrarm_config)");
        }
        let known = size_of::<tegrarm_config>();
        if size > MOST_CONFIG {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "config->size is {size}: no version of the structure is that large");
        }
        // SAFETY: the caller promises `size` bytes; what is behind the fields known here may be anything.
        if (known..size).any(|at| unsafe { config.cast::<u8>().add(at).read() } != 0) {
            fail!(
                NV_ERR_LIB_RM_VERSION_MISMATCH,
                "config->size is {size} and fields behind the first {known} bytes are set: this library is {} and does not know them",
                env!("CARGO_PKG_VERSION")
            );
        }
        // SAFETY: `size` says that the field is there.
        let backend = unsafe { (&raw const (*config).backend).read_unaligned() };
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

/// Frees every client, puts the GPU's clock back and forgets the configuration. May be called at any time, any number
/// of times; a later call of another function initialises the library again. Thread-safe. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_shutdown() -> NV_STATUS {
    status(|| {
        instance::shutdown();
        Ok(())
    })
}

/// Name of a status, for example `"NV_ERR_INVALID_CLASS"`; `"Unknown"` for a number that has none. The string is
/// static. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_status_name(status: NV_STATUS) -> *const c_char {
    names().iter().find(|(value, _)| *value == status).map_or(c"Unknown", |(_, name)| name.as_c_str()).as_ptr()
}

/// The names with their NULs, made once.
fn names() -> &'static [(u32, std::ffi::CString)] {
    static NAMES: once_cell::sync::Lazy<Vec<(u32, std::ffi::CString)>> = once_cell::sync::Lazy::new(|| {
        let entry =
            |c: &tegrarm_abi::layout::Const| Some((u32::try_from(c.value).ok()?, std::ffi::CString::new(c.name).ok()?));
        STATUS_CONSTS.iter().filter_map(entry).collect()
    });
    &NAMES
}

/// The sentence of the last call that failed on this thread: what went wrong, with names, numbers and what to do.
///
/// Writes at most `len` bytes, NUL included, and returns the number needed for all of it; 1 (the NUL) when nothing
/// failed yet. `buf` may be NULL when `len` is 0. A later success does not clear it.
///
/// # Safety
/// `buf` is valid for writes of `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_last_error(buf: *mut c_char, len: usize) -> usize {
    last_error(|sentence| {
        if !buf.is_null() && len > 0 {
            let fit = cut(sentence, len - 1);
            // SAFETY: `fit.len() < len`, and the caller promises `len` bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(fit.as_ptr(), buf.cast::<u8>(), fit.len());
                buf.add(fit.len()).write(0);
            }
        }
        sentence.len() + 1
    })
}

/// The longest start of `text` that fits, without half a character at its end.
fn cut(text: &str, room: usize) -> &str {
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Number of GPUs. Thread-safe. Errors: 0x3D `count` is NULL, otherwise why there is none.
///
/// # Safety
/// `count` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_count(count: *mut NvU32) -> NV_STATUS {
    status(|| {
        if count.is_null() {
            fail!(NV_ERR_INVALID_POINTER, "count is NULL");
        }
        let number = instance::get()?.device_count()?;
        // SAFETY: not NULL, so valid for writes, as this function asks of its caller.
        unsafe { count.write_unaligned(number) };
        Ok(())
    })
}

/// Figures of one GPU. `out->size` says how many bytes the caller has.
///
/// Thread-safe. Errors: 0x3D `out` is NULL, 0x3A `out->size` is too small for any version, 0x26 no such device.
///
/// # Safety
/// `out` is NULL or points at `out->size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_profile(index: NvU32, out: *mut tegrarm_device_profile) -> NV_STATUS {
    status(|| {
        if out.is_null() {
            fail!(NV_ERR_INVALID_POINTER, "out is NULL");
        }
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*out).size).read_unaligned() };
        let least = std::mem::offset_of!(tegrarm_device_profile, local_window);
        if size < least {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "out->size is {size}: set it to sizeof(struct tegrarm_device_profile)");
        }
        let mut profile = tegrarm_device_profile::of(&instance::get()?.device_profile(index)?);
        profile.size = size.min(size_of::<tegrarm_device_profile>());
        // SAFETY: at most `size` bytes, which the caller promises to have.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const profile).cast::<c_void>().cast::<u8>(), out.cast(), profile.size)
        };
        Ok(())
    })
}
