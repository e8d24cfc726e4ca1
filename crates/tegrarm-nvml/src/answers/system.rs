//! Versions, and names of processes.

use crate::abi::NVML_ERROR_NOT_FOUND;
use crate::pointers::{give, text};
use crate::result::Answer;
use crate::session::gpu;
use std::ffi::{c_char, c_int};

/// The version of CUDA that came with the driver whose Resource Manager libtegrarm offers.
const CUDA: c_int = 12080;

pub unsafe fn driver_version(to: *mut c_char, size: u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { text(to, size, &gpu()?.driver) }
}

pub unsafe fn nvml_version(to: *mut c_char, size: u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { text(to, size, &format!("{}.{}", CUDA / 1000, gpu()?.driver)) }
}

pub unsafe fn cuda_driver_version(to: *mut c_int) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, loaded_cuda().unwrap_or(CUDA)) }
}

/// What the driver says that this process has loaded already. None is loaded for the question.
fn loaded_cuda() -> Option<c_int> {
    // SAFETY: the name is NUL-terminated, and the flag has nothing loaded.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the library is loaded, and the name is NUL-terminated.
    let found = unsafe { libc::dlsym(library, c"cuDriverGetVersion".as_ptr()) };
    let mut version = 0;
    let said = !found.is_null() && {
        // SAFETY: CUDA's driver declares the function like this.
        let function: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(found) };
        // SAFETY: the number is a variable of ours.
        unsafe { function(&mut version) == 0 }
    };
    // SAFETY: this gives back the reference that dlopen took.
    unsafe { libc::dlclose(library) };
    said.then_some(version)
}

pub unsafe fn process_name(process: u32, to: *mut c_char, size: u32) -> Answer {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).map_err(|_| NVML_ERROR_NOT_FOUND)?;
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = match first {
        // A thread of the kernel has no command line.
        [] => std::fs::read(format!("/proc/{process}/comm")).map_err(|_| NVML_ERROR_NOT_FOUND)?,
        first => first.to_vec(),
    };
    let name = String::from_utf8_lossy(&name).trim_end().to_owned();
    // NVML cuts the name off where the buffer ends.
    let mut fit = name.len().min((size as usize).saturating_sub(1));
    while !name.is_char_boundary(fit) {
        fit -= 1;
    }
    // SAFETY: see `super`.
    unsafe { text(to, size, &name[..fit]) }
}
