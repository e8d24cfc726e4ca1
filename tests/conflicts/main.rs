//! The conflicts between desktop RM and the Jetson kernel, C1 to C15 of the list to which the design refers. Each
//! conflict has one module, which has its number in its name, in the file of its theme: [`nodes`], [`addresses`],
//! [`channels`], [`memory`] and, for C8 and C9 once more, [`schedules`].
#![allow(unsafe_code)] // looks at memory through the addresses that the library returns

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod channels;
mod memory;
mod nodes;
mod schedules;

use common::board::releases;
use common::door::*;
use common::*;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm::rm::{MapRequest, MemoryRequest, Rm};
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::maps::{self, MMapPath};
use tegrarm_kmd::{Arg, CallKind, Errno, Faulty, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

const PAGE: u64 = 4096;
/// Every kernel.
const RELEASES: [L4t; 4] = L4t::ALL;

/// A virtual board of this process for one test only, also when the other tests use the device nodes: the test inspects
/// its kernel, and this kernel can pin private memory.
fn simulated(l4t: L4t) -> Arc<SimKmd> {
    let config = SimConfig { mem_total: 512 * MIB, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    Arc::new(SimKmd::new(config))
}

/// A client of the nodes.
fn desktop() -> Desktop {
    Desktop::open(default_release())
}

fn peek(addr: u64) -> u32 {
    // SAFETY: the tests pass addresses inside mappings that they hold.
    unsafe { (addr as *const u32).read_volatile() }
}

fn poke(addr: u64, value: u32) {
    // SAFETY: the same as for `peek`, and the mapping is writable.
    unsafe { (addr as *mut u32).write_volatile(value) }
}

/// Pages that belong to the test.
struct Pages {
    at: u64,
    len: usize,
}

impl Pages {
    /// Maps pages at `wanted`, which must be free, or at any address if `wanted` is 0.
    fn new(wanted: u64, len: usize, prot: i32, flags: i32, fd: i32) -> Pages {
        let flags = if wanted == 0 { flags } else { flags | libc::MAP_FIXED_NOREPLACE };
        // SAFETY: this is a new mapping that replaces nothing.
        let at = unsafe { libc::mmap(wanted as *mut libc::c_void, len, prot, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Pages { at: at as u64, len }
    }

    fn anonymous(len: usize, flags: i32) -> Pages {
        Pages::new(0, len, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_ANONYMOUS, -1)
    }

    /// The file that is mapped at the first byte, as the kernel lists it.
    fn file(&self) -> String {
        let map = maps::own().into_iter().find(|m| m.address.0 == self.at).expect("it is mapped");
        match map.pathname {
            MMapPath::Path(path) => path.to_string_lossy().into_owned(),
            other => format!("{other:?}"),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range belongs to this value.
        unsafe { libc::munmap(self.at as *mut libc::c_void, self.len) };
    }
}

/// A kernel that counts the calls it gets.
struct Counting {
    inner: Arc<Board>,
    calls: AtomicUsize,
    maps: AtomicUsize,
    made: AtomicUsize,
    closed: AtomicUsize,
}

impl Counting {
    fn over(inner: Arc<Board>) -> Counting {
        let zero = AtomicUsize::default;
        Counting { inner, calls: zero(), maps: zero(), made: zero(), closed: zero() }
    }
}

impl Kmd for Counting {
    tegrarm_kmd::forward!(inner: name, is_simulated, open, own_view, read_text, write_text);

    fn ioctl(&self, fd: std::os::fd::BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        use tegrarm_abi::nvgpu::address_space::NVGPU_AS_IOCTL_MAP_BUFFER_EX;
        use tegrarm_abi::nvmap::NVMAP_IOC_GET_FD;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let counter = match request {
            NVGPU_AS_IOCTL_MAP_BUFFER_EX => Some(&self.maps),
            NVMAP_IOC_GET_FD => Some(&self.made),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.ioctl(fd, node, request, arg)
    }

    fn close(&self, fd: std::os::fd::OwnedFd) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        self.inner.close(fd);
    }
}
