//! Decides what happens to each trapped system call.

use super::spawn::Filters;
use super::sys::{self, Reply, Test, Trap};
use super::target::Target;
use super::tree::{Entry, Tree, normalise};
use super::{Answered, MapCall, Supervisor};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use tegra_gpu::host_ns;
use tegra_kernel::process::Process;
use tegra_kernel::rule;
use tegrarm_abi::nvgpu::channel::NVGPU_IOCTL_CHANNEL_WAIT;
use tegrarm_abi::nvgpu::ctrl::NVGPU_GPU_IOCTL_CLK_SET_INFO;
use tegrarm_kmd::{Arg, Errno, Node};

/// The arguments that hold the path of a call, and its directory descriptor if it has one.
#[derive(Clone, Copy)]
struct PathArg {
    dir: Option<usize>,
    path: usize,
}

const AT: PathArg = PathArg { dir: Some(0), path: 1 };
const CWD: PathArg = PathArg { dir: None, path: 0 };

/// The effect of a trapped call.
#[derive(Clone, Copy)]
enum Action {
    /// The call opens a file. The flags are in this argument, or in the first word that it points to (`openat2`).
    Open(usize),
    OpenHow(usize),
    /// The call opens a file for writing.
    #[cfg(target_arch = "x86_64")]
    Create,
    /// The call fills a `struct stat`.
    Stat(usize),
    Statx(usize),
    /// The call checks permissions.
    Access(usize),
    /// The call asks for something that no file of the board has. The answer is this errno, or success without data if
    /// there is none.
    Lacks(Option<Errno>),
}

