//! What the library tells a program that asks.

use super::guard::status;
use super::objects::{NV_STATUS, NvU32};
use super::shield;
use crate::logging;
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::fail;

/// How important a message is: a value of the argument `level` of `tegrarm_log`. A level includes the ones before it.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_log_level {
    /// Nothing.
    TEGRARM_LOG_OFF = 0,
    /// Calls that fail, with their sentences. A wait that ends with a timeout is a message of `TEGRARM_LOG_DEBUG`.
    TEGRARM_LOG_ERROR = 1,
    /// Something that the library could not do, although it could continue.
    TEGRARM_LOG_WARN = 2,
    /// Something that is said once and that a program may want to know.
    TEGRARM_LOG_INFO = 3,
    /// The actions of the library.
    TEGRARM_LOG_DEBUG = 4,
    /// Every call to a driver.
    TEGRARM_LOG_TRACE = 5,
}

const FINEST_LEVEL: NvU32 = tegrarm_log_level::TEGRARM_LOG_TRACE as NvU32;
const _: () = assert!(FINEST_LEVEL as u8 == logging::TRACE);

/// Who is told: `level` is a value of `enum tegrarm_log_level`, `status` is that of the call that failed, or `NV_OK` for a message that
/// is about none, `message` is a sentence that is valid during the call, and `user` is what `tegrarm_log` was given.
#[allow(non_camel_case_types)]
pub type tegrarm_log_callback =
    Option<unsafe extern "C-unwind" fn(level: NvU32, status: NV_STATUS, message: *const c_char, user: *mut c_void)>;

/// Makes the library call `callback` with its messages up to `level`, one of `enum tegrarm_log_level`. With NULL, or
/// with `TEGRARM_LOG_OFF`, no function is called any more. There is one callback in a process, and a new one replaces
/// it. The environment variable `TEGRARM_LOG`, which writes to standard error, is independent of it. `user` is passed
/// on to the callback.
///
/// It is called in the thread that the message is about, in several threads at the same time, and in the middle of
/// other functions: it may call only `tegrarm_status_name`. A message without a status is not a stable interface. With
/// `TEGRARM_LOG_TRACE`, calls to the drivers are messages only if this function is called before the library is
/// initialised.
///
/// Errors:
/// - `NV_ERR_INVALID_ARGUMENT`: `level` is more than `TEGRARM_LOG_TRACE`.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_log(level: NvU32, callback: tegrarm_log_callback, user: *mut c_void) -> NV_STATUS {
    status(|| {
        if level > FINEST_LEVEL {
            fail!(NV_ERR_INVALID_ARGUMENT, "log level {level}: at most TEGRARM_LOG_TRACE ({FINEST_LEVEL})");
        }
        let user = user as usize;
        let listener = callback.filter(|_| level > 0).map(|callback| {
            let tell = move |level: u8, status: u32, sentence: &str| {
                let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
                // SAFETY: `callback` is what `tegrarm_log` asks of its caller, and takes what the caller gave as `user`.
                let tell = || unsafe { callback(level.into(), status, sentence.as_ptr(), user as *mut c_void) };
                shield::call("tegrarm_log", tell);
            };
            Arc::new(tell) as Arc<logging::Listener>
        });
        logging::listen(level as u8, listener);
        Ok(())
    })
}
