//! The way from a raw ioctl to its handler, with the checks that every dispatcher of nvgpu and nvmap makes
//! (docs/hardware/nvgpu-overview.md#dispatcher).

use crate::process::Process;
use crate::release::{L4t, PerRelease, Releases};
use crate::rule::{self, Because};
use std::sync::Arc;
use tegrarm_abi::layout::{AbiStruct, argument_size, copy_shared_fields};
use tegrarm_kmd::{Arg, Errno};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub(crate) use crate::files::Call;

/// The largest argument of any node, which is that of the ctrl node.
const MAX_ARG: usize = 264;

/// How a handler fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The call returns an errno.
    Errno(Errno),
    /// The call returns the number of bytes that `copy_to_user` could not copy. nvgpu returns it unchanged, so it is a
    /// positive result.
    Uncopied(usize),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

/// The result of a handler.
pub(super) type Reply<T = ()> = Result<T, Stop>;

impl Call<'_> {
    /// Reads the caller's memory.
    pub(super) fn copy_in(&self, addr: u64, bytes: &mut [u8]) -> Reply {
        Ok(self.process.read(addr, bytes)?)
    }

    /// Reads one structure from the caller's memory.
    pub(super) fn copy_in_as<T: FromBytes + IntoBytes>(&self, addr: u64) -> Reply<T> {
        let mut value = T::new_zeroed();
        self.process.read(addr, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads an array of structures from the caller's memory.
    pub(super) fn copy_in_array<T: FromBytes + IntoBytes>(&self, addr: u64, count: usize) -> Reply<Vec<T>> {
        let mut values: Vec<T> = std::iter::repeat_with(T::new_zeroed).take(count).collect();
        self.process.read(addr, values.as_mut_slice().as_mut_bytes())?;
        Ok(values)
    }

    /// Writes to a second buffer of the caller. The error is `EFAULT`.
    pub(super) fn copy_out(&self, addr: u64, bytes: &[u8]) -> Reply {
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.process.write(addr, bytes)?)
    }

    /// Writes to a second buffer of the caller, for calls in which nvgpu returns the count of `copy_to_user` unchanged.
    pub(super) fn copy_out_counted(&self, addr: u64, bytes: &[u8]) -> Reply {
        self.copy_out(addr, bytes).map_err(|_| Stop::Uncopied(bytes.len()))
    }

    /// Whether the node was opened for reading only.
    pub(super) fn read_only(&self) -> bool {
        self.process.read_only(self.fd)
    }

    /// Whether the kernel belongs to the r35 line.
    pub(super) fn is_r35(&self) -> bool {
        self.board.config.l4t.is_r35()
    }

    /// Whether the kernel belongs to the r39 line.
    pub(super) fn is_r39(&self) -> bool {
        self.board.config.l4t.is_r39()
    }
}

/// A handler, which works on the raw bytes of the argument.
type Handler<O> = fn(&Call<'_>, &Arc<O>, &mut [u8]) -> Reply;

/// One ioctl of one node.
pub(super) struct Row<O: 'static> {
    pub name: &'static str,
    pub number: u32,
    /// The releases that have the ioctl.
    pub releases: Releases,
    pub handler: Handler<O>,
}

/// The result when the argument cannot be copied back to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyBack {
    /// The call returns `EFAULT`.
    Errno,
    /// The call returns the positive number of bytes.
    Count,
}

/// The dispatcher of a node.
pub(super) struct Table<O: 'static> {
    pub magic: u8,
    /// The highest number of an ioctl.
    pub last: PerRelease<u32>,
    /// The size of the largest argument in bytes.
    pub max_arg: PerRelease<usize>,
    pub copy_back: CopyBack,
    pub rows: &'static [Row<O>],
}

