//! Asks the host whether programs have a file open.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::collections::HashSet;
use std::os::fd::{AsRawFd, BorrowedFd};
use tegra_kernel::process::FileId;

/// The command of `fcntl(2)` that chooses the signal of a lease (asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;

/// Whether there is no other open file of the memfd that `probe` opened for writing. The file that `memfd_create(2)`
/// itself opened is not counted by the host, and no program has it.
///
/// # Errors
/// The errno of `fcntl(2)`, if it does not say that the file is open elsewhere.
pub fn is_alone(probe: BorrowedFd<'_>) -> Result<bool, Errno> {
    // A program may try to open the file in the moment of the lease, through a descriptor that only names it. The host
    // then sends a signal. It must be one that is ignored, and each lease that ends resets it.
    control(probe, F_SETSIG, libc::SIGURG)?;
    match control(probe, libc::F_SETLEASE, libc::F_WRLCK) {
        Ok(()) => control(probe, libc::F_SETLEASE, libc::F_UNLCK).map(|()| true),
        Err(Errno::EAGAIN) => Ok(false),
        Err(e) => Err(e),
    }
}

fn control(file: BorrowedFd<'_>, command: libc::c_int, number: libc::c_int) -> Result<(), Errno> {
    // SAFETY: these commands take a number.
    Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), command, number) }).map(drop)
}

/// The sockets of the kind `AF_UNIX` that the host has in this process's network. One that was closed everywhere is not
/// among them, and one that was only shut down is.
#[derive(Debug, Default)]
pub struct Sockets(HashSet<u64>);

impl Sockets {
    /// Asks the host. On a host that does not tell, there are none.
    pub fn now() -> Sockets {
        Sockets::of(&std::fs::read_to_string("/proc/self/net/unix").unwrap_or_default())
    }

    fn of(list: &str) -> Sockets {
        // Num RefCount Protocol Flags Type St Inode Path
        let inode = |line: &str| line.split_ascii_whitespace().nth(6)?.parse().ok();
        Sockets(list.lines().filter_map(inode).collect())
    }

    /// Whether the file is one of them.
    pub fn have(&self, file: FileId) -> bool {
        self.0.contains(&file.ino)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;
    use nix::sys::socket::{AddressFamily, Shutdown, SockFlag, SockType, shutdown, socketpair};
    use std::os::fd::AsFd;
    use tegra_mm::{Backing, memfd};

    #[test]
    fn a_memfd_is_open_until_the_last_open_file_and_mapping_of_it_end() {
        let made = memfd::create("asked", 8192).unwrap();
        let open = |mode| memfd::reopen(made.as_fd(), mode).unwrap();
        let probe = open(OFlag::O_RDWR);
        let alone = || is_alone(probe.as_fd()).unwrap();
        assert!(alone());
        for mode in [OFlag::O_RDONLY, OFlag::O_RDWR] {
            let file = open(mode);
            let duplicate = memfd::duplicate(&file).unwrap();
            drop(file);
            assert!(!alone());
            drop(duplicate);
            assert!(alone());
        }
        let mapped = Backing::from_shared(&open(OFlag::O_RDWR).into(), 0, 4096).unwrap();
        assert!(!alone());
        drop(mapped);
        assert!(alone());
    }

    #[test]
    fn a_socket_that_was_shut_down_is_alive() {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags).unwrap();
        shutdown(one.as_raw_fd(), Shutdown::Both).unwrap();
        let id = FileId::of(&one).unwrap();
        assert!(Sockets::now().have(id));
        drop(one);
        // A test beside this one that starts a program gives it a copy of the descriptor for a moment.
        let mut looks = 0..1000;
        while Sockets::now().have(id) {
            looks.next().expect("the socket ends with its last descriptor");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(other);
    }
}
