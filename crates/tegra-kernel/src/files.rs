//! Open files: what stands behind each descriptor of a caller, and the calls that are made on it.

use crate::board::Board;
use crate::event::EventFd;
use crate::process::{FileId, Process};
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_mm::memfd;
use tegrarm_kmd::{Arg, Errno, Node};
use tegrarm_lock::RwLock;

/// What stands behind a descriptor, as the kernel's `struct file_operations` describe it. The answers that a file does not give
/// itself are those of a file that can only be polled.
pub(crate) trait OpenFile: Any + Debug + Send + Sync {
    /// The kind of node. It is `None` for files that take no ioctls.
    fn node(&self) -> Option<Node> {
        None
    }

    /// Answers one ioctl.
    fn ioctl(self: Arc<Self>, _: &Call<'_>, _: u32, _: Arg<'_>) -> Result<i32, Errno> {
        Err(Errno::ENOTTY)
    }

    /// Checks an `mmap(2)` of the call's descriptor.
    fn check_mmap(&self, _: &Call<'_>, _: &Mmap) -> Result<(), Errno> {
        Err(Errno::ENODEV)
    }

    /// The address at which the kernel itself has mapped the memory behind the file.
    fn own_view(&self) -> Option<usize> {
        None
    }

    /// Our end of a file that is a socket or a pipe: it hangs up when the program's has been closed everywhere.
    fn our_end(&self) -> Option<OwnedFd> {
        None
    }

    /// Whether it is memory, which has pages and takes no writes. Only memory is entered more than once.
    fn is_memory(&self) -> bool {
        false
    }

    /// Ends the file after its last descriptor was closed. Most files end when their last reference is dropped, and have no more to
    /// do.
    fn close(&self, _: &Files) {}
}

/// A mapping that a program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mmap {
    pub len: usize,
    pub write: bool,
    pub offset: u64,
}

/// An event can be polled, and its file keeps it alive.
impl OpenFile for EventFd {
    fn our_end(&self) -> Option<OwnedFd> {
        self.our_end()
    }
}

/// One call while it is answered.
pub(crate) struct Call<'a> {
    pub board: &'a Board,
    pub files: &'a Files,
    pub process: &'a dyn Process,
    /// The descriptor on which the call is made. It is -1 for an open.
    pub fd: RawFd,
    /// True if the handler wants its argument copied back although it failed. A.REMAP and nvmap's READ and WRITE do
    /// this.
    pub copy_back_always: std::cell::Cell<bool>,
}

impl Call<'_> {
    /// What stands behind one of the caller's descriptors, if it is of that type.
    pub(crate) fn file<T: OpenFile>(&self, fd: RawFd) -> Option<Arc<T>> {
        of_type(self.files.object(self.process, fd).ok()?)
    }
}

/// The file as what it is, if it is of that type.
pub(crate) fn of_type<T: OpenFile>(file: Arc<dyn OpenFile>) -> Option<Arc<T>> {
    let file: Arc<dyn Any + Send + Sync> = file;
    file.downcast().ok()
}

#[derive(Debug)]
struct Entry {
    file: Arc<dyn OpenFile>,
    /// The number of descriptors that were handed out and are not closed yet.
    descriptors: usize,
    /// The number of kernel objects that keep it open.
    pins: usize,
    /// The number of files that were entered before it.
    seq: u64,
}

/// Every open file of the simulated kernel.
pub(crate) struct Files {
    pub board: Arc<Board>,
    open: RwLock<HashMap<FileId, Entry>>,
    entered: AtomicU64,
    /// The number of anonymous files made so far, for their labels.
    labels: AtomicU64,
}

impl Files {
    pub(crate) fn new(board: Arc<Board>) -> Files {
        Files { board, open: RwLock::default(), entered: AtomicU64::new(0), labels: AtomicU64::new(0) }
    }

    /// Enters one more descriptor of a file. If the table has a file with the same identity whose descriptors were all
    /// closed unseen, that old file ends.
    pub(crate) fn enter(&self, id: FileId, file: Arc<dyn OpenFile>) {
        let mut open = self.open.write();
        let old = match open.get_mut(&id) {
            Some(entry) if is_same(&entry.file, &file) => {
                entry.descriptors += 1;
                None
            }
            _ => {
                let seq = self.entered.fetch_add(1, Ordering::Relaxed);
                open.insert(id, Entry { file, descriptors: 1, pins: 0, seq })
            }
        };
        drop(open);
        self.end(old);
    }

