//! NV_STATUS, and the error every layer above the kernel boundary returns.

use crate::tegra::KernelError;
use std::fmt;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;

/// A result of the Resource Manager: NV_STATUS and a sentence.
pub type RmResult<T> = Result<T, RmError>;

/// A failed call: the status its caller gets, and a sentence that names the object, the numbers and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RmError {
    /// NV_STATUS, never `NV_OK`.
    pub status: u32,
    /// The sentence `tegrarm_last_error` returns.
    pub text: String,
}

impl RmError {
    /// An error with its sentence.
    pub fn new(status: u32, text: impl Into<String>) -> RmError {
        RmError { status, text: text.into() }
    }

    /// The same failure, with what was being done in front of the sentence.
    #[must_use]
    pub fn during(mut self, what: impl fmt::Display) -> RmError {
        self.text = format!("{what}: {}", self.text);
        self
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

/// Puts what was being done in front of an error's sentence.
pub trait During<T> {
    /// `what` is only evaluated on failure.
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

/// `Err` with a status and a formatted sentence.
macro_rules! fail {
    ($status:expr, $($text:tt)+) => {
        return Err($crate::status::RmError::new($status, format!($($text)+)))
    };
}
pub(crate) use fail;

/// The status that reports a kernel errno when the caller of the kernel knows nothing better.
pub fn of_errno(errno: Errno) -> u32 {
    match errno {
        Errno::ENOMEM | Errno::ENOSPC => NV_ERR_NO_MEMORY,
        Errno::EPERM | Errno::EACCES => NV_ERR_INSUFFICIENT_PERMISSIONS,
        Errno::EINVAL => NV_ERR_INVALID_ARGUMENT,
        Errno::EBUSY | Errno::EEXIST => NV_ERR_STATE_IN_USE,
        Errno::ETIMEDOUT => NV_ERR_TIMEOUT,
        Errno::ENODEV | Errno::ENXIO => NV_ERR_RESOURCE_LOST,
        Errno::ENOENT => NV_ERR_CARD_NOT_PRESENT,
        Errno::ENOTTY | Errno::ENOSYS => NV_ERR_NOT_SUPPORTED,
        _ => NV_ERR_OPERATING_SYSTEM,
    }
}

/// Upstream's name of a status; `"Unknown"` for numbers that have none.
pub fn name(status: u32) -> &'static str {
    STATUS_CONSTS.iter().find(|c| c.value == i128::from(status)).map_or("Unknown", |c| c.name)
}
