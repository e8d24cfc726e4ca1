//! The files of the board that a supervised program sees: device nodes and the GPU's devfreq directory.
//!
//! They are in a skeleton directory, which has empty files for the nodes, and text files with their present contents. A
//! program that has it mounted over its `/dev` (see [`super::view`]) needs the supervisor only to open a node. For a
//! program without the mount, the host's kernel still answers questions about listings and permissions.

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::getuid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The meaning of a path of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A character device whose ioctls the simulated kernel answers.
    Node(String),
    /// A text file of sysfs.
    Text(String),
    /// A directory that holds such files.
    Directory,
    /// The numbers of what is alive in the simulated kernel: see [`super::census`].
    Census,
    /// The launches of each process: see [`super::launches`].
    Launches,
}

/// The skeleton directory with its entries.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The lock is held for as long as the directory is used.
    _lock: Flock<File>,
    entries: Vec<(String, Entry)>,
    /// The directories of the host that do not have all of the board's files.
    lacking: BTreeSet<PathBuf>,
}

impl Tree {
    /// Makes `nodes` and `texts` under a new private directory.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn new(nodes: &[String], texts: &[String]) -> io::Result<Tree> {
        sweep();
        let (root, lock) = directory()?;
        let mut tree = Tree { root, _lock: lock, entries: vec![], lacking: BTreeSet::new() };
        for path in nodes {
            tree.add(path, Entry::Node(path.clone()))?;
        }
        for path in texts {
            tree.add(path, Entry::Text(path.clone()))?;
        }
        Ok(tree)
    }

    fn add(&mut self, path: &str, entry: Entry) -> io::Result<()> {
        let real = self.real(path);
        if let Some(dir) = real.parent() {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::write(&real, "")?;
        self.entries.push((path.to_owned(), entry));
        // A directory belongs to the board if the host does not have it.
        let mut dir = Path::new(path).parent();
        while let Some(d) = dir.filter(|d| !d.exists()) {
            let name = d.to_string_lossy().into_owned();
            if !self.entries.iter().any(|(p, _)| *p == name) {
                self.entries.push((name, Entry::Directory));
            }
            dir = d.parent();
        }
        self.lacking.extend(dir.map(Path::to_owned));
        Ok(())
    }

    /// The paths of the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Node(_))).map(|(path, _)| path.as_str())
    }

    /// The paths of the text files.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Text(_))).map(|(path, _)| path.as_str())
    }

    /// The directories of the host to which the skeleton adds something.
    pub fn lacking(&self) -> impl Iterator<Item = &Path> {
        self.lacking.iter().map(PathBuf::as_path)
    }

    /// Replaces the contents of a text file in one step, so that a reader sees the old contents or the new ones. Two threads
    /// must not replace the same file at a time.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn set_text(&self, path: &str, contents: &str, writable: bool) -> io::Result<()> {
        let next = self.root.join(format!("next {}", path.replace('/', " ")));
        std::fs::write(&next, contents)?;
        std::fs::set_permissions(&next, Permissions::from_mode(if writable { 0o644 } else { 0o444 }))?;
        std::fs::rename(&next, self.real(path))
    }

    /// The path of an entry in the skeleton.
    pub fn real(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The entry of an absolute, normalised path. It is `None` if the path is the host's.
    pub fn find(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().find(|(p, _)| p == path).map(|(_, e)| e)
    }

    /// Whether any of the board's files or directories is called `name`.
    pub fn has_name(&self, name: &str) -> bool {
        self.entries.iter().any(|(path, _)| path.ends_with(name) && path[..path.len() - name.len()].ends_with('/'))
    }

    /// The path of a directory as the program knows it. A directory of the skeleton is one of the board.
    pub fn seen_as(&self, dir: &Path) -> PathBuf {
        dir.strip_prefix(&self.root).map_or_else(|_| dir.to_owned(), |inner| Path::new("/").join(inner))
    }

    /// Whether a path may be one of the board's, by its beginning. This is a quick answer for most paths.
    pub fn may_hold(path: &str) -> bool {
        path.starts_with("/dev") || path.starts_with("/sys")
    }
}

