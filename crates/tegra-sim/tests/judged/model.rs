//! The simulated kernel as a player of programs.

use crate::program::{Answer, Behind, Failing, Ioctl, Run, Slot, Step, said};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use tegra_gpu::Failure;
use tegra_hw::SmError;
use tegra_kernel::SimConfig;
use tegra_kernel::process::FileId;
use tegra_mm::{Access, FaultKind, MmuFault};
use tegra_sim::SimKmd;
use tegrarm_abi::nvgpu::address_space::{NVGPU_AS_IOCTL_REMAP, nvgpu_as_remap_op};
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::{
    NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, NVMAP_IOC_ALLOC_R35, nvgpu_gpu_characteristics_r35, nvmap_alloc_handle_r35,
};
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::{Arg, Errno, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

/// Plays a program on the simulated kernel.
pub struct Model {
    kmd: SimKmd,
    r35: bool,
    /// The node from which buffers are. A program that makes none may open and close the node itself.
    nvmap: Option<OwnedFd>,
    /// The descriptor that each step made.
    made: BTreeMap<usize, OwnedFd>,
    /// The handle of each step's buffer, and the address at which the kernel sees its memory. The memory stays until
    /// the program ends, so that an address is never that of two buffers.
    buffers: Vec<(usize, u32, usize)>,
}

fn number(result: Result<i32, Errno>) -> i32 {
    result.unwrap_or_else(|errno| -(errno as i32))
}

impl Model {
    pub fn new(config: SimConfig) -> Model {
        let kmd = SimKmd::new(SimConfig { step: true, ..config });
        Model { kmd, r35: config.l4t.is_r35(), nvmap: None, made: BTreeMap::new(), buffers: Vec::new() }
    }

    /// Makes the step of a number, and remembers the descriptor that it made.
    pub fn step(&mut self, number: usize, step: &Step) -> Answer {
        let (answer, made) = match step {
            Step::Open(node) => self.opened(node),
            Step::Buffer(size) => (Answer::default(), Some(self.buffer(number, *size))),
            Step::View(of) => (Answer::default(), self.view(*of)),
            Step::Close(of) => {
                self.close(*of);
                (Answer::default(), None)
            }
            Step::Dup(of) => (Answer::default(), self.dup(*of)),
            Step::Ioctl(call) => self.ioctl(call),
            Step::Fail(of, what) => {
                let before = self.kmd.gpu().faults().len();
                let result = self.fail(*of, *what);
                let said = said(&self.kmd.gpu().faults()[before..].join("\n"));
                (Answer { result, said, ..Answer::default() }, None)
            }
            Step::Read(of, at, count) => (Answer { bytes: self.read(*of, *at, *count), ..Answer::default() }, None),
        };
        self.made.extend(made.map(|fd| (number, fd)));
        answer
    }

    /// Closes everything. Returns how many files, buffers and ids the kernel still holds.
    pub fn finish(mut self) -> String {
        std::mem::take(&mut self.made).into_values().for_each(|fd| self.kmd.close(fd));
        if let Some(nvmap) = self.nvmap.take() {
            for (_, handle, _) in &self.buffers {
                let _ = self.kmd.ioctl(nvmap.as_fd(), Node::Nvmap, NVMAP_IOC_FREE, Arg::Value(u64::from(*handle)));
            }
            self.kmd.close(nvmap);
        }
        let census = self.kmd.kernel().census();
        format!("{} files, {} channels, {} groups, {} bytes", census.files, census.channels, census.tsgs, census.memory)
    }

    fn opened(&self, node: &str) -> (Answer, Option<OwnedFd>) {
        let path = match node {
            "nvmap" => "/dev/nvmap".to_owned(),
            "channel" if self.r35 => "/dev/nvhost-gpu".to_owned(),
            _ if self.r35 => format!("/dev/nvhost-{node}-gpu"),
            _ => format!("/dev/nvgpu/igpu0/{node}"),
        };
        match self.kmd.open(&path) {
            Ok(fd) => (Answer::default(), Some(fd)),
            Err(errno) => (Answer { result: -(errno as i32), ..Answer::default() }, None),
        }
    }

    fn nvmap<T: IntoBytes + zerocopy::FromBytes>(&self, request: u32, args: &mut T) {
        let nvmap = self.nvmap.as_ref().expect("nvmap is open");
        self.kmd.ioctl(nvmap.as_fd(), Node::Nvmap, request, Arg::Bytes(args.as_mut_bytes())).expect("nvmap obeys");
    }

    fn descriptor(&self, handle: u32) -> OwnedFd {
        let mut get = nvmap_create_handle::new_zeroed();
        get.handle = handle;
        self.nvmap(NVMAP_IOC_GET_FD, &mut get);
        // SAFETY: GET_FD made the descriptor, and nobody else knows it.
        unsafe { OwnedFd::from_raw_fd(get.size as RawFd) }
    }

    fn buffer(&mut self, number: usize, size: u32) -> OwnedFd {
        self.nvmap.get_or_insert_with(|| self.kmd.open("/dev/nvmap").expect("nvmap opens"));
        let mut create = nvmap_create_handle::new_zeroed();
        create.size = size;
        self.nvmap(NVMAP_IOC_CREATE, &mut create);
        let flags = 0x0900_0000 | NVMAP_HANDLE_INNER_CACHEABLE;
        if self.r35 {
            let mut alloc = nvmap_alloc_handle_r35::new_zeroed();
            (alloc.handle, alloc.heap_mask, alloc.flags, alloc.align) = (create.handle, NVMAP_HEAP_IOVMM, flags, 4096);
            self.nvmap(NVMAP_IOC_ALLOC_R35, &mut alloc);
        } else {
            let mut alloc = nvmap_alloc_handle::new_zeroed();
            (alloc.handle, alloc.heap_mask, alloc.flags, alloc.align) = (create.handle, NVMAP_HEAP_IOVMM, flags, 4096);
            self.nvmap(NVMAP_IOC_ALLOC, &mut alloc);
        }
        let fd = self.descriptor(create.handle);
        let seen = self.kmd.own_view(fd.as_fd()).expect("the kernel sees the memory");
        self.buffers.push((number, create.handle, seen));
        fd
    }

    fn view(&self, of: usize) -> Option<OwnedFd> {
        let (_, handle, _) = self.buffers.iter().find(|(step, ..)| *step == of)?;
        let mut dup = nvmap_duplicate_handle::new_zeroed();
        (dup.handle, dup.access_flags) = (*handle, NVMAP_HANDLE_RO);
        self.nvmap(NVMAP_IOC_DUP_HANDLE, &mut dup);
        Some(self.descriptor(dup.dup_handle))
    }

    fn close(&mut self, number: usize) {
        if let Some(fd) = self.made.remove(&number) {
            self.kmd.close(fd);
        }
    }

    fn dup(&self, of: usize) -> Option<OwnedFd> {
        let copy = self.made.get(&of)?.try_clone().ok()?;
        self.kmd.kernel().handed_out_again(FileId::of(&copy).ok()?);
        Some(copy)
    }

    fn fail(&self, of: usize, what: Failing) -> i32 {
        let Some(fd) = self.made.get(&of) else { return -libc::ENODEV };
        number(self.kmd.fail(fd.as_fd(), failure(what)).map(|()| 0))
    }

    fn read(&self, of: usize, at: usize, count: usize) -> Vec<u8> {
        let Some((.., seen)) = self.buffers.iter().find(|(step, ..)| *step == of) else { return Vec::new() };
        // SAFETY: whoever wrote the program asks for a part of the buffer, whose memory stays until the program ends.
        let bytes = unsafe { std::slice::from_raw_parts((*seen + at) as *const u8, count) };
        without_time(bytes.to_vec())
    }

    fn raw(&self, step: usize) -> RawFd {
        self.made.get(&step).map_or(-1, AsRawFd::as_raw_fd)
    }

    fn ioctl(&self, call: &Ioctl) -> (Answer, Option<OwnedFd>) {
        let Some(fd) = self.made.get(&call.on) else {
            return (Answer { result: -libc::EBADF, bytes: call.bytes.clone(), ..Answer::default() }, None);
        };
        let (mut answer, made) = play(
            call,
            self.r35,
            |step| self.raw(step),
            |request, bytes| {
                let node = if request >> 8 & 0xff == NVMAP_IOC_MAGIC { Node::Nvmap } else { Node::As };
                let arg = value_of(request, bytes).map_or(Arg::Bytes(bytes), Arg::Value);
                number(self.kmd.ioctl(fd.as_fd(), node, request, arg))
            },
        );
        answer.runs = self.runs(fd);
        // SAFETY: the call made the descriptor, and nobody else knows it.
        (answer, made.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn runs(&self, fd: &OwnedFd) -> Vec<Run> {
        let mut runs = Vec::new();
        let Some(table) = self.kmd.page_table(fd.as_fd()) else { return runs };
        let buffer = |seen: usize| Some(self.buffers.iter().find(|(.., at)| *at == seen)?.0);
        for extent in table.extents() {
            let behind = match &extent.backing {
                None => Behind::Sparse,
                Some(backing) => match buffer(backing.as_ptr() as usize) {
                    Some(step) => Behind::Buffer(step),
                    None if backing.len() == 64 << 20 => Behind::Syncpoints,
                    None => Behind::Kernel,
                },
            };
            let offset = if matches!(behind, Behind::Sparse | Behind::Kernel) { 0 } else { extent.offset as u64 };
            Run { va: extent.va, len: extent.len, behind, offset, entry: extent.entry() }.push(&mut runs);
        }
        runs
    }
}

/// A failure in the words of the virtual GPU.
fn failure(what: Failing) -> Failure {
    match what {
        Failing::Mmu { client, kind, access, va } => {
            let kinds = [FaultKind::Pde, FaultKind::Pte, FaultKind::VaLimit, FaultKind::ReadOnly];
            let accesses = [Access::Read, Access::Write, Access::Atomic, Access::Prefetch];
            let kind = kinds.into_iter().find(|known| *known as u32 == kind).expect("a fault of the model");
            let access = accesses.into_iter().find(|known| *known as u32 == access).expect("an access of the model");
            Failure::Mmu(client, MmuFault { va, access, kind })
        }
        Failing::Sm { sm, global_esr, warp_esr, pc } => Failure::Sm(sm, SmError { global_esr, warp_esr, pc }),
        Failing::Graphics { interrupt, exception } => Failure::Graphics(interrupt, exception),
        Failing::Pbdma { register, bit } => Failure::Pbdma(register, bit),
        Failing::Switch { times } => Failure::Switch(times),
        Failing::Copy { report } => Failure::Copy(report),
        Failing::Preemption => Failure::Preemption,
    }
}

/// The bytes of a notifier, with 1 in place of its time.
pub fn without_time(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(time) = bytes.get_mut(..8).filter(|time| time.iter().any(|byte| *byte != 0)) {
        time.copy_from_slice(&1u64.to_le_bytes());
    }
    bytes
}

/// The argument of a call that takes a number instead of a pointer.
pub fn value_of(request: u32, bytes: &[u8]) -> Option<u64> {
    let value = || Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?));
    if request == NVMAP_IOC_FREE { value() } else { None }
}

/// Puts descriptors and pointers into the argument, makes the call, and takes them out again.
pub fn play(
    call: &Ioctl,
    r35: bool,
    raw: impl Fn(usize) -> RawFd,
    make: impl FnOnce(u32, &mut [u8]) -> i32,
) -> (Answer, Option<RawFd>) {
    let put = |bytes: &mut [u8], fds: &[Slot], value: &dyn Fn(usize) -> RawFd| {
        for fd in fds {
            if let Some(place) = bytes.get_mut(fd.at..fd.at + 4) {
                place.copy_from_slice(&value(fd.step).to_le_bytes());
            }
        }
    };
    let mut bytes = call.bytes.clone();
    let mut pieces: Vec<Vec<u8>> = call.pieces.iter().map(|piece| piece.bytes.clone()).collect();
    put(&mut bytes, &call.fds, &raw);
    for (piece, memory) in call.pieces.iter().zip(&mut pieces) {
        put(memory, &piece.fds, &raw);
        if let Some(place) = bytes.get_mut(piece.at..piece.at + 8) {
            place.copy_from_slice(&(memory.as_ptr() as u64).to_le_bytes());
        }
    }
    let result = make(call.request, &mut bytes);
    let made = call.makes.filter(|_| result >= 0).and_then(|at| {
        let value = bytes.get_mut(at..at + 4)?;
        let fd = RawFd::from_le_bytes(value.try_into().ok()?);
        value.fill(0);
        Some(fd)
    });
    // GET_BUFFER_INFO answers where its descriptor and its pointer were.
    let union = call.request == NVGPU_GPU_IOCTL_GET_BUFFER_INFO && result == 0;
    if !union {
        put(&mut bytes, &call.fds, &|_| 0);
    }
    let flags = offset_of!(nvgpu_channel_setup_bind_args, flags);
    let setup = [NVGPU_IOCTL_CHANNEL_SETUP_BIND, NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35].contains(&call.request);
    if setup
        && u32::from_le_bytes(bytes[flags..][..4].try_into().expect("four bytes"))
            & NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT
            == 0
    {
        // In kernel mode the driver returns here what was on its stack.
        bytes[offset_of!(nvgpu_channel_setup_bind_args, work_submit_token)..][..4].fill(0);
        if call.request == NVGPU_IOCTL_CHANNEL_SETUP_BIND {
            bytes[offset_of!(nvgpu_channel_setup_bind_args, gpfifo_gpu_va)..][..24].fill(0);
        }
    }
    for (piece, memory) in call.pieces.iter().zip(&mut pieces) {
        put(memory, &piece.fds, &|_| 0);
        if call.request == NVGPU_AS_IOCTL_REMAP {
            // REMAP can write the descriptor of one operation into another one.
            for op in memory.chunks_exact_mut(size_of::<nvgpu_as_remap_op>()) {
                op[offset_of!(nvgpu_as_remap_op, mem_handle)..][..4].fill(0);
            }
        }
        // Of the pointer, GET_BUFFER_INFO leaves the upper half.
        let start = if union { piece.at + 4 } else { piece.at };
        if let Some(place) = bytes.get_mut(start..piece.at + 8) {
            place.fill(0);
        }
    }
    without_the_world(call, r35, result, &mut bytes, &mut pieces);
    (Answer { result, bytes, pieces, ..Answer::default() }, made.filter(|fd| *fd >= 0))
}

/// Takes out what differs between two boards: times, and what a program without the right to schedule does not see.
fn without_the_world(call: &Ioctl, r35: bool, result: i32, bytes: &mut [u8], pieces: &mut [Vec<u8>]) {
    match call.request {
        NVGPU_GPU_IOCTL_GET_GPU_TIME if result == 0 => bytes[..8].fill(0),
        NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO if result == 0 => {
            let count = bytes[offset_of!(nvgpu_gpu_get_cpu_time_correlation_info_args, count)];
            bytes[..16 * usize::from(count)].fill(0);
        }
        NVGPU_GPU_IOCTL_GET_CHARACTERISTICS => {
            let bit = NVGPU_GPU_FLAGS_SUPPORT_RESCHEDULE_RUNLIST;
            let flags = if r35 {
                offset_of!(nvgpu_gpu_characteristics_r35, flags)
            } else {
                offset_of!(nvgpu_gpu_characteristics, flags)
            };
            pieces.iter_mut().for_each(|piece| piece[flags + 2] &= !((bit >> 16) as u8));
        }
        _ => {}
    }
}
