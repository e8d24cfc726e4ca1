//! The system calls that a seccomp supervisor needs and that no crate wraps: filter, listener and notifications.
#![allow(unsafe_code)]

use super::tree::Entry;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tegrarm_kmd::Errno;

/// One trapped system call.
pub type Notification = libc::seccomp_notif;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// One classic-BPF instruction.
const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// A kind of system call that is trapped, which means that it is sent to the supervisor.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// The number of the system call.
    pub nr: i64,
    /// The call is trapped only if this is true of its arguments.
    pub test: Option<Test>,
}

/// Tests whether `args[arg] & mask == value`, for the low word of the argument.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The index of the argument, 0–5.
    pub arg: u8,
    /// The bits that are tested.
    pub mask: u32,
    /// The value that these bits must have.
    pub value: u32,
}

/// Byte offsets in `struct seccomp_data`.
const NR: u32 = 0;
const ARCH: u32 = 4;
const ARGS: u32 = 16;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64` (linux/audit.h): ELF machine, 64-bit, little-endian.
#[cfg(target_arch = "x86_64")]
const OUR_ARCH: u32 = 0xc000_0000 | libc::EM_X86_64 as u32;
#[cfg(target_arch = "aarch64")]
const OUR_ARCH: u32 = 0xc000_0000 | libc::EM_AARCH64 as u32;

/// Compiles the filter. A call that matches any of `traps` and none of `passes` is sent to the supervisor, and every
/// other call is executed by the host. System calls of another architecture (32-bit programs) have other numbers and
/// are not trapped.
pub fn compile(passes: &[Trap], traps: &[Trap]) -> Vec<libc::sock_filter> {
    const NOTIFY: libc::sock_filter = op(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF);
    const ALLOW: libc::sock_filter = op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
    let mut program = vec![op(LOAD_WORD, 0, 0, ARCH), op(JUMP_EQUAL, 1, 0, OUR_ARCH), ALLOW];
    let decisions = passes.iter().map(|pass| (pass, ALLOW)).chain(traps.iter().map(|trap| (trap, NOTIFY)));
    for (on, decision) in decisions {
        program.push(op(LOAD_WORD, 0, 0, NR));
        match on.test {
            None => program.extend([op(JUMP_EQUAL, 0, 1, on.nr as u32), decision]),
            Some(Test { arg, mask, value }) => program.extend([
                op(JUMP_EQUAL, 0, 4, on.nr as u32),
                // The low word comes first on both architectures.
                op(LOAD_WORD, 0, 0, ARGS + 8 * u32::from(arg)),
                op(AND, 0, 0, mask),
                op(JUMP_EQUAL, 0, 1, value),
                decision,
            ]),
        }
    }
    program.push(ALLOW);
    program
}

/// The flag of [`install`]'s `killable`.
const KILLABLE: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// Whether the host has calls that only a deadly signal interrupts (Linux 5.19).
pub fn waits_killable() -> bool {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | KILLABLE;
    let no_filter = std::ptr::null::<libc::sock_fprog>();
    // SAFETY: there is no filter to install. If the flags are known, the error is EFAULT.
    let r = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, no_filter) };
    r == -1 && Errno::last() == Errno::EFAULT
}

/// Installs the filter on the calling thread and everything that it will start. Returns the listener. If `killable` is
/// true, only a signal that kills takes a call away that the supervisor has received (see [`super::waiting`]).
///
/// This function is async-signal-safe, because it runs between `fork` and `exec`.
///
/// # Errors
/// The errno of `prctl(2)` or `seccomp(2)`.
pub fn install(program: &[libc::sock_filter], killable: bool) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are integers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | if killable { KILLABLE } else { 0 };
    // SAFETY: `filter` describes `program`, which lives until the call returns, and the kernel copies it.
    let fd = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Waits for the next trapped call. The result is `Ok(None)` if the wait was interrupted, or if the caller died
/// meanwhile.
///
/// # Errors
/// The errno of the ioctl, except for those that stand for `None`.
pub fn receive(listener: BorrowedFd<'_>) -> Result<Option<Notification>, Errno> {
    // SAFETY: the kernel asks for a `seccomp_notif` of zeros.
    let mut n: Notification = unsafe { std::mem::zeroed() };
    // SAFETY: `n` is the structure that the request is defined for.
    let r = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut n) };
    match (r, Errno::last()) {
        (0, _) => Ok(Some(n)),
        (_, Errno::EINTR | Errno::ENOENT) => Ok(None),
        (_, e) => Err(e),
    }
}

/// Puts a descriptor into the trapped process, close-on-exec if that is asked for. Returns its number there.
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
    // SAFETY: `add` is the structure that the request is defined for.
    Errno::result(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) })
}

/// Replaces descriptor `at` of the trapped process by `fd`, close-on-exec if that is asked for.
///
/// # Errors
/// The errno of the ioctl.
pub fn replace_fd(
    listener: BorrowedFd<'_>,
    id: u64,
    fd: BorrowedFd<'_>,
    at: RawFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    place_fd(listener, id, libc::SECCOMP_ADDFD_FLAG_SETFD, fd, at, close_on_exec)
}

fn place_fd(
    listener: BorrowedFd<'_>,
    id: u64,
    flags: libc::c_ulong,
    fd: BorrowedFd<'_>,
    at: RawFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: flags as u32,
        srcfd: fd.as_raw_fd() as u32,
        newfd: at as u32,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: `add` is the structure that the request is defined for.
    let r = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) };
    Errno::result(r).map(drop)
}

/// Wakes the caller of a trapped call, which then waits on. It is asked to put a descriptor where none can be, because
/// there is nothing else that a caller does without an effect.
pub fn nudge(listener: BorrowedFd<'_>, id: u64) {
    // The error is always EBADF, unless the caller has gone.
    let _ = replace_fd(listener, id, listener, RawFd::MAX, true);
}

/// Answers a trapped call with the number `at` of one of the caller's descriptors, and makes that descriptor refer to
/// `fd`. The caller itself does both as its last step, so that this fails if a signal has taken it away. After
/// [`reply`] it may still not have the answer.
///
/// # Errors
/// The errno of the ioctl. ESRCH, ENOENT and EINPROGRESS say that the caller has gone. After any other one it waits.
pub fn reply_with_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    fd: BorrowedFd<'_>,
    at: RawFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let flags = libc::SECCOMP_ADDFD_FLAG_SETFD | libc::SECCOMP_ADDFD_FLAG_SEND;
    place_fd(listener, id, flags, fd, at, close_on_exec)
}

/// Lets the trapped process and the supervisor give the processor directly to each other (Linux 6.6). On older hosts
/// calls take longer.
pub fn hand_over_directly(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: the argument is an integer.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// How a trapped call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The kernel executes the call as if it had not been trapped.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails with this errno.
    Error(Errno),
    /// A signal ended the call. When the signal's handler has run, the host makes the call again or lets it fail with
    /// EINTR, as the handler's flags say (`SA_RESTART`).
    Interrupted,
}

/// The value that a driver returns when a signal ends its sleep (linux/errno.h). The host then restarts the call or
/// returns EINTR.
const ERESTARTSYS: i32 = 512;

/// Answers a trapped call. Returns whether the caller still waited for the answer. A caller that died, or that a signal
/// has taken away, does not wait.
pub fn reply(listener: BorrowedFd<'_>, id: u64, reply: Reply) -> bool {
    let (val, error, flags) = match reply {
        Reply::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Reply::Value(v) => (v, 0, 0),
        Reply::Error(e) => (0, -(e as i32), 0),
        Reply::Interrupted => (0, -ERESTARTSYS, 0),
    };
    let resp = libc::seccomp_notif_resp { id, val, error, flags };
    // SAFETY: `resp` is the structure that the request is defined for.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const resp) == 0 }
}

/// Whether no process is left that could make a trapped call.
pub fn is_deserted(listener: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Whether the caller of a trapped call waits for its answer.
pub fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: `id` is the integer that the request reads.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Opens a descriptor that refers to the process `pid` and becomes readable when it ends.
///
/// # Errors
/// The errno of `pidfd_open(2)`.
pub fn pidfd(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: the arguments are integers.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Takes a duplicate of descriptor `fd` of another process.
///
/// # Errors
/// The errno of `pidfd_getfd(2)`.
pub fn steal_fd(pidfd: BorrowedFd<'_>, fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: the arguments are integers.
    let got = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(got as RawFd) })
}

/// Whether two of our descriptors refer to one open file, and not only to the same inode.
pub fn same_open_file(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    const KCMP_FILE: i32 = 0;
    let me = std::process::id() as i32;
    // SAFETY: the arguments are integers.
    unsafe { libc::syscall(libc::SYS_kcmp, me, me, KCMP_FILE, a.as_raw_fd(), b.as_raw_fd()) == 0 }
}

/// Makes a memfd that holds `text` and is read from its start.
///
/// # Errors
/// The errno of the system calls.
pub fn memfd_with(name: &str, text: &str) -> Result<OwnedFd, Errno> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(tegra_mm::memfd::create(name, text.len() as u64)?);
    file.write_all_at(text.as_bytes(), 0).map_err(|_| Errno::ENOMEM)?;
    Ok(file.into())
}

/// Makes all threads share one heap. Else glibc gives threads heaps of their own, each with the 64 MiB of addresses that it reserves and
/// with the most memory that its threads ever had at once: where programs take and give back all that they can get, 15 MiB instead of 6.
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the arguments are integers, and a value that the allocator does not take changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The device number of the nodes. Only `stat` shows it.
const NODE_DEVICE: (u64, u64) = (511, 0);

/// The file type and the permissions of an entry. A text's skeleton file has its permissions.
fn mode(entry: &Entry, skeleton: u32) -> u32 {
    match entry {
        Entry::Node(_) => libc::S_IFCHR | 0o660,
        Entry::Text(_) | Entry::Census | Entry::Launches => skeleton,
        Entry::Directory => libc::S_IFDIR | 0o755,
    }
}

/// Fills a `struct stat` for an entry whose skeleton file is at `real`.
///
/// # Errors
/// The errno of `stat(2)`.
pub fn stat(real: &Path, entry: &Entry) -> Result<Vec<u8>, Errno> {
    let mut stat = nix::sys::stat::stat(real)?;
    stat.st_mode = mode(entry, stat.st_mode);
    if matches!(entry, Entry::Node(_)) {
        stat.st_rdev = nix::sys::stat::makedev(NODE_DEVICE.0, NODE_DEVICE.1);
    }
    Ok(bytes_of(&stat))
}

/// Fills a `struct statx` for an entry whose skeleton file is at `real`.
///
/// # Errors
/// The errno of `statx(2)`.
pub fn statx(real: &Path, entry: &Entry) -> Result<Vec<u8>, Errno> {
    let path = CString::new(real.as_os_str().as_bytes()).map_err(|_| Errno::ENOENT)?;
    // SAFETY: a `struct statx` of zeros is valid.
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a NUL, and `statx` is the structure that the call fills.
    let r = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_BASIC_STATS, &raw mut statx) };
    Errno::result(r)?;
    statx.stx_mode = mode(entry, u32::from(statx.stx_mode)) as u16;
    if matches!(entry, Entry::Node(_)) {
        (statx.stx_rdev_major, statx.stx_rdev_minor) = (NODE_DEVICE.0 as u32, NODE_DEVICE.1 as u32);
    }
    Ok(bytes_of(&statx))
}

/// The bytes of a C structure that the kernel has filled.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: every byte was written by the kernel or zeroed before, and the structure consists of integers.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// Executes the filter program as the kernel would.
    fn interpret(program: &[libc::sock_filter], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
        let (mut pc, mut acc) = (0usize, 0u32);
        loop {
            let i = &program[pc];
            pc += 1;
            match i.code {
                LOAD_WORD => {
                    acc = match i.k {
                        NR => nr,
                        ARCH => arch,
                        arg => args[(arg - ARGS) as usize / 8] as u32,
                    }
                }
                AND => acc &= i.k,
                JUMP_EQUAL => pc += usize::from(if acc == i.k { i.jt } else { i.jf }),
                RETURN => return i.k,
                other => panic!("unexpected instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn filter_traps_exactly_what_its_tests_say() {
        let on = |nr, arg, mask, value| Trap { nr, test: Some(Test { arg, mask, value }) };
        let passes = [on(16, 1, u32::MAX, 0x4105)];
        let traps = [on(16, 1, 0xff00, 0x4700), Trap { nr: 21, test: None }, on(16, 1, 0xff00, 0x4100)];
        let program = compile(&passes, &traps);
        let notify = libc::SECCOMP_RET_USER_NOTIF;
        let allow = libc::SECCOMP_RET_ALLOW;
        let run = |nr, request| interpret(&program, OUR_ARCH, nr, [3, request, 0, 0, 0, 0]);
        assert_eq!(run(16, 0xc010_4705), notify);
        assert_eq!(run(16, 0xc004_4101), notify);
        assert_eq!(run(16, 0x4105), allow);
        assert_eq!(run(16, 0x5401), allow);
        assert_eq!(run(21, 0), notify);
        assert_eq!(run(0, 0x4705), allow);
        assert_eq!(interpret(&program, OUR_ARCH ^ 1, 21, [0; 6]), allow);
    }

    extern "C" fn ignore(_: i32) {}

    /// Makes `times` trapped calls and tells how many of them were answered. It runs after `fork` and only makes system
    /// calls. Its standard input is the pipe that it writes to.
    fn call_again_and_again(filter: &[libc::sock_filter], times: u32, to: RawFd) -> ! {
        let tell = |number: u32| {
            // SAFETY: `number` is an integer that lives until the call returns.
            unsafe { libc::write(to, (&raw const number).cast(), size_of::<u32>()) }
        };
        // SAFETY: the descriptor is that of the pipe, which stays open.
        unsafe { libc::dup2(to, 0) };
        // SAFETY: an action of zeros has no flags, so that calls are not made again, and `ignore` may run at any time.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as extern "C" fn(i32) as usize;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        }
        let Ok(listener) = install(filter, false) else {
            // SAFETY: the process ends here.
            unsafe { libc::_exit(1) }
        };
        tell(listener.as_raw_fd() as u32);
        // SAFETY: the call has no arguments.
        let heard = (0..times).filter(|_| unsafe { libc::syscall(libc::SYS_getppid) } == 0).count();
        tell(heard as u32);
        // SAFETY: the process ends here.
        unsafe { libc::_exit(0) }
    }

    /// A process makes calls and gets signals. It has exactly those answers that count as given.
    #[test]
    fn an_answer_with_a_descriptor_is_given_or_it_is_not() {
        use nix::sys::signal::{Signal, kill};
        use std::io::Read;
        const TIMES: u32 = 20_000;
        let filter = compile(&[], &[Trap { nr: libc::SYS_getppid, test: None }]);
        let (mut from, to) = std::io::pipe().unwrap();
        // SAFETY: the child only makes system calls until it ends.
        let child = match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => call_again_and_again(&filter, TIMES, to.as_raw_fd()),
            nix::unistd::ForkResult::Parent { child } => child,
        };
        let mut told = || {
            let mut number = [0; 4];
            from.read_exact(&mut number).unwrap();
            u32::from_ne_bytes(number)
        };
        let theirs = told() as RawFd;
        let listener = steal_fd(pidfd(child.as_raw()).unwrap().as_fd(), theirs).unwrap();
        let listener = listener.as_fd();
        let answer = |call: &Notification| reply_with_descriptor(listener, call.id, to.as_fd(), 0, false);
        let next = || receive(listener).unwrap();
        // Nothing happens to the first call, except that the caller wakes up once before. The second one is interrupted before it is answered.
        let first = next().unwrap();
        nudge(listener, first.id);
        assert!(is_waiting(listener, first.id));
        assert_eq!(answer(&first), Ok(()));
        let second = next().unwrap();
        kill(child, Signal::SIGUSR1).unwrap();
        while is_waiting(listener, second.id) {
            std::thread::yield_now();
        }
        assert_eq!(answer(&second), Err(Errno::ENOENT));
        // The signal of each later call comes shortly before its answer, each time after another pause. The host has an
        // instant at which the caller goes although a common answer still finds it.
        let mut given = 1;
        while !is_deserted(listener) {
            let Some(call) = next() else { continue };
            kill(child, Signal::SIGUSR1).unwrap();
            (0..call.id % 500).for_each(|_| std::hint::spin_loop());
            given += u32::from(answer(&call).is_ok());
        }
        assert_eq!(told(), given);
        nix::sys::wait::waitpid(child, None).unwrap();
    }
}
