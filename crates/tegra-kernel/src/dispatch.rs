//! From a raw ioctl to its handler: the checks every nvgpu and nvmap dispatcher makes
//! (docs/hardware/nvgpu-overview.md#dispatcher).

use super::Kernel;
use crate::process::Process;
use crate::release::{L4t, PerRelease, Releases};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_abi::layout::{AbiStruct, copy_shared_fields};
use tegrarm_kmd::{Arg, Errno};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Largest argument of any node (the ctrl node's).
const MAX_ARG: usize = 264;

/// How a handler ends other than well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// With an errno.
    Errno(Errno),
    /// With the number of bytes `copy_to_user` could not copy, which nvgpu returns as it is: a positive result.
    Uncopied(usize),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

/// What a handler answers.
pub(super) type Reply<T = ()> = Result<T, Stop>;

/// One ioctl in progress.
pub(super) struct Call<'a> {
    pub kernel: &'a Arc<Kernel>,
    pub process: &'a dyn Process,
    /// The descriptor the call is made on; -1 for an open.
    pub fd: RawFd,
    /// The handler wants its argument copied back although it failed (A.REMAP, nvmap READ and WRITE do).
    pub copy_back_always: std::cell::Cell<bool>,
}

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

    /// Writes a secondary buffer whose failure is `EFAULT`.
    pub(super) fn copy_out(&self, addr: u64, bytes: &[u8]) -> Reply {
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.process.write(addr, bytes)?)
    }

    /// Writes a secondary buffer where nvgpu returns `copy_to_user`'s count unchanged.
    pub(super) fn copy_out_counted(&self, addr: u64, bytes: &[u8]) -> Reply {
        self.copy_out(addr, bytes).map_err(|_| Stop::Uncopied(bytes.len()))
    }

    /// Whether the node was opened for reading only.
    pub(super) fn read_only(&self) -> bool {
        self.process.read_only(self.fd)
    }

    /// Whether the kernel is of the r35 line.
    pub(super) fn is_r35(&self) -> bool {
        self.kernel.config.l4t.is_r35()
    }

    /// Whether the kernel is of the r39 line.
    pub(super) fn is_r39(&self) -> bool {
        self.kernel.config.l4t.is_r39()
    }
}

/// A handler, on raw argument bytes.
type Handler<O> = fn(&Call<'_>, &Arc<O>, &mut [u8]) -> Reply;

/// One ioctl of one node.
pub(super) struct Row<O: 'static> {
    pub name: &'static str,
    pub number: u32,
    /// The releases that know it.
    pub releases: Releases,
    pub handler: Handler<O>,
}

/// What a failing copy of the argument back to the caller becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyBack {
    /// `EFAULT`.
    Errno,
    /// The positive number of bytes.
    Count,
}

/// A node's dispatcher.
pub(super) struct Table<O: 'static> {
    pub magic: u8,
    /// Highest number.
    pub last: PerRelease<u32>,
    /// Largest argument, bytes.
    pub max_arg: PerRelease<usize>,
    pub copy_back: CopyBack,
    pub rows: &'static [Row<O>],
}

/// Calls a handler on a structure viewed in the argument bytes.
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

/// Answers an ioctl whose structure another release lays out as `Old` with the handler of r36's `New`: what goes in, and what comes out
/// of a call that succeeds, is copied by field name. Fields that the other one lacks are zero.
pub(super) fn as_r36<Old: AbiStruct, New: AbiStruct>(args: &mut Old, run: impl FnOnce(&mut New) -> Reply) -> Reply {
    let mut full = New::new_zeroed();
    copy_shared_fields(args, &mut full);
    run(&mut full)?;
    copy_shared_fields(&full, args);
    Ok(())
}

/// Rows of a dispatch table: `RELEASES NUMBER => handler;`.
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

/// Direction and size fields of a request.
#[derive(Clone, Copy, Debug)]
struct Request(u32);

impl Request {
    fn nr(self) -> u32 {
        self.0 & 0xff
    }
    fn magic(self) -> u8 {
        (self.0 >> 8) as u8
    }
    fn size(self) -> usize {
        (self.0 >> 16 & 0x3fff) as usize
    }
    /// The caller writes, the kernel reads.
    fn copies_in(self) -> bool {
        self.0 >> 30 & 1 == 1
    }
    /// The caller reads.
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

impl<O> Table<O> {
    /// The row that handles `request` on `l4t`.
    pub(super) fn row(&self, request: u32, l4t: L4t) -> Option<&Row<O>> {
        self.rows.iter().find(|row| row.number == request && row.releases.contains(l4t.generation()))
    }

