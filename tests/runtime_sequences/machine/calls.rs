//! The C functions of the runtime as functions of numbers. A handle is the number that C sees as a pointer.
//!
//! A function that writes a result gets a place with a number that no call gives out. When the call fails, that number
//! must still be there.

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Debug;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};
use tegrarm::capi::library::*;
use tegrarm::capi::runtime::buffers::*;
use tegrarm::capi::runtime::copies::*;
use tegrarm::capi::runtime::device::*;
use tegrarm::capi::runtime::events::*;
use tegrarm::capi::runtime::fences::*;
use tegrarm::capi::runtime::launch::*;
use tegrarm::capi::runtime::limits::*;
use tegrarm::capi::runtime::modules::*;
use tegrarm::capi::runtime::queues::*;
use tegrarm::capi::runtime::replay::record::*;
use tegrarm::capi::runtime::replay::*;
use tegrarm_abi::rm::status::NV_OK;

/// What a call answered, and what it wrote.
pub type Answer<T> = (u32, T);

/// A number that no call gives out.
const UNTOUCHED: u64 = 0x5a5a_5a5a_dead_dead;
/// The number of threads of every launch, and of the floats that they add at most.
pub const THREADS: u32 = 32;

fn handle<H>(number: usize) -> *mut H {
    without_provenance_mut(number)
}

fn out<T: Copy + PartialEq + Debug>(untouched: T, call: impl FnOnce(*mut T) -> u32) -> Answer<T> {
    let mut place = untouched;
    let status = call(&raw mut place);
    assert!(status == NV_OK || place == untouched, "a call that answered {status:#x} wrote {place:?}");
    (status, place)
}

fn number(call: impl FnOnce(*mut u64) -> u32) -> Answer<u64> {
    out(UNTOUCHED, call)
}

fn made<H>(call: impl FnOnce(*mut *mut H) -> u32) -> Answer<usize> {
    let (status, place) = out(handle(UNTOUCHED as usize), call);
    (status, place.addr())
}

fn descriptor(call: impl FnOnce(*mut i32) -> u32) -> Answer<Option<OwnedFd>> {
    let (status, fd) = out(-77, call);
    // SAFETY: the call has just made the descriptor, and gave it to nobody else.
    (status, (status == NV_OK).then(|| unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Initialises the library with a backend. Another sequence may have left it initialised.
pub fn init(backend: &CStr) -> u32 {
    let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: backend.as_ptr() };
    // SAFETY: the configuration and its string live until the call returns.
    unsafe { tegrarm_init(&raw const config) }
}

pub fn shutdown() -> u32 {
    tegrarm_shutdown()
}

/// The sentence of the last call that failed.
pub fn sentence() -> String {
    let mut text = [0 as c_char; 2048];
    // SAFETY: the memory has that many bytes, and the library ends the string with a NUL.
    unsafe {
        tegrarm_last_error(text.as_mut_ptr(), text.len());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

pub fn open(index: u32) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_device_open(index, to) })
}

pub fn close(device: usize) -> u32 {
    tegrarm_device_close(handle(device))
}

/// The cause of the fault that stopped a device.
pub fn fault(device: usize) -> Answer<u32> {
    let size = size_of::<tegrarm_fault>();
    let zero = [0; TEGRARM_FAULT_TEXT_SIZE];
    let sentence = [0; TEGRARM_FAULT_SENTENCE_SIZE];
    let (cause, text) = (u32::MAX, zero);
    let mut fault = tegrarm_fault { size, cause, code: 0, channel: 0, sm: 0, warp_error: 0, pc: 0, text, sentence };
    // SAFETY: the structure has the size that its first field says.
    let status = unsafe { tegrarm_device_fault(handle(device), &raw mut fault) };
    assert!(status == NV_OK || fault.cause == u32::MAX, "a call that failed wrote a fault");
    (status, fault.cause)
}

pub fn recover(device: usize) -> Answer<u32> {
    // SAFETY: the place is a variable.
    out(u32::MAX, |to| unsafe { tegrarm_device_recover(handle(device), to) })
}

pub fn limit(device: usize, which: u32) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|to| unsafe { tegrarm_device_limit(handle(device), which, to) })
}

pub fn set_limit(device: usize, which: u32, value: u64) -> u32 {
    tegrarm_device_set_limit(handle(device), which, value)
}

pub fn wait(device: usize, fence: u64, timeout: u64) -> u32 {
    tegrarm_wait(handle(device), fence, timeout)
}

pub fn wait_all(device: usize, fences: &[u64]) -> u32 {
    // SAFETY: the list has as many fences as the call is told.
    unsafe { tegrarm_wait_all(handle(device), fences.as_ptr(), fences.len() as u32, TEGRARM_WAIT_FOREVER) }
}

