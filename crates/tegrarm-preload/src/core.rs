//! The core is libtegrarm.so, which is loaded when the first node is opened.

use crate::paths::Node;
use crate::{fds, guard, next};
use once_cell::race::OnceBox;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use tegrarm_client::find;

/// The functions of libtegrarm.so that are used here.
struct Core {
    open: unsafe extern "C" fn(*const c_char, c_int) -> c_int,
    ioctl: unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
    last_error: unsafe extern "C" fn(*mut c_char, usize) -> usize,
}

/// The process whose descriptors the table lists. A child of vfork(2) shares the parent's memory but is another
/// process: descriptors that it closes stay open in the parent.
static OWNER: AtomicI32 = AtomicI32::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While this value exists, its thread is inside the core, and calls that it makes go to libc.
pub struct Inside(());

impl Inside {
    /// Enters the core. The result is `None` if the thread is inside already.
    #[inline]
    pub fn enter() -> Option<Inside> {
        if INSIDE.replace(true) { None } else { Some(Inside(())) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Whether this thread is inside the core.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Whether this process is the one whose descriptors the table lists.
pub fn is_owner() -> bool {
    // SAFETY: this call always succeeds.
    OWNER.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

extern "C" fn in_child() {
    // SAFETY: this call always succeeds.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Relaxed);
}

/// Opens a node.
#[cold]
pub fn open(node: Node, flags: c_int) -> c_int {
    guard::guarded(-1, || open_node(node, flags))
}

fn open_node(node: Node, flags: c_int) -> c_int {
    if node == Node::Absent {
        return next::fail(libc::ENOENT);
    }
    let Some(_inside) = Inside::enter() else { return interrupted() };
    let Some(core) = core() else { return next::fail(libc::ENODEV) };
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { (core.open)(node.path().as_ptr(), flags) };
    if fd < 0 {
        let errno = next::errno();
        explain(core, node);
        return next::fail(errno);
    }
    fds::ours(fd);
    fd
}

/// Makes one ioctl on a descriptor that may be a node's.
pub fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    match guard::guarded(Some(-1), || node_ioctl(fd, request, arg)) {
        Some(result) => result,
        // SAFETY: the caller's call, passed on.
        None => unsafe { next::ioctl(fd, request, arg) },
    }
}

/// The core's answer; `None` when the descriptor is not the core's.
fn node_ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> Option<c_int> {
    let inside = Inside::enter();
    // Calls that the core itself makes never concern a node.
    if inside.is_none() && fds::node(fd).is_some() {
        return Some(interrupted());
    }
    let (_inside, core) = (inside?, core()?);
    let errno = next::errno();
    // SAFETY: the core checks descriptor and pointers.
    let result = unsafe { (core.ioctl)(fd, request, arg) };
    if result != -1 || next::errno() != libc::ENOTTY {
        return Some(result);
    }
    // It changed hands unseen.
    fds::foreign(fd);
    next::set_errno(errno);
    None
}

/// Ends the process when a signal handler makes a call on a node while its thread is inside another one. The
/// interrupted call has the locks for which the handler's call would wait for ever. A kernel would have run the handler
/// after the first call.
#[cold]
fn interrupted() -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        const TEXT: &[u8] = b"libtegrarm: a signal's handler called a device node in the middle of another such call of its thread: EBUSY\n";
        // It makes calls that a signal's handler may make.
        guard::say(TEXT);
    }
    next::fail(libc::EBUSY)
}

/// Closes a descriptor of a node.
pub fn close(fd: c_int) -> c_int {
    let by_core = || {
        let (_inside, core) = (Inside::enter()?, core()?);
        // SAFETY: the caller asked for this descriptor to be closed.
        Some(unsafe { (core.close)(fd) })
    };
    match guard::guarded(Some(-1), by_core) {
        Some(result) => result,
        // SAFETY: the caller asked for this descriptor to be closed.
        None => unsafe { next::close(fd) },
    }
}

fn core() -> Option<&'static Core> {
    static CORE: OnceBox<Option<Core>> = OnceBox::new();
    CORE.get_or_init(|| Box::new(load())).as_ref()
}

/// Loads the library.
#[cold]
fn load() -> Option<Core> {
    let library = find::open().map_err(|why| say(&why)).ok()?;
    let core = symbols(library);
    if core.is_none() {
        say("the libtegrarm that was found is another library");
    }
    // SAFETY: the handler stays at its address, because this library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    in_child();
    core
}

fn symbols(library: *mut c_void) -> Option<Core> {
    let find = |name: &CStr| {
        // SAFETY: the handle is that of `find::open`.
        let found = unsafe { find::symbol(library, name) };
        if found.is_null() { None } else { Some(found) }
    };
    let (open, ioctl, close) = (find(c"rm_open")?, find(c"rm_ioctl")?, find(c"rm_close")?);
    let last_error = find(c"tegrarm_last_error")?;
    // SAFETY: these are libtegrarm's functions, and the types are the prototypes of its header.
    unsafe {
        Some(Core {
            open: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, c_int) -> c_int>(open),
            ioctl: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int>(
                ioctl,
            ),
            close: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(close),
            last_error: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_char, usize) -> usize>(
                last_error,
            ),
        })
    }
}

/// Says once why a node cannot be opened, because most frontends would only say "no such device".
#[cold]
fn explain(core: &Core, node: Node) {
    let mut text = [0u8; 1024];
    // SAFETY: the call writes at most the length of the array, with the NUL.
    unsafe { (core.last_error)(text.as_mut_ptr().cast(), text.len()) };
    let why = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    say(&format!("{}: {why}", node.path().to_string_lossy()));
}

fn say(text: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        guard::say(format!("libtegrarm: {text}\n").as_bytes());
    }
}
