//! A forked child cannot use its parent's clients, devices and memory, and its end takes nothing from them.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tegrarm::capi::library::*;
use tegrarm::capi::objects::*;
use tegrarm::capi::runtime::buffers::*;
use tegrarm::capi::runtime::copies::*;
use tegrarm::capi::runtime::device::*;
use tegrarm::capi::runtime::events::*;
use tegrarm::capi::runtime::fences::*;
use tegrarm::capi::runtime::opaque::*;
use tegrarm::capi::runtime::queues::*;
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

/// The lock of the library, which a process has only once. Each test shuts the library down.
fn library() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let nodes = std::env::var_os("TEGRARM_TEST_BACKEND").is_some_and(|name| name == "nvgpu");
    let name = if nodes { "nvgpu" } else { "sim" };
    let backend = CString::new(name).unwrap();
    let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: backend.as_ptr() };
    // SAFETY: the configuration outlives the call.
    assert_eq!(unsafe { tegrarm_init(&raw const config) }, NV_OK, "{}", last_error());
    // A child initialises itself from this variable. SAFETY: no other thread reads the environment meanwhile.
    unsafe { std::env::set_var("TEGRARM_BACKEND", name) };
    turn
}

#[test]
fn a_child_starts_anew_and_the_parent_goes_on() {
    let _turn = library();
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

/// An open device of this process, and its objects.
struct Open {
    device: *mut tegrarm_device,
    buffer: *mut tegrarm_buffer,
    queue: *mut tegrarm_queue,
    event: *mut tegrarm_event,
    memory: *mut c_void,
}

fn open() -> Open {
    let mut open =
        Open { device: null_mut(), buffer: null_mut(), queue: null_mut(), event: null_mut(), memory: null_mut() };
    // SAFETY: the places of the results are variables of this function.
    unsafe {
        assert_eq!(tegrarm_device_open(0, &mut open.device), NV_OK, "{}", last_error());
        assert_eq!(tegrarm_buffer_alloc(open.device, 8192, 0, &mut open.buffer), NV_OK, "{}", last_error());
        assert_eq!(tegrarm_buffer_address(open.buffer, &mut open.memory, null_mut()), NV_OK);
        assert_eq!(tegrarm_queue_create(open.device, std::ptr::null(), &mut open.queue), NV_OK, "{}", last_error());
        assert_eq!(tegrarm_event_create(open.device, &mut open.event), NV_OK, "{}", last_error());
        open.memory.cast::<u64>().write_volatile(7);
    }
    open
}

/// Runs `child` in a forked child. Returns how the child ended and what it wrote to standard error. The child has no
/// other standard error and makes no core file.
fn forked(child: impl FnOnce() -> i32) -> (i32, String) {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the child calls functions that may be called after fork(2), functions of the library, and _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: the descriptors belong to this process, and the code after this call does not return to the test.
        unsafe {
            libc::dup2(writer.as_raw_fd(), 2);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::_exit(child());
        }
    }
    drop(writer);
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("text");
    let mut status = 0;
    // SAFETY: this waits for the child of this test.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    (status, said)
}

/// Makes every call of the runtime that is possible with the parent's handles. Each call has to give the same status,
/// and a sentence that says what to do. The result is the number of the first call that does not.
fn calls_of_a_child(open: &Open) -> i32 {
    let mut word = 0u64;
    let at = (&raw mut word).cast::<c_void>();
    let (mut fence, mut passed, mut again) = (0, false, null_mut());
    // SAFETY: the places of the results are variables of this function.
    let statuses = unsafe {
        [
            tegrarm_buffer_alloc(open.device, 4096, 0, &mut again),
            tegrarm_buffer_address(open.buffer, null_mut(), null_mut()),
            tegrarm_copy_in(null_mut(), open.buffer, 0, at, 8, null_mut()),
            tegrarm_copy_out(open.queue, open.buffer, 0, at, 8, &mut fence),
            tegrarm_fill(null_mut(), open.buffer, 0, 16, 1, 4, &mut fence),
            tegrarm_copy(open.queue, open.buffer, 0, open.buffer, 4096, 16, &mut fence),
            tegrarm_fence(open.queue, &mut fence),
            tegrarm_fence_query(open.device, 1, &mut passed),
            tegrarm_wait(open.device, 1, 0),
            tegrarm_event_record(open.event, open.queue, &mut fence),
            tegrarm_event_destroy(open.event),
            tegrarm_queue_destroy(open.queue),
            tegrarm_buffer_free(open.buffer),
            tegrarm_device_close(open.device),
        ]
    };
    let wrong = statuses.iter().position(|status| *status != NV_ERR_INVALID_CLIENT);
    match wrong {
        Some(at) => at as i32 + 1,
        None if !last_error().contains("forked") => 100,
        // The device that the child opens itself works.
        None => {
            let own = self::open();
            // SAFETY: the memory was mapped just now.
            let fresh = unsafe { own.memory.cast::<u64>().read_volatile() } == 7;
            if own.device != open.device && fresh && tegrarm_device_close(own.device) == NV_OK { 0 } else { 101 }
        }
    }
}

#[test]
fn a_child_that_uses_its_parents_device_is_refused() {
    let _turn = library();
    let open = open();
    let (status, said) = forked(|| calls_of_a_child(&open));
    assert_eq!(status, 0, "exit code {}: {said}", status >> 8);
    // SAFETY: the buffer belongs to the parent and is mapped.
    assert_eq!(unsafe { open.memory.cast::<u64>().read_volatile() }, 7);
    assert_eq!(tegrarm_device_close(open.device), NV_OK, "{}", last_error());
    assert_eq!(tegrarm_shutdown(), NV_OK);
}

#[test]
fn a_child_that_reads_its_parents_memory_is_told_so() {
    let _turn = library();
    let open = open();
    let memory = open.memory.cast::<u64>();
    // SAFETY: this access in the child is what the test checks.
    let (status, said) = forked(|| unsafe { memory.add(1).read_volatile() } as i32);
    assert_eq!(status & 0x7f, libc::SIGSEGV, "it ends as on a board: {said}");
    let place = format!("{:#x} lies in", memory as usize + 8);
    assert!(said.contains(&place) && said.contains(&format!("forked from process {}", std::process::id())), "{said}");
    // This checks a child of the child, and a fault that has nothing to do with the device.
    // SAFETY: this access is made in a child of the child, and is what the test checks.
    let grandchild = || forked(|| unsafe { memory.read_volatile() } as i32).1.contains("forked from");
    let (status, said) = forked(|| i32::from(grandchild()));
    assert_eq!(status >> 8, 1, "{status:#x} {said}");
    // SAFETY: this access is made in the child, and is what the test checks.
    let (status, said) = forked(|| unsafe { std::ptr::without_provenance::<i32>(64).read_volatile() });
    assert_eq!((status & 0x7f, said.contains("libtegrarm")), (libc::SIGSEGV, false), "{said}");
    // Memory that the parent has unmapped belongs to nobody, so a child may map something there.
    assert_eq!(tegrarm_device_close(open.device), NV_OK, "{}", last_error());
    let (status, said) = forked(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: the flags replace no mapping.
        let at = unsafe { libc::mmap(open.memory, 4096, libc::PROT_READ, flags, -1, 0) };
        i32::from(at != open.memory)
    });
    assert_eq!(status, 0, "{said}");
    assert_eq!(tegrarm_shutdown(), NV_OK);
}
