//! A recording, as a stranger could send it: of the virtual Orin, with edits, or any text. Its calls are made on a virtual board, and it
//! answers the program that was recorded.
//!
//! The target must run with the address sanitizer. The library writes into a program's memory by a system call, which the sanitizer does
//! not look at, so the target looks at the address before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nix::libc;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use tegra_sim::{L4t, SimKmd};
use tegrarm_fuzz::recordings::{Base, bases, board};
use tegrarm_fuzz::{Input, tour};
use tegrarm_kmd::{Kmd, Replayed, perform, perform_all};

/// From here on is memory that the sanitizer knows. Below it are the GPU's addresses, which lie in the gap of its shadow.
const KNOWN: u64 = 0x1000_7fff_8000;

unsafe extern "C" {
    /// The first byte of a range that no program may access, or NULL.
    fn __asan_region_is_poisoned(begin: *mut c_void, size: usize) -> *mut c_void;
}

/// Leaves the gap of the sanitizer's shadow to the library, which maps memory at the GPU's addresses.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    c"protect_shadow_gap=0".as_ptr()
}

/// Takes the place of libc's function.
///
/// # Safety
/// The arrays have as many items as the numbers say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_writev(
    pid: libc::pid_t,
    local: *const libc::iovec,
    locals: libc::c_ulong,
    remote: *const libc::iovec,
    remotes: libc::c_ulong,
    flags: libc::c_ulong,
) -> isize {
    // SAFETY: the caller gives that many pieces.
    for piece in unsafe { std::slice::from_raw_parts(remote, remotes as usize) } {
        if piece.iov_base as u64 >= KNOWN && piece.iov_len > 0 {
            // SAFETY: the sanitizer reads only its own table.
            let poisoned = unsafe { __asan_region_is_poisoned(piece.iov_base, piece.iov_len) };
            assert!(
                poisoned.is_null(),
                "{} bytes at {:p} reach {poisoned:p}, which is nobody's",
                piece.iov_len,
                piece.iov_base
            );
        }
    }
    // SAFETY: the same call with the same arguments.
    unsafe { libc::syscall(libc::SYS_process_vm_writev, pid, local, locals, remote, remotes, flags) as isize }
}

fn performed(text: &str, l4t: L4t) -> SimKmd {
    let board = Arc::new(board(l4t));
    let all = text.len() % 2 == 0;
    if all {
        let _ = perform_all(text.as_bytes(), board.clone(), |_, _| {});
    } else {
        let _ = perform(text.as_bytes(), board.clone());
    }
    assert_eq!(board.kernel().open_files(), 0, "nothing stays open");
    Arc::into_inner(board).expect("nobody else keeps the board")
}

/// Any text.
fn text(bytes: &[u8]) {
    // The header is always valid, because guessing it would find nothing new.
    let text = [&b"{\"recording\":1}\n"[..], &String::from_utf8_lossy(bytes).as_bytes()].concat();
    let board = performed(&String::from_utf8_lossy(&text), L4t::R36);
    if let Ok(replay) = Replayed::new(&text[..]) {
        for path in board.kernel().node_paths() {
            if let Ok(fd) = replay.open(&path) {
                replay.close(fd);
            }
        }
    }
}

/// A recording with edits.
fn edited(base: &Base, mut input: Input<'_>) {
    let strict = input.byte() % 2 == 0;
    let text = base.edited(&mut input);
    drop(performed(&text, base.l4t));
    if let Ok(replay) = Replayed::new(text.as_bytes()) {
        let replay = Arc::new(if strict { replay } else { replay.ignoring_inputs() });
        base.run(replay);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let bases = bases();
    let before = tour::open_fds();
    match bytes.split_first() {
        None | Some((b'{', _)) => text(bytes),
        Some((base, edits)) => edited(&bases[usize::from(*base) % bases.len()], Input(edits)),
    }
    assert_eq!(tour::open_fds(), before, "every descriptor is closed");
});
