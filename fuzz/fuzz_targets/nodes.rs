//! The device nodes through `rm_open`, `rm_ioctl`, `rm_mmap` and `rm_close`, which are also what the preload library
//! puts in the place of the system calls: the verbs as escapes against a model of the objects, and between them any
//! escape and any UVM call on any descriptor, with structures of the right size and with bad pointers.
//!
//! The target must run without the address sanitizer (`-s none`), for the same reason as `verbs`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nix::sys::mman::munmap;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use tegrarm::capi::files::{rm_close, rm_ioctl, rm_mmap, rm_open};
use tegrarm::files::escapes::{Args, ESCAPES, EscapeRow};
use tegrarm::files::uvm::CALLS;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::NV_OK;
use tegrarm_fuzz::Input;
use tegrarm_fuzz::objects::{Objects, Verbs};
use tegrarm_fuzz::program::Program;
use zerocopy::FromZeros;

/// What a verb answers here whose ioctl failed, so that there is no status.
const NOT_UNDERSTOOD: u32 = u32::MAX;
/// The most bytes of a mapping that is made to see whether it can be.
const MOST_MAPPED: u64 = 1 << 24;

/// The open nodes: a control file, in which the model's clients are, and others.
struct Files {
    ctl: i32,
    others: Vec<i32>,
}

fn request(nr: u32, size: usize) -> u64 {
    u64::from(3 << 30 | (size as u32 & 0x3fff) << 16 | 0x46 << 8 | nr)
}

fn open(path: &std::ffi::CStr) -> i32 {
    // SAFETY: the path ends with a NUL.
    let fd = unsafe { rm_open(path.as_ptr(), 0) };
    assert!(fd >= 0, "{path:?}: {}", tegrarm_fuzz::program::sentence());
    fd
}

fn escape<T: AbiStruct>(fd: i32, nr: u32, arg: &mut T) -> bool {
    rm_ioctl(fd, request(nr, size_of::<T>()), arg.as_mut_bytes().as_mut_ptr().cast()) == 0
}

fn pointer(params: &mut [u8]) -> u64 {
    if params.is_empty() { 0 } else { params.as_mut_ptr() as u64 }
}

impl Files {
    fn verb<T: AbiStruct>(&self, nr: u32, arg: &mut T, status: impl Fn(&T) -> u32) -> u32 {
        if escape(self.ctl, nr, arg) { status(arg) } else { NOT_UNDERSTOOD }
    }
}

impl Verbs for Files {
    fn alloc(&mut self, at: [u32; 3], class: u32, params: Option<&mut [u8]>, size: u32) -> (u32, u32) {
        let mut p = NVOS64_PARAMETERS::new_zeroed();
        (p.hRoot, p.hObjectParent, p.hObjectNew, p.hClass) = (at[0], at[1], at[2], class);
        (p.pAllocParms, p.paramsSize) = (params.map_or(0, pointer), size);
        let status = self.verb(NV_ESC_RM_ALLOC, &mut p, |p| p.status);
        (status, p.hObjectNew)
    }

    fn control(&mut self, client: u32, object: u32, cmd: u32, params: &mut [u8]) -> u32 {
        let mut p = NVOS54_PARAMETERS::new_zeroed();
        (p.hClient, p.hObject, p.cmd) = (client, object, cmd);
        (p.paramsSize, p.params) = (params.len() as u32, pointer(params));
        self.verb(NV_ESC_RM_CONTROL, &mut p, |p| p.status)
    }

    fn free(&mut self, client: u32, object: u32) -> u32 {
        let mut p = NVOS00_PARAMETERS::new_zeroed();
        (p.hRoot, p.hObjectOld) = (client, object);
        self.verb(NV_ESC_RM_FREE, &mut p, |p| p.status)
    }

    fn dup(&mut self, at: [u32; 3], client: u32, object: u32) -> (u32, u32) {
        let mut p = NVOS55_PARAMETERS::new_zeroed();
        (p.hClient, p.hParent, p.hObject, p.hClientSrc, p.hObjectSrc) = (at[0], at[1], at[2], client, object);
        (self.verb(NV_ESC_RM_DUP_OBJECT, &mut p, |p| p.status), p.hObject)
    }

    fn map_dma(&mut self, o: [u32; 4], range: [u64; 3], flags: u32) -> (u32, u64) {
        let mut p = NVOS46_PARAMETERS::new_zeroed();
        (p.hClient, p.hDevice, p.hDma, p.hMemory) = (o[0], o[1], o[2], o[3]);
        (p.offset, p.length, p.dmaOffset, p.flags) = (range[0], range[1], range[2], flags);
        (self.verb(NV_ESC_RM_MAP_MEMORY_DMA, &mut p, |p| p.status), p.dmaOffset)
    }

