//! The system calls a seccomp supervisor needs and no crate wraps: filter, listener, notifications.
#![allow(unsafe_code)]

use super::tree::Entry;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tegrarm_kmd::Errno;

/// One trapped system call.
pub type Notification = libc::seccomp_notif;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// One classic-BPF instruction.
const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// A condition on a system call: traps when every test on its arguments holds.
#[derive(Clone, Debug)]
pub struct Trap {
    /// System call number.
    pub nr: i64,
    /// Tests, all of which must hold; none = always.
    pub tests: Vec<Test>,
}

/// A test on the low word of one argument.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// `arg & mask == value`.
    Masked {
        /// Argument index, 0–5.
        arg: u8,
        /// Bits looked at.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// `arg & mask == 0`.
    Clear {
        /// Argument index, 0–5.
        arg: u8,
        /// Bits that must all be zero.
        mask: u32,
    },
}

impl Test {
    fn arg(self) -> u8 {
        match self {
            Test::Masked { arg, .. } | Test::Clear { arg, .. } => arg,
        }
    }
}

/// Byte offset of argument `arg`'s low word in `struct seccomp_data`.
fn arg_offset(arg: u8) -> u32 {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * u32::from(arg) + low
}

/// Compiles the filter: a call that matches any trap goes to the supervisor, everything else runs untouched.
pub fn compile(traps: &[Trap]) -> Vec<libc::sock_filter> {
    let mut program = vec![];
    for trap in traps {
        let body = trap_body(trap);
        program.push(op(LOAD_WORD, 0, 0, 0));
        // Trap bodies are far below the 255 instructions a jump can span.
        program.push(op(JUMP_EQUAL, 0, body.len() as u8, trap.nr as u32));
        program.extend(body);
    }
    program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

/// Instructions that return "notify" when all tests hold, and otherwise fall through to the next trap.
fn trap_body(trap: &Trap) -> Vec<libc::sock_filter> {
    let per_test = |t: &Test| if matches!(t, Test::Masked { .. }) { 3 } else { 2 };
    let mut left: usize = trap.tests.iter().map(per_test).sum::<usize>() + 1;
    let mut body = vec![];
    for test in &trap.tests {
        body.push(op(LOAD_WORD, 0, 0, arg_offset(test.arg())));
        left -= per_test(test);
        match *test {
            Test::Masked { mask, value, .. } => {
                body.push(op(AND, 0, 0, mask));
                body.push(op(JUMP_EQUAL, 0, left as u8, value));
            }
            Test::Clear { mask, .. } => body.push(op(JUMP_SET, left as u8, 0, mask)),
        }
    }
    body.push(op(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    body
}

/// Installs the filter on the calling thread and everything it will start; returns the listener.
///
/// Async-signal-safe: runs between `fork` and `exec`.
///
/// # Errors
/// The errno of `prctl(2)` or `seccomp(2)`.
pub fn install(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: plain integer arguments.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `filter` describes `program`, which outlives the call; the kernel copies it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Waits for the next trapped call. `Ok(None)`: interrupted, or the caller died meanwhile.
///
/// # Errors
/// `ENOENT`-like ends are `None`; anything else is the errno of the ioctl.
pub fn receive(listener: BorrowedFd<'_>) -> Result<Option<Notification>, Errno> {
    // SAFETY: an all-zero `seccomp_notif` is what the kernel asks for.
    let mut n: Notification = unsafe { std::mem::zeroed() };
    // SAFETY: `n` is the structure the request is defined for.
    let r = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut n) };
    match (r, Errno::last()) {
        (0, _) => Ok(Some(n)),
        (_, Errno::EINTR | Errno::ENOENT) => Ok(None),
        (_, e) => Err(e),
    }
}

/// Whether the trapped call still waits: its memory and descriptors are only meaningful while it does.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: `id` is a u64, as the request wants.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Puts a descriptor into the trapped process, close-on-exec when asked; returns its number there.
///
/// # Errors
/// The errno of the ioctl (`EMFILE` when the process's table is full).
pub fn add_fd(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<RawFd, Errno> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: 0,
        srcfd: fd.as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: `add` is the structure the request is defined for.
    Errno::result(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) })
}

/// Replaces descriptor `at` of the trapped process by `fd`.
///
/// # Errors
/// The errno of the ioctl.
pub fn replace_fd(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>, at: RawFd) -> Result<(), Errno> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
        srcfd: fd.as_raw_fd() as u32,
        newfd: at as u32,
        newfd_flags: libc::O_CLOEXEC as u32,
    };
    // SAFETY: `add` is the structure the request is defined for.
    let r = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) };
    Errno::result(r).map(drop)
}

/// Lets trapper and trapped hand the CPU to each other directly (Linux 6.6); without it calls just take longer.
pub fn hand_over_directly(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: plain integer argument.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// How a trapped call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The kernel runs the call as if it had not been trapped.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails.
    Error(Errno),
}

/// Answers a trapped call. A caller that died meanwhile is no error.
pub fn reply(listener: BorrowedFd<'_>, id: u64, reply: Reply) {
    let (val, error, flags) = match reply {
        Reply::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Reply::Value(v) => (v, 0, 0),
        Reply::Error(e) => (0, -(e as i32), 0),
    };
    let resp = libc::seccomp_notif_resp { id, val, error, flags };
    // SAFETY: `resp` is the structure the request is defined for.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const resp) };
}

/// Opens a descriptor that refers to the process `pid` and becomes readable when it ends.
///
/// # Errors
/// The errno of `pidfd_open(2)`.
pub fn pidfd(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain integer arguments.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Takes a duplicate of descriptor `fd` of another process.
///
/// # Errors
/// The errno of `pidfd_getfd(2)`.
pub fn steal_fd(pidfd: BorrowedFd<'_>, fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: plain integer arguments.
    let got = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(got as RawFd) })
}

