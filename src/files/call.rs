//! One ioctl in progress: how handlers fail, and how arguments go in and out.

use super::node::OpenFile;
use super::table::Table;
use crate::rm::params::set_word;
use crate::rm::{Asked, Rm, user};
use crate::status::{RmError, RmResult, fail};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::rm::status::{NV_ERR_INVALID_CLIENT, NV_ERR_NOT_SUPPORTED, NV_OK};
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

    /// Notes a refusal; the errno that says so.
    #[cold]
    pub fn refuse(&self, what: Asked, why: &str) -> Box<Refused> {
        self.rm().report().refuse(what, why);
        Refused::new(Errno::EINVAL, format!("{what} is refused: {why}"))
    }

    /// Notes a refusal; the status that says so in the call's structure.
    #[cold]
    pub fn unsupported(&self, what: Asked, why: &str) -> Result<(), Fail> {
        let Refused { sentence, .. } = *self.refuse(what, why);
        Err(RmError::new(NV_ERR_NOT_SUPPORTED, sentence).into())
    }

    /// Whether a client may be used through the file: RM wants the open file that it was allocated through, or one that
    /// is registered with that. A client that does not exist passes; each verb has a status of its own for it.
    ///
    /// # Errors
    /// 0x23 for a client of another open file.
    #[inline]
    pub fn check_client(&self, client: u32) -> RmResult<()> {
        if self.file.owns_client(client) { Ok(()) } else { self.no_client_of_others(client) }
    }

    #[cold]
    fn no_client_of_others(&self, client: u32) -> RmResult<()> {
        if self.rm().has_client(client) {
            fail!(
                NV_ERR_INVALID_CLIENT,
                "client {client:#x} was allocated through another open file: use that one, or register this one with it"
            );
        }
        Ok(())
    }

    /// The open file behind another descriptor of the caller.
    pub fn other(&self, fd: RawFd) -> Option<Arc<OpenFile>> {
        self.table.find(fd).ok()
    }
}

/// A call that is wrong in itself: `ioctl(2)` returns -1.
#[derive(Debug)]
pub struct Refused {
    /// What `errno` becomes.
    pub errno: Errno,
    /// For `tegrarm_last_error`.
    pub sentence: String,
}

impl Refused {
    /// An errno with its sentence.
    #[cold]
    pub fn new(errno: Errno, sentence: impl Into<String>) -> Box<Refused> {
        Box::new(Refused { errno, sentence: sentence.into() })
    }
}

/// Why an ioctl failed.
#[derive(Debug)]
pub enum Fail {
    /// The call itself was wrong: `ioctl(2)` returns -1.
    Errno(Box<Refused>),
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
    Fail::Errno(Refused::new(Errno::EINVAL, text))
}

/// What an ioctl came to: `Ok` when `ioctl(2)` returns 0, with what RM refused, if it did. The structure has its status.
pub type Outcome = Result<Option<RmError>, Box<Refused>>;

/// Copies an argument in, runs `call`, puts the status where it belongs, copies the argument out.
pub fn with_argument(
    argp: u64,
    size: usize,
    status: Option<usize>,
    call: impl FnOnce(&mut [u8]) -> Result<(), Fail>,
) -> Outcome {
    user::with_room(size, |bytes| {
        user::read(argp, bytes).map_err(fault)?;
        let answer = call(bytes);
        finish(argp, bytes, status, answer)
    })
}

/// Copies an answered argument out. As desktop RM does, it copies out after failures too: some of them fill the structure.
pub fn finish(argp: u64, bytes: &mut [u8], status: Option<usize>, answer: Result<(), Fail>) -> Outcome {
    let outcome = match (answer, status) {
        (Err(Fail::Errno(refused)), _) => Err(refused),
        (Err(Fail::Status(e)), None) => Err(Refused::new(Errno::EINVAL, e.to_string())),
        (Err(Fail::Status(e)), Some(at)) => {
            set_word(bytes, at, e.status);
            Ok(Some(e))
        }
        (Ok(()), at) => {
            at.into_iter().for_each(|at| set_word(bytes, at, NV_OK));
            Ok(None)
        }
    };
    user::write(argp, bytes).map_err(fault)?;
    outcome
}

/// An argument that is not where the caller says.
#[cold]
pub fn fault(e: RmError) -> Box<Refused> {
    Refused::new(Errno::EFAULT, e.text.as_str())
}
