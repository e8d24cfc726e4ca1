//! libtegrarm as safe types: devices, buffers, queues, modules, kernels, events. They end what they own when they are dropped.
#![allow(unsafe_code)]

use crate::api::{Api, api};
use crate::numbers::*;
use crate::result::{Answer, Error};
use std::ffi::{CStr, CString, c_void};

/// A wait without a limit.
pub const FOREVER: u64 = u64::MAX;

/// Statuses of tegrarm_status.h, and the results of CUDA that they become. Every other status is CUDA_ERROR_UNKNOWN.
static STATUSES: &[(u32, u32)] = &[
    (0x05, CUDA_ERROR_NO_DEVICE),         // NV_ERR_CARD_NOT_PRESENT
    (0x1A, CUDA_ERROR_OUT_OF_MEMORY),     // NV_ERR_INSUFFICIENT_RESOURCES
    (0x1B, CUDA_ERROR_NOT_PERMITTED),     // NV_ERR_INSUFFICIENT_PERMISSIONS
    (0x1E, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_ADDRESS
    (0x1F, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_ARGUMENT
    (0x20, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_BASE
    (0x26, CUDA_ERROR_INVALID_DEVICE),    // NV_ERR_INVALID_DEVICE
    (0x2C, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_INDEX
    (0x2E, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_LIMIT
    (0x3D, CUDA_ERROR_INVALID_VALUE),     // NV_ERR_INVALID_POINTER
    (0x51, CUDA_ERROR_OUT_OF_MEMORY),     // NV_ERR_NO_MEMORY
    (0x55, CUDA_ERROR_NOT_READY),         // NV_ERR_NOT_READY
    (0x56, CUDA_ERROR_NOT_SUPPORTED),     // NV_ERR_NOT_SUPPORTED
    (0x57, CUDA_ERROR_INVALID_HANDLE),    // NV_ERR_OBJECT_NOT_FOUND
    (0x62, CUDA_ERROR_LAUNCH_FAILED),     // NV_ERR_RESET_REQUIRED; the context asks for the fault
    (0x63, CUDA_ERROR_ILLEGAL_STATE),     // NV_ERR_STATE_IN_USE
    (0x65, CUDA_ERROR_LAUNCH_TIMEOUT),    // NV_ERR_TIMEOUT
    (0x6E, CUDA_ERROR_LAUNCH_FAILED),     // NV_ERR_RESOURCE_LOST
];

/// The functions. cuInit has loaded them before any of these types exists.
fn it() -> &'static Api {
    match api() {
        Ok(api) => api,
        Err(why) => unreachable!("a handle exists, and libtegrarm does not: {why}"),
    }
}

/// A result of libtegrarm.
pub fn check(status: u32) -> Answer {
    if status == 0 { Ok(()) } else { Err(error(status)) }
}

#[cold]
fn error(status: u32) -> Error {
    let row = STATUSES.iter().find(|(number, _)| *number == status);
    let code = row.map_or(CUDA_ERROR_UNKNOWN, |(_, code)| *code);
    // SAFETY: the name of a status is a static string.
    let name = unsafe { CStr::from_ptr((it().status_name)(status)) };
    Error::new(code, format!("{}: {}", name.to_string_lossy(), last_error()))
}

/// The sentence of the last call that failed in this thread.
pub fn last_error() -> String {
    // SAFETY: NULL with the length 0 asks for the size alone.
    let size = unsafe { (it().last_error)(std::ptr::null_mut(), 0) };
    let mut text = vec![0u8; size];
    // SAFETY: `text` has room for `size` bytes.
    unsafe { (it().last_error)(text.as_mut_ptr().cast(), size) };
    String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(&text)).into_owned()
}

/// `struct tegrarm_device_profile`, as far as it is read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Profile {
    size: usize,
    vendor: u32,
    name: [u8; 64],
    shared_memory: bool,
    pub memory_size: u64,
    pub local_bandwidth: u64,
    pub transfer_bandwidth: u64,
    has_matrix_hw: bool,
    has_simd_reduction: bool,
    pub compute_units: u32,
    pub simd_width: u32,
    pub max_threads_per_group: u32,
    pub shared_mem_size: u32,
    pub sm_version: u32,
    pub max_clock_hz: u64,
    pub uuid: [u8; 16],
    pub simulated: bool,
}

impl Profile {
    /// The profile of a GPU.
    pub fn of(index: u32) -> Answer<Profile> {
        // SAFETY: all fields are numbers, for which zeroes are values.
        let mut profile: Profile = unsafe { std::mem::zeroed() };
        profile.size = size_of::<Profile>();
        // SAFETY: `profile` is valid for the bytes that its size names.
        check(unsafe { (it().device_profile)(index, (&raw mut profile).cast()) })?;
        Ok(profile)
    }

    /// The name of the GPU.
    pub fn name(&self) -> String {
        let len = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..len]).into_owned()
    }
}