/// Starts `command` under the filter; returns its pid and the listener.
///
/// # Errors
/// When the filter cannot be installed or the program cannot be executed.
pub fn spawn_trapped(mut command: Command, program: &[libc::sock_filter]) -> io::Result<(u32, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    let program = program.to_vec();
    let install_and_send = move || {
        let listener = install(&program)?;
        let rights = [listener.as_raw_fd()];
        sendmsg::<()>(theirs.as_raw_fd(), &[IoSlice::new(b"L")], &[ControlMessage::ScmRights(&rights)], MsgFlags::empty(), None)?;
        Ok(())
    };
    // SAFETY: runs in the child between fork and exec; it makes system calls and one small allocation, and no
    // other thread of ours exists yet that could hold the allocator's lock.
    let child = unsafe { command.pre_exec(install_and_send) }.spawn()?;
    // The sender must not be left open here, or its end could not be noticed.
    drop(command);
    Ok((child.id(), receive_fd(&ours)?))
}

/// Receives the descriptor the child sent.
fn receive_fd(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let mut iov = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut iov, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control
            && let [fd] = fds[..]
        {
            // SAFETY: the kernel just installed this descriptor for us.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    Err(io::Error::other("the child did not send its seccomp listener"))
}

/// A memfd that holds `text`, read from its start.
///
/// # Errors
/// The errno of the system calls.
pub fn memfd_with(name: &str, text: &str) -> Result<OwnedFd, Errno> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(crate::mm::memfd::create(name, 0)?);
    file.write_all_at(text.as_bytes(), 0).map_err(|_| Errno::ENOMEM)?;
    Ok(file.into())
}

/// Device number of the nodes; nobody asks for it but `stat`.
const NODE_DEVICE: (u64, u64) = (511, 0);

/// The file type and permissions of an entry.
fn mode(entry: &Entry) -> u32 {
    match entry {
        Entry::Node(_) => libc::S_IFCHR | 0o660,
        Entry::Text(_) => libc::S_IFREG | 0o644,
        Entry::Directory => libc::S_IFDIR | 0o755,
    }
}

/// `struct stat` of an entry whose skeleton file is at `real`.
///
/// # Errors
/// The errno of `stat(2)`.
pub fn stat(real: &Path, entry: &Entry) -> Result<Vec<u8>, Errno> {
    let mut stat = nix::sys::stat::stat(real)?;
    stat.st_mode = mode(entry);
    if matches!(entry, Entry::Node(_)) {
        stat.st_rdev = nix::sys::stat::makedev(NODE_DEVICE.0, NODE_DEVICE.1);
    }
    Ok(bytes_of(&stat))
}

/// `struct statx` of an entry whose skeleton file is at `real`.
///
/// # Errors
/// The errno of `statx(2)`.
pub fn statx(real: &Path, entry: &Entry) -> Result<Vec<u8>, Errno> {
    let path = CString::new(real.as_os_str().as_bytes()).map_err(|_| Errno::ENOENT)?;
    // SAFETY: all-zero is a valid `struct statx`.
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and `statx` is the structure the call fills.
    let r = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_BASIC_STATS, &raw mut statx) };
    Errno::result(r)?;
    statx.stx_mode = mode(entry) as u16;
    if matches!(entry, Entry::Node(_)) {
        (statx.stx_rdev_major, statx.stx_rdev_minor) = (NODE_DEVICE.0 as u32, NODE_DEVICE.1 as u32);
    }
    Ok(bytes_of(&statx))
}

/// The bytes of a C structure that the kernel filled.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: the kernel wrote every byte of it, or it was zeroed first; a copy of plain integers.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program the way the kernel would.
    fn interpret(program: &[libc::sock_filter], nr: u32, args: [u64; 6]) -> u32 {
        let (mut pc, mut acc) = (0usize, 0u32);
        loop {
            let i = &program[pc];
            pc += 1;
            match i.code {
                LOAD_WORD => acc = if i.k == 0 { nr } else { args[(i.k as usize - 16) / 8] as u32 },
                AND => acc &= i.k,
                JUMP_EQUAL => pc += usize::from(if acc == i.k { i.jt } else { i.jf }),
                JUMP_SET => pc += usize::from(if acc & i.k != 0 { i.jt } else { i.jf }),
                RETURN => return i.k,
                other => panic!("unexpected instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn filter_traps_exactly_what_its_tests_say() {
        let program = compile(&[
            Trap { nr: 16, tests: vec![Test::Masked { arg: 1, mask: 0xff00, value: 0x4700 }] },
            Trap { nr: 257, tests: vec![Test::Clear { arg: 2, mask: 0x40 }, Test::Masked { arg: 0, mask: !0, value: 5 }] },
            Trap { nr: 21, tests: vec![] },
        ]);
        let notify = libc::SECCOMP_RET_USER_NOTIF;
        let allow = libc::SECCOMP_RET_ALLOW;
        let run = |nr, a0, a1, a2| interpret(&program, nr, [a0, a1, a2, 0, 0, 0]);
        assert_eq!(run(16, 3, 0xc010_4705, 0), notify);
        assert_eq!(run(16, 3, 0x5401, 0), allow);
        assert_eq!(run(257, 5, 0, 0x80000), notify);
        assert_eq!(run(257, 5, 0, 0x80040), allow);
        assert_eq!(run(257, 6, 0, 0), allow);
        assert_eq!(run(21, 0, 0, 0), notify);
        assert_eq!(run(0, 0, 0, 0), allow);
    }
}
