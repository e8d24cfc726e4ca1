//! The guard around every exported function: a panic stops here, and an error becomes a status and a sentence.

use crate::files::Refused;
use crate::logging;
use crate::status::RmError;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The first panic sets this flag. The state of the library may be half-changed since then, so every later call is
/// refused.
static POISONED: AtomicBool = AtomicBool::new(false);

/// Runs `call`. Its error is returned as a status, and the error's sentence becomes this thread's last error.
#[inline]
pub fn status(call: impl FnOnce() -> Result<(), RmError>) -> u32 {
    if POISONED.load(Ordering::Relaxed) {
        return refuse();
    }
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => NV_OK,
        Ok(Err(e)) => report(&e),
        Err(panic) => poison(&*panic),
    }
}

/// Runs `call` as a system call is made: the result is the value of `call`, or `failed` with `errno` set.
#[inline]
pub fn errno<T>(failed: T, call: impl FnOnce() -> Result<T, Box<Refused>>) -> T {
    if POISONED.load(Ordering::Relaxed) {
        refuse();
        Errno::EIO.set();
        return failed;
    }
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(refused)) => set_errno(*refused),
        Err(panic) => {
            poison(&*panic);
            Errno::EIO.set();
        }
    }
    failed
}

#[cold]
fn set_errno(refused: Refused) {
    remember(refused.sentence);
    refused.errno.set();
}

/// Makes an error this thread's last one and returns its status.
#[cold]
pub fn report(e: &RmError) -> u32 {
    logging::failed(e.status, &e.text, matches!(e.status, NV_ERR_TIMEOUT | NV_ERR_NOT_READY));
    remember(e.text.clone());
    e.status
}

#[cold]
fn refuse() -> u32 {
    remember("libtegrarm met a bug in itself before and refuses to go on; restart the process".to_owned());
    NV_ERR_INVALID_STATE
}

#[cold]
fn poison(panic: &(dyn std::any::Any + Send)) -> u32 {
    POISONED.store(true, Ordering::Relaxed);
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let sentence = format!("a bug in libtegrarm: {text}; please report it");
    logging::failed(NV_ERR_GENERIC, &sentence, false);
    remember(sentence);
    NV_ERR_GENERIC
}

/// Makes a sentence this thread's last error.
pub fn remember(sentence: String) {
    LAST_ERROR.with(|last| *last.borrow_mut() = sentence);
}

/// The sentence of this thread's last failure.
pub fn last_error<T>(look: impl FnOnce(&str) -> T) -> T {
    LAST_ERROR.with(|last| look(&last.borrow()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// This test needs a process of its own, because every call after a panic is refused.
    #[test]
    fn a_panic_is_a_status_and_the_library_stops() {
        const ROLE: &str = "TEGRARM_TEST_GUARD_ROLE";
        if std::env::var_os(ROLE).is_none() {
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args(["capi::guard::tests::a_panic_is_a_status_and_the_library_stops", "--exact"]).env(ROLE, "1");
            let output = child.output().expect("it starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            return;
        }
        assert_eq!(status(|| panic!("of the {}", "test")), NV_ERR_GENERIC);
        last_error(|text| assert!(text.contains("of the test"), "{text}"));
        assert_eq!(status(|| Ok(())), NV_ERR_INVALID_STATE);
        assert_eq!((errno(-1, || Ok(0)), Errno::last()), (-1, Errno::EIO));
    }
}