/// Calls a handler on the structure in the argument bytes.
pub(super) fn typed<O, T: FromBytes + IntoBytes + Immutable>(
    call: &Call<'_>,
    object: &Arc<O>,
    bytes: &mut [u8],
    handler: fn(&Call<'_>, &Arc<O>, &mut T) -> Reply,
) -> Reply {
    let mut args = T::read_from_bytes(bytes).expect("a row names the structure of its request");
    let reply = handler(call, object, &mut args);
    bytes.copy_from_slice(args.as_bytes());
    reply
}

/// Answers an ioctl whose structure has the layout `Old` on another release with the handler for r36's layout `New`.
/// Fields are copied by name, into the call and, if it succeeds, out of it. Fields that the other structure lacks are
/// zero.
pub(super) fn as_r36<Old: AbiStruct, New: AbiStruct>(args: &mut Old, run: impl FnOnce(&mut New) -> Reply) -> Reply {
    let mut full = New::new_zeroed();
    copy_shared_fields(args, &mut full);
    run(&mut full)?;
    copy_shared_fields(&full, args);
    Ok(())
}

/// Makes rows of a dispatch table, from `RELEASES NUMBER => handler;`.
macro_rules! rows {
    ($($releases:ident $name:ident => $handler:expr;)*) => {
        &[$(Row {
            name: stringify!($name),
            number: $name,
            releases: crate::release::Releases::$releases,
            handler: |call, object, bytes| crate::dispatch::typed(call, object, bytes, $handler),
        }),*]
    };
}
pub(super) use rows;

/// The direction and size fields of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request(pub u32);

impl Request {
    pub(super) fn nr(self) -> u32 {
        self.0 & 0xff
    }
    pub(super) fn magic(self) -> u8 {
        (self.0 >> 8) as u8
    }
    pub(super) fn size(self) -> usize {
        argument_size(self.0)
    }
    /// Whether the caller writes the argument and the kernel reads it.
    fn copies_in(self) -> bool {
        self.0 >> 30 & 1 == 1
    }
    /// Whether the caller reads the argument afterwards.
    fn copies_out(self) -> bool {
        self.0 >> 31 == 1
    }
}

/// Copies the argument of an ioctl from the caller.
pub(super) fn fetch(process: &dyn Process, arg: &Arg<'_>, bytes: &mut [u8]) -> Result<(), Errno> {
    match arg {
        _ if bytes.is_empty() => Ok(()),
        Arg::Bytes(theirs) => theirs.get(..bytes.len()).map(|b| bytes.copy_from_slice(b)).ok_or(Errno::EFAULT),
        Arg::Value(addr) => process.read(*addr, bytes),
    }
}

/// Copies the argument of an ioctl back to the caller.
pub(super) fn store(process: &dyn Process, arg: &mut Arg<'_>, bytes: &[u8]) -> Result<(), Errno> {
    match arg {
        _ if bytes.is_empty() => Ok(()),
        Arg::Bytes(theirs) => theirs.get_mut(..bytes.len()).map(|b| b.copy_from_slice(bytes)).ok_or(Errno::EFAULT),
        Arg::Value(addr) => process.write(*addr, bytes),
    }
}

/// Answers one ioctl of a node of another driver. If the handler succeeds, the argument is copied back as the handler left it.
/// The error is `ENOTTY` for an unknown number.
pub(super) fn answer<O>(
    rows: &[Row<O>],
    call: &Call<'_>,
    object: &Arc<O>,
    request: u32,
    mut arg: Arg<'_>,
) -> Result<i32, Errno> {
    let row = rows.iter().find(|row| row.number == request).ok_or(Errno::ENOTTY)?;
    let mut buffer = [0; MAX_ARG];
    let bytes = &mut buffer[..Request(request).size()];
    fetch(call.process, &arg, bytes)?;
    let reply = (row.handler)(call, object, bytes);
    tracing::trace!(target: "tegra_sim::ioctl", name = row.name, ?reply);
    match reply {
        Ok(()) => store(call.process, &mut arg, bytes).map(|()| 0),
        Err(Stop::Errno(errno)) => Err(errno),
        Err(Stop::Uncopied(_)) => Err(Errno::EFAULT),
    }
}

impl<O> Table<O> {
    /// The row that handles `request` on `l4t`.
    pub(super) fn row(&self, request: u32, l4t: L4t) -> Option<&Row<O>> {
        self.rows.iter().find(|row| row.number == request && row.releases.contains(l4t.generation()))
    }

    /// Runs one ioctl of an nvgpu node: the checks in nvgpu's order, then the handler.
    pub(super) fn run(&self, call: &Call<'_>, object: &Arc<O>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        self.run_if(call, object, request, arg, || Ok(()))
    }

    /// The same as [`Table::run`]. The node's own check is made after copying in and before looking the command up.
    pub(super) fn run_if(
        &self,
        call: &Call<'_>,
        object: &Arc<O>,
        request: u32,
        mut arg: Arg<'_>,
        alive: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<i32, Errno> {
        let (l4t, req) = (call.board.config.l4t, Request(request));
        let nr_known = (1..=self.last.of(l4t)).contains(&req.nr());
        if req.magic() != self.magic || !nr_known || req.size() > self.max_arg.of(l4t) {
            let rule = "this node has no ioctl of that magic number, number or size";
            return Err(Errno::EINVAL.because(rule));
        }
        let mut buffer = [0; MAX_ARG];
        let bytes = &mut buffer[..req.size()];
        if req.copies_in() {
            fetch(call.process, &arg, bytes).inspect_err(|_| rule::note("the argument cannot be read"))?;
        }
        alive()?;
        let row = self.row(request, l4t);
        let row = row.ok_or_else(|| Errno::ENOTTY.because("this release has no ioctl of that number and size"))?;
        let reply = (row.handler)(call, object, bytes);
        tracing::trace!(target: "tegra_sim::ioctl", name = row.name, ?reply);
        if req.copies_out() && (reply.is_ok() || call.copy_back_always.get()) {
            match (store(call.process, &mut arg, bytes), self.copy_back) {
                (Ok(()), _) => {}
                (Err(_), CopyBack::Errno) => return Err(Errno::EFAULT.because("the argument cannot be written")),
                (Err(_), CopyBack::Count) => return Ok(bytes.len() as i32),
            }
        }
        match reply {
            Ok(()) => Ok(0),
            Err(Stop::Errno(errno)) => Err(errno),
            Err(Stop::Uncopied(bytes)) => Ok(bytes as i32),
        }
    }
}
