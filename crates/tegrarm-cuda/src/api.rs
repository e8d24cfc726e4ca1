//! The functions of `libtegrarm.so` that this library calls. They are found when cuInit is called.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Declares the table: a field for each function of tegrarm.h, with its type.
macro_rules! api {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $gives:ty;)*) => {
        /// The functions, by their names in tegrarm.h without `tegrarm_`.
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument: $kind),*) -> $gives,)*
        }

        impl Api {
            fn of(library: *mut c_void) -> Result<Api, String> {
                Ok(Api {
                    $($name: {
                        let at = symbol(library, concat!("tegrarm_", stringify!($name), "\0"))?;
                        // SAFETY: libtegrarm's function of this name has this type: include/tegrarm.h.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument: $kind),*) -> $gives>(at) }
                    },)*
                })
            }
        }
    };
}

api! {
    last_error(text: *mut c_char, len: usize) -> usize;
    status_name(status: u32) -> *const c_char;
    device_count(count: *mut u32) -> u32;
    device_profile(index: u32, profile: *mut c_void) -> u32;
    device_open(index: u32, device: *mut usize) -> u32;
    device_close(device: usize) -> u32;
    device_queue(device: usize, queue: *mut usize) -> u32;
    device_fault(device: usize, fault: *mut c_void) -> u32;
    device_stop(device: usize, stopped: *mut u32) -> u32;
    device_limit(device: usize, limit: u32, value: *mut u64) -> u32;
    device_set_limit(device: usize, limit: u32, value: u64) -> u32;
    device_memory(device: usize, available: *mut u64, total: *mut u64) -> u32;
    buffer_alloc(device: usize, size: u64, flags: u32, buffer: *mut usize) -> u32;
    buffer_import_pages(device: usize, pages: usize, size: u64, flags: u32, buffer: *mut usize) -> u32;
    buffer_export(buffer: usize, fd: *mut c_int, offset: *mut u64) -> u32;
    buffer_free(buffer: usize) -> u32;
    buffer_address(buffer: usize, pointer: *mut usize, address: *mut u64) -> u32;
    module_load(device: usize, image: *const u8, size: usize, module: *mut usize) -> u32;
    module_unload(module: usize) -> u32;
    module_kernel(module: usize, name: *const c_char, kernel: *mut usize) -> u32;
    module_variable(module: usize, name: *const c_char, address: *mut u64, size: *mut u64) -> u32;
    module_buffer(module: usize, name: *const c_char, buffer: *mut usize) -> u32;
    kernel_attributes(kernel: usize, attributes: *mut c_void) -> u32;
    kernel_parameter(kernel: usize, index: u32, offset: *mut u32, size: *mut u32) -> u32;
    kernel_occupancy(kernel: usize, block: *const u32, shared: u32, blocks: *mut u32) -> u32;
    queue_create(device: usize, options: *const c_void, queue: *mut usize) -> u32;
    queue_destroy(queue: usize) -> u32;
    queue_fence(queue: usize, fence: *mut u64) -> u32;
    queue_after(queue: usize, fence: u64) -> u32;
    queue_launch(queue: usize, kernel: usize, grid: *const u32, block: *const u32, shared: u32, params: *const usize, count: u32, fence: *mut u64) -> u32;
    queue_copy(queue: usize, to: usize, to_offset: u64, from: usize, from_offset: u64, size: u64, fence: *mut u64) -> u32;
    queue_fill(queue: usize, buffer: usize, offset: u64, size: u64, value: u32, width: u32, fence: *mut u64) -> u32;
    queue_call(queue: usize, callback: unsafe extern "C" fn(u32, *mut c_void), user: *mut c_void, fence: *mut u64) -> u32;
    wait(device: usize, fence: u64, timeout_ns: u64) -> u32;
    fence_query(device: usize, fence: u64, passed: *mut bool) -> u32;
    event_create(device: usize, event: *mut usize) -> u32;
    event_destroy(event: usize) -> u32;
    event_record(event: usize, queue: usize, fence: *mut u64) -> u32;
    event_elapsed(start: usize, end: usize, elapsed_ns: *mut i64) -> u32;
}

fn symbol(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    // SAFETY: `library` is what dlopen gave, and `name` ends with a NUL.
    let at = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
    let plain = name.trim_end_matches('\0');
    if at.is_null() { Err(format!("libtegrarm.so has no {plain}: it is of another version")) } else { Ok(at) }
}

/// Where this library is, with symbolic links followed.
pub fn own_path() -> Option<PathBuf> {
    let mut info = libc::Dl_info { dli_fname: std::ptr::null(), dli_fbase: std::ptr::null_mut(), dli_sname: std::ptr::null(), dli_saddr: std::ptr::null_mut() };
    // SAFETY: the address is that of a function of this library, and `info` is valid for writes.
    let found = unsafe { libc::dladdr(own_path as *const () as *const c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gave the name of a file, which ends with a NUL.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// Loads a library. The loader keeps it for the rest of the process.
pub fn load(path: &Path) -> Result<*mut c_void, String> {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return Err("a path with a NUL".to_owned()) };
    // SAFETY: `name` is a string that ends with a NUL.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: after a failure dlerror gives a string, or NULL.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(format!("{} cannot be loaded", path.display()));
    }
    // SAFETY: it is not NULL, and ends with a NUL.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Finds a function of a library that [`load`] gave.
pub fn function(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `library` is what dlopen gave, and `name` ends with a NUL.
    let at = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

/// The functions of libtegrarm. The first call loads it: the file that `TEGRARM_LIB` names, the one beside this library, or the one that
/// the loader finds.
pub fn api() -> Result<&'static Api, &'static str> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    API.get_or_init(find).as_ref().map_err(String::as_str)
}

fn find() -> Result<Api, String> {
    let mut places: Vec<PathBuf> = std::env::var_os("TEGRARM_LIB").map(PathBuf::from).into_iter().collect();
    if let Some(folder) = own_path().and_then(|path| path.parent().map(Path::to_owned)) {
        let near = [folder.join("libtegrarm.so"), folder.join("libtegrarm.so.0")];
        places.extend(near.into_iter().filter(|path| path.exists()));
    }
    places.push(PathBuf::from("libtegrarm.so.0"));
    let mut failed = String::new();
    for place in &places {
        match load(place) {
            Ok(library) => return Api::of(library),
            Err(why) => failed = format!("{failed}; {why}"),
        }
    }
    Err(format!("libtegrarm.so was not found{failed}"))
}
