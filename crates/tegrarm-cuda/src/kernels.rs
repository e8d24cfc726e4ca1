//! libtegrarm as safe types: machine code that is loaded, its kernels, and replays.
#![allow(unsafe_code)]

use crate::machine::{Buffer, Device, Queue, Size, check, it};
use crate::result::Answer;
use std::ffi::{CString, c_void};

/// What is known of a kernel.
pub use tegrarm_client::header::tegrarm_kernel_attributes as KernelAttributes;

/// Machine code that is loaded.
pub struct Module {
    handle: usize,
}

impl Module {
    /// Loads a cubin.
    pub fn load(device: &Device, image: &[u8]) -> Answer<Module> {
        let mut handle = 0;
        // SAFETY: `image` is valid for reads, and `handle` for writes.
        check(unsafe {
            (it().tegrarm_module_load)(
                device.handle as *mut _,
                image.as_ptr().cast(),
                image.len(),
                (&raw mut handle).cast(),
            )
        })?;
        Ok(Module { handle })
    }

    /// A kernel of it.
    pub fn kernel(&self, name: &CString) -> Answer<Kernel> {
        let mut handle = 0;
        // SAFETY: `name` ends with a NUL, and `handle` is valid for writes.
        check(unsafe { (it().tegrarm_module_kernel)(self.handle as *mut _, name.as_ptr(), (&raw mut handle).cast()) })?;
        Ok(Kernel { handle })
    }

    /// A variable of it.
    pub fn variable(&self, name: &CString) -> Answer<(Buffer, u64)> {
        let (mut handle, mut size) = (0, 0);
        // SAFETY: `name` ends with a NUL, NULL asks for no address, and `size` and `handle` are valid for writes.
        unsafe {
            check((it().tegrarm_module_variable)(
                self.handle as *mut _,
                name.as_ptr(),
                std::ptr::null_mut(),
                &mut size,
            ))?;
            check((it().tegrarm_module_buffer)(self.handle as *mut _, name.as_ptr(), (&raw mut handle).cast()))?;
        }
        Ok((Buffer::of(handle)?, size))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A module that libtegrarm does not know any more ended with its device.
        unsafe { (it().tegrarm_module_unload)(self.handle as *mut _) };
    }
}

/// A kernel of a module, which ends with the module.
pub struct Kernel {
    /// Its handle.
    pub handle: usize,
}

impl Kernel {
    /// What is known of it.
    pub fn attributes(&self) -> Answer<KernelAttributes> {
        // SAFETY: all fields are numbers, for which zeroes are values.
        let mut attributes: KernelAttributes = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<KernelAttributes>();
        // SAFETY: `attributes` is valid for the bytes that its size names.
        check(unsafe { (it().tegrarm_kernel_attributes)(self.handle as *mut _, &mut attributes) })?;
        Ok(attributes)
    }

    /// The offset and the size of a parameter.
    pub fn parameter(&self, index: u32) -> Answer<(u32, u32)> {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: both are valid for writes.
        check(unsafe { (it().tegrarm_kernel_parameter)(self.handle as *mut _, index, &mut offset, &mut size) })?;
        Ok((offset, size))
    }

    /// How many of its blocks an SM runs at the same time.
    pub fn blocks_per_sm(&self, block: [u32; 3], shared: u32) -> Answer<u32> {
        let mut blocks = 0;
        // SAFETY: `block` is valid for reads of three words, and `blocks` for writes.
        check(unsafe { (it().tegrarm_kernel_occupancy)(self.handle as *mut _, block.as_ptr(), shared, &mut blocks) })?;
        Ok(blocks)
    }
}

/// Work that is recorded once and runs many times.
pub struct Replay {
    handle: usize,
}

impl Replay {
    /// An empty one.
    pub fn new(device: &Device) -> Answer<Replay> {
        let mut handle = 0;
        // SAFETY: `handle` is valid for writes.
        check(unsafe { (it().tegrarm_replay_create)(device.handle as *mut _, (&raw mut handle).cast()) })?;
        Ok(Replay { handle })
    }

    /// Records a launch, with the addresses of its parameters' values. Launches have numbers from 0.
    pub fn launch(&self, kernel: &Kernel, size: &Size, values: &[usize]) -> Answer {
        let (replay, kernel, count) = (self.handle as *mut _, kernel.handle as *mut _, values.len() as u32);
        let (addresses, index) = (values.as_ptr().cast::<*const c_void>(), std::ptr::null_mut());
        // SAFETY: the configuration is valid, and the values are those of a launch that is kept.
        check(unsafe { (it().tegrarm_replay_launch)(replay, kernel, &size.config(), addresses, count, index) })
    }

    /// Gives a recorded launch of the same kernel another size and other values.
    pub fn update(&self, index: u32, kernel: &Kernel, size: &Size, values: &[usize]) -> Answer {
        let (replay, kernel, count) = (self.handle as *mut _, kernel.handle as *mut _, values.len() as u32);
        let addresses = values.as_ptr().cast::<*const c_void>();
        // SAFETY: as in `launch`.
        check(unsafe { (it().tegrarm_replay_update)(replay, index, kernel, &size.config(), addresses, count) })
    }

    /// Records a copy between buffers.
    pub fn copy(&self, to: (&Buffer, u64), from: (&Buffer, u64), size: u64) -> Answer {
        let (replay, target, source) = (self.handle as *mut _, to.0.handle as *mut _, from.0.handle as *mut _);
        // SAFETY: it takes numbers, and libtegrarm checks the ranges.
        check(unsafe { (it().tegrarm_replay_copy)(replay, target, to.1, source, from.1, size) })
    }

    /// Records a fill with values of 1, 2 or 4 bytes.
    pub fn fill(&self, to: (&Buffer, u64), size: u64, value: u32, width: u32) -> Answer {
        let (replay, target) = (self.handle as *mut _, to.0.handle as *mut _);
        // SAFETY: it takes numbers, and libtegrarm checks the range.
        check(unsafe { (it().tegrarm_replay_fill)(replay, target, to.1, size, value, width) })
    }

    /// Gives a queue a run. Returns the fence.
    pub fn enqueue(&self, queue: &Queue) -> Answer<u64> {
        let mut fence = 0;
        // SAFETY: `fence` is valid for writes.
        check(unsafe { (it().tegrarm_replay_enqueue)(self.handle as *mut _, queue.handle as *mut _, &mut fence) })?;
        Ok(fence)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // SAFETY: it takes a number. A replay that libtegrarm does not know any more ended with its device.
        unsafe { (it().tegrarm_replay_destroy)(self.handle as *mut _) };
    }
}
