//! libtegrarm as safe types: devices, buffers, queues, events. They end what they own when they are dropped.
#![allow(unsafe_code)]

use crate::api::api;
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use std::ffi::{CStr, c_char, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use tegrarm_client::Functions;
use tegrarm_client::header as status;
use tegrarm_client::header::{
    TEGRARM_LAUNCH_COOPERATIVE, tegrarm_device_profile, tegrarm_fault, tegrarm_launch_config, tegrarm_queue_options,
};

/// The figures of a GPU.
pub use tegrarm_client::header::tegrarm_device_profile as Profile;

/// A wait without a limit.
pub const FOREVER: u64 = u64::MAX;

/// Statuses, and the results of CUDA that they become. Every other status is CUDA_ERROR_UNKNOWN.
static STATUSES: &[(u32, u32)] = &[
    (status::NV_ERR_CARD_NOT_PRESENT, CUDA_ERROR_NO_DEVICE),
    (status::NV_ERR_INSUFFICIENT_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY),
    (status::NV_ERR_INSUFFICIENT_PERMISSIONS, CUDA_ERROR_NOT_PERMITTED),
    (status::NV_ERR_INVALID_ADDRESS, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_INVALID_ARGUMENT, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_INVALID_BASE, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE),
    (status::NV_ERR_INVALID_INDEX, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_INVALID_LIMIT, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_INVALID_POINTER, CUDA_ERROR_INVALID_VALUE),
    (status::NV_ERR_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
    (status::NV_ERR_NOT_READY, CUDA_ERROR_NOT_READY),
    (status::NV_ERR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED),
    (status::NV_ERR_OBJECT_NOT_FOUND, CUDA_ERROR_INVALID_HANDLE),
    // The context asks for the fault.
    (status::NV_ERR_RESET_REQUIRED, CUDA_ERROR_LAUNCH_FAILED),
    (status::NV_ERR_STATE_IN_USE, CUDA_ERROR_ILLEGAL_STATE),
    (status::NV_ERR_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT),
    (status::NV_ERR_RESOURCE_LOST, CUDA_ERROR_LAUNCH_FAILED),
];

/// The functions. cuInit has loaded them before any of these types exists.
pub fn it() -> &'static Functions {
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
    let name = unsafe { CStr::from_ptr((it().tegrarm_status_name)(status)) };
    Error::new(code, format!("{}: {}", name.to_string_lossy(), last_error()))
}

/// The sentence of the last call that failed in this thread.
pub fn last_error() -> String {
    // SAFETY: NULL with the length 0 asks for the size alone.
    let size = unsafe { (it().tegrarm_last_error)(std::ptr::null_mut(), 0) };
    let mut text = vec![0u8; size];
    // SAFETY: `text` has room for `size` bytes.
    unsafe { (it().tegrarm_last_error)(text.as_mut_ptr().cast(), size) };
    String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(&text)).into_owned()
}

/// The profile of a GPU.
pub fn profile(index: u32) -> Answer<Profile> {
    // SAFETY: all fields are numbers, for which zeroes are values.
    let mut profile: tegrarm_device_profile = unsafe { std::mem::zeroed() };
    profile.size = size_of::<tegrarm_device_profile>();
    // SAFETY: `profile` is valid for the bytes that its size names.
    check(unsafe { (it().tegrarm_device_profile)(index, &mut profile) })?;
    Ok(profile)
}

