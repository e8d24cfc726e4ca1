//! `libtegrarm_preload.so`: the preload door. `LD_PRELOAD` it, and a program that knows nothing of libtegrarm finds
//! `/dev/nvidiactl`, `/dev/nvidia0` and `/dev/nvidia-uvm` on a machine that has none.
//!
//! ```text
//! calls     libc's functions: ours or not? one comparison, one table look-up
//!  ├─ paths    which paths are ours
//!  ├─ fds      which descriptors are ours
//!  ├─ next     libc's own functions, behind ours
//!  ├─ guard    no panic of ours gets out, and no SIGPIPE
//!  └─ core     libtegrarm.so, loaded when the first node is opened: rm_open, rm_ioctl, rm_close
//! ```
//!
//! It is a library of its own so that linking `libtegrarm.so` never changes libc. It has no constructor, allocates
//! nothing and takes no lock before the first node is opened, so it may be called at any time: by static constructors,
//! before `main`, by programs without a PLT, in threads, after fork.
//!
//! C's variadic functions (`open`, `openat`, `ioctl`, `fcntl`) are defined here with fixed arguments. On x86-64 and
//! AArch64 Linux an integer or pointer argument is passed in the same register either way, so callers cannot tell; a
//! variadic argument that the caller left out is then a register of leftovers, which is passed on and ignored as libc
//! would.
//!
//! The core's own system calls come through here too. They are let pass: while a thread is inside the core
//! ([`core::Inside`]), nothing is ours.
// Every function is an entry from C; pointers and descriptors are the caller's.
#![allow(unsafe_code)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "the calling conventions that make interposition of variadic functions right are checked for x86-64 and AArch64 Linux only"
);

mod calls;
mod core;
mod fds;
mod files;
mod guard;
mod next;
mod paths;
