//! Which open file a descriptor refers to.
//!
//! Identity is what `fstat(2)` says, so duplicates, inherited descriptors and numbers that were reused behind our back
//! are told apart without our having seen the call. A descriptor that was lent a buffer refers to that buffer from
//! then on; for it, the number is remembered too.

use super::node::OpenFile;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::Arc;
use tegrarm_kmd::Errno;
use tegrarm_kmd::fds::{FileId, file_id};

/// Open files above which every open looks for some that were closed unseen.
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
    /// What small descriptors were found to refer to, by number: the answer of the maps above, remembered.
    seen: Vec<Option<Seen>>,
    sweep_at: usize,
}

/// A descriptor as it was last seen. It counts only while the descriptor still refers to the same.
#[derive(Clone)]
struct Seen {
    id: FileId,
    file: Arc<OpenFile>,
}

/// Descriptors from this number on are looked up every time.
const SEEN_BELOW: usize = 4096;

/// A descriptor that refers to what it was lent.
struct Lent {
    to: FileId,
    file: Arc<OpenFile>,
}

impl Table {
    /// The open file behind a descriptor.
    ///
    /// # Errors
    /// `EBADF` for a closed descriptor, `ENOTTY` for one that is no RM node.
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

    /// Enters a file. If another thread has entered a file with the same identity first, that one stays. Returns the file that
    /// is in the table.
    pub fn enter(&self, file: OpenFile) -> Arc<OpenFile> {
        let mut open = self.open.lock();
        let entered = open.files.entry(file.id).or_insert_with(|| Arc::new(file)).clone();
        let gone = if open.files.len() > open.sweep_at.max(SWEEP_FROM) { open.sweep() } else { Vec::new() };
        drop(open);
        drop(gone);
        entered
    }

    /// `fd` was lent something.
    pub fn lent(&self, fd: RawFd, file: &Arc<OpenFile>) {
        if let Ok(to) = file_id(fd) {
            self.open.lock().lent.insert(fd, Lent { to, file: file.clone() });
        }
    }

    /// `fd` is about to be closed: what is remembered of its number goes first, because another thread may get the number
    /// the moment it is free. Returns the open file behind it.
    pub fn closing(&self, fd: RawFd) -> Option<Arc<OpenFile>> {
        let id = file_id(fd).ok()?;
        let mut open = self.open.lock();
        open.forget(|at, _| at == fd as usize);
        match open.lent.remove(&fd) {
            Some(lent) if lent.to == id => Some(lent.file),
            _ => open.files.get(&id).cloned(),
        }
    }

    /// A descriptor of `file` was closed. The file ends with its last one.
    pub fn closed(&self, file: &OpenFile) {
        let mut open = self.open.lock();
        let gone = open.remove_unless(&open_files(), file.id);
        drop(open);
        drop(gone);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        drop(open);
    }

    /// How many open files there are.
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

    /// Takes out files whose descriptors were all closed by other means than ours.
    fn sweep(&mut self) -> Vec<Arc<OpenFile>> {
        self.lent.retain(|fd, lent| file_id(*fd) == Ok(lent.to));
        let open = open_files();
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        let gone = ids.into_iter().filter_map(|id| self.remove_unless(&open, id)).collect();
        self.sweep_at = self.files.len() * 2;
        gone
    }
}

/// What all descriptors of this process refer to.
fn open_files() -> HashSet<FileId> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return HashSet::new() };
    let numbers = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(|fd: RawFd| file_id(fd).ok()).collect()
}
