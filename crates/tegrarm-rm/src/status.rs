//! NV_STATUS, and the error that every layer above the kernel boundary returns.

use crate::tegra::KernelError;
use std::fmt;
use std::ops::{Deref, DerefMut};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;

/// A result of the Resource Manager. The error is an NV_STATUS with a sentence.
pub type RmResult<T> = Result<T, RmError>;

/// The error of a failed call, as its caller gets it. It is one pointer, so that a small result is returned in
/// registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RmError(Box<Failure>);

/// The contents of an [`RmError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The NV_STATUS. It is never `NV_OK`.
    pub status: u32,
    /// The sentence that `tegrarm_last_error` returns.
    pub text: String,
}

impl RmError {
    /// Makes an error from a status and a sentence.
    #[cold]
    pub fn new(status: u32, text: impl Into<String>) -> RmError {
        RmError(Box::new(Failure { status, text: text.into() }))
    }

    /// The same error with a sentence that first says what was being done.
    #[must_use]
    #[cold]
    pub fn during(mut self, what: impl fmt::Display) -> RmError {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// The same sentence with another status.
    #[must_use]
    pub fn with_status(mut self, status: u32) -> RmError {
        self.status = status;
        self
    }
}

impl Deref for RmError {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl DerefMut for RmError {
    fn deref_mut(&mut self) -> &mut Failure {
        &mut self.0
    }
}

impl fmt::Display for RmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#x}): {}", name(self.status), self.status, self.text)
    }
}

impl std::error::Error for RmError {}

impl From<KernelError> for RmError {
    fn from(e: KernelError) -> RmError {
        RmError::new(of_errno(e.errno), e.to_string())
    }
}

/// Adds to an error's sentence what was being done.
pub trait During<T> {
    /// Adds `what` in front of the sentence. `what` is evaluated only after an error.
    ///
    /// # Errors
    /// The error passed in, as [`RmError`].
    fn during<D: fmt::Display>(self, what: impl FnOnce() -> D) -> RmResult<T>;
}

impl<T, E: Into<RmError>> During<T> for Result<T, E> {
    fn during<D: fmt::Display>(self, what: impl FnOnce() -> D) -> RmResult<T> {
        self.map_err(|e| e.into().during(what()))
    }
}

/// Returns `Err` with a status and a formatted sentence.
#[macro_export]
macro_rules! fail {
    ($status:expr, $($text:tt)+) => {
        return Err($crate::status::RmError::new($status, format!($($text)+)))
    };
}
pub use fail;

/// The status that reports a kernel errno, for callers that have no better one.
pub fn of_errno(errno: Errno) -> u32 {
    match errno {
        Errno::ENOMEM | Errno::ENOSPC => NV_ERR_NO_MEMORY,
        Errno::EPERM | Errno::EACCES => NV_ERR_INSUFFICIENT_PERMISSIONS,
        Errno::EINVAL => NV_ERR_INVALID_ARGUMENT,
        Errno::EBUSY | Errno::EEXIST => NV_ERR_STATE_IN_USE,
        Errno::ETIMEDOUT => NV_ERR_TIMEOUT,
        Errno::ENODEV | Errno::ENXIO => NV_ERR_RESOURCE_LOST,
        Errno::ENOENT => NV_ERR_CARD_NOT_PRESENT,
        Errno::ENOTTY | Errno::ENOSYS | Errno::EOPNOTSUPP => NV_ERR_NOT_SUPPORTED,
        _ => NV_ERR_OPERATING_SYSTEM,
    }
}

/// The upstream name of a status, or `"Unknown"` for a number that has no name.
pub fn name(status: u32) -> &'static str {
    STATUS_CONSTS.iter().find(|c| c.value == i128::from(status)).map_or("Unknown", |c| c.name)
}
