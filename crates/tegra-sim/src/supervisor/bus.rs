//! Memory that a program takes away while the supervisor uses it.
//!
//! A program cannot cut off the kernel's buffers (see `tegra_mm::memfd`). It can cut off pages of its own file, from
//! which nvmap FROM_VA makes a buffer. The next access by the supervisor or by the GPU then raises SIGBUS. A handler
//! puts zeros where the page was, and the access is made again. What is stored there is lost, because the program has
//! given the memory away.
#![allow(unsafe_code)]

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use tegrarm_kmd::Errno;

/// The number of bytes of a page of the host.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Installs the handler.
///
/// # Errors
/// The errno of `sigaction(2)`.
pub fn outlive_lost_memory() -> Result<(), Errno> {
    if let Ok(Some(page)) = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE) {
        PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
    }
    let action = SigAction::new(SigHandler::SigAction(on_bus_error), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler only makes system calls, and it uses no memory but its own frame.
    unsafe { sigaction(Signal::SIGBUS, &action) }.map(drop)
}

extern "C" fn on_bus_error(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the host passes a valid structure, and it has an address for this signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let page = PAGE.load(Ordering::Relaxed);
    let start = address & !(page - 1);
    let errno = Errno::last_raw();
    if code == libc::BUS_ADRERR && is_shared(address) && put_zeros(start, page) {
        Errno::set_raw(errno);
        return;
    }
    // The signal has another cause. The access is made again, and then it ends this process.
    // SAFETY: installing the default action touches no memory.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}

/// Maps a page of zeros in place of the page at `start`.
fn put_zeros(start: usize, len: usize) -> bool {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: the page belongs to a shared mapping of this process, and it has no memory any more, because an access
    // was just refused.
    let put = unsafe { libc::mmap(start as *mut c_void, len, prot, flags, -1, 0) };
    put != libc::MAP_FAILED
}

/// Whether the mapping at `address` is a shared one, which is neither code nor data nor a stack. This function only
/// makes system calls.
fn is_shared(address: usize) -> bool {
    // SAFETY: the path is NUL-terminated.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return false;
    }
    let (mut piece, mut line, mut shared) = ([0; 1024], Line::default(), None);
    while shared.is_none() {
        // SAFETY: the buffer belongs to this function and has the length that is given.
        let got = unsafe { libc::read(file, piece.as_mut_ptr().cast(), piece.len()) };
        let Some(bytes) = usize::try_from(got).ok().filter(|n| *n > 0).and_then(|n| piece.get(..n)) else { break };
        shared = bytes.iter().find_map(|byte| line.push(*byte, address));
    }
    // SAFETY: the descriptor was opened above and belongs to this function.
    unsafe { libc::close(file) };
    shared.unwrap_or(false)
}

/// The beginning of a line of `/proc/self/maps` (`START-END rwxs ...`), as far as it has been read.
#[derive(Default)]
struct Line {
    start: usize,
    number: usize,
    /// The number of the next character, counted from the permissions.
    letter: Option<u8>,
    over: bool,
}

impl Line {
    /// Takes the next character. Returns the answer if this line is the one that is asked for.
    fn push(&mut self, byte: u8, address: usize) -> Option<bool> {
        match (byte, self.letter) {
            (b'\n', _) => *self = Line::default(),
            _ if self.over => {}
            (b'-', None) => (self.start, self.number) = (self.number, 0),
            (b' ', None) if (self.start..self.number).contains(&address) => self.letter = Some(0),
            (b' ', None) => self.over = true,
            (_, None) => self.number = self.number << 4 | (byte as char).to_digit(16).unwrap_or(0) as usize,
            (_, Some(3)) => return Some(byte == b's'),
            (_, Some(at)) => self.letter = Some(at + 1),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// An access after the end of a file that was cut off reads zeros, and no other memory changes.
    #[test]
    fn memory_that_was_taken_away_reads_zeros() {
        outlive_lost_memory().unwrap();
        let file =
            std::fs::File::from(nix::sys::memfd::memfd_create("cut", nix::sys::memfd::MFdFlags::empty()).unwrap());
        file.set_len(2 * 4096).unwrap();
        let backing = tegra_mm::Backing::from_shared(&file, 0, 2 * 4096).unwrap();
        assert!(backing.write(4096, &[7; 4]));
        nix::unistd::ftruncate(file.as_fd(), 4096).unwrap();
        assert!(backing.write(0, &[8; 4]));
        let mut word = [9; 4];
        assert!(backing.read(4096, &mut word));
        assert_eq!(word, [0; 4]);
        assert!(backing.read(0, &mut word));
        assert_eq!(word, [8; 4]);
    }

    #[test]
    fn a_mapping_is_found_in_the_list() {
        let list = b"1000-2000 r-xp 0 0:0 7 /a-b\n2000-3000 rw-s 0 0:0 8 /x\n7f0000000000-7f0000001000 ---p 0 0:0 0\n";
        let of = |address| {
            let mut line = Line::default();
            list.iter().find_map(|byte| line.push(*byte, address))
        };
        assert_eq!(
            [of(0x1000), of(0x1fff), of(0x2000), of(0x2fff)],
            [Some(false), Some(false), Some(true), Some(true)]
        );
        assert_eq!([of(0xfff), of(0x3000), of(0x7f00_0000_0000)], [None, None, Some(false)]);
    }
}
