//! Sequences of opens, ioctls, mappings and closes by a program that knows the structures but not the rules.
//!
//! The target must run without the address sanitizer (`-s none`): the kernel writes to any address that the program's
//! pointers contain, and these must lie in the scratch memory and not in the sanitizer's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm_abi::layout::{FieldLayout, Ioctl};
use tegrarm_abi::registry::IOCTLS;
use tegrarm_fuzz::Input;
use tegrarm_fuzz::tour::is_pointer;
use tegrarm_kmd::{Arg, Kmd, Node, Placement, Prot};

/// The size of the memory to which pointers point. A large range behind it is not mapped.
const SCRATCH: usize = 64 << 10;
const RESERVED: usize = 1 << 32;

/// Numbers that have a meaning in some field.
const NUMBERS: [u64; 24] = [
    0, 1, 2, 3, 4, 8, 16, 32, 64, 256, 512, 1024, 4096, 0x1_0000, 0x20_0000, 0x40_0000, 0x4000_0000, 0x7fff_ffff,
    0x8000_0000, 0x8000_0001, 0xffff_ffff, 0xff_0000_0000, 0x100_0000_0000, u64::MAX,
];

fn scratch() -> u64 {
    static AT: OnceLock<u64> = OnceLock::new();
    *AT.get_or_init(|| {
        let len = NonZeroUsize::new(RESERVED).expect("a length");
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: this is new memory at an address that the host chooses, and only its beginning becomes accessible.
        let at = unsafe {
            let at = mmap_anonymous(None, len, ProtFlags::PROT_NONE, flags).expect("address space");
            mprotect(at, SCRATCH, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).expect("memory");
            at
        };
        at.as_ptr() as u64
    })
}

fn open_fds() -> BTreeSet<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("procfs");
    let listed: Vec<RawFd> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The descriptor that listed the others is closed by now.
    listed.into_iter().filter(|fd| is_open(*fd)).collect()
}

struct Program<'a> {
    kmd: SimKmd,
    input: Input<'a>,
    fds: Vec<RawFd>,
    /// The latest numbers that the kernel returned: handles, addresses and tokens.
    answers: Vec<u64>,
}

impl Program<'_> {
    fn number(&mut self) -> u64 {
        match self.input.byte() % 4 {
            0 if !self.answers.is_empty() => *self.input.pick(&self.answers.clone()),
            1 => u64::from_le_bytes(self.input.bytes()),
            2 => u64::from(self.input.byte()),
            _ => *self.input.pick(&NUMBERS),
        }
    }

    fn fd(&mut self) -> RawFd {
        match self.fds.is_empty() || self.input.byte() % 16 == 0 {
            true => -1,
            false => *self.input.pick(&self.fds.clone()),
        }
    }

    fn field(&mut self, field: &FieldLayout, out: &mut [u8]) {
        let pointer = is_pointer(field);
        let value = match field.size {
            8 if pointer => {
                let inside = scratch() + 8 * u64::from(self.input.byte());
                *self.input.pick(&[0, 8, scratch(), scratch(), inside, scratch() + SCRATCH as u64 - 4])
            }
            4 if field.name.contains("fd") || field.name == "mem" => self.fd() as u32 as u64,
            _ => self.number(),
        };
        let bytes = value.to_le_bytes();
        for (to, from) in out.iter_mut().zip(bytes.iter().cycle()) {
            *to = *from;
        }
    }

    fn ioctl(&mut self) {
        let fd = self.fd();
        let all: Vec<&Ioctl> = IOCTLS.iter().flat_map(|list| list.iter()).collect();
        let known = *self.input.pick(&all);
        let request = if self.input.byte() == 0 { self.number() as u32 } else { known.number };
        let size = (request >> 16 & 0x3fff) as usize;
        let mut bytes = vec![0; size];
        for field in known.arg.fields {
            if let Some(out) = bytes.get_mut(field.offset..field.offset + field.size) {
                self.field(field, out);
            }
        }
        if known.arg.fields.is_empty() {
            let fd = self.fd().to_le_bytes();
            bytes.iter_mut().zip(fd).for_each(|(to, from)| *to = from);
        }
        if fd < 0 {
            return;
        }
        let before = bytes.clone();
        let arg = if size == 0 { Arg::Value(self.number()) } else { Arg::Bytes(&mut bytes) };
        // SAFETY: the descriptor is open until the end of the run, or the kernel closed it and answers EBADF.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        let result = self.kmd.ioctl(file, known.node, request, arg);
        if result.is_err() {
            return;
        }
        for field in known.arg.fields.iter().filter(|f| f.size <= 8) {
            let Some(now) = bytes.get(field.offset..field.offset + field.size) else { continue };
            if now != &before[field.offset..field.offset + field.size] {
                let value = now.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
                self.answers.insert(0, value);
            }
        }
        self.answers.truncate(8);
    }

    fn mmap(&mut self) {
        let fd = self.fd();
        if fd < 0 {
            return;
        }
        let (len, offset) = (*self.input.pick(&[0, 1, 4096, 65536, 1 << 20, usize::MAX]), self.number());
        let prot = if self.input.byte() % 2 == 0 { Prot::Read } else { Prot::ReadWrite };
        // SAFETY: the same as for ioctls.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        let _ = self.kmd.mmap(file, Placement::Anywhere, len, prot, offset);
    }
}