/// How many GPUs there are.
pub fn count() -> Answer<u32> {
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    check(unsafe { (it().device_count)(&mut count) })?;
    Ok(count)
}

/// `struct tegrarm_fault`.
#[repr(C)]
struct FaultBytes {
    size: usize,
    cause: u32,
    code: u32,
    channel: u32,
    sm: u32,
    warp_error: u32,
    pc: u64,
    text: [u8; 256],
    sentence: [u8; 4096],
}

/// What stopped a device.
pub struct Fault {
    /// A value of `enum tegrarm_fault_cause`.
    pub cause: u32,
    /// The error register of the warp.
    pub warp_error: u32,
    /// The whole sentence.
    pub sentence: String,
}

/// An open device.
pub struct Device {
    handle: usize,
}

impl Device {
    /// Opens a GPU.
    pub fn open(index: u32) -> Answer<Device> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().device_open)(index, &mut handle) })?;
        Ok(Device { handle })
    }

    /// What stopped it, if something did.
    pub fn fault(&self) -> Answer<Option<Fault>> {
        // SAFETY: all fields are numbers, for which zeroes are values.
        let mut fault: Box<FaultBytes> = Box::new(unsafe { std::mem::zeroed() });
        fault.size = size_of::<FaultBytes>();
        // SAFETY: `fault` is valid for the bytes that its size names.
        check(unsafe { (it().device_fault)(self.handle, (&raw mut *fault).cast()) })?;
        if fault.cause == 0 {
            return Ok(None);
        }
        let len = fault.sentence.iter().position(|byte| *byte == 0).unwrap_or(0);
        let sentence = String::from_utf8_lossy(&fault.sentence[..len]).into_owned();
        Ok(Some(Fault { cause: fault.cause, warp_error: fault.warp_error, sentence }))
    }

    /// A limit.
    pub fn limit(&self, limit: u32) -> Answer<u64> {
        let mut value = 0;
        // SAFETY: `value` is valid for writes.
        check(unsafe { (it().device_limit)(self.handle, limit, &mut value) })?;
        Ok(value)
    }

    /// Changes a limit.
    pub fn set_limit(&self, limit: u32, value: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().device_set_limit)(self.handle, limit, value) })
    }

    /// How many bytes can be allocated, and how many there are.
    pub fn memory(&self) -> Answer<(u64, u64)> {
        let (mut available, mut total) = (0, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().device_memory)(self.handle, &mut available, &mut total) })?;
        Ok((available, total))
    }

    /// Waits for a fence.
    pub fn wait(&self, fence: u64, timeout_ns: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().wait)(self.handle, fence, timeout_ns) })
    }

    /// Whether a fence has passed.
    pub fn passed(&self, fence: u64) -> Answer<bool> {
        let mut passed = false;
        // SAFETY: `passed` is valid for writes.
        check(unsafe { (it().fence_query)(self.handle, fence, &mut passed) })?;
        Ok(passed)
    }

    /// The queue that it was opened with.
    pub fn queue(&self) -> Answer<Queue> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().device_queue)(self.handle, &mut handle) })?;
        Ok(Queue { handle, own: true })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A device that libtegrarm does not know any more is closed already.
        unsafe {
            (it().device_stop)(self.handle, std::ptr::null_mut());
            (it().device_close)(self.handle);
        }
    }
}

/// Memory that the CPU and the GPU share.
pub struct Buffer {
    handle: usize,
    /// The GPU's address.
    pub address: u64,
    /// The CPU's address.
    pub pointer: usize,
}

impl Buffer {
    fn of(handle: usize) -> Answer<Buffer> {
        let mut buffer = Buffer { handle, address: 0, pointer: 0 };
        // SAFETY: both are valid for writes.
        check(unsafe { (it().buffer_address)(handle, &mut buffer.pointer, &mut buffer.address) })?;
        Ok(buffer)
    }