pub fn query(device: usize, fence: u64) -> Answer<bool> {
    let mut passed = false;
    // SAFETY: the place is a variable.
    let status = unsafe { tegrarm_fence_query(handle(device), fence, &raw mut passed) };
    assert!(status == NV_OK || !passed, "a call that failed says that a fence has passed");
    (status, passed)
}

pub fn pollable(device: usize, fence: u64) -> Answer<Option<OwnedFd>> {
    // SAFETY: the place is a variable.
    descriptor(|to| unsafe { tegrarm_fence_fd(handle(device), fence, to) })
}

pub fn alloc(device: usize, size: u64, flags: u32) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_buffer_alloc(handle(device), size, flags, to) })
}

pub fn import(device: usize, fd: i32, flags: u32) -> Answer<usize> {
    // SAFETY: the place is a variable; the descriptor is open during the call, or is none.
    made(|to| unsafe { tegrarm_buffer_import(handle(device), fd, flags, to) })
}

pub fn import_pages(device: usize, at: usize, size: u64, flags: u32) -> Answer<usize> {
    let pages = without_provenance_mut::<c_void>(at);
    // SAFETY: the place is a variable; the pages are the caller's, who keeps them until the buffer is freed.
    made(|to| unsafe { tegrarm_buffer_import_pages(handle(device), pages, size, flags, to) })
}

/// A descriptor, and where the buffer starts in its memory.
pub fn export(buffer: usize) -> Answer<(Option<OwnedFd>, u64)> {
    let mut offset = UNTOUCHED;
    // SAFETY: both places are variables.
    let (status, fd) = descriptor(|to| unsafe { tegrarm_buffer_export(handle(buffer), to, &raw mut offset) });
    assert!(status == NV_OK || offset == UNTOUCHED, "a call that failed wrote an offset");
    (status, (fd, offset))
}

pub fn part(buffer: usize, offset: u64, size: u64) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_buffer_part(handle(buffer), offset, size, to) })
}

pub fn free(buffer: usize) -> u32 {
    tegrarm_buffer_free(handle(buffer))
}

/// The addresses of a buffer: for the CPU, and for the GPU.
pub fn address(buffer: usize) -> Answer<(usize, u64)> {
    let mut pointer = without_provenance_mut(UNTOUCHED as usize);
    // SAFETY: both places are variables.
    let (status, address) = number(|to| unsafe { tegrarm_buffer_address(handle(buffer), &raw mut pointer, to) });
    (status, (pointer.addr(), address))
}

pub fn copy_in(buffer: usize, offset: u64, from: &[u8], size: u64) -> u32 {
    // SAFETY: the bytes are there, unless the model knows that the call is refused before it reads any.
    unsafe { tegrarm_copy_in(null_mut(), handle(buffer), offset, from.as_ptr().cast(), size, null_mut()) }
}

pub fn copy_out(buffer: usize, offset: u64, to: &mut [u8], size: u64) -> u32 {
    // SAFETY: as in `copy_in`.
    unsafe { tegrarm_copy_out(null_mut(), handle(buffer), offset, to.as_mut_ptr().cast(), size, null_mut()) }
}

/// A copy between buffers, each given as its handle and an offset. Without a queue the default one is used.
pub fn copy(queue: Option<usize>, to: (usize, u64), from: (usize, u64), size: u64) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|fence| unsafe {
        tegrarm_copy(handle(queue.unwrap_or(0)), handle(to.0), to.1, handle(from.0), from.1, size, fence)
    })
}

/// A fill: the range, the value and its size.
pub fn fill(queue: Option<usize>, buffer: usize, (at, len): (u64, u64), value: u32, size: u32) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|fence| unsafe { tegrarm_fill(handle(queue.unwrap_or(0)), handle(buffer), at, len, value, size, fence) })
}

pub fn queue_copy_in(queue: usize, buffer: usize, offset: u64, from: &[u8], size: u64) -> Answer<u64> {
    let from = from.as_ptr().cast();
    // SAFETY: the place is a variable; the bytes stay as they are until the fence has passed.
    number(|fence| unsafe { tegrarm_copy_in(handle(queue), handle(buffer), offset, from, size, fence) })
}

pub fn queue_copy_out(queue: usize, buffer: usize, offset: u64, to: &mut [u8], size: u64) -> Answer<u64> {
    let to = to.as_mut_ptr().cast();
    // SAFETY: the place is a variable; nobody looks at the bytes until the fence has passed.
    number(|fence| unsafe { tegrarm_copy_out(handle(queue), handle(buffer), offset, to, size, fence) })
}

pub fn own_queue(device: usize) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_device_queue(handle(device), to) })
}

pub fn create_queue(device: usize, options: &tegrarm_queue_options) -> Answer<usize> {
    // SAFETY: the options are a variable with their size, and so is the place.
    made(|to| unsafe { tegrarm_queue_create(handle(device), options, to) })
}

pub fn destroy_queue(queue: usize) -> u32 {
    tegrarm_queue_destroy(handle(queue))
}

