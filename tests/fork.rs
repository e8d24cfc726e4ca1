//! A forked child cannot use its parent's clients, and its end takes nothing from them.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use tegrarm::capi::library::*;
use tegrarm::capi::objects::*;
use tegrarm_abi::rm::alloc::NV_MEMORY_ALLOCATION_PARAMS;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use zerocopy::{FromZeros, IntoBytes};

fn alloc(client: u32, parent: u32, class: u32, params: Option<&mut [u8]>) -> (u32, u32) {
    let mut handle = 0;
    let (pointer, size) = params.map_or((std::ptr::null_mut(), 0), |p| (p.as_mut_ptr().cast(), p.len() as u32));
    // SAFETY: the pointers point to variables of this function that have the given sizes.
    let status = unsafe { rm_alloc(client, parent, &raw mut handle, class, pointer, size) };
    (status, handle)
}

fn last_error() -> String {
    let mut text = [0; 512];
    // SAFETY: the buffer belongs to this function and is as long as given.
    unsafe { tegrarm_last_error(text.as_mut_ptr(), text.len()) };
    // SAFETY: the library has just terminated the text.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

/// Runs in the child. Its exit code says which step failed. It makes no assertion, because a panic would report through
/// pipes and locks that belong to the parent's test harness.
fn child(client: u32, memory: u32) -> i32 {
    if rm_free(client, client, memory) != NV_ERR_INVALID_CLIENT {
        return 1;
    }
    if alloc(client, client, NV01_DEVICE_0, None).0 != NV_ERR_INVALID_CLIENT || !last_error().contains("forked") {
        return 2;
    }
    let (status, own) = alloc(0, 0, NV01_ROOT_CLIENT, None);
    if status != NV_OK || own == client || alloc(own, own, NV01_DEVICE_0, None).0 != NV_OK {
        return 3;
    }
    if tegrarm_shutdown() != NV_OK {
        return 4;
    }
    0
}

#[test]
fn a_child_starts_anew_and_the_parent_goes_on() {
    let nodes = std::env::var_os("TEGRARM_TEST_BACKEND").is_some_and(|name| name == "nvgpu");
    let name = if nodes { "nvgpu" } else { "sim" };
    let backend = CString::new(name).unwrap();
    let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: backend.as_ptr() };
    // SAFETY: the configuration outlives the call.
    assert_eq!(unsafe { tegrarm_init(&raw const config) }, NV_OK, "{}", last_error());
    // The child initialises itself from this variable. SAFETY: no other thread reads the environment meanwhile.
    unsafe { std::env::set_var("TEGRARM_BACKEND", name) };
    let (_, client) = alloc(0, 0, NV01_ROOT_CLIENT, None);
    let (_, device) = alloc(client, client, NV01_DEVICE_0, None);
    let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    params.size = 4096;
    let (status, memory) = alloc(client, device, NV01_MEMORY_LOCAL_USER, Some(params.as_mut_bytes()));
    assert_eq!(status, NV_OK, "{}", last_error());

    // SAFETY: the child calls the library and then _exit or exit, and it uses no lock of this test.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = child(client, memory);
        // The child calls exit and not _exit, so that handlers of the library run as they would in a Python worker.
        // SAFETY: this ends the process.
        unsafe { libc::exit(code) };
    }
    let mut code = 0;
    // SAFETY: this waits for the child of this test.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut code, 0) }, pid);
    assert_eq!(code, 0, "exit code {}", code >> 8);

    let mut address = std::ptr::null_mut();
    // SAFETY: the address points to a variable of this function.
    let mapped = unsafe { rm_map_memory(client, device, memory, 0, 4096, &raw mut address, 0) };
    assert_eq!(mapped, NV_OK, "{}", last_error());
    assert_eq!(rm_free(client, client, client), NV_OK);
    assert_eq!(tegrarm_shutdown(), NV_OK);
    assert_eq!(tegrarm_shutdown(), NV_OK, "idempotent");
}