/// A text of a structure, up to its NUL.
pub fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many GPUs there are.
pub fn count() -> Answer<u32> {
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    check(unsafe { (it().tegrarm_device_count)(&mut count) })?;
    Ok(count)
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

/// As many devices have addresses of their own (tegrarm_device_open). With one more, an address would be in two contexts.
const DEVICES: u32 = 14;
/// The devices that are open.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Forgets the devices of the parent, in a child after fork(2).
pub fn begin_anew() {
    OPEN.store(0, Ordering::Relaxed);
}

/// An open device.
pub struct Device {
    /// Its handle.
    pub handle: usize,
}

impl Device {
    /// Opens a GPU.
    pub fn open(index: u32) -> Answer<Device> {
        let one_more = |open: u32| (open < DEVICES).then_some(open + 1);
        if OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            fail!(
                CUDA_ERROR_OUT_OF_MEMORY,
                "{DEVICES} contexts exist, and the GPU's addresses are not enough for one more: destroy one"
            );
        }
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        let opened = check(unsafe { (it().tegrarm_device_open)(index, (&raw mut handle).cast()) });
        if opened.is_err() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        opened.map(|()| Device { handle })
    }

    /// What stopped it, if something did.
    pub fn fault(&self) -> Answer<Option<Fault>> {
        // SAFETY: all fields are numbers, for which zeroes are values.
        let mut fault: Box<tegrarm_fault> = Box::new(unsafe { std::mem::zeroed() });
        fault.size = size_of::<tegrarm_fault>();
        // SAFETY: `fault` is valid for the bytes that its size names.
        check(unsafe { (it().tegrarm_device_fault)(self.handle as *mut _, &mut *fault) })?;
        if fault.cause == 0 {
            return Ok(None);
        }
        Ok(Some(Fault { cause: fault.cause, warp_error: fault.warp_error, sentence: text(&fault.sentence) }))
    }

    /// A limit.
    pub fn limit(&self, limit: u32) -> Answer<u64> {
        let mut value = 0;
        // SAFETY: `value` is valid for writes.
        check(unsafe { (it().tegrarm_device_limit)(self.handle as *mut _, limit, &mut value) })?;
        Ok(value)
    }

    /// Changes a limit.
    pub fn set_limit(&self, limit: u32, value: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().tegrarm_device_set_limit)(self.handle as *mut _, limit, value) })
    }

    /// How many bytes can be allocated, and how many there are.
    pub fn memory(&self) -> Answer<(u64, u64)> {
        let (mut available, mut total) = (0, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().tegrarm_device_memory)(self.handle as *mut _, &mut available, &mut total) })?;
        Ok((available, total))
    }

    /// Waits for a fence.
    pub fn wait(&self, fence: u64, timeout_ns: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().tegrarm_wait)(self.handle as *mut _, fence, timeout_ns) })
    }

    /// Whether a fence has passed.
    pub fn passed(&self, fence: u64) -> Answer<bool> {
        let mut passed = false;
        // SAFETY: `passed` is valid for writes.
        check(unsafe { (it().tegrarm_fence_query)(self.handle as *mut _, fence, &mut passed) })?;
        Ok(passed)
    }

    /// The queue that it was opened with.
    pub fn queue(&self) -> Answer<Queue> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().tegrarm_device_queue)(self.handle as *mut _, (&raw mut handle).cast()) })?;
        Ok(Queue { handle, own: true })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A device that libtegrarm does not know any more is closed already.
        unsafe {
            (it().tegrarm_device_stop)(self.handle as *mut _, std::ptr::null_mut());
            (it().tegrarm_device_close)(self.handle as *mut _);
        }
        // In a child after fork(2), a device of the parent does not count.
        let _none = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
    }
}

/// Memory that the CPU and the GPU share.
pub struct Buffer {
    /// Its handle.
    pub handle: usize,
    /// The GPU's address.
    pub address: u64,
    /// The CPU's address.
    pub pointer: usize,
}

impl Buffer {
    /// The buffer of a handle of libtegrarm, which it owns from now on.
    pub fn of(handle: usize) -> Answer<Buffer> {
        let mut buffer = Buffer { handle, address: 0, pointer: 0 };
        // SAFETY: both are valid for writes.
        check(unsafe {
            (it().tegrarm_buffer_address)(handle as *mut _, (&raw mut buffer.pointer).cast(), &mut buffer.address)
        })?;
        Ok(buffer)
    }

    /// Allocates memory. `flags` are libtegrarm's.
    pub fn alloc(device: &Device, size: u64, flags: u32) -> Answer<Buffer> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().tegrarm_buffer_alloc)(device.handle as *mut _, size, flags, (&raw mut handle).cast()) })?;
        Buffer::of(handle)
    }

    /// Lets the GPU use pages of the process, which stay mapped until the buffer is dropped.
    pub fn pages(device: &Device, pages: usize, size: u64, flags: u32) -> Answer<Buffer> {
        let mut handle = 0;
        // SAFETY: libtegrarm checks that the pages are mapped; the caller of cuMemHostRegister keeps them mapped.
        check(unsafe {
            (it().tegrarm_buffer_import_pages)(
                device.handle as *mut _,
                pages as *mut _,
                size,
                flags,
                (&raw mut handle).cast(),
            )
        })?;
        Buffer::of(handle)
    }

    /// Reserves addresses without memory.
    pub fn reserve(device: &Device, size: u64) -> Answer<Buffer> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().tegrarm_buffer_reserve)(device.handle as *mut _, size, (&raw mut handle).cast()) })?;
        Buffer::of(handle)
    }

    /// Maps `size` bytes of another buffer, from its first one on, at reserved addresses.
    pub fn map(&self, at: u64, other: &Buffer, size: u64, flags: u32) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().tegrarm_buffer_map)(self.handle as *mut _, at, other.handle as *mut _, 0, size, flags) })
    }

    /// Unmaps what is mapped at reserved addresses.
    pub fn unmap(&self, at: u64, size: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().tegrarm_buffer_unmap)(self.handle as *mut _, at, size) })
    }

    /// A buffer of the dma-buf of a descriptor, and how many bytes it has.
    pub fn import(device: &Device, fd: i32) -> Answer<(Buffer, u64)> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes, and libtegrarm checks the descriptor.
        check(unsafe { (it().tegrarm_buffer_import)(device.handle as *mut _, fd, 0, (&raw mut handle).cast()) })?;
        let buffer = Buffer::of(handle)?;
        // SAFETY: it takes numbers. The end of a dma-buf is its size, and nobody uses its position.
        let size = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        Ok((buffer, size.max(0) as u64))
    }

    /// A descriptor of its memory, which is closed when it is dropped.
    pub fn descriptor(&self) -> Answer<OwnedFd> {
        let (fd, _) = self.export()?;
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// A descriptor of its memory, and where it begins there.
    pub fn export(&self) -> Answer<(i32, u64)> {
        let (mut fd, mut offset) = (-1, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().tegrarm_buffer_export)(self.handle as *mut _, &mut fd, &mut offset) })?;
        Ok((fd, offset))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A buffer that libtegrarm does not know any more ended with its device.
        unsafe { (it().tegrarm_buffer_free)(self.handle as *mut _) };
    }
}

