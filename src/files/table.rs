//! The table that finds the open file behind a descriptor.
//!
//! Files are told apart by what `fstat(2)` says. This also works for duplicates, for inherited descriptors and for
//! numbers that the program reused, although the library has not seen those calls. A descriptor to which a buffer was
//! lent refers to that buffer from then on, so the table remembers the number of such a descriptor too.

use super::node::OpenFile;
use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_kmd::Errno;
use tegrarm_kmd::fds::{FileId, file_id};
use tegrarm_lock::Mutex;

/// From this number of open files on, every open looks for files whose descriptors were closed unseen.
const SWEEP_FROM: usize = 64;

/// The open files of this process.
#[derive(Default)]
pub struct Table {
    open: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    files: HashMap<FileId, Arc<OpenFile>>,
    lent: HashMap<RawFd, Lent>,
    /// What small descriptors refer to, by number. This is a cache of the answers of the maps above.
    seen: Vec<Option<Seen>>,
    sweep_at: usize,
}

/// A descriptor as it was last seen. The entry is valid only while the descriptor refers to the same file.
#[derive(Clone)]
struct Seen {
    id: FileId,
    file: Arc<OpenFile>,
}

/// Descriptors from this number on are not cached.
const SEEN_BELOW: usize = 4096;

/// A descriptor that refers to the buffer that was lent to it.
struct Lent {
    to: FileId,
    file: Arc<OpenFile>,
}

impl Table {
    /// The open file behind a descriptor.
    ///
    /// # Errors
    /// `EBADF` for a closed descriptor, `ENOTTY` for a descriptor that is not an RM node.
    #[inline(always)]
    pub fn find(&self, fd: RawFd) -> Result<Arc<OpenFile>, Errno> {
        let id = file_id(fd)?;
        if let Some(Some(seen)) = self.open.lock().seen.get(fd as usize)
            && seen.id == id
        {
            return Ok(seen.file.clone());
        }
        self.look_up(fd, id)
    }

    #[cold]
    fn look_up(&self, fd: RawFd, id: FileId) -> Result<Arc<OpenFile>, Errno> {
        let mut open = self.open.lock();
        let file = match open.lent.get(&fd) {
            Some(lent) if lent.to == id => lent.file.clone(),
            _ => open.files.get(&id).cloned().ok_or(Errno::ENOTTY)?,
        };
        open.saw(fd as usize, Seen { id, file: file.clone() });
        Ok(file)
    }

    /// Enters a file. If another thread has entered a file with the same identity first, the table keeps that one.
    /// Returns the file that is in the table.
    pub fn enter(&self, file: OpenFile) -> Arc<OpenFile> {
        let mut open = self.open.lock();
        let entered = open.files.entry(file.id).or_insert_with(|| Arc::new(file)).clone();
        let gone = if open.files.len() > open.sweep_at.max(SWEEP_FROM) { open.sweep() } else { Vec::new() };
        drop(open);
        drop(gone);
        entered
    }

    /// Notes that a buffer was lent to `fd`.
    pub fn lent(&self, fd: RawFd, file: &Arc<OpenFile>) {
        if let Ok(to) = file_id(fd) {
            self.open.lock().lent.insert(fd, Lent { to, file: file.clone() });
        }
    }

    /// Forgets what is remembered of `fd`, which is about to be closed. This must happen first, because another thread
    /// may get the number as soon as it is free. Returns the open file behind the descriptor.
    pub fn closing(&self, fd: RawFd) -> Option<Arc<OpenFile>> {
        let id = file_id(fd).ok()?;
        let mut open = self.open.lock();
        open.forget(|at, _| at == fd as usize);
        match open.lent.remove(&fd) {
            Some(lent) if lent.to == id => Some(lent.file),
            _ => open.files.get(&id).cloned(),
        }
    }

    /// Notes that a descriptor of `file` was closed. The file ends with its last descriptor.
    pub fn closed(&self, file: &OpenFile) {
        let mut open = self.open.lock();
        let gone = open.remove_unless(&open_files(), file.id);
        drop(open);
        drop(gone);
    }

    /// Forgets all files and descriptors.
    pub fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        drop(open);
    }

    /// The number of open files.
    pub fn len(&self) -> usize {
        self.open.lock().files.len()
    }
}

impl OpenFiles {
    fn is_lent(&self, file: FileId) -> bool {
        self.lent.iter().any(|(fd, l)| l.file.id == file && file_id(*fd) == Ok(l.to))
    }

    fn remove_unless(&mut self, open: &HashSet<FileId>, file: FileId) -> Option<Arc<OpenFile>> {
        if open.contains(&file) || self.is_lent(file) {
            return None;
        }
        self.forget(|_, seen| seen.file.id == file);
        self.files.remove(&file)
    }

    fn saw(&mut self, at: usize, seen: Seen) {
        if at >= SEEN_BELOW {
            return;
        }
        if at >= self.seen.len() {
            self.seen.resize(at + 1, None);
        }
        self.seen[at] = Some(seen);
    }

    fn forget(&mut self, what: impl Fn(usize, &Seen) -> bool) {
        for (at, slot) in self.seen.iter_mut().enumerate() {
            slot.take_if(|seen| what(at, seen));
        }
    }

    /// Takes out the files whose descriptors were all closed by calls that the library has not seen.
    fn sweep(&mut self) -> Vec<Arc<OpenFile>> {
        self.lent.retain(|fd, lent| file_id(*fd) == Ok(lent.to));
        let open = open_files();
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        let gone = ids.into_iter().filter_map(|id| self.remove_unless(&open, id)).collect();
        self.sweep_at = self.files.len() * 2;
        gone
    }
}

/// The identities of all files to which this process has a descriptor.
fn open_files() -> HashSet<FileId> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return HashSet::new() };
    let numbers = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(|fd: RawFd| file_id(fd).ok()).collect()
}