    /// Allocates memory. `flags` are libtegrarm's.
    pub fn alloc(device: &Device, size: u64, flags: u32) -> Answer<Buffer> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().buffer_alloc)(device.handle, size, flags, &mut handle) })?;
        Buffer::of(handle)
    }

    /// Lets the GPU use pages of the process, which stay mapped until the buffer is dropped.
    pub fn pages(device: &Device, pages: usize, size: u64, flags: u32) -> Answer<Buffer> {
        let mut handle = 0;
        // SAFETY: libtegrarm checks that the pages are mapped; the caller of cuMemHostRegister keeps them mapped.
        check(unsafe { (it().buffer_import_pages)(device.handle, pages, size, flags, &mut handle) })?;
        Buffer::of(handle)
    }

    /// A descriptor of its memory, and where it begins there.
    pub fn export(&self) -> Answer<(i32, u64)> {
        let (mut fd, mut offset) = (-1, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().buffer_export)(self.handle, &mut fd, &mut offset) })?;
        Ok((fd, offset))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A buffer that libtegrarm does not know any more ended with its device.
        unsafe { (it().buffer_free)(self.handle) };
    }
}

/// `struct tegrarm_queue_options`.
#[repr(C)]
struct QueueOptions {
    size: usize,
    kind: u32,
    priority: u32,
    timeslice_us: u32,
    reserved: u32,
}

/// A queue of a device.
pub struct Queue {
    handle: usize,
    /// Whether it ends with its device.
    own: bool,
}

/// A task for the CPU. It is told whether the work before it finished.
pub type Task = Box<dyn FnOnce(bool) + Send>;

impl Queue {
    /// Makes a queue with a priority of libtegrarm, 0 to 3.
    pub fn new(device: &Device, priority: u32) -> Answer<Queue> {
        let options = QueueOptions { size: size_of::<QueueOptions>(), kind: 0, priority, timeslice_us: 0, reserved: 0 };
        let mut handle = 0;
        // SAFETY: `options` is valid for reads, and `handle` for writes.
        check(unsafe { (it().queue_create)(device.handle, (&raw const options).cast(), &mut handle) })?;
        Ok(Queue { handle, own: false })
    }

    /// The fence of its newest work.
    pub fn fence(&self) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes.
        check(unsafe { (it().queue_fence)(self.handle, &mut fence) })?;
        Ok(fence)
    }

    /// Lets later work wait for a fence.
    pub fn after(&self, fence: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().queue_after)(self.handle, fence) })
    }

    /// Launches a kernel. `params` has the address of the value of each parameter.
    pub fn launch(&self, kernel: &Kernel, grid: [u32; 3], block: [u32; 3], shared: u32, params: &[usize]) -> Answer<u64> {
        self.launch_at(kernel, grid, block, shared, params.as_ptr() as usize, params.len())
    }

    /// Launches a kernel whose parameters' addresses are at an address: `count` of them.
    pub fn launch_at(&self, kernel: &Kernel, grid: [u32; 3], block: [u32; 3], shared: u32, params: usize, count: usize) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `grid` and `block` are valid for reads. The array of the parameters and their values are those of the caller of
        // cuLaunchKernel, who vouches for them, or this library's own.
        check(unsafe {
            (it().queue_launch)(self.handle, kernel.handle, grid.as_ptr(), block.as_ptr(), shared, params as *const usize, count as u32, &mut fence)
        })?;
        Ok(fence)
    }

    /// Makes the GPU copy between buffers.
    pub fn copy(&self, to: (&Buffer, u64), from: (&Buffer, u64), size: u64) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes; libtegrarm checks the ranges.
        check(unsafe { (it().queue_copy)(self.handle, to.0.handle, to.1, from.0.handle, from.1, size, &mut fence) })?;
        Ok(fence)
    }

    /// Makes the GPU fill a range with values of 1, 2 or 4 bytes.
    pub fn fill(&self, to: (&Buffer, u64), size: u64, value: u32, width: u32) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes; libtegrarm checks the range.
        check(unsafe { (it().queue_fill)(self.handle, to.0.handle, to.1, size, value, width, &mut fence) })?;
        Ok(fence)
    }

    /// Has the CPU do a task in the order of the queue.
    pub fn call(&self, task: Task) -> Answer<u64> {
        unsafe extern "C" fn run(status: u32, user: *mut c_void) {
            // SAFETY: `user` is the box that `call` made, and libtegrarm calls this once.
            let task = unsafe { Box::from_raw(user.cast::<Task>()) };
            // A panic must not cross the C interface.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task(status == 0))).is_err() {
                crate::log::say(crate::log::Level::Notice, "a task in the order of a stream met a bug in the library");
            }
        }
        let mut fence = 0;
        let user = Box::into_raw(Box::new(task));
        // SAFETY: `run` takes the box, once.
        let status = unsafe { (it().queue_call)(self.handle, run, user.cast(), &mut fence) };
        if status != 0 {
            // SAFETY: the call failed, so that `run` is not called and the box is still this function's.
            drop(unsafe { Box::from_raw(user) });
        }
        check(status)?;
        Ok(fence)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if !self.own {
            // SAFETY: it takes a number.
            unsafe { (it().queue_destroy)(self.handle) };
        }
    }
}

