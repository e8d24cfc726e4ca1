//! The runtime through its C functions: a device of this process, and the sentence of the last error.
#![allow(unsafe_code)] // the C functions take pointers

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use tegrarm::capi::library::{tegrarm_config, tegrarm_init, tegrarm_last_error};
use tegrarm::capi::runtime::device::tegrarm_device_open;
use tegrarm::capi::runtime::launch::tegrarm_launch_config;
use tegrarm::capi::runtime::opaque::tegrarm_device;
use tegrarm_abi::rm::status::NV_OK;

/// The sentence of this thread's last error.
pub fn last_sentence() -> String {
    let mut text = [0 as c_char; 1024];
    // SAFETY: the memory has that many bytes, and the library ends the string with a NUL.
    unsafe {
        tegrarm_last_error(text.as_mut_ptr(), text.len());
        CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_owned()
    }
}

/// Opens a device of the simulator in this process.
pub fn open_c_device() -> *mut tegrarm_device {
    let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: c"sim".as_ptr() };
    let mut device = null_mut();
    // SAFETY: the configuration and the place of the handle are variables of this function.
    unsafe {
        // Another test may have initialised the library already.
        tegrarm_init(&config);
        assert_eq!(tegrarm_device_open(0, &mut device), NV_OK, "{}", last_sentence());
    }
    device
}

/// A launch's configuration with these sizes of the grid and of its blocks.
pub fn launch_config(grid_dim: [u32; 3], block_dim: [u32; 3]) -> tegrarm_launch_config {
    tegrarm_launch_config {
        size: size_of::<tegrarm_launch_config>(),
        grid_dim,
        block_dim,
        shared_mem_bytes: 0,
        flags: 0,
        param_sizes: std::ptr::null(),
        priority: 0,
        reserved: 0,
    }
}
