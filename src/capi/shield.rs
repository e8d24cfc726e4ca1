//! Calls the program's functions. What leaves one without returning goes no further.
//!
//! An exception of C++ must not pass through the library's frames, which hold locks and handles, and Rust's own
//! `catch_unwind` ends the process when it meets one. So the frame between the library and a callback is written in
//! assembler, and has a personality routine that catches every exception. A thread that ends itself in a callback
//! (`pthread_exit`) unwinds too, and cannot be stopped: the process ends with a sentence. A jump (`longjmp`) unwinds
//! nothing. The next call of the thread notices it (see [`jumped`]).

use std::arch::global_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use tegrarm_output::say;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.tegrarm_shield,\"ax\",@progbits",
    ".globl tegrarm_shield",
    ".hidden tegrarm_shield",
    ".type tegrarm_shield,@function",
    "tegrarm_shield:",
    ".cfi_startproc",
    // The routine's address is relative to this place, in four bytes.
    ".cfi_personality 0x1b, {catch}",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "xor eax, eax",
    ".globl tegrarm_shield_caught",
    ".hidden tegrarm_shield_caught",
    "tegrarm_shield_caught:",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size tegrarm_shield, . - tegrarm_shield",
    ".popsection",
    catch = sym catch,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.tegrarm_shield,\"ax\",@progbits",
    ".p2align 2",
    ".globl tegrarm_shield",
    ".hidden tegrarm_shield",
    ".type tegrarm_shield,@function",
    "tegrarm_shield:",
    ".cfi_startproc",
    // The routine's address is relative to this place, in four bytes.
    ".cfi_personality 0x1b, {catch}",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    "mov x9, x0",
    "mov x0, x1",
    "blr x9",
    "mov x0, xzr",
    ".globl tegrarm_shield_caught",
    ".hidden tegrarm_shield_caught",
    "tegrarm_shield_caught:",
    "ldp x29, x30, [sp], #16",
    ".cfi_restore x30",
    ".cfi_restore x29",
    ".cfi_def_cfa_offset 0",
    "ret",
    ".cfi_endproc",
    ".size tegrarm_shield, . - tegrarm_shield",
    ".popsection",
    catch = sym catch,
);

#[allow(unused_doc_comments, reason = "the comment is for cbindgen")]
/// cbindgen:ignore
unsafe extern "C" {
    /// Calls `run` with `with`. Returns NULL, or the exception that left it.
    fn tegrarm_shield(run: unsafe extern "C-unwind" fn(*mut c_void), with: *mut c_void) -> *mut c_void;
    /// The place in that function at which it goes on with an exception.
    fn tegrarm_shield_caught();

    fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
    fn _Unwind_DeleteException(exception: *mut c_void);
}

/// The actions and the answers of a personality routine (Itanium C++ ABI, level I).
const SEARCH_PHASE: c_int = 1;
const HANDLER_FRAME: c_int = 4;
const FORCE_UNWIND: c_int = 8;
const HANDLER_FOUND: c_int = 6;
const INSTALL_CONTEXT: c_int = 7;
const CONTINUE_UNWIND: c_int = 8;

/// The personality routine of `tegrarm_shield`.
unsafe extern "C" fn catch(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if actions & FORCE_UNWIND != 0 {
        say("a callback of libtegrarm ended its thread (pthread_exit or pthread_cancel): a callback has to return");
        std::process::abort();
    }
    if actions & SEARCH_PHASE != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE_UNWIND;
    }
    // SAFETY: the unwinder passes its context, and the place expects the exception in the first register, which is rax
    // or x0.
    unsafe {
        _Unwind_SetGR(context, 0, exception as usize);
        _Unwind_SetIP(context, tegrarm_shield_caught as *const () as usize);
    }
    INSTALL_CONTEXT
}

unsafe extern "C-unwind" fn run<F: FnOnce()>(with: *mut c_void) {
    // SAFETY: `call` passes the address of such a value, which nobody else uses meanwhile.
    if let Some(callback) = unsafe { &mut *with.cast::<Option<F>>() }.take() {
        callback();
    }
}

/// The number of callbacks that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The place on the stack from which the innermost callback of this thread was called. It is 0 if there is none.
    static INNERMOST: Cell<usize> = const { Cell::new(0) };
}

/// Calls a function of the program. `name` says in messages which one it is.
pub fn call<F: FnOnce()>(name: &str, callback: F) {
    let mut callback = Some(callback);
    let with = &raw mut callback;
    let outer = INNERMOST.replace(with as usize);
    RUNNING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `run` gets what it expects, and the value lives until the call returns.
    let exception = unsafe { tegrarm_shield(run::<F>, with.cast()) };
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    INNERMOST.set(outer);
    if !exception.is_null() {
        forget(exception);
        say(&format!("the callback of {name} threw an exception, which was dropped: a callback has to return"));
    }
}

/// Whether a callback may be running.
#[inline]
pub fn any_runs() -> bool {
    RUNNING.load(Ordering::Relaxed) != 0
}

/// A call that comes from below the callback that should be running has this distance to it at most.
const NEAR: usize = 64 << 10;

/// Whether a jump has left a callback of this thread. A call of a callback lies below it on the stack, and a call of
/// its caller, to which a jump leads, lies above it. The stack of another coroutine is farther away.
pub fn jumped() -> bool {
    let here = 0u8;
    let (here, callback) = (&raw const here as usize, INNERMOST.get());
    callback != 0 && here > callback && here - callback < NEAR
}

/// Ends an exception.
fn forget(exception: *mut c_void) {
    /// The vendor of an exception, and its language, as they begin the exception's header.
    fn class(exception: *mut c_void) -> [u8; 8] {
        // SAFETY: every exception begins with a number of eight bytes.
        unsafe { exception.cast::<u64>().read() }.to_be_bytes()
    }
    let class = class(exception);
    // A panic of Rust ends the process when it is deleted elsewhere than where it is caught.
    if class.ends_with(b"RUST") {
        return;
    }
    let find = |name: &std::ffi::CStr| {
        // SAFETY: the name ends with a NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null() && class.ends_with(b"C++\0")).then_some(found)
    };
    // C++ counts the exceptions that nobody has caught.
    match (find(c"__cxa_begin_catch"), find(c"__cxa_end_catch")) {
        (Some(begin), Some(end)) => {
            // SAFETY: the Itanium C++ ABI defines the two functions with these types.
            unsafe {
                let begin: unsafe extern "C" fn(*mut c_void) -> *mut c_void = std::mem::transmute(begin);
                let end: unsafe extern "C-unwind" fn() = std::mem::transmute(end);
                begin(exception);
                end();
            }
        }
        // SAFETY: the exception was caught, and nobody uses it any more.
        _ => unsafe { _Unwind_DeleteException(exception) },
    }
}