/// Machine code that is loaded.
pub struct Module {
    handle: usize,
}

impl Module {
    /// Loads a cubin.
    pub fn load(device: &Device, image: &[u8]) -> Answer<Module> {
        let mut handle = 0;
        // SAFETY: `image` is valid for reads, and `handle` for writes.
        check(unsafe { (it().module_load)(device.handle, image.as_ptr(), image.len(), &mut handle) })?;
        Ok(Module { handle })
    }

    /// A kernel of it.
    pub fn kernel(&self, name: &CString) -> Answer<Kernel> {
        let mut handle = 0;
        // SAFETY: `name` ends with a NUL, and `handle` is valid for writes.
        check(unsafe { (it().module_kernel)(self.handle, name.as_ptr(), &mut handle) })?;
        Ok(Kernel { handle })
    }

    /// A variable of it.
    pub fn variable(&self, name: &CString) -> Answer<(Buffer, u64)> {
        let (mut handle, mut size) = (0, 0);
        // SAFETY: `name` ends with a NUL, NULL asks for no address, and `size` and `handle` are valid for writes.
        unsafe {
            check((it().module_variable)(self.handle, name.as_ptr(), std::ptr::null_mut(), &mut size))?;
            check((it().module_buffer)(self.handle, name.as_ptr(), &mut handle))?;
        }
        Ok((Buffer::of(handle)?, size))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A module that libtegrarm does not know any more ended with its device.
        unsafe { (it().module_unload)(self.handle) };
    }
}

/// `struct tegrarm_kernel_attributes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelAttributes {
    size: usize,
    pub registers: u32,
    pub shared_size: u32,
    pub max_dynamic_shared: u32,
    pub local_size: u32,
    pub stack_size: u32,
    pub constant_size: u32,
    pub barriers: u32,
    pub max_threads: u32,
    pub required_block: [u32; 3],
    pub parameters: u32,
    pub parameter_size: u32,
    pub code_size: u64,
    pub code_address: u64,
}

/// A kernel of a module, which ends with the module.
pub struct Kernel {
    handle: usize,
}

impl Kernel {
    /// What is known of it.
    pub fn attributes(&self) -> Answer<KernelAttributes> {
        // SAFETY: all fields are numbers, for which zeroes are values.
        let mut attributes: KernelAttributes = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<KernelAttributes>();
        // SAFETY: `attributes` is valid for the bytes that its size names.
        check(unsafe { (it().kernel_attributes)(self.handle, (&raw mut attributes).cast()) })?;
        Ok(attributes)
    }

    /// The offset and the size of a parameter.
    pub fn parameter(&self, index: u32) -> Answer<(u32, u32)> {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().kernel_parameter)(self.handle, index, &mut offset, &mut size) })?;
        Ok((offset, size))
    }

    /// How many of its blocks an SM runs at the same time.
    pub fn blocks_per_sm(&self, block: [u32; 3], shared: u32) -> Answer<u32> {
        let mut blocks = 0;
        // SAFETY: `block` is valid for reads of three words, and `blocks` for writes.
        check(unsafe { (it().kernel_occupancy)(self.handle, block.as_ptr(), shared, &mut blocks) })?;
        Ok(blocks)
    }
}

/// A point in the work of a queue, with its time.
pub struct Stamp {
    handle: usize,
}

impl Stamp {
    /// Makes one.
    pub fn new(device: &Device) -> Answer<Stamp> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().event_create)(device.handle, &mut handle) })?;
        Ok(Stamp { handle })
    }

    /// Puts it behind the work of a queue. Returns the fence.
    pub fn record(&self, queue: &Queue) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes.
        check(unsafe { (it().event_record)(self.handle, queue.handle, &mut fence) })?;
        Ok(fence)
    }

    /// The nanoseconds from another one to this one.
    pub fn since(&self, start: &Stamp) -> Answer<i64> {
        let mut elapsed = 0;
        // SAFETY: `elapsed` is valid for writes.
        check(unsafe { (it().event_elapsed)(start.handle, self.handle, &mut elapsed) })?;
        Ok(elapsed)
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        // SAFETY: it takes a number.
        unsafe { (it().event_destroy)(self.handle) };
    }
}
