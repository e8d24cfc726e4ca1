//! What every exported function passes through.

use crate::api::initialized;
use crate::log::{self, Level};
use crate::numbers::{
    CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS,
};
use crate::result::{self, Answer, Error};
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

/// Runs what answers the function with this name, if cuInit was called in this process.
pub fn call(symbol: &'static str, per_thread: bool, answer: impl FnOnce() -> Answer) -> u32 {
    call_at_any_time(symbol, per_thread, || {
        initialized()?;
        answer()
    })
}

/// Runs what answers the function with this name. A panic ends here.
pub fn call_at_any_time(symbol: &'static str, per_thread: bool, answer: impl FnOnce() -> Answer) -> u32 {
    PER_THREAD.set(per_thread);
    let code = match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(Ok(())) => CUDA_SUCCESS,
        Ok(Err(error)) => failed(symbol, &error),
        Err(_) => {
            log::say(Level::Notice, &format!("{} met a bug in the library", symbol));
            CUDA_ERROR_UNKNOWN
        }
    };
    if log::level() >= Level::Trace {
        log::say(Level::Trace, &format!("{} = {code}", symbol));
    }
    code
}

/// Machine code that cannot be loaded is told without being asked for: modules are loaded at their first launch, and programs with <<<...>>>
/// often ask for no result of a launch. Their numbers would be wrong without a word.
const TOLD: [u32; 2] = [CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU];

#[cold]
fn failed(symbol: &str, error: &Error) -> u32 {
    if let Some(text) = &error.text {
        let name = result::name(error.code).and_then(|name| name.to_str().ok()).unwrap_or("an unknown result");
        let level = if TOLD.contains(&error.code) { Level::Notice } else { Level::Error };
        log::say(level, &format!("{}: {name}: {text}", symbol));
    }
    error.code
}

/// Answers a function that is refused. The first call says why: `said` is the function's own.
pub fn refuse(symbol: &str, why: &str, said: &AtomicBool) -> u32 {
    log::once(said, &format!("{symbol} is refused (CUDA_ERROR_NOT_SUPPORTED): {why}"));
    CUDA_ERROR_NOT_SUPPORTED
}