fuzz_target!(|bytes: &[u8]| {
    scratch();
    let mut input = Input(bytes);
    let l4t = *input.pick(&[L4t::R36, L4t::R35, L4t::R35_4, L4t::R39]);
    let chip = *input.pick(&[Chip::AgxOrin, Chip::OrinNano, Chip::Gv11b]);
    let config = SimConfig { mem_total: 64 << 20, step: true, ..SimConfig::new(chip).on(l4t) };
    let theirs = open_fds();
    let kmd = SimKmd::new(config);
    let paths = kmd.kernel().node_paths();
    let mut program = Program { kmd, input, fds: vec![], answers: vec![] };
    for path in ["/dev/nvmap", "/dev/nvgpu/igpu0/ctrl"] {
        if let Ok(fd) = program.kmd.open(path) {
            program.fds.push(std::os::fd::IntoRawFd::into_raw_fd(fd));
        }
    }
    while !program.input.0.is_empty() {
        match program.input.byte() % 16 {
            0 => {
                let path = program.input.pick(&paths).clone();
                if let Ok(fd) = program.kmd.open(&path) {
                    program.fds.push(std::os::fd::IntoRawFd::into_raw_fd(fd));
                }
            }
            1 => program.mmap(),
            2 if program.fds.len() > 1 => {
                let at = usize::from(program.input.byte()) % program.fds.len();
                close(&program.kmd, program.fds.swap_remove(at));
            }
            3 => while program.kmd.gpu().step() {},
            _ => program.ioctl(),
        }
        // The kernel keeps descriptors of its own, so new ones are recognised by their kind.
        let new = program.answers.iter().map(|a| *a as i32).filter(|fd| (3..1024).contains(fd));
        let new: Vec<RawFd> =
            new.filter(|fd| !theirs.contains(fd) && !program.fds.contains(fd) && is_ours(&program.kmd, *fd)).collect();
        program.fds.extend(new);
        if program.fds.len() > 200 {
            break;
        }
    }
    let Program { kmd, fds, .. } = program;
    for fd in fds {
        close(&kmd, fd);
    }
    drop(kmd);
    let left: Vec<RawFd> = open_fds().difference(&theirs).copied().collect();
    for fd in left {
        // The kernel made descriptors that are in no answer, because they are in a structure behind a pointer. SAFETY:
        // these descriptors did not exist before, and everything that could own them has been dropped.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
});

/// Closes one of the program's descriptors, which was taken out of its list. The kernel may have closed it already,
/// because FREE of nvmap closes a number that is a dmabuf's descriptor.
fn close(kmd: &SimKmd, fd: RawFd) {
    if is_open(fd) {
        // SAFETY: the descriptor is open, and no other code in this program closes it.
        kmd.close(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

fn is_open(fd: RawFd) -> bool {
    std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok()
}

fn is_ours(kmd: &SimKmd, fd: RawFd) -> bool {
    kmd.kernel().node(&tegra_kernel::process::InProcess::new(), fd).is_some_and(|n| n != Node::Dmabuf || fd.as_raw_fd() > 2)
}