    /// Runs one ioctl of an nvgpu node: the checks in nvgpu's order, then the handler.
    pub(super) fn run(&self, call: &Call<'_>, object: &Arc<O>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        self.run_if(call, object, request, arg, || Ok(()))
    }

    /// As [`Table::run`], with the node's own check between copying in and looking the command up.
    pub(super) fn run_if(
        &self,
        call: &Call<'_>,
        object: &Arc<O>,
        request: u32,
        mut arg: Arg<'_>,
        alive: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<i32, Errno> {
        let (l4t, req) = (call.kernel.config.l4t, Request(request));
        let nr_known = (1..=self.last.of(l4t)).contains(&req.nr());
        if req.magic() != self.magic || !nr_known || req.size() > self.max_arg.of(l4t) {
            return Err(Errno::EINVAL);
        }
        let mut buffer = [0; MAX_ARG];
        let bytes = &mut buffer[..req.size()];
        if req.copies_in() {
            fetch(call.process, &arg, bytes)?;
        }
        alive()?;
        let row = self.row(request, l4t).ok_or(Errno::ENOTTY)?;
        let reply = (row.handler)(call, object, bytes);
        tracing::trace!(target: "tegra_sim::ioctl", name = row.name, ?reply);
        if req.copies_out() && (reply.is_ok() || call.copy_back_always.get()) {
            match (store(call.process, &mut arg, bytes), self.copy_back) {
                (Ok(()), _) => {}
                (Err(_), CopyBack::Errno) => return Err(Errno::EFAULT),
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

impl Call<'_> {
    /// The caller's channel behind `fd`, whatever is wrong with it being `EINVAL`.
    pub(super) fn channel(&self, fd: RawFd) -> Reply<Arc<super::channel::Channel>> {
        match self.kernel.object(self.process, fd) {
            Ok(super::files::Object::Channel(channel)) => Ok(channel),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The caller's address space behind `fd`, whatever is wrong with it being `EINVAL`.
    pub(super) fn space(&self, fd: RawFd) -> Reply<Arc<super::space::AddressSpace>> {
        match self.kernel.object(self.process, fd) {
            Ok(super::files::Object::Space(space)) => Ok(space),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The caller's dmabuf behind `fd`: `EBADF` when it is closed, `EINVAL` when it is something else.
    pub(super) fn dmabuf(&self, fd: RawFd) -> Reply<super::nvmap::Dmabuf> {
        match self.kernel.object(self.process, fd)? {
            super::files::Object::Dmabuf(buffer) => {
                let read_only = buffer.read_only() || self.process.read_only(fd);
                Ok(super::nvmap::Dmabuf { buffer, read_only })
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rows of a table and its limits have to say about each other.
    fn check<O>(table: &Table<O>) {
        for l4t in L4t::ALL {
            let known: Vec<_> = table.rows.iter().filter(|row| row.releases.contains(l4t.generation())).collect();
            for (at, row) in known.iter().enumerate() {
                let request = Request(row.number);
                assert!(known[..at].iter().all(|other| other.number != row.number), "{} twice on {l4t:?}", row.name);
                assert_eq!(request.magic(), table.magic, "{}", row.name);
                assert!(request.nr() <= table.last.of(l4t), "{} is above the last number of {l4t:?}", row.name);
                assert!(request.size() <= table.max_arg.of(l4t), "{} is too large for {l4t:?}", row.name);
            }
        }
    }

    #[test]
    fn every_row_is_one_of_its_releases_and_inside_their_limits() {
        check(&crate::ctrl::TABLE);
        check(&crate::space::TABLE);
        check(&crate::tsg::TABLE);
        check(&crate::channel::TABLE);
        check(&crate::debugger::TABLE);
        check(&crate::profiler::TABLE);
        check(&crate::sched::TABLE);
        check(&crate::nvsched::TABLE);
        check(&crate::ctrl_fifo::TABLE);
        check(&crate::ctxsw::TABLE);
    }
}
