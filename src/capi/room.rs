//! Whether the stack of the calling thread has room for a call.

use std::cell::Cell;
use std::ptr::null_mut;
use tegrarm_abi::rm::status::NV_ERR_INSUFFICIENT_RESOURCES;
use tegrarm_rm::status::RmError;

/// The number of bytes of stack that a call may use. A kernel within the process uses the most, some 20 KiB.
const NEED: usize = 24 << 10;

thread_local! {
    /// The lowest address of this thread's stack, and the lowest one at which a call has room. Addresses outside belong
    /// to a stack that the program made itself, of which nothing is known. Before the first call every address is looked
    /// at.
    static SCARCE: Cell<(usize, usize)> = const { Cell::new((0, usize::MAX)) };
}

/// Checks that there is room.
///
/// # Errors
/// `NV_ERR_INSUFFICIENT_RESOURCES`.
#[inline]
pub fn check() -> Result<(), RmError> {
    let here = 0u8;
    let (here, (low, enough)) = (&raw const here as usize, SCARCE.get());
    if here >= enough || here < low { Ok(()) } else { look(here) }
}

#[cold]
fn look(here: usize) -> Result<(), RmError> {
    let low = lowest().unwrap_or(0);
    SCARCE.set((low, if low == 0 { 0 } else { low + NEED }));
    if here < low || here - low >= NEED || low == 0 {
        return Ok(());
    }
    let text = format!("the stack of this thread has {} bytes left: a call may need {NEED}", here - low);
    Err(RmError::new(NV_ERR_INSUFFICIENT_RESOURCES, text))
}

/// The lowest address of this thread's stack. The stack of the main thread grows, so that it has none.
fn lowest() -> Option<usize> {
    if nix::unistd::gettid() == nix::unistd::getpid() {
        return None;
    }
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (null_mut(), 0);
    // SAFETY: the first call fills the attributes in if it returns 0. Only then the others use them.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let got = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (got == 0).then_some(start as usize)
    }
}
