//! A failed system call.

use std::fmt;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::registry;
use tegrarm_kmd::{Errno, File};

/// Which call failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The ioctl's upstream name, or the system call and what it was applied to.
    pub call: String,
    /// The kernel's errno.
    pub errno: Errno,
}

impl KernelError {
    /// A failed call by name.
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

/// One ioctl; a failure carries its upstream name.
pub(crate) fn call<T: AbiStruct>(file: &File, request: u32, arg: &mut T) -> Result<(), KernelError> {
    file.ioctl(request, arg).map_err(|errno| named(file, request, errno))
}

/// As [`call`], for ioctls whose argument is a plain integer.
pub(crate) fn call_value(file: &File, request: u32, value: u64) -> Result<(), KernelError> {
    file.ioctl_value(request, value).map_err(|errno| named(file, request, errno))
}

#[cold]
fn named(file: &File, request: u32, errno: Errno) -> KernelError {
    let name = registry::ioctl(file.node(), request).map_or("an unnamed ioctl", |i| i.name);
    KernelError::new(name, errno)
}
