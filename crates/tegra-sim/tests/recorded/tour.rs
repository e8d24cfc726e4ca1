//! A program that makes every ioctl once on a node of its kind. Each of its pointers leads to a block of the heap of its own. The program
//! looks at what lies behind the block afterwards, and the address sanitizer, if it is there, knows where the block ends.

use nix::libc;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tegra_kernel::process::InProcess;
use tegra_sim::SimKmd;
use tegrarm_abi::layout::{FieldLayout, Ioctl};
use tegrarm_abi::nvmap::{NVMAP_IOC_ALLOC, NVMAP_IOC_CREATE, NVMAP_IOC_GET_FD};
use tegrarm_abi::registry::IOCTLS;
use tegrarm_kmd::{Arg, Kmd, Node, Placement, Prot};

/// What every field says that is a number of bytes or of elements.
const FEW: u64 = 8;
/// The most bytes that [`FEW`] elements of an array take.
const ROOM: usize = FEW as usize * 512;
/// What lies behind that in the same block, and stays as it is.
const BEHIND: usize = 4096;
const UNTOUCHED: u8 = 0xc3;
/// The size of the buffer that is mapped.
const BUFFER: u32 = 8192;

/// A device node and its kind.
pub type Place = (String, Node);

/// The nodes of a board.
pub fn places(board: &SimKmd) -> Vec<Place> {
    let kind = |path: String| {
        let fd = board.open(&path).ok()?;
        let node = board.kernel().node(&InProcess::new(), fd.as_raw_fd());
        board.close(fd);
        Some((path, node?))
    };
    board.kernel().node_paths().into_iter().filter_map(kind).collect()
}

/// Whether a field of an argument is the address of memory.
pub fn is_pointer(field: &FieldLayout) -> bool {
    let ends = ["_addr", "_ptr", "_mem", "_entries", "_buf"];
    let names = [
        "addr",
        "buffer",
        "ops",
        "gpfifo",
        "va",
        "handles",
        "offsets",
        "sizes",
        "maps",
        "unmaps",
        "channels",
        "ops_buffer",
        "sync_fence_info",
        "domains",
    ];
    field.size == 8
        && (ends.iter().any(|end| field.name.ends_with(end))
            || names.contains(&field.name)
            || field.name.starts_with('p'))
}

/// Makes the calls. The kernel ends with the program.
pub fn run(kmd: Arc<dyn Kmd>, places: &[Place]) {
    let theirs = open_fds();
    for (path, node) in places {
        let Ok(file) = kmd.open(path) else { continue };
        for known in IOCTLS.iter().flat_map(|list| list.iter()).filter(|known| known.node == *node) {
            call(&*kmd, &file, known);
        }
        if *node == Node::Nvmap {
            buffer(&*kmd, &file);
        }
        kmd.close(file);
    }
    // The kernel has descriptors of its own, which end with it.
    drop(kmd);
    for fd in open_fds().difference(&theirs) {
        // SAFETY: a call of this program has made the descriptor and put it into an answer. Nobody else has it.
        drop(unsafe { OwnedFd::from_raw_fd(*fd) });
    }
}

fn call(kmd: &dyn Kmd, file: &OwnedFd, known: &Ioctl) {
    let mut bytes = vec![0u8; (known.number >> 16 & 0x3fff) as usize];
    let mut behind = Vec::new();
    for field in known.arg.fields {
        let value = if is_pointer(field) {
            behind.push([vec![0u8; ROOM], vec![UNTOUCHED; BEHIND]].concat());
            behind.last_mut().map_or(0, |block| block.as_mut_ptr() as u64)
        } else if ["size", "num_", "count", "nr", "len"].iter().any(|part| field.name.contains(part)) {
            FEW
        } else {
            0
        };
        if let Some(to) = bytes.get_mut(field.offset..field.offset + field.size.min(8)) {
            to.copy_from_slice(&value.to_le_bytes()[..to.len()]);
        }
    }
    let arg = if bytes.is_empty() { Arg::Value(1) } else { Arg::Bytes(&mut bytes) };
    let _ = kmd.ioctl(file.as_fd(), known.node, known.number, arg);
    for block in std::hint::black_box(&behind) {
        assert!(block[ROOM..].iter().all(|byte| *byte == UNTOUCHED), "{} writes past the program's memory", known.name);
    }
}

/// Makes a buffer, maps it and writes all of it.
fn buffer(kmd: &dyn Kmd, nvmap: &OwnedFd) {
    let ask = |request: u32, bytes: &mut [u8]| kmd.ioctl(nvmap.as_fd(), Node::Nvmap, request, Arg::Bytes(bytes));
    let mut create = [BUFFER.to_le_bytes(), [0; 4]].concat();
    if ask(NVMAP_IOC_CREATE, &mut create) != Ok(0) {
        return;
    }
    let handle = create[4..8].to_vec();
    let mut alloc = vec![0; (NVMAP_IOC_ALLOC >> 16 & 0x3fff) as usize];
    alloc[..4].copy_from_slice(&handle);
    let _ = ask(NVMAP_IOC_ALLOC, &mut alloc);
    let mut file = [vec![0; 4], handle].concat();
    let answered = ask(NVMAP_IOC_GET_FD, &mut file) == Ok(0);
    let number = RawFd::from_le_bytes([file[0], file[1], file[2], file[3]]);
    if !answered || !open_fds().contains(&number) {
        return;
    }
    // SAFETY: the kernel or the replay has just made the descriptor for this program.
    let dmabuf = unsafe { OwnedFd::from_raw_fd(number) };
    if let Ok(map) = kmd.mmap(dmabuf.as_fd(), Placement::Anywhere, BUFFER as usize, Prot::ReadWrite, 0) {
        // SAFETY: the mapping is as long as it was asked for, and only this program knows it.
        unsafe { std::ptr::write_bytes(map.addr() as *mut u8, 0x5a, map.len()) };
    }
    kmd.close(dmabuf);
}

/// The open descriptors of this process.
pub fn open_fds() -> BTreeSet<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("procfs");
    let listed: Vec<RawFd> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The descriptor that listed the others is closed by now. SAFETY: this is only a query.
    listed.into_iter().filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0).collect()
}
