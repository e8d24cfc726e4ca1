//! One row of the control table, and what its handler gets.

use crate::rm::Rm;
use crate::rm::classes::Support;
use crate::rm::client::Client;
use crate::rm::object::{Object, Tags};
use crate::status::RmResult;
use std::sync::Arc;

/// A handler, which reads and writes the parameters in place.
pub type Run = fn(&ControlCall, &mut [u8]) -> RmResult<()>;

/// One control.
pub struct ControlRow {
    /// The command number.
    pub cmd: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// The kinds of objects that take the control.
    pub objects: Tags,
    /// The sizes of its parameters over the driver generations. The size 0 means that it has no parameters.
    pub sizes: &'static [usize],
    /// The handler that answers it.
    pub run: Run,
    /// How far it is supported.
    pub state: Support,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

/// One control while it is answered.
pub struct ControlCall<'a> {
    /// The manager.
    pub rm: &'a Rm,
    /// The client.
    pub client: &'a Arc<Client>,
    /// The object to which the control was sent.
    pub object: &'a Arc<Object>,
    /// The row of the control.
    pub row: &'static ControlRow,
}