    fn unmap_dma(&mut self, o: [u32; 4], at: u64) -> u32 {
        let mut p = NVOS47_PARAMETERS::new_zeroed();
        (p.hClient, p.hDevice, p.hDma, p.hMemory, p.dmaOffset) = (o[0], o[1], o[2], o[3], at);
        self.verb(NV_ESC_RM_UNMAP_MEMORY_DMA, &mut p, |p| p.status)
    }

    /// As callers do: a new descriptor to which the memory is lent, its mapping, and its end.
    fn map(&mut self, o: [u32; 3], offset: u64, length: u64) -> (u32, u64) {
        let fd = open(c"/dev/nvidia0");
        let mut p = nv_ioctl_nvos33_parameters_with_fd::new_zeroed();
        p.fd = fd;
        (p.params.hClient, p.params.hDevice, p.params.hMemory) = (o[0], o[1], o[2]);
        (p.params.offset, p.params.length) = (offset, length);
        let status = self.verb(NV_ESC_RM_MAP_MEMORY, &mut p, |p| p.params.status);
        if status == NV_OK && (1..MOST_MAPPED).contains(&length) {
            // SAFETY: the host chooses a free address.
            let at = unsafe { rm_mmap(null_mut(), length as usize, 3, 1, fd, 0) };
            if let Some(at) = NonNull::new(at).filter(|at| at.as_ptr() as isize != -1) {
                // SAFETY: the range was just mapped, and nobody else knows it.
                unsafe { munmap(at, length as usize) }.expect("a mapping");
            }
        }
        assert_eq!(rm_close(fd), 0);
        (status, 0)
    }

    fn unmap(&mut self, o: [u32; 3], at: u64) -> u32 {
        let mut p = NVOS34_PARAMETERS::new_zeroed();
        (p.hClient, p.hDevice, p.hMemory, p.pLinearAddress) = (o[0], o[1], o[2], at);
        self.verb(NV_ESC_RM_UNMAP_MEMORY, &mut p, |p| p.status)
    }
}

/// Whether the model would not know what an escape made or freed.
fn is_modelled(row: &EscapeRow) -> bool {
    ["_ALLOC", "_FREE", "_DUP", "_VID_HEAP"].iter().any(|verb| row.name.contains(verb))
}

/// A call that the model knows nothing of. It is answered, whatever it is.
fn any_call(objects: &Objects<Files>, input: &mut Input) {
    let files = &objects.door;
    let fds: Vec<i32> = [files.ctl, -1].into_iter().chain(files.others.iter().copied()).collect();
    let fd = *input.pick(&fds);
    // A control file that is tied to another one uses the clients of that one. The model does not follow.
    let is_tie = |row: &EscapeRow| fd == files.ctl && row.nr == NV_ESC_REGISTER_FD;
    let rows: Vec<&EscapeRow> = ESCAPES.iter().filter(|row| !is_modelled(row) && !is_tie(row)).collect();
    let (request, len) = match input.byte() % 2 {
        0 => {
            let row = *input.pick(&rows);
            let len = match row.args {
                Args::Sizes(sizes) => input.pick(sizes).0,
                Args::Items(size) | Args::ItemsAndRest(size) => size * (1 + usize::from(input.byte() % 4)),
                Args::Any => usize::from(input.byte()),
            };
            (request(row.nr, len), len)
        }
        _ => {
            let row = *input.pick(&CALLS.iter().collect::<Vec<_>>());
            (u64::from(row.nr), row.size)
        }
    };
    let mut arg = objects.params(input, len);
    let at: *mut c_void = match input.byte() % 16 {
        0 => null_mut(),
        1 => std::ptr::without_provenance_mut(0x8000_0000_0000),
        _ => arg.as_mut_ptr().cast(),
    };
    rm_ioctl(fd, request, at);
}

fn other_files(objects: &mut Objects<Files>, input: &mut Input) {
    const PATHS: [&std::ffi::CStr; 4] =
        [c"/dev/nvidiactl", c"/dev/nvidia0", c"/dev/nvidia-uvm", c"/dev/nvidia-uvm-tools"];
    let files = &mut objects.door;
    if files.others.len() < 8 && input.byte() % 2 == 0 {
        let path = *input.pick(&PATHS);
        files.others.push(open(path));
    } else if !files.others.is_empty() {
        let at = usize::from(input.byte()) % files.others.len();
        assert_eq!(rm_close(files.others.swap_remove(at)), 0);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let program = Program::start(input.byte());
    let others = vec![open(c"/dev/nvidia0"), open(c"/dev/nvidia-uvm")];
    let mut objects = Objects::new(Files { ctl: open(c"/dev/nvidiactl"), others });
    while !input.0.is_empty() && objects.has_room() {
        match input.byte() % 4 {
            0 => any_call(&objects, &mut input),
            1 if input.byte() % 4 == 0 => other_files(&mut objects, &mut input),
            _ => objects.step(&mut input),
        }
    }
    let files = objects.end();
    files.others.iter().chain([&files.ctl]).for_each(|fd| assert_eq!(rm_close(*fd), 0));
    program.end();
});
