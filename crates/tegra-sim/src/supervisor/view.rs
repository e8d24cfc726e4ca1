//! A mount namespace for the program, in which the board's files are where a board has them.
//!
//! In it the host's kernel itself answers `stat`, `access`, `readlink`, listings and `chdir`, and reads of sysfs. Of
//! the calls that take a path, only the opening of a node has to be trapped. Where the host forbids namespaces, all
//! those calls are trapped instead, and every program that uses many files becomes slower.

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

/// The device at the path of a node. Any user may open it, and it has no properties of its own.
pub const PLACEHOLDER: &str = "/dev/null";

/// The node that makes pseudo-terminals, and the name that the host's directory of it gets beside it.
const TERMINALS: &str = "ptmx";
const WHOLE: &str = ".host";

/// The field of a line of `/proc/self/mountinfo` that has the directory at which something is mounted, as we see it.
const MOUNT_POINT: usize = 4;

/// The mounts to make, in this order.
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
    /// Adds the host's own entries to the skeleton, in every directory that the skeleton will cover.
    ///
    /// # Errors
    /// The error of the file system.
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

    /// Adds entries to `copy`, the skeleton's copy of a directory, that only the host's directory has.
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
            if entry.file_name().is_some_and(|name| name == TERMINALS) && host.join("pts").is_dir() {
                // The kernel looks for the file system of the terminals beside the node, in the mount that the node is in. A mount of the
                // node alone has nothing beside it.
                let whole = copy.join(WHOLE);
                fs::create_dir(&whole)?;
                self.bind(host, &whole)?;
                symlink(Path::new(WHOLE).join(TERMINALS), &to)?;
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

    /// Moves the calling process, which must have one thread, into a namespace of its own and makes the mounts there.
    ///
    /// # Errors
    /// The errno of the call that the host refused; EINVAL in a root directory that chroot(2) made of a plain directory,
    /// where mounts cannot be kept from spreading to the host. The process may be in a namespace then, in which trapped
    /// paths work as they do outside of it, except in such a root: there it is still in the namespace of its parent.
    pub fn enter(&self) -> Result<(), Errno> {
        if !root_is_mount() {
            return Err(Errno::EINVAL);
        }
        match unshare(CloneFlags::CLONE_NEWNS) {
            Err(Errno::EPERM) => self.enter_as_user()?,
            other => other?,
        }
        let none = None::<&str>;
        // None of these mounts may spread to the host, even where the host shares its mounts.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        for Bind { from, to } in &self.binds {
            match mount(Some(from.as_c_str()), to.as_c_str(), none, MsFlags::MS_BIND | MsFlags::MS_REC, none) {
                // The file was removed meanwhile.
                Err(Errno::ENOENT) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Without privileges a user namespace is made first. It has the same user and group, and no others.
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

/// Whether our root directory is where something is mounted. A host whose /proc does not tell is taken for an ordinary one.
fn root_is_mount() -> bool {
    fs::read_to_string("/proc/self/mountinfo")
        .map_or(true, |mounts| mounts.lines().any(|line| line.split(' ').nth(MOUNT_POINT) == Some("/")))
}