impl Tree {
    /// Removes the directory.
    pub fn remove(&self) {
        if let Err(e) = remove(&self.root)
            && e.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {e}", self.root.display());
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The names of skeleton directories begin with this. The process id and six letters follow.
const PREFIX: &str = "tegrarm-sim.";

/// Makes a new directory and locks it.
fn directory() -> io::Result<(PathBuf, Flock<File>)> {
    loop {
        let template = std::env::temp_dir().join(format!("{PREFIX}{}.XXXXXX", std::process::id()));
        let root = nix::unistd::mkdtemp(&template)?;
        // Until it is locked, the directory looks like that of a dead supervisor, and another one may remove it: before
        // it is opened here, or after that.
        let opened = match File::open(&root) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let made = opened.metadata()?.ino();
        let lock = Flock::lock(opened, FlockArg::LockExclusive).map_err(|(_, e)| io::Error::from(e))?;
        if root.metadata().is_ok_and(|now| now.ino() == made) {
            return Ok((root, lock));
        }
    }
}

/// Removes the directories of supervisors that were killed. Directories of others are locked, or may not be removed by
/// this user.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    let ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    for path in entries.flatten().filter(|entry| ours(&entry.file_name())).map(|entry| entry.path()) {
        let is_directory = path.symlink_metadata().is_ok_and(|file| file.is_dir() && file.uid() == getuid().as_raw());
        let Some(opened) = is_directory.then(|| File::open(&path).ok()).flatten() else { continue };
        if let Ok(_dead) = Flock::lock(opened, FlockArg::LockExclusiveNonblock)
            && let Err(e) = remove(&path)
        {
            tracing::info!("cannot remove {}: {e}", path.display());
        }
    }
}

/// Removes a directory and everything in it that is on the same file system. Files that are mounted there stay.
fn remove(dir: &Path) -> io::Result<()> {
    let device = dir.symlink_metadata()?.dev();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let file = path.symlink_metadata()?;
        match file.is_dir() {
            true if file.dev() == device => remove(&path)?,
            true => std::fs::remove_dir(&path)?,
            false => std::fs::remove_file(&path)?,
        }
    }
    std::fs::remove_dir(dir)
}

/// `path` without `.`, `..` and doubled slashes. A relative path is taken from `base`.
pub fn normalise(base: &Path, path: &str) -> String {
    let mut out = PathBuf::from("/");
    for part in base.join(path).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_as_the_kernel_walks_them() {
        for (base, path, want) in [
            ("/", "dev/nvmap", "/dev/nvmap"),
            ("/dev/nvgpu", "igpu0//ctrl", "/dev/nvgpu/igpu0/ctrl"),
            ("/tmp", "/dev/./nvgpu/../nvmap", "/dev/nvmap"),
            ("/", "../../dev/nvmap", "/dev/nvmap"),
        ] {
            assert_eq!(normalise(Path::new(base), path), want);
        }
    }

    #[test]
    fn the_skeleton_lists_like_the_board() {
        let tree =
            Tree::new(&["/dev/nvgpu/igpu0/ctrl".into()], &["/sys/class/devfreq/17000000.gpu/min_freq".into()]).unwrap();
        let root = tree.root.clone();
        assert!(matches!(tree.find("/dev/nvgpu/igpu0/ctrl"), Some(Entry::Node(_))));
        assert!(matches!(tree.find("/sys/class/devfreq/17000000.gpu/min_freq"), Some(Entry::Text(_))));
        assert_eq!(tree.find("/dev/nvgpu/igpu0"), Some(&Entry::Directory));
        assert_eq!(tree.find("/dev/null"), None);
        let names: Vec<_> =
            std::fs::read_dir(tree.real("/dev/nvgpu/igpu0")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["ctrl"]);
        drop(tree);
        assert!(!root.exists());
    }

    /// Supervisors that start together take each other's new directories for those of dead ones until they are locked.
    #[test]
    fn supervisors_that_start_together_get_their_directories() {
        std::thread::scope(|scope| {
            let start = || (0..60).for_each(|_| drop(Tree::new(&[], &[]).unwrap()));
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    /// A supervisor removes the directories that killed supervisors left behind, and no others. Supervisors of other
    /// tests sweep at the same time, so that one of them may be at work on the directory.
    #[test]
    fn what_dead_supervisors_left_is_swept() {
        let path = std::env::temp_dir().join(format!("{PREFIX}0.{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        drop(std::fs::create_dir(path.join("dev")));
        let alive = Tree::new(&["/dev/nvmap".into()], &[]).unwrap();
        let swept = (0..1000).any(|_| {
            sweep();
            !path.exists()
        });
        assert!(swept);
        assert!(alive.real("/dev/nvmap").exists());
    }
}