    /// Makes a new anonymous file, with a name as nvgpu gives it (`nvhost-<dev>-fd<N>`). N is a count here.
    pub(crate) fn anonymous(&self, device: &str, file: Arc<dyn OpenFile>) -> Result<OwnedFd, Errno> {
        let n = self.labels.fetch_add(1, Ordering::Relaxed);
        let (fd, id) = anonymous(&format!("nvhost-{device}-fd{n}"))?;
        self.enter(id, file);
        Ok(fd)
    }

    /// The file that has an identity.
    pub(crate) fn get(&self, id: FileId) -> Option<Arc<dyn OpenFile>> {
        self.open.read().get(&id).map(|entry| entry.file.clone())
    }

    /// The file that has an identity, if it is of that type.
    pub(crate) fn find<T: OpenFile>(&self, id: FileId) -> Option<Arc<T>> {
        of_type(self.get(id)?)
    }

    /// The file behind one of the caller's descriptors. The error is `EBADF` if the descriptor is closed, and `EINVAL` if
    /// it does not belong to this kernel.
    pub(crate) fn object(&self, process: &dyn Process, fd: RawFd) -> Result<Arc<dyn OpenFile>, Errno> {
        self.get(process.file_id(fd)?).ok_or(Errno::EINVAL)
    }

    /// Notes that a descriptor of the caller is about to be closed. The file ends with its last descriptor.
    pub(crate) fn close(&self, process: &dyn Process, fd: RawFd) {
        if let Ok(id) = process.file_id(fd) {
            self.leave(id, 1);
        }
    }

    /// Counts so many descriptors less.
    pub(crate) fn leave(&self, id: FileId, descriptors: usize) {
        self.count_down(id, |entry| entry.descriptors = entry.descriptors.saturating_sub(descriptors));
    }

    /// Keeps a file open, even after its descriptors are closed.
    pub(crate) fn pin(&self, id: FileId) {
        if let Some(entry) = self.open.write().get_mut(&id) {
            entry.pins += 1;
        }
    }

    /// Removes a pin, so that the file is not kept open by it any more.
    pub(crate) fn unpin(&self, id: FileId) {
        self.count_down(id, |entry| entry.pins = entry.pins.saturating_sub(1));
    }

    /// Counts less of what keeps a file open, and ends the file if nothing does any more.
    fn count_down(&self, id: FileId, count: impl FnOnce(&mut Entry)) {
        let mut open = self.open.write();
        let Some(entry) = open.get_mut(&id) else { return };
        count(entry);
        let last = entry.descriptors + entry.pins == 0;
        let ended = if last { open.remove(&id) } else { None };
        drop(open);
        self.end(ended);
    }

    /// Ends what was taken out of the table. The table is not locked meanwhile, because a file may close others.
    fn end(&self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            entry.file.close(self);
        }
    }

    /// Another descriptor of an open file, of which we are told only now.
    pub(crate) fn again(&self, id: FileId) {
        if let Some(entry) = self.open.write().get_mut(&id) {
            entry.descriptors += 1;
        }
    }

    /// Takes every file out, the oldest first: ids are then given back in the same order every time.
    pub(crate) fn drain(&self) -> Vec<Arc<dyn OpenFile>> {
        let mut entries: Vec<Entry> = self.open.write().drain().map(|(_, entry)| entry).collect();
        entries.sort_by_key(|entry| entry.seq);
        entries.into_iter().map(|entry| entry.file).collect()
    }

    /// The number of open files.
    pub(crate) fn len(&self) -> usize {
        self.open.read().len()
    }
}

/// Whether both stand for the same memory.
fn is_same(one: &Arc<dyn OpenFile>, other: &Arc<dyn OpenFile>) -> bool {
    one.is_memory() && std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Makes a new file, which has an identity and no content.
pub(crate) fn anonymous(label: &str) -> Result<(OwnedFd, FileId), Errno> {
    let fd = memfd::create(label, 0)?;
    let id = FileId::of(&fd)?;
    Ok((fd, id))
}
