//! One ioctl in progress: how handlers fail, and how arguments go in and out.

use super::node::OpenFile;
use super::table::Table;
use crate::rm::Rm;
use crate::rm::user;
use crate::status::RmError;
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_kmd::Errno;

/// One ioctl, as handlers see it.
pub struct Call<'a> {
    /// Open files, for calls that name another descriptor.
    pub table: &'a Table,
    /// The file it was made on.
    pub file: &'a Arc<OpenFile>,
}

impl Call<'_> {
    /// The manager behind the file.
    pub fn rm(&self) -> &Arc<Rm> {
        self.file.rm()
    }

    /// The open file behind another descriptor of the caller.
    pub fn other(&self, fd: RawFd) -> Option<Arc<OpenFile>> {
        self.table.find(fd).ok()
    }
}

/// Why an ioctl failed.
#[derive(Debug)]
pub enum Fail {
    /// The call itself was wrong: `ioctl(2)` returns -1.
    Errno(Errno, String),
    /// RM refused: `ioctl(2)` returns 0, the structure says why.
    Status(RmError),
}

impl From<RmError> for Fail {
    fn from(e: RmError) -> Fail {
        Fail::Status(e)
    }
}

/// `EINVAL`, with a sentence.
pub fn invalid(text: impl Into<String>) -> Fail {
    Fail::Errno(Errno::EINVAL, text.into())
}

/// What an ioctl came to: an errno, if it is one, and the sentence of whatever failed.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `None`: `ioctl(2)` returns 0.
    pub errno: Option<Errno>,
    /// For `tegrarm_last_error`; empty when nothing failed.
    pub sentence: String,
}

/// Arguments up to this size are copied to the stack.
const SMALL: usize = 512;

/// Copies an argument in, runs `call`, puts the status where it belongs, copies the argument out. As desktop RM does, it
/// copies out after failures too: some of them fill the structure.
pub fn with_argument(
    argp: u64,
    size: usize,
    status: Option<usize>,
    call: impl FnOnce(&mut [u8]) -> Result<(), Fail>,
) -> Outcome {
    let mut small = [0u8; SMALL];
    let mut large = Vec::new();
    let bytes = if size <= SMALL {
        &mut small[..size]
    } else {
        large.resize(size, 0);
        &mut large[..]
    };
    if let Err(e) = user::read(argp, bytes) {
        return Outcome { errno: Some(Errno::EFAULT), sentence: e.text };
    }
    let mut outcome = Outcome::default();
    let code = match call(bytes) {
        Ok(()) => 0,
        Err(Fail::Status(e)) => {
            outcome.sentence = e.to_string();
            e.status
        }
        Err(Fail::Errno(errno, text)) => {
            outcome = Outcome { errno: Some(errno), sentence: text };
            0
        }
    };
    match status {
        Some(at) if outcome.errno.is_none() => bytes[at..at + 4].copy_from_slice(&code.to_le_bytes()),
        None if code != 0 => outcome.errno = Some(Errno::EINVAL),
        _ => {}
    }
    if let Err(e) = user::write(argp, bytes) {
        return Outcome { errno: Some(Errno::EFAULT), sentence: e.text };
    }
    outcome
}
