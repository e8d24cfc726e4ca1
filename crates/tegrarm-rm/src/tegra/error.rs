//! A failed system call.

use std::fmt;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::registry;
use tegrarm_kmd::{Errno, File};

/// The error of a system call: which call failed, and with which errno.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The ioctl's upstream name, or the system call and its argument.
    pub call: String,
    /// The kernel's errno.
    pub errno: Errno,
}

impl KernelError {
    /// Makes an error from the name of a call and an errno.
    pub fn new(call: impl Into<String>, errno: Errno) -> KernelError {
        KernelError { call: call.into(), errno }
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with {:?} ({})", self.call, self.errno, self.errno.desc())
    }
}

impl std::error::Error for KernelError {}

/// Makes one ioctl. An error has the ioctl's upstream name.
pub(crate) fn call<T: AbiStruct>(file: &File, request: u32, arg: &mut T) -> Result<(), KernelError> {
    file.ioctl(request, arg).map_err(|errno| named(file, request, errno))
}

/// The same as [`call`], for ioctls whose argument is a plain integer.
pub(crate) fn call_value(file: &File, request: u32, value: u64) -> Result<(), KernelError> {
    file.ioctl_value(request, value).map_err(|errno| named(file, request, errno))
}

#[cold]
fn named(file: &File, request: u32, errno: Errno) -> KernelError {
    let name = registry::ioctl(file.node(), request).map_or("an unnamed ioctl", |i| i.name);
    KernelError::new(name, errno)
}
