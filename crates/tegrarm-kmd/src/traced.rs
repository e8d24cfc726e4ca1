//! A kernel that reports every call.

use crate::describe::{self, Field};
use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};
use std::borrow::Cow;
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use tracing::Level;

/// One ioctl, decoded. Its display form is one line as strace would write it.
#[derive(Clone, Copy, Debug)]
pub struct IoctlEvent<'a> {
    /// The descriptor number.
    pub fd: RawFd,
    /// The kind of node on which it was called.
    pub node: Node,
    /// The full request number.
    pub request: u32,
    /// The fields before the call.
    pub before: &'a [Field],
    /// The fields after the call.
    pub after: &'a [Field],
    /// The result of the kernel.
    pub result: Result<i32, Errno>,
}

impl IoctlEvent<'_> {
    /// The upstream name, or the number in hexadecimal.
    pub fn name(&self) -> Cow<'static, str> {
        describe::name(self.node, self.request)
    }
}

impl fmt::Display for IoctlEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe::line(&self.fd, self.node, self.request, self.before, self.after, self.result))
    }
}

type Observer = Box<dyn Fn(&IoctlEvent<'_>) + Send + Sync>;

/// Passes every call on to another kernel. It reports every call as a `tracing` event (target `tegrarm::kmd`, level
/// trace), and each ioctl to an observer if there is one. If nobody listens, the cost is one branch.
pub struct Traced {
    inner: Arc<dyn Kmd>,
    observer: Option<Observer>,
}

impl Traced {
    /// Makes a kernel that reports to `tracing` only.
    pub fn new(inner: Arc<dyn Kmd>) -> Traced {
        Traced { inner, observer: None }
    }

    /// Makes a kernel that also calls `observer` for every ioctl, after the ioctl returned, on the calling thread.
    pub fn with_observer(inner: Arc<dyn Kmd>, observer: impl Fn(&IoctlEvent<'_>) + Send + Sync + 'static) -> Traced {
        Traced { inner, observer: Some(Box::new(observer)) }
    }

    fn logged() -> bool {
        tracing::enabled!(target: "tegrarm::kmd", Level::TRACE)
    }
}

impl Kmd for Traced {
    crate::forward!(inner: name, is_simulated, examines_code, names_code, step, progress, rest, saw_gpu, waits_in_vain, own_view);

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let result = self.inner.open(path);
        tracing::trace!(target: "tegrarm::kmd", path, result = ?result.as_ref().map(AsRawFd::as_raw_fd), "open");
        result
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, mut arg: Arg<'_>) -> Result<i32, Errno> {
        if self.observer.is_none() && !Traced::logged() {
            return self.inner.ioctl(fd, node, request, arg);
        }
        let before = describe::argument(node, request, &arg);
        let result = self.inner.ioctl(fd, node, request, arg.reborrow());
        let after = describe::argument(node, request, &arg);
        let event = IoctlEvent { fd: fd.as_raw_fd(), node, request, before: &before, after: &after, result };
        if Traced::logged() {
            tracing::trace!(target: "tegrarm::kmd", "{event}");
        }
        if let Some(observer) = &self.observer {
            observer(&event);
        }
        result
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        let result = self.inner.mmap(fd, at, len, prot, offset);
        let addr = result.as_ref().map(Mapping::addr);
        let fd = fd.as_raw_fd();
        tracing::trace!(target: "tegrarm::kmd", fd, ?at, len, ?prot, offset, result = ?addr, "mmap");
        result
    }

    fn close(&self, fd: OwnedFd) {
        tracing::trace!(target: "tegrarm::kmd", fd = fd.as_raw_fd(), "close");
        self.inner.close(fd);
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        let result = self.inner.read_text(path);
        tracing::trace!(target: "tegrarm::kmd", path, ?result, "read");
        result
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        let result = self.inner.write_text(path, text);
        tracing::trace!(target: "tegrarm::kmd", path, text, ?result, "write");
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestKmd, program};
    use tegrarm_lock::Mutex;

    #[test]
    fn the_observer_sees_every_ioctl_decoded() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = lines.clone();
        let kmd: Arc<dyn Kmd> = Arc::new(Traced::with_observer(Arc::<TestKmd>::default(), move |event| {
            sink.lock().push(event.to_string());
        }));
        let alone: Arc<dyn Kmd> = Arc::<TestKmd>::default();
        assert_eq!(program(&kmd, 4096), program(&alone, 4096));
        let lines = lines.lock();
        let has = |start: &str, end: &str| lines.iter().any(|l| l.starts_with(start) && l.contains(end));
        assert!(has("NVMAP_IOC_CREATE(", "size=0x1000, handle=0) = 0 {handle=0x80000000}"), "{lines:#?}");
        assert!(has("NVGPU_AS_IOCTL_MAP_BUFFER_EX(", "{offset=0xfefffff000}"), "{lines:#?}");
        assert!(has("0xc0084752(", "= -1 ENOTTY"), "{lines:#?}");
        assert!(has("NVMAP_IOC_FREE(", "value=0x80000000) = 0"), "{lines:#?}");
    }

    #[test]
    fn without_a_listener_nothing_is_decoded() {
        let kmd: Arc<dyn Kmd> = Arc::new(Traced::new(Arc::<TestKmd>::default()));
        assert!(program(&kmd, 4096).is_ok());
        assert_eq!(kmd.name(), "test");
    }
}
