//! Work of the CPU in the order of a queue.

use super::super::guard::{report, status};
use super::super::objects::{NV_STATUS, NvU64};
use super::handles::QUEUES;
use super::opaque::tegrarm_queue;
use super::pointers::give_any;
use std::cell::Cell;
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmError, fail};

/// The type of a function that the CPU calls in the order of a queue. `status` is `NV_OK`, or why the work before it did not
/// finish. `user` is the argument of `tegrarm_queue_call`.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type tegrarm_queue_callback = Option<unsafe extern "C" fn(status: NV_STATUS, user: *mut c_void)>;

/// A call that is made exactly once: when its turn comes, or when it is certain that its turn does not come.
struct Call {
    callback: unsafe extern "C" fn(status: NV_STATUS, user: *mut c_void),
    user: usize,
    made: bool,
}

impl Call {
    fn make(&mut self, status: NV_STATUS) {
        self.made = true;
        // SAFETY: `callback` is what `tegrarm_queue_call` asks of its caller, and takes what the caller gave as `user`.
        unsafe { (self.callback)(status, self.user as *mut c_void) }
    }
}

thread_local! {
    /// Whether this thread is giving a queue a call. A call that is dropped meanwhile was refused.
    static GIVING: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.made && !GIVING.get() {
            let lost = || RmError::new(NV_ERR_RESOURCE_LOST, "the work of the queue before this call did not finish");
            self.make(report(&lost()));
        }
    }
}

/// Has `callback` called, once, after all work that a queue has. Later work of the queue waits until it has returned. If `fence` is
/// not NULL, the fence of the call is written to `*fence`. `user` is passed on to the callback.
///
/// A thread of the library calls it, one after another for all queues of a device, so that a callback returns soon and does not wait for
/// work of the device. If a fault stops the queue before, it is called with `NV_ERR_RESOURCE_LOST`, and so it is when the device is closed
/// before. If this function fails, the callback is not called.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_POINTER`: `callback` is NULL.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_call(
    queue: *mut tegrarm_queue,
    callback: tegrarm_queue_callback,
    user: *mut c_void,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let Some(callback) = callback else { fail!(NV_ERR_INVALID_POINTER, "callback is NULL") };
        let queue = QUEUES.get(queue)?;
        let mut call = Call { callback, user: user as usize, made: false };
        GIVING.set(true);
        let given = queue.call(move || call.make(NV_OK));
        GIVING.set(false);
        let given = given?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_queue_call` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}
