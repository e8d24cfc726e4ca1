//! One ioctl while it is answered: how handlers fail, and how arguments are copied in and out.

use super::node::OpenFile;
use super::table::Table;
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::rm::status::{NV_ERR_INVALID_CLIENT, NV_ERR_NOT_SUPPORTED, NV_OK};
use tegrarm_kmd::Errno;
use tegrarm_rm::rm::params::set_word;
use tegrarm_rm::rm::{Asked, Rm, user};
use tegrarm_rm::status::{RmError, RmResult, fail};

/// One ioctl, as its handler sees it.
pub struct Call<'a> {
    /// The open files, for calls that name another descriptor.
    pub table: &'a Table,
    /// The file on which the ioctl was made.
    pub file: &'a Arc<OpenFile>,
}

impl Call<'_> {
    /// The manager behind the file.
    pub fn rm(&self) -> &Arc<Rm> {
        self.file.rm()
    }

    /// Notes a refusal and returns the errno for the caller.
    #[cold]
    pub fn refuse(&self, asked: Asked, name: &str, why: &str) -> Box<Refused> {
        self.rm().report().refuse(asked, name, why);
        Refused::new(Errno::EINVAL, format!("{} is refused: {why}", asked.called(name)))
    }

    /// Notes a refusal and returns the status for the call's structure.
    #[cold]
    pub fn unsupported(&self, asked: Asked, name: &str, why: &str) -> Result<(), Fail> {
        let Refused { sentence, .. } = *self.refuse(asked, name, why);
        Err(RmError::new(NV_ERR_NOT_SUPPORTED, sentence).into())
    }

    /// Checks that a client may be used through this file. RM accepts the open file through which the client was
    /// allocated, and files that are registered with it. A client that does not exist passes, because each verb has a
    /// status of its own for that case.
    ///
    /// # Errors
    /// INVALID_CLIENT for a client of another open file.
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

/// A call that is wrong in itself, so that `ioctl(2)` returns -1.
#[derive(Debug)]
pub struct Refused {
    /// The value of `errno`.
    pub errno: Errno,
    /// The sentence for `tegrarm_last_error`.
    pub sentence: String,
}

impl Refused {
    /// Makes a refusal from an errno and its sentence.
    #[cold]
    pub fn new(errno: Errno, sentence: impl Into<String>) -> Box<Refused> {
        Box::new(Refused { errno, sentence: sentence.into() })
    }
}

/// The reason why an ioctl failed.
#[derive(Debug)]
pub enum Fail {
    /// The call itself was wrong: `ioctl(2)` returns -1.
    Errno(Box<Refused>),
    /// RM refused: `ioctl(2)` returns 0, and the structure has the status.
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

/// The result of an ioctl. `Ok` means that `ioctl(2)` returns 0; it contains RM's refusal if there was one, and the
/// structure has its status.
pub type Outcome = Result<Option<RmError>, Box<Refused>>;

/// Copies an argument in, runs `call`, writes the status into the argument and copies the argument out.
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

/// Copies an answered argument out. Like desktop RM, it does so after failures too, because some failures fill the
/// structure.
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

/// The refusal of an argument that cannot be read or written at its address.
#[cold]
pub fn fault(e: RmError) -> Box<Refused> {
    Refused::new(Errno::EFAULT, e.text.as_str())
}
