//! A kernel that fails on demand.

use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot, describe};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// The calls that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Every call that can fail: opens, ioctls, mappings and text files.
    Any,
    /// Opening a node.
    Open,
    /// Mapping a file.
    Mmap,
    /// Reading or writing a text file.
    Text,
    /// Any ioctl.
    AnyIoctl,
    /// The ioctl that has this number.
    Ioctl(u32),
    /// The ioctl that has this upstream name.
    Named(&'static str),
}

/// The call that is being made.
enum Now {
    Open,
    Mmap,
    Text,
    Ioctl(Node, u32),
}

impl CallKind {
    fn includes(self, now: &Now) -> bool {
        match (self, now) {
            (CallKind::Any, _)
            | (CallKind::Open, Now::Open)
            | (CallKind::Mmap, Now::Mmap)
            | (CallKind::Text, Now::Text)
            | (CallKind::AnyIoctl, Now::Ioctl(..)) => true,
            (CallKind::Ioctl(number), Now::Ioctl(_, request)) => number == *request,
            (CallKind::Named(name), Now::Ioctl(node, request)) => describe::name(*node, *request) == name,
            _ => false,
        }
    }
}

/// Passes every call on to another kernel, except for the call that it is armed to fail.
///
/// With it, a test can make every call of a sequence fail in turn:
///
/// ```no_run
/// # use tegrarm_kmd::{CallKind, Errno, Faulty, LinuxKmd};
/// # use std::sync::Arc;
/// # fn sequence(_: &Faulty) {}
/// let faulty = Faulty::new(Arc::new(LinuxKmd));
/// for n in 1.. {
///     faulty.arm(CallKind::Any, n, Errno::ENOMEM);
///     sequence(&faulty);
///     if !faulty.fired() {
///         break; // the sequence makes fewer than n calls
///     }
/// }
/// ```
///
/// The call that fails does not reach the kernel below, so it has no side effect and no output.
pub struct Faulty {
    inner: Arc<dyn Kmd>,
    armed: Mutex<Armed>,
}

struct Armed {
    kind: CallKind,
    /// The call fails when the count of matching calls reaches this number. 0 means never.
    nth: u64,
    errno: Errno,
    calls: u64,
    fired: bool,
}

impl Faulty {
    /// Makes a kernel that fails nothing until it is armed. It counts every call.
    pub fn new(inner: Arc<dyn Kmd>) -> Faulty {
        let armed = Armed { kind: CallKind::Any, nth: 0, errno: Errno::EIO, calls: 0, fired: false };
        Faulty { inner, armed: Mutex::new(armed) }
    }

    /// Makes call number `nth` of a kind fail with `errno`, counting from now and starting at 1. Later calls succeed
    /// again.
    pub fn arm(&self, kind: CallKind, nth: u64, errno: Errno) {
        *self.armed.lock() = Armed { kind, nth, errno, calls: 0, fired: false };
    }

    /// Stops failing calls, and counts the calls of a kind from now on.
    pub fn count(&self, kind: CallKind) {
        self.arm(kind, 0, Errno::EIO);
    }

    /// The number of calls of the armed kind since the last arming, including the call that failed.
    pub fn calls(&self) -> u64 {
        self.armed.lock().calls
    }

    /// Whether the failure has happened since the last arming.
    pub fn fired(&self) -> bool {
        self.armed.lock().fired
    }

    fn check(&self, now: &Now) -> Result<(), Errno> {
        let mut armed = self.armed.lock();
        if !armed.kind.includes(now) {
            return Ok(());
        }
        armed.calls += 1;
        if armed.calls != armed.nth {
            return Ok(());
        }
        armed.fired = true;
        Err(armed.errno)
    }
}

impl Kmd for Faulty {
    crate::forward!(inner: name, is_simulated, examines_code, names_code, step, progress, rest, saw_gpu, waits_in_vain, own_view, close);

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.check(&Now::Open)?;
        self.inner.open(path)
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        self.check(&Now::Ioctl(node, request))?;
        self.inner.ioctl(fd, node, request, arg)
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        self.check(&Now::Mmap)?;
        self.inner.mmap(fd, at, len, prot, offset)
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        self.check(&Now::Text)?;
        self.inner.read_text(path)
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        self.check(&Now::Text)?;
        self.inner.write_text(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestKmd, program};

    #[test]
    fn every_call_of_a_sequence_can_be_made_to_fail() {
        let inner: Arc<TestKmd> = Arc::default();
        let faulty = Arc::new(Faulty::new(inner.clone()));
        let kmd: Arc<dyn Kmd> = faulty.clone();
        faulty.count(CallKind::Any);
        assert!(program(&kmd, 4096).is_ok());
        let calls = faulty.calls();
        let mut failed = 0;
        for n in 1.. {
            faulty.arm(CallKind::Any, n, Errno::ENOMEM);
            let result = program(&kmd, 4096);
            if !faulty.fired() {
                assert!(result.is_ok());
                assert_eq!(n, calls + 1);
                break;
            }
            failed += u64::from(result == Err(Errno::ENOMEM));
            assert_eq!(inner.open_fds(), 0, "call {n} leaked a descriptor");
        }
        // Two calls of the program are expected to fail anyway, and the program ignores their errno.
        assert_eq!(failed, calls - 2);
    }

    #[test]
    fn kinds_count_separately() {
        let faulty = Arc::new(Faulty::new(Arc::<TestKmd>::default()));
        let kmd: Arc<dyn Kmd> = faulty.clone();
        let count = |kind| {
            faulty.count(kind);
            program(&kmd, 4096).expect("not armed");
            faulty.calls()
        };
        assert_eq!(count(CallKind::Open), 2);
        assert_eq!(count(CallKind::Mmap), 1);
        assert_eq!(count(CallKind::Text), 2);
        assert_eq!(count(CallKind::Named("NVMAP_IOC_GET_FD")), 1);
        assert_eq!(count(CallKind::Ioctl(tegrarm_abi::nvmap::NVMAP_IOC_GET_FD)), 1);
        let ioctls = count(CallKind::AnyIoctl);
        assert_eq!(count(CallKind::Any), ioctls + 5);
    }

    #[test]
    fn only_the_named_call_fails_and_only_once() {
        let faulty = Arc::new(Faulty::new(Arc::<TestKmd>::default()));
        let kmd: Arc<dyn Kmd> = faulty.clone();
        faulty.arm(CallKind::Mmap, 1, Errno::EPERM);
        assert_eq!(program(&kmd, 4096), Err(Errno::EPERM));
        assert!(faulty.fired());
        assert!(program(&kmd, 4096).is_ok());
    }
}
