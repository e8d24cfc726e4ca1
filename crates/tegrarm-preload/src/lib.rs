//! `libtegrarm_preload.so`, the preload door. If it is loaded with `LD_PRELOAD`, a program that knows nothing of
//! libtegrarm finds `/dev/nvidiactl`, `/dev/nvidia0` and `/dev/nvidia-uvm` on a machine that does not have them.
//!
//! ```text
//! calls     libc's functions: ours or not? one comparison, one table look-up
//!  ├─ paths    which paths are ours
//!  ├─ placing  shared memory of the program, placed where the GPU can have it at the same address
//!  ├─ fds      which descriptors are ours
//!  ├─ next     libc's own functions, behind ours
//!  ├─ guard    no panic of ours gets out, and no SIGPIPE
//!  └─ core     libtegrarm.so, loaded when the first node is opened: rm_open, rm_ioctl, rm_close
//! ```
//!
//! It is a separate library so that linking `libtegrarm.so` never changes libc. It has no constructor, and before the
//! first node is opened it allocates nothing and takes no lock. It may therefore be called at any time: by static
//! constructors, before `main`, by programs without a PLT, in threads, and after fork.
//!
//! C's variadic functions (`open`, `openat`, `ioctl`, `fcntl`) are defined here with fixed arguments. On x86-64 and
//! AArch64 Linux an integer or pointer argument is passed in the same register in both cases, so callers notice no
//! difference. If the caller left a variadic argument out, the register has an arbitrary value, which is passed on and
//! ignored, as in libc.
//!
//! The core's own system calls come through here too. They are passed on: while a thread is inside the core
//! ([`core::Inside`]), no descriptor and no path counts as a node's.
// Every function is called from C, and pointers and descriptors belong to the caller.
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
mod placing;
