//! What every exported function passes through.

use crate::exports::FUNCTIONS;
use crate::log::{self, Level};
use crate::numbers::{CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS};
use crate::result::{self, Answer, Error};
use crate::symbols::State;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether the default stream of the present call is the thread's own: the call came through a symbol that ends with `_ptsz` or `_ptds`.
pub fn per_thread_default() -> bool {
    PER_THREAD.get()
}

/// Runs what answers the function with this row. A panic ends here.
pub fn call(row: usize, per_thread: bool, answer: impl FnOnce() -> Answer) -> u32 {
    PER_THREAD.set(per_thread);
    let code = match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(Ok(())) => CUDA_SUCCESS,
        Ok(Err(error)) => failed(row, &error),
        Err(_) => {
            log::say(Level::Notice, &format!("{} met a bug in the library", FUNCTIONS[row].symbol));
            CUDA_ERROR_UNKNOWN
        }
    };
    if log::level() >= Level::Trace {
        log::say(Level::Trace, &format!("{} = {code}", FUNCTIONS[row].symbol));
    }
    code
}

#[cold]
fn failed(row: usize, error: &Error) -> u32 {
    if let Some(text) = &error.text {
        let name = result::name(error.code).and_then(|name| name.to_str().ok()).unwrap_or("an unknown result");
        log::say(Level::Error, &format!("{}: {name}: {text}", FUNCTIONS[row].symbol));
    }
    error.code
}

/// Answers a function that is refused. The first call says why.
pub fn refuse(row: usize) -> u32 {
    static SAID: [AtomicBool; FUNCTIONS.len()] = [const { AtomicBool::new(false) }; FUNCTIONS.len()];
    let function = &FUNCTIONS[row];
    if let State::Refused(why) = function.state {
        log::once(&SAID[row], &format!("{} is refused (CUDA_ERROR_NOT_SUPPORTED): {why}", function.symbol));
    }
    CUDA_ERROR_NOT_SUPPORTED
}
