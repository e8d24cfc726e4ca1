//! The guard around every exported function: a panic stops here, an error becomes a status and a sentence, and nobody
//! cancels the thread in between.

use super::{room, shield};
use crate::files::Refused;
use crate::logging;
use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;
use tegrarm_rm::status::RmError;

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The first panic or jump sets this flag. The state of the library may be half-changed since then, so every later call is
/// refused.
static POISONED: AtomicBool = AtomicBool::new(false);
/// Whether that was because of a jump out of a callback.
static JUMPED: AtomicBool = AtomicBool::new(false);

/// Runs `call`. Its error is returned as a status, and the error's sentence becomes this thread's last error.
#[inline]
pub fn status(call: impl FnOnce() -> Result<(), RmError>) -> u32 {
    if is_over() {
        return refuse();
    }
    if let Err(e) = room::check() {
        return report(&e);
    }
    let _uncancelled = Uncancelled::begin();
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => NV_OK,
        Ok(Err(e)) => report(&e),
        Err(panic) => poison(&*panic),
    }
}

/// Runs `attempt`, and if it does nothing and returns `None`, runs `call` as [`status`] does. An attempt only stores to memory. It
/// reaches no cancellation point, drops no object, and needs little stack, so that a panic is all that has to be guarded against.
#[inline]
pub fn attempt_or(attempt: impl FnOnce() -> Option<()>, call: impl FnOnce() -> Result<(), RmError>) -> u32 {
    attempted(attempt, || status(call))
}

/// Runs `attempt` alone, and returns `NV_ERR_BUSY_RETRY` without a sentence if it does nothing. An attempt is as [`attempt_or`] wants it.
#[inline]
pub fn attempt_now(attempt: impl FnOnce() -> Option<()>) -> u32 {
    attempted(attempt, || NV_ERR_BUSY_RETRY)
}

#[inline(always)]
fn attempted(attempt: impl FnOnce() -> Option<()>, otherwise: impl FnOnce() -> u32) -> u32 {
    if is_over() {
        return refuse();
    }
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Some(())) => NV_OK,
        Ok(None) => otherwise(),
        Err(panic) => poison(&*panic),
    }
}

/// Runs `call` as a system call is made: the result is the value of `call`, or `failed` with `errno` set.
#[inline]
pub fn errno<T>(failed: T, call: impl FnOnce() -> Result<T, Box<Refused>>) -> T {
    if is_over() {
        refuse();
        Errno::EIO.set();
        return failed;
    }
    if let Err(e) = room::check() {
        report(&e);
        Errno::ENOMEM.set();
        return failed;
    }
    let _uncancelled = Uncancelled::begin();
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

/// Whether the library goes on no more.
#[inline]
fn is_over() -> bool {
    POISONED.load(Ordering::Relaxed) || shield::any_runs() && has_jumped()
}

#[cold]
fn has_jumped() -> bool {
    let jumped = shield::jumped();
    if jumped {
        POISONED.store(true, Ordering::Relaxed);
        JUMPED.store(true, Ordering::Relaxed);
    }
    jumped
}

/// For as long as it lives, a cancellation of this thread waits. It would unwind through frames that hold locks, and
/// waits would end in the middle of what they do.
struct Uncancelled(c_int);

#[allow(unused_doc_comments, reason = "the comment is for cbindgen")]
/// cbindgen:ignore
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Uncancelled {
    #[inline]
    fn begin() -> Uncancelled {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: the function stores the state before in the second argument, and fails for no such state.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the state is what the function itself said. NULL is no place for the state before.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
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
    let why = match JUMPED.load(Ordering::Relaxed) {
        true => "a callback was left with longjmp, which cut a call of libtegrarm short",
        false => "libtegrarm met a bug in itself before",
    };
    remember(format!("{why}: it refuses to go on; restart the process"));
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

/// Makes a sentence this thread's last error. A thread that ends has none any more: a program's own variables of the thread may call the
/// library when they end.
pub fn remember(sentence: String) {
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = sentence);
}

/// The sentence of this thread's last failure.
pub fn last_error<T>(look: impl FnOnce(&str) -> T) -> T {
    look(&LAST_ERROR.try_with(|last| last.borrow().clone()).unwrap_or_default())
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