/// A queue of a device.
pub struct Queue {
    /// Its handle.
    pub handle: usize,
    /// Whether it ends with its device.
    own: bool,
}

/// The size of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether all blocks run at the same time.
    pub cooperative: bool,
}

impl Size {
    /// As libtegrarm takes it.
    pub fn config(&self) -> tegrarm_launch_config {
        let Size { grid, block, shared, cooperative } = *self;
        tegrarm_launch_config {
            size: size_of::<tegrarm_launch_config>(),
            grid_dim: grid,
            block_dim: block,
            shared_mem_bytes: shared,
            flags: if cooperative { TEGRARM_LAUNCH_COOPERATIVE } else { 0 },
            priority: 0,
            reserved: 0,
            param_sizes: std::ptr::null(),
        }
    }
}

/// A task for the CPU. It is told whether the work before it finished.
pub type Task = Box<dyn FnOnce(bool) + Send>;

impl Queue {
    /// Makes a queue with a priority of libtegrarm, 0 to 3.
    pub fn new(device: &Device, priority: u32) -> Answer<Queue> {
        let size = size_of::<tegrarm_queue_options>();
        let options = tegrarm_queue_options { size, kind: 0, priority, timeslice_us: 0, reserved: 0 };
        let mut handle = 0;
        // SAFETY: `options` is valid for reads, and `handle` for writes.
        check(unsafe { (it().tegrarm_queue_create)(device.handle as *mut _, &options, (&raw mut handle).cast()) })?;
        Ok(Queue { handle, own: false })
    }

    /// The fence of its newest work.
    pub fn fence(&self) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes.
        check(unsafe { (it().tegrarm_fence)(self.handle as *mut _, &mut fence) })?;
        Ok(fence)
    }

    /// Lets later work wait for a fence.
    pub fn after(&self, fence: u64) -> Answer {
        // SAFETY: it takes numbers.
        check(unsafe { (it().tegrarm_queue_after)(self.handle as *mut _, fence) })
    }

    /// Launches the kernel with this handle. `params` is the address of an array with the addresses of the values of its `count` parameters.
    pub fn launch(&self, kernel: usize, size: &Size, params: usize, count: usize) -> Answer<u64> {
        let config = size.config();
        let (mut fence, values) = (0, params as *const *const c_void);
        // SAFETY: `config` is valid for reads. The array of the parameters and their values are those of the caller of cuLaunchKernel,
        // who vouches for them, or this library's own.
        check(unsafe {
            (it().tegrarm_launch)(self.handle as *mut _, kernel as *mut _, &config, values, count as u32, &mut fence)
        })?;
        Ok(fence)
    }

    /// Makes the GPU copy between buffers.
    pub fn copy(&self, to: (&Buffer, u64), from: (&Buffer, u64), size: u64) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes; libtegrarm checks the ranges.
        check(unsafe {
            (it().tegrarm_copy)(
                self.handle as *mut _,
                to.0.handle as *mut _,
                to.1,
                from.0.handle as *mut _,
                from.1,
                size,
                &mut fence,
            )
        })?;
        Ok(fence)
    }

    /// Makes the GPU fill a range with values of 1, 2 or 4 bytes.
    pub fn fill(&self, to: (&Buffer, u64), size: u64, value: u32, width: u32) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes; libtegrarm checks the range.
        check(unsafe {
            (it().tegrarm_fill)(self.handle as *mut _, to.0.handle as *mut _, to.1, size, value, width, &mut fence)
        })?;
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
        let status = unsafe { (it().tegrarm_queue_call)(self.handle as *mut _, Some(run), user.cast(), &mut fence) };
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
            unsafe { (it().tegrarm_queue_destroy)(self.handle as *mut _) };
        }
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
        check(unsafe { (it().tegrarm_event_create)(device.handle as *mut _, (&raw mut handle).cast()) })?;
        Ok(Stamp { handle })
    }

    /// Puts it behind the work of a queue. Returns the fence.
    pub fn record(&self, queue: &Queue) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes.
        check(unsafe { (it().tegrarm_event_record)(self.handle as *mut _, queue.handle as *mut _, &mut fence) })?;
        Ok(fence)
    }

    /// The nanoseconds from another one to this one.
    pub fn since(&self, start: &Stamp) -> Answer<i64> {
        let mut elapsed = 0;
        // SAFETY: `elapsed` is valid for writes.
        check(unsafe { (it().tegrarm_event_elapsed)(start.handle as *mut _, self.handle as *mut _, &mut elapsed) })?;
        Ok(elapsed)
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        // SAFETY: it takes a number.
        unsafe { (it().tegrarm_event_destroy)(self.handle as *mut _) };
    }
}