pub fn queue_number(queue: usize) -> Answer<u32> {
    // SAFETY: the place is a variable.
    out(u32::MAX, |to| unsafe { tegrarm_queue_number(handle(queue), to) })
}

pub fn queue_fence(queue: usize) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|to| unsafe { tegrarm_fence(handle(queue), to) })
}

pub fn after(queue: usize, fence: u64) -> u32 {
    tegrarm_queue_after(handle(queue), fence)
}

pub fn load(device: usize, image: &[u8]) -> Answer<usize> {
    // SAFETY: the image has as many bytes as the call is told, and the place is a variable.
    made(|to| unsafe { tegrarm_module_load(handle(device), image.as_ptr().cast(), image.len(), to) })
}

pub fn unload(module: usize) -> u32 {
    tegrarm_module_unload(handle(module))
}

pub fn kernel(module: usize, name: &CStr) -> Answer<usize> {
    // SAFETY: the name ends with a NUL, and the place is a variable.
    made(|to| unsafe { tegrarm_module_kernel(handle(module), name.as_ptr(), to) })
}

/// A launch of `vecadd`: the addresses of two terms and of the sums, and how many floats there are. `count` is the
/// number of arguments that the call is told of.
pub struct Sum {
    pub at: [u64; 3],
    pub floats: u32,
    pub count: u32,
}

impl Sum {
    fn with<T>(&self, call: impl FnOnce(*const tegrarm_launch_config, *const *const c_void) -> T) -> T {
        let [a, b, to] = &self.at;
        let pointers: [*const c_void; 4] =
            [(&raw const *a).cast(), (&raw const *b).cast(), (&raw const *to).cast(), (&raw const self.floats).cast()];
        let config = tegrarm_launch_config {
            size: size_of::<tegrarm_launch_config>(),
            grid_dim: [1, 1, 1],
            block_dim: [THREADS, 1, 1],
            shared_mem_bytes: 0,
            flags: 0,
            param_sizes: null(),
            priority: 0,
            reserved: 0,
        };
        call(&raw const config, pointers.as_ptr())
    }
}

/// A launch on a queue, or on the default one.
pub fn launch(queue: Option<usize>, kernel: usize, sum: &Sum) -> Answer<u64> {
    number(|fence| {
        // SAFETY: each argument has the size of its parameter, and the place is a variable.
        sum.with(|config, arguments| unsafe {
            tegrarm_launch(handle(queue.unwrap_or(0)), handle(kernel), config, arguments, sum.count, fence)
        })
    })
}

pub fn create_replay(device: usize) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_replay_create(handle(device), to) })
}

pub fn destroy_replay(replay: usize) -> u32 {
    tegrarm_replay_destroy(handle(replay))
}

pub fn replay_launch(replay: usize, kernel: usize, sum: &Sum) -> Answer<u32> {
    out(u32::MAX, |to| {
        // SAFETY: each argument has the size of its parameter, and the place is a variable.
        sum.with(|config, arguments| unsafe {
            tegrarm_replay_launch(handle(replay), handle(kernel), config, arguments, sum.count, to)
        })
    })
}

pub fn replay_copy(replay: usize, to: (usize, u64), from: (usize, u64), size: u64) -> u32 {
    tegrarm_replay_copy(handle(replay), handle(to.0), to.1, handle(from.0), from.1, size)
}

/// Starts a run with `count` values, of which none is read by the sequences' replays.
pub fn submit(replay: usize, count: u32) -> u32 {
    let values = [0u64; 4];
    let at = if count == 0 { null() } else { values.as_ptr() };
    // SAFETY: there are as many values as the call is told of.
    unsafe { tegrarm_replay_submit(handle(replay), at, count) }
}

pub fn wait_for_run(replay: usize, timeout: u64) -> u32 {
    tegrarm_replay_wait(handle(replay), timeout)
}

pub fn create_event(device: usize) -> Answer<usize> {
    // SAFETY: the place is a variable.
    made(|to| unsafe { tegrarm_event_create(handle(device), to) })
}

pub fn destroy_event(event: usize) -> u32 {
    tegrarm_event_destroy(handle(event))
}

pub fn record(event: usize, queue: usize) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|to| unsafe { tegrarm_event_record(handle(event), handle(queue), to) })
}

pub fn time(event: usize) -> Answer<u64> {
    // SAFETY: the place is a variable.
    number(|to| unsafe { tegrarm_event_time(handle(event), to) })
}

pub fn elapsed(start: usize, end: usize) -> Answer<i64> {
    // SAFETY: the place is a variable.
    out(i64::MIN, |to| unsafe { tegrarm_event_elapsed(handle(start), handle(end), to) })
}

/// The address of a page that nobody has mapped.
pub fn nowhere() -> usize {
    without_provenance::<u8>(0x1000).addr()
}
