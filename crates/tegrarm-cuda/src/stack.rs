//! The stack of contexts of each thread, and the short way of a launch on the legacy default stream of the topmost one.
//!
//! The address of what a launch needs is in a variable of the thread that one instruction reads. Rust's own variables of threads cost a
//! call of the dynamic loader in a shared library, and a launch would have to save its eleven arguments around this call.
#![allow(unsafe_code)]

use crate::machine::{Device, it};
use crate::order::Stream;
use std::arch::{asm, global_asm};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tegrarm_client::header::{tegrarm_device, tegrarm_kernel, tegrarm_launch_sizes};

global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".globl tegrarm_cuda_top",
    ".hidden tegrarm_cuda_top",
    ".type tegrarm_cuda_top,%object",
    ".size tegrarm_cuda_top, 8",
    ".p2align 3",
    "tegrarm_cuda_top:",
    ".zero 8",
    ".popsection",
);

/// The thread's variable: the topmost context, or NULL.
#[inline(always)]
fn topmost() -> *const Context {
    let value;
    // SAFETY: the instructions read the offset that the dynamic loader gave the variable, and the variable. They change nothing.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {value}, qword ptr [rip + tegrarm_cuda_top@GOTTPOFF]",
            "mov {value}, qword ptr fs:[{value}]",
            value = out(reg) value,
            options(nostack, preserves_flags, readonly)
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {offset}, :gottprel:tegrarm_cuda_top",
            "ldr {offset}, [{offset}, :gottprel_lo12:tegrarm_cuda_top]",
            "mrs {value}, tpidr_el0",
            "ldr {value}, [{value}, {offset}]",
            offset = out(reg) _,
            value = out(reg) value,
            options(nostack, preserves_flags, readonly)
        );
    }
    value
}

/// Writes the thread's variable.
fn set_topmost(value: *const Context) {
    // SAFETY: the instructions write the thread's variable, whose offset the dynamic loader gave, and nothing else.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {offset}, qword ptr [rip + tegrarm_cuda_top@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {value}",
            offset = out(reg) _,
            value = in(reg) value,
            options(nostack, preserves_flags)
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {offset}, :gottprel:tegrarm_cuda_top",
            "ldr {offset}, [{offset}, :gottprel_lo12:tegrarm_cuda_top]",
            "mrs {thread}, tpidr_el0",
            "str {value}, [{thread}, {offset}]",
            offset = out(reg) _,
            thread = out(reg) _,
            value = in(reg) value,
            options(nostack, preserves_flags)
        );
    }
}

type LaunchNow = unsafe extern "C" fn(
    *mut tegrarm_device,
    *mut tegrarm_kernel,
    *const tegrarm_launch_sizes,
    *const *const c_void,
    *mut u64,
) -> u32;

/// What a launch asks for, in memory. The short way needs it there, and the whole way takes it from there afterwards.
#[derive(Clone, Copy)]
pub struct Asked {
    /// The sizes.
    pub sizes: tegrarm_launch_sizes,
    /// The function or kernel.
    pub function: usize,
    /// The stream.
    pub stream: usize,
    /// The addresses of the parameters' values.
    pub params: *mut usize,
    /// The other form of them.
    pub extra: *mut usize,
}

/// What the stack of a thread has of a context. It stays until no thread's stack has it, also when the context has ended.
pub struct Context {
    /// The context's handle.
    pub handle: usize,
    /// How many reasons there are to look at more than the short way does.
    reasons: AtomicU32,
    /// How many launches are on the short way.
    inside: AtomicU32,
    device: usize,
    launch_now: LaunchNow,
    legacy: Arc<Stream>,
    /// The process in which it was made. A child has its parent's number of launches that are on the way, and they never end there.
    process: u32,
}

impl Context {
    /// For a context with this handle, device and legacy default stream.
    pub fn new(handle: usize, device: &Device, legacy: Arc<Stream>) -> Context {
        let traced = crate::log::level() >= crate::log::Level::Trace;
        Context {
            handle,
            reasons: AtomicU32::new(traced.into()),
            inside: AtomicU32::new(0),
            device: device.handle,
            launch_now: it().tegrarm_launch_now,
            legacy,
            process: std::process::id(),
        }
    }

    /// Closes the short way: there is one more reason to look at more.
    pub fn close(&self) {
        self.reasons.fetch_add(1, Ordering::SeqCst);
    }

    /// The same, and waits for the launches that are on the way. The caller holds no lock.
    pub fn close_and_wait(&self) {
        self.close();
        while self.inside.load(Ordering::SeqCst) != 0 && self.process == std::process::id() {
            std::thread::yield_now();
        }
    }

    /// Reasons have gone.
    pub fn open(&self, reasons: u32) {
        self.reasons.fetch_sub(reasons, Ordering::SeqCst);
    }
}

/// Launches on the legacy default stream of the thread's context, if nothing has to be looked at but what libtegrarm looks at itself: the
/// kernel was launched with the same sizes before, so that they have been checked; no stream has to wait for another one; no stream of
/// the context is captured. Says whether it did.
///
/// # Safety
/// As cuLaunchKernel.
#[inline(always)]
pub unsafe fn launch(asked: &Asked) -> bool {
    // 0 and CU_STREAM_LEGACY are the legacy default stream.
    if asked.stream > 1 || !asked.extra.is_null() {
        return false;
    }
    // SAFETY: the variable is NULL or has the address of an element of the thread's stack.
    let Some(context) = (unsafe { topmost().as_ref() }) else { return false };
    context.inside.fetch_add(1, Ordering::SeqCst);
    let done = context.reasons.load(Ordering::SeqCst) == 0 && {
        let newest = context.legacy.newest.as_ptr();
        let (device, kernel) = (context.device as *mut tegrarm_device, asked.function as *mut tegrarm_kernel);
        // SAFETY: `params` is as cuLaunchKernel asks of its caller, and the fence is that of a stream which the context keeps.
        unsafe { (context.launch_now)(device, kernel, &asked.sizes, asked.params as *const *const c_void, newest) == 0 }
    };
    context.inside.fetch_sub(1, Ordering::Release);
    done
}

/// The stack of a thread.
struct Stack(Vec<Arc<Context>>);

impl Drop for Stack {
    fn drop(&mut self) {
        self.0.clear();
        self.changed();
    }
}

impl Stack {
    fn changed(&self) {
        // The element stays for as long as it is on the stack.
        set_topmost(self.0.last().map_or(std::ptr::null(), Arc::as_ptr));
    }
}

thread_local! {
    static STACK: RefCell<Stack> = const { RefCell::new(Stack(Vec::new())) };
}

/// Changes the thread's stack. A thread that ends has no stack any more, but its variables may call the library when they end: they find
/// an empty stack, and what they put there is gone after the call.
pub fn change<T>(how: impl FnOnce(&mut Vec<Arc<Context>>) -> T) -> T {
    if STACK.try_with(|_| ()).is_err() {
        return how(&mut Vec::new());
    }
    STACK.with_borrow_mut(|stack| {
        let result = how(&mut stack.0);
        stack.changed();
        result
    })
}

/// The handle of the topmost context, or 0.
pub fn current() -> usize {
    // SAFETY: the variable is NULL or has the address of an element of the thread's stack.
    unsafe { topmost().as_ref() }.map_or(0, |context| context.handle)
}
