//! A mount namespace for the program, in which the board's files are where a board has them.
//!
//! With it the host kernel itself answers `stat`, `access`, `readlink`, listings and `chdir`, and reads of sysfs: no
//! call that takes a path has to be trapped but the opening of a node. Where the host forbids namespaces, those calls
//! are trapped instead, which costs every program that looks at many files.

use super::tree::Tree;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What stands at a node's path: a device that can be opened by anybody, whose identity says nothing.
pub const PLACEHOLDER: &str = "/dev/null";

/// What to mount, in this order.
#[derive(Debug)]
pub struct View {
    binds: Vec<Bind>,
    uid_map: String,
    gid_map: String,
}

#[derive(Debug)]
struct Bind {
    from: CString,
    to: CString,
}

impl View {
    /// Completes the skeleton with the host's own entries of every directory that it will cover.
    ///
    /// # Errors
    /// What the file system says.
    pub fn of(tree: &Tree) -> io::Result<View> {
        let (uid, gid) = (getuid(), getgid());
        let mut view = View { binds: vec![], uid_map: format!("{uid} {uid} 1\n"), gid_map: format!("{gid} {gid} 1\n") };
        for dir in tree.lacking() {
            view.mirror(dir, &tree.real(&dir.to_string_lossy()))?;
        }
        for node in tree.nodes() {
            view.bind(Path::new(PLACEHOLDER), &tree.real(node))?;
        }
        for dir in tree.lacking() {
            view.bind(&tree.real(&dir.to_string_lossy()), dir)?;
        }
        Ok(view)
    }

    /// Gives the skeleton's `copy` of a directory what only the host's has.
    fn mirror(&mut self, host: &Path, copy: &Path) -> io::Result<()> {
        for entry in fs::read_dir(host)? {
            let (entry, to) = entry.map(|e| (e.path(), copy.join(e.file_name())))?;
            if to.symlink_metadata().is_ok() {
                continue;
            }
            let kind = entry.symlink_metadata()?.file_type();
            if kind.is_symlink() {
                symlink(fs::read_link(&entry)?, &to)?;
                continue;
            }
            if kind.is_dir() {
                fs::create_dir(&to)?
            } else {
                fs::write(&to, "")?
            }
            self.bind(&entry, &to)?;
        }
        Ok(())
    }

    fn bind(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let text = |path: &Path| Ok::<_, io::Error>(CString::new(path.as_os_str().as_bytes())?);
        self.binds.push(Bind { from: text(from)?, to: text(to)? });
        Ok(())
    }

    /// Moves the calling process, which must have one thread, into a namespace of its own and mounts everything there.
    ///
    /// # Errors
    /// The errno of the call the host refused; the process may be in a namespace then, in which nothing is covered that
    /// the trapping of paths would not serve as well.
    pub fn enter(&self) -> Result<(), Errno> {
        match unshare(CloneFlags::CLONE_NEWNS) {
            Err(Errno::EPERM) => self.enter_as_user()?,
            other => other?,
        }
        let none = None::<&str>;
        // Nothing of this is to come out, even where the host shares its mounts.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        for Bind { from, to } in &self.binds {
            match mount(Some(from.as_c_str()), to.as_c_str(), none, MsFlags::MS_BIND | MsFlags::MS_REC, none) {
                // It went while we looked.
                Err(Errno::ENOENT) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Without privileges a user namespace comes first: the same user and group in it, nobody else.
    fn enter_as_user(&self) -> Result<(), Errno> {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        let say = |file: &str, text: &str| {
            fs::write(file, text).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EPERM)))
        };
        say("/proc/self/setgroups", "deny")?;
        say("/proc/self/uid_map", &self.uid_map)?;
        say("/proc/self/gid_map", &self.gid_map)
    }
}