/// The calls that take a path: their number, the place of the path, and their effect.
const PATH_CALLS: &[(i64, PathArg, Action)] = &[
    (libc::SYS_openat, AT, Action::Open(2)),
    (libc::SYS_openat2, AT, Action::OpenHow(2)),
    (libc::SYS_newfstatat, AT, Action::Stat(2)),
    (libc::SYS_statx, AT, Action::Statx(4)),
    (libc::SYS_faccessat, AT, Action::Access(2)),
    (libc::SYS_faccessat2, AT, Action::Access(2)),
    // A file of the board is no symbolic link and has no extended attributes (`ls -l` and `realpath` ask for them).
    (libc::SYS_readlinkat, AT, Action::Lacks(Some(Errno::EINVAL))),
    (libc::SYS_getxattr, CWD, Action::Lacks(Some(Errno::ENODATA))),
    (libc::SYS_lgetxattr, CWD, Action::Lacks(Some(Errno::ENODATA))),
    (libc::SYS_listxattr, CWD, Action::Lacks(None)),
    (libc::SYS_llistxattr, CWD, Action::Lacks(None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, CWD, Action::Open(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, CWD, Action::Create),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, CWD, Action::Stat(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, CWD, Action::Stat(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, CWD, Action::Access(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, CWD, Action::Lacks(Some(Errno::EINVAL))),
];

/// The magic numbers of the nodes' ioctls. The descriptor decides in the end, because terminals use `T` as well.
const MAGICS: &[u8] = b"NGATHDPSCF>X";

/// Requests of terminals that have a Tegra magic and that programs make on any file, such as `isatty` and the size of
/// the window. A node answers them as the host does.
const TERMINAL: [u32; 2] = [libc::TCGETS as u32, libc::TIOCGWINSZ as u32];

/// The filters for a program that has a view of the board's files, and for a program that has none.
pub fn filters() -> Filters {
    let compile = |paths: Vec<Trap>| {
        let harmless = TERMINAL.map(|value| Test { arg: 1, mask: u32::MAX, value });
        let pass = harmless.map(|test| Trap { nr: libc::SYS_ioctl, test: Some(test) });
        sys::compile(&pass, &[traps(), paths].concat())
    };
    let all = PATH_CALLS.iter().map(|(nr, _, _)| Trap { nr: *nr, test: None }).collect();
    let viewing = compile(PATH_CALLS.iter().flat_map(writing).collect());
    Filters { viewing, blind: compile(all), killable: true }
}

/// The calls on descriptors that go to the supervisor.
fn traps() -> Vec<Trap> {
    let ioctls = MAGICS
        .iter()
        .map(|m| Trap { nr: libc::SYS_ioctl, test: Some(Test { arg: 1, mask: 0xff00, value: u32::from(*m) << 8 }) });
    // The kinds are MAP_SHARED and MAP_SHARED_VALIDATE. Programs and their libraries are mapped privately.
    let maps = [libc::MAP_SHARED, libc::MAP_SHARED_VALIDATE].map(|kind| Trap {
        nr: libc::SYS_mmap,
        test: Some(Test { arg: 3, mask: libc::MAP_TYPE as u32, value: kind as u32 }),
    });
    // The call waits for a file to be written. A dmabuf is not stored anywhere, and its answer says so.
    let sync = Test { arg: 2, mask: libc::MS_SYNC as u32, value: libc::MS_SYNC as u32 };
    let syncs = Trap { nr: libc::SYS_msync, test: Some(sync) };
    ioctls.chain(maps).chain([syncs]).collect()
}

/// The forms of a path call that can open a node, or any file that exists, for writing.
fn writing((nr, _, action): &(i64, PathArg, Action)) -> Vec<Trap> {
    match action {
        Action::Open(flags) => [libc::O_WRONLY, libc::O_RDWR]
            .map(|mode| Test { arg: *flags as u8, mask: (libc::O_ACCMODE | libc::O_EXCL) as u32, value: mode as u32 })
            .map(|test| Trap { nr: *nr, test: Some(test) })
            .to_vec(),
        // The flags of this call are in memory, which a filter cannot read, so that every such call is trapped.
        Action::OpenHow(_) => vec![Trap { nr: *nr, test: None }],
        #[cfg(target_arch = "x86_64")]
        Action::Create => vec![Trap { nr: *nr, test: None }],
        _ => vec![],
    }
}

/// Whether a call may wait for something that another call does.
pub fn sleeps(call: &sys::Notification) -> bool {
    i64::from(call.data.nr) == libc::SYS_ioctl && call.data.args[1] as u32 == NVGPU_IOCTL_CHANNEL_WAIT
}

impl Supervisor {
    /// Decides one trapped call.
    pub(super) fn decide(self: &Arc<Self>, target: &Target<'_>, call: &sys::Notification) -> Reply {
        let nr = i64::from(call.data.nr);
        if nr == libc::SYS_ioctl {
            return self.ioctl(target, call);
        }
        if nr == libc::SYS_mmap {
            return self.mmap(target, call);
        }
        if nr == libc::SYS_msync {
            return self.msync(target, call);
        }
        let Some((_, arg, action)) = PATH_CALLS.iter().find(|c| c.0 == nr) else { return Reply::Continue };
        let Some(path) = self.path(target, call, *arg) else { return Reply::Continue };
        let Some(entry) = self.entry(&path) else { return Reply::Continue };
        match self.act(target, call, *action, &path, &entry) {
            Ok(value) => Reply::Value(value),
            Err(e) => Reply::Error(e),
        }
    }

    /// What a path stands for. Nodes that were made since the start are included.
    fn entry(&self, path: &str) -> Option<Entry> {
        match path {
            super::census::PATH => return Some(Entry::Census),
            super::launches::PATH => return Some(Entry::Launches),
            _ => {}
        }
        let made = || self.kernel.node_paths().into_iter().find(|p| p == path).map(Entry::Node);
        self.tree.find(path).cloned().or_else(made)
    }

    /// The absolute path that a call names, if it can be a path of the board.
    fn path(&self, target: &Target<'_>, call: &sys::Notification, arg: PathArg) -> Option<String> {
        let path = target.path(call.data.args[arg.path]).ok()?;
        if path.starts_with('/') {
            return Tree::may_hold(&path).then(|| normalise(Path::new("/"), &path));
        }
        let name = Path::new(&path).file_name()?.to_str()?;
        if !self.tree.has_name(name) {
            return None;
        }
        let dir = match arg.dir.map(|i| call.data.args[i] as i32) {
            None | Some(libc::AT_FDCWD) => format!("/proc/{}/cwd", call.pid),
            Some(fd) => format!("/proc/{}/fd/{fd}", call.pid),
        };
        Some(normalise(&self.tree.seen_as(&std::fs::read_link(dir).ok()?), &path))
    }

    fn act(
        self: &Arc<Self>,
        target: &Target<'_>,
        call: &sys::Notification,
        action: Action,
        path: &str,
        entry: &Entry,
    ) -> Result<i64, Errno> {
        let args = call.data.args;
        match action {
            Action::Open(i) => self.open(target, path, entry, args[i] as i32),
            #[cfg(target_arch = "x86_64")]
            Action::Create => self.open(target, path, entry, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC),
            Action::OpenHow(i) => {
                let mut flags = [0; 8];
                target.read(args[i], &mut flags)?;
                self.open(target, path, entry, u64::from_ne_bytes(flags) as i32)
            }
            // The file can be opened but not found in other ways, because a board has no such file.
            _ if matches!(entry, Entry::Census | Entry::Launches) => Err(Errno::ENOENT),
            Action::Stat(i) => target.write(args[i], &sys::stat(&self.tree.real(path), entry)?).map(|()| 0),
            Action::Statx(i) => target.write(args[i], &sys::statx(&self.tree.real(path), entry)?).map(|()| 0),
            Action::Access(i) if args[i] as i32 & libc::X_OK != 0 && *entry != Entry::Directory => Err(Errno::EACCES),
            Action::Access(_) | Action::Lacks(None) => Ok(0),
            Action::Lacks(Some(errno)) => Err(errno),
        }
    }

    fn open(self: &Arc<Self>, target: &Target<'_>, path: &str, entry: &Entry, flags: i32) -> Result<i64, Errno> {
        let file: OwnedFd = match entry {
            Entry::Node(_) => {
                self.broken.opening(path)?;
                self.tell_closed();
                let real = self.kernel.open(target, path)?;
                let reading = flags & libc::O_ACCMODE == libc::O_RDONLY;
                self.closes.hand_out(if reading { super::adopt::for_reading(real) } else { real }, target.pid())?
            }
            Entry::Text(_) => self.open_text(target.pid(), path, flags)?,
            Entry::Census => self.open_census()?,
            Entry::Launches => self.open_launches()?,
            Entry::Directory => std::fs::File::open(self.tree.real(path)).map_err(|_| Errno::ENOENT)?.into(),
        };
        let fd = target.give(file.as_fd(), flags & libc::O_CLOEXEC != 0)?;
        self.observe(|o| o.opened(target.pid(), path, fd));
        Ok(i64::from(fd))
    }

    /// Opens a file of sysfs. Readers get its present contents, and what is written comes through a pipe. What a reader takes
    /// is not kept in the mounted file: who wants it opens the file for both, which is trapped.
    fn open_text(self: &Arc<Self>, pid: i32, path: &str, flags: i32) -> Result<OwnedFd, Errno> {
        let access = flags & libc::O_ACCMODE;
        if access == libc::O_RDONLY || access == libc::O_RDWR && self.kernel.text_is_taken(path) {
            // What the program wrote before is known to what it reads, and to all that it does from now on.
            self.writers.settle(self);
            return sys::memfd_with(path, &self.kernel.read_text(path)?);
        }
        if access == libc::O_RDWR || !self.kernel.text_is_writable(path) {
            return Err(Errno::EACCES);
        }
        self.writers.open(self, pid, path)
    }

    fn ioctl(&self, target: &Target<'_>, call: &sys::Notification) -> Reply {
        let [fd, request, argp, ..] = call.data.args;
        let (fd, request) = (fd as i32, request as u32);
        let node = match self.node(target, fd) {
            Ok(Some(node)) => node,
            Ok(None) => return Reply::Continue,
            Err(e) => return Reply::Error(e),
        };
        let start = host_ns();
        let tell = |before: &[u8], after: &[u8], result: Result<i32, Errno>, rule: Option<&str>| {
            let time_ns = (start, host_ns());
            let call = |pid| Answered { pid, fd, node, request, argument: argp, before, after, result, rule, time_ns };
            self.observe(|o| o.ioctl(&call(target.pid())));
        };
        if let Err(e) = self.broken.ioctl(node) {
            tell(&[], &[], Err(e), Some("--dead-gpu: the GPU cannot be powered"));
            return Reply::Error(e);
        }
        if self.depends_on_closed_files(request) {
            self.tell_closed();
        }
        let argument = Argument::of(request, argp);
        let before = match argument.read(target) {
            Ok(before) => before,
            Err(e) => {
                tell(&[], &[], Err(e), Some("the argument cannot be read"));
                return Reply::Error(e);
            }
        };
        let mut bytes = before.clone();
        let mut result = self.kernel.ioctl(target, fd, request, argument.pass(&mut bytes));
        if matches!(result, Err(Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE)) {
            // The resource may be held by files that were closed meanwhile, so these are ended before the call is made
            // again.
            self.tell_all_closed();
            bytes.copy_from_slice(&before);
            result = self.kernel.ioctl(target, fd, request, argument.pass(&mut bytes));
        }
        let mut rule = if result.is_err() { rule::take() } else { None };
        // A failed call does not change its argument, except for AS REMAP, which reports how far it came. Nothing is
        // written for a caller that a signal has taken away, because its memory may have another use by now.
        if (self.unheard.is_none() || target.waits())
            && let Err(e) = argument.write_back(target, &before, &bytes)
        {
            result = Err(e);
            rule = Some("the argument cannot be written".into());
        }
        if self.unheard.is_some() {
            target.leave(&bytes);
        }
        if request == NVGPU_GPU_IOCTL_CLK_SET_INFO {
            self.refresh_texts();
        }
        tell(&before, &bytes, result, rule.as_deref());
        match result {
            Ok(value) => Reply::Value(i64::from(value)),
            Err(Errno::EINTR) if target.was_interrupted() => Reply::Interrupted,
            Err(e) => Reply::Error(e),
        }
    }

    /// The kind of node of one of the caller's descriptors, if it is a node. If the program opened it without the
    /// supervisor, it becomes a node now.
    fn node(&self, target: &Target<'_>, fd: i32) -> Result<Option<Node>, Errno> {
        if let known @ Some(_) = self.kernel.node(target, fd) {
            return Ok(known);
        }
        Ok(if self.adopt(target, fd)? { self.kernel.node(target, fd) } else { None })
    }

    /// Decides a shared mapping. The kernel refuses some mappings of its own files, such as a second doorbell page or
    /// more bytes than a buffer has. If it allows a mapping, the host makes it.
    fn mmap(&self, target: &Target<'_>, call: &sys::Notification) -> Reply {
        let [_, len, prot, _, fd, offset] = call.data.args;
        if fd as i32 == -1 {
            return Reply::Continue;
        }
        let (fd, prot) = (fd as i32, prot as i32);
        let node = match self.node(target, fd) {
            Ok(Some(node)) => node,
            Ok(None) => return Reply::Continue,
            Err(e) => return Reply::Error(e),
        };
        let result = self.kernel.check_mmap(target, fd, len as usize, prot & libc::PROT_WRITE != 0, offset);
        let rule = if result.is_err() { rule::take() } else { None };
        let mapped = |pid| MapCall { pid, fd, node, len, prot, offset, result, rule: rule.as_deref() };
        self.observe(|o| o.mapped(&mapped(target.pid())));
        match result {
            Ok(()) => Reply::Continue,
            Err(e) => Reply::Error(e),
        }
    }

    /// Decides an msync by what is mapped at the address.
    fn msync(&self, target: &Target<'_>, call: &sys::Notification) -> Reply {
        let address = call.data.args[0];
        let vma = target.vma(address).filter(|vma| vma.start <= address && vma.shared);
        match vma.is_some_and(|vma| self.kernel.is_memory(vma.file)) {
            true => Reply::Error(Errno::EINVAL),
            false => Reply::Continue,
        }
    }
}

/// The third argument of a trapped ioctl, and what the request number says about it.
pub(super) struct Argument {
    value: u64,
    size: usize,
    /// Whether the kernel reads the argument (`_IOC_WRITE`).
    input: bool,
    /// Whether the kernel writes the argument (`_IOC_READ`).
    output: bool,
}

impl Argument {
    pub(super) fn of(request: u32, value: u64) -> Argument {
        let size = (request >> 16 & 0x3fff) as usize;
        Argument { value, size, input: request >> 30 & 1 == 1, output: request >> 31 == 1 }
    }

    /// Reads the argument. A structure that is only written starts as zeros, whatever the caller has there
    /// (docs/hardware/nvgpu-overview.md#dispatcher-arguments). nvmap reads some of those structures nevertheless, so
    /// they are read if they can be.
    pub(super) fn read(&self, target: &Target<'_>) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; self.size];
        match target.read(self.value, &mut bytes) {
            Err(e) if self.input && self.size > 0 => Err(e),
            Err(_) => Ok(vec![0; self.size]),
            Ok(()) => Ok(bytes),
        }
    }

    fn pass<'a>(&self, bytes: &'a mut [u8]) -> Arg<'a> {
        if self.size == 0 { Arg::Value(self.value) } else { Arg::Bytes(bytes) }
    }

    pub(super) fn write_back(&self, target: &Target<'_>, before: &[u8], after: &[u8]) -> Result<(), Errno> {
        if self.output && before != after { target.write(self.value, after) } else { Ok(()) }
    }
}
