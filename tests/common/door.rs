//! A client of the device nodes that works like the first frontend: it maps memory with its own mmap, at addresses that
//! it chooses.
#![allow(unsafe_code)] // the client's own system calls

use super::*;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_sim::L4t;
use tegrarm::files::Door;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_kmd::maps;
use tegrarm_kmd::{DeviceMem, Errno, Mapping};
use tegrarm_lock::{ReentrantMutex, ReentrantMutexGuard};

/// Addresses that are the same for the CPU and the GPU. Each client takes a range of its own.
static LOW: AtomicU64 = AtomicU64::new(0x10_0000_0000);
const STRETCH: u64 = 64 << 20;

/// An escape's request number for an argument of `size` bytes.
pub fn request(nr: u32, size: usize) -> u64 {
    u64::from(3 << 30 | (size as u32) << 16 | 0x46 << 8 | nr)
}

/// Descriptor numbers and addresses belong to the process, and these tests ask for closed and unmapped ones. Their
/// clients therefore run one at a time.
static ALONE: ReentrantMutex<()> = ReentrantMutex::new(());

/// A client of the nodes, with its descriptors and objects. Any thread may use it.
pub struct Nodes {
    pub kmd: Arc<Board>,
    pub rm: Arc<Rm>,
    pub door: Arc<Door>,
    pub ctl: RawFd,
    pub gpu: RawFd,
    pub uvm: RawFd,
    pub client: u32,
    pub device: u32,
    pub subdevice: u32,
    pub mapper: u32,
    pub vaspace: u32,
    pub uuid: nv_uuid,
    low: u64,
}

/// A board, and a process that has its nodes open.
pub struct Desktop {
    nodes: Nodes,
    alone: Option<ReentrantMutexGuard<'static, ()>>,
}

impl Deref for Desktop {
    type Target = Nodes;
    fn deref(&self) -> &Nodes {
        &self.nodes
    }
}

impl DerefMut for Desktop {
    fn deref_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }
}

impl Desktop {
    /// Opens the nodes, registers what must be registered, and allocates the usual objects.
    pub fn open(l4t: L4t) -> Desktop {
        let kmd = board(l4t);
        let rm = Arc::new(manager(kmd.clone()));
        Desktop::over(kmd, rm)
    }

    /// Leaves without closing anything, like a process that is killed.
    pub fn abandon(mut self) {
        self.alone = None;
        std::mem::forget(self);
    }

    /// Does the same with a manager that reaches the board through another kernel.
    pub fn over(kmd: Arc<Board>, rm: Arc<Rm>) -> Desktop {
        let alone = Some(ALONE.lock());
        Desktop { nodes: Nodes::open(kmd, rm, Arc::default()), alone }
    }
}

/// A range of low addresses that no other client of this process gets.
pub fn stretch() -> u64 {
    LOW.fetch_add(STRETCH, Ordering::Relaxed)
}

impl Nodes {
    /// Makes a client that has its own open files.
    pub fn open(kmd: Arc<Board>, rm: Arc<Rm>, door: Arc<Door>) -> Nodes {
        let mut d = Nodes {
            kmd,
            rm,
            door,
            ctl: -1,
            gpu: -1,
            uvm: -1,
            client: 0,
            device: 0,
            subdevice: 0,
            mapper: 0,
            vaspace: 0,
            uuid: nv_uuid { uuid: [0; 16] },
            low: stretch(),
        };
        (d.ctl, d.uvm) = (d.node("/dev/nvidiactl"), d.node("/dev/nvidia-uvm"));
        d.client = d.alloc(0, NV01_ROOT_CLIENT);
        d.gpu = d.gpu_fd();
        assert_eq!(d.uvm(UVM_INITIALIZE, &mut UVM_INITIALIZE_PARAMS::new_zeroed()), NV_OK);
        d.device = d.alloc_with(d.client, NV01_DEVICE_0, &mut NV0080_ALLOC_PARAMETERS::new_zeroed());
        d.subdevice = d.alloc(d.device, NV20_SUBDEVICE_0);
        let mut range = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS::new_zeroed();
        range.limit = (1 << 49) - 1;
        d.mapper = d.alloc_with(d.device, NV01_MEMORY_VIRTUAL, &mut range);
        let mut space = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
        (space.flags, space.vaBase, space.vaSize) = (0x48, 0x1000, 0x1_ffff_fb00_0000);
        d.vaspace = d.alloc_with(d.device, FERMI_VASPACE_A, &mut space);
        let mut gid = NV2080_CTRL_GPU_GET_GID_INFO_PARAMS::new_zeroed();
        (gid.flags, gid.length) = (2, 16);
        assert_eq!(d.control(d.subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &mut gid), NV_OK);
        d.uuid.uuid.copy_from_slice(&gid.data[..16]);
        assert_eq!(d.register_gpu(), NV_OK);
        assert_eq!(d.register_vaspace(), NV_OK);
        d
    }

    /// Closes its files, which frees its client.
    pub fn close(&self) {
        for fd in [self.gpu, self.uvm, self.ctl] {
            self.door.close(fd).expect("open until now");
        }
    }

    pub fn register_gpu(&self) -> u32 {
        let mut p = UVM_REGISTER_GPU_PARAMS::new_zeroed();
        (p.gpu_uuid, p.rmCtrlFd) = (self.uuid, -1);
        self.uvm(UVM_REGISTER_GPU, &mut p)
    }

    pub fn register_vaspace(&self) -> u32 {
        let mut p = UVM_REGISTER_GPU_VASPACE_PARAMS::new_zeroed();
        (p.gpuUuid, p.rmCtrlFd, p.hClient, p.hVaSpace) = (self.uuid, self.ctl, self.client, self.vaspace);
        self.uvm(UVM_REGISTER_GPU_VASPACE, &mut p)
    }

    pub fn node(&self, path: &str) -> RawFd {
        self.door.open(&|| Ok(self.rm.clone()), path, true).expect("a node")
    }

    /// Opens a file of the GPU that is registered with the control file.
    pub fn gpu_fd(&self) -> RawFd {
        let fd = self.node("/dev/nvidia0");
        self.escape(fd, NV_ESC_REGISTER_FD, &mut nv_ioctl_register_fd_t { ctl_fd: self.ctl }).expect("registered");
        fd
    }

    pub fn ioctl(&self, fd: RawFd, request: u64, arg: &mut [u8]) -> Result<(), Errno> {
        let argp = arg.as_mut_ptr() as u64;
        self.door.ioctl(&|| Ok(self.rm.clone()), fd, request, argp).map(drop).map_err(|r| r.errno)
    }

    pub fn escape<T: AbiStruct>(&self, fd: RawFd, nr: u32, arg: &mut T) -> Result<(), Errno> {
        self.ioctl(fd, request(nr, size_of::<T>()), arg.as_mut_bytes())
    }

    /// Makes a UVM call and returns its status, which is the last field but padding and is found by name.
    pub fn uvm<T: AbiStruct>(&self, nr: u32, arg: &mut T) -> u32 {
        self.ioctl(self.uvm, u64::from(nr), arg.as_mut_bytes()).expect("understood");
        let at = T::LAYOUT.fields.iter().find(|f| f.name == "rmStatus").expect("a status").offset;
        note(u32::from_le_bytes(arg.as_bytes()[at..at + 4].try_into().expect("four bytes")))
    }

    pub fn try_alloc(&self, parent: u32, handle: u32, class: u32, params: u64) -> NVOS21_PARAMETERS {
        let mut p = NVOS21_PARAMETERS::new_zeroed();
        p.hRoot = if parent == 0 { 0 } else { self.client };
        (p.hObjectParent, p.hObjectNew, p.hClass, p.pAllocParms) = (parent, handle, class, params);
        self.escape(self.ctl, NV_ESC_RM_ALLOC, &mut p).expect("understood");
        note(p.status);
        p
    }

    pub fn alloc(&self, parent: u32, class: u32) -> u32 {
        let p = self.try_alloc(parent, 0, class, 0);
        assert_eq!(p.status, NV_OK, "class {class:#x}");
        p.hObjectNew
    }

    pub fn alloc_with<P: AbiStruct>(&self, parent: u32, class: u32, params: &mut P) -> u32 {
        let p = self.try_alloc(parent, 0, class, params as *mut P as u64);
        assert_eq!(p.status, NV_OK, "class {class:#x}");
        p.hObjectNew
    }

    pub fn control<P: AbiStruct>(&self, object: u32, cmd: u32, params: &mut P) -> u32 {
        let mut p = NVOS54_PARAMETERS::new_zeroed();
        (p.hClient, p.hObject, p.cmd) = (self.client, object, cmd);
        (p.params, p.paramsSize) = (params as *mut P as u64, size_of::<P>() as u32);
        self.escape(self.ctl, NV_ESC_RM_CONTROL, &mut p).expect("understood");
        note(p.status)
    }

    pub fn free(&self, object: u32) -> u32 {
        let mut p = NVOS00_PARAMETERS::new_zeroed();
        (p.hRoot, p.hObjectOld) = (self.client, object);
        self.escape(self.ctl, NV_ESC_RM_FREE, &mut p).expect("understood");
        note(p.status)
    }

    pub fn memory(&self, size: u64) -> u32 {
        let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        p.size = size;
        self.alloc_with(self.device, NV01_MEMORY_LOCAL_USER, &mut p)
    }

    /// Makes the notifier of a channel, as the first frontend asks for it.
    pub fn notifier(&self) -> u32 {
        let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (p.size, p.type_) = (48 * MIB, NVOS32_TYPE_NOTIFIER);
        self.alloc_with(self.device, NV01_MEMORY_SYSTEM, &mut p)
    }

    /// Makes an RM_MAP_MEMORY on a descriptor and returns its status.
    pub fn lend(&self, memory: u32, offset: u64, size: u64, fd: RawFd) -> u32 {
        let mut p = nv_ioctl_nvos33_parameters_with_fd::new_zeroed();
        p.fd = fd;
        (p.params.hClient, p.params.hDevice, p.params.hMemory) = (self.client, self.device, memory);
        (p.params.offset, p.params.length) = (offset, size);
        self.escape(self.ctl, NV_ESC_RM_MAP_MEMORY, &mut p).expect("understood");
        note(p.params.status)
    }

    /// Makes an RM_MAP_MEMORY on a fresh descriptor, then the client's own mmap, and then a close, as callers with
    /// ctypes do.
    pub fn map_cpu(&self, memory: u32, size: u64, at: Option<u64>) -> DeviceMem {
        let fd = self.gpu_fd();
        assert_eq!(self.lend(memory, 0, size, fd), NV_OK);
        let mem = raw_mmap(at, size, libc::MAP_SHARED, fd);
        self.door.close(fd).expect("closed");
        mem
    }

    /// A low address that is not in use.
    pub fn low_va(&mut self, size: u64) -> u64 {
        let va = self.low;
        self.low += size.next_multiple_of(4096);
        va
    }

    pub fn range(&self, base: u64, length: u64) -> u32 {
        let mut p = UVM_CREATE_EXTERNAL_RANGE_PARAMS::new_zeroed();
        (p.base, p.length) = (base, length);
        self.uvm(UVM_CREATE_EXTERNAL_RANGE, &mut p)
    }

    pub fn map_external(&self, memory: u32, base: u64, length: u64, offset: u64) -> u32 {
        let mut p = Box::new(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS::new_zeroed());
        (p.base, p.length, p.offset) = (base, length, offset);
        (p.rmCtrlFd, p.hClient, p.hMemory) = (self.ctl, self.client, memory);
        p.gpuAttributesCount = 1;
        (p.perGpuAttributes[0].gpuUuid, p.perGpuAttributes[0].gpuMappingType) = (self.uuid, 1);
        self.uvm(UVM_MAP_EXTERNAL_ALLOCATION, &mut *p)
    }

    pub fn uvm_free(&self, base: u64, length: u64) -> u32 {
        let mut p = UVM_FREE_PARAMS::new_zeroed();
        (p.base, p.length) = (base, length);
        self.uvm(UVM_FREE, &mut p)
    }

    pub fn map_dma(&self, memory: u32, va: u64, length: u64) -> u32 {
        let mut p = NVOS46_PARAMETERS::new_zeroed();
        (p.hClient, p.hDevice, p.hDma, p.hMemory) = (self.client, self.device, self.mapper, memory);
        (p.length, p.flags, p.dmaOffset) = (length, 0x8110, va);
        self.escape(self.ctl, NV_ESC_RM_MAP_MEMORY_DMA, &mut p).expect("understood");
        assert!(p.status != NV_OK || p.dmaOffset == va);
        note(p.status)
    }

    /// Makes memory at the same address for the CPU and the GPU, as the first frontend does. Returns the handle, the
    /// address and the CPU's view.
    pub fn shared(&mut self, size: u64) -> (u32, u64, DeviceMem) {
        let (memory, va) = (self.memory(size), self.low_va(size));
        let cpu = self.map_cpu(memory, size, Some(va));
        assert_eq!(self.range(va, size), NV_OK);
        assert_eq!(self.map_dma(memory, va, size), NV_OK);
        assert_eq!(self.map_external(memory, va, size, 0), NV_OK);
        (memory, va, cpu)
    }

    /// Makes an RM_ALLOC_MEMORY of the client's own pages. Returns the status and the handle.
    pub fn own_pages(&self, va: u64, size: u64, handle: u32) -> (u32, u32) {
        let mut p = nv_ioctl_nvos02_parameters_with_fd::new_zeroed();
        p.fd = -1;
        (p.params.hRoot, p.params.hObjectParent, p.params.hObjectNew) = (self.client, self.device, handle);
        (p.params.hClass, p.params.flags) = (NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, 0x4000_1010);
        (p.params.pMemory, p.params.limit) = (va, size.wrapping_sub(1));
        self.escape(self.gpu, NV_ESC_RM_ALLOC_MEMORY, &mut p).expect("understood");
        (note(p.params.status), p.params.hObjectNew)
    }

    /// Makes a channel group with two channels of `entries` entries in one area, their engines, and a doorbell.
    pub fn channels(&mut self) -> Channels {
        let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        group.engineType = NV2080_ENGINE_TYPE_GR0;
        let group = self.alloc_with(self.device, KEPLER_CHANNEL_GROUP_A, &mut group);
        let (area, area_va, cpu) = self.shared(AREA);
        let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
        (share.hVASpace, share.flags) = (self.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
        let share = self.alloc_with(group, FERMI_CONTEXT_SHARE_A, &mut share);
        let usermode = self.alloc(self.subdevice, TURING_USERMODE_A);
        let doorbell = self.map_cpu(usermode, 0x10000, None);
        let mut c =
            Channels { group, area, area_va, cpu, doorbell, usermode, channels: [0; 2], tokens: [0; 2], put: [0; 2] };
        for (i, class) in [AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B].into_iter().enumerate() {
            let mut p = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
            (p.hObjectError, p.hObjectBuffer) = (self.notifier(), area);
            (p.gpFifoOffset, p.gpFifoEntries, p.hContextShare) = (area_va + PLACES[i].0, ENTRIES, share);
            (p.hUserdMemory[0], p.userdOffset[0]) = (area, PLACES[i].1);
            c.channels[i] = self.alloc_with(group, AMPERE_CHANNEL_GPFIFO_A, &mut p);
            self.alloc(c.channels[i], class);
            let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
            assert_eq!(self.control(c.channels[i], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token), NV_OK);
            c.tokens[i] = token.workSubmitToken;
        }
        c
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.close();
        assert_eq!(self.door.open_files(), 0, "every file was closed");
    }
}

/// Two channels in one area.
pub struct Channels {
    pub group: u32,
    pub area: u32,
    pub area_va: u64,
    pub cpu: DeviceMem,
    pub doorbell: DeviceMem,
    pub usermode: u32,
    pub channels: [u32; 2],
    pub tokens: [u32; 2],
    put: [u32; 2],
}

impl Channels {
    /// Writes a GPFIFO entry through the client's own view, then GP_PUT, and then the doorbell.
    pub fn submit(&mut self, i: usize, pushbuffer: u64, words: u32) {
        let (ring, userd) = (PLACES[i].0 as usize, PLACES[i].1 as usize);
        let entry = pushbuffer | u64::from(words) << 42 | 1 << 41;
        self.cpu.write_u64(ring + self.put[i] as usize * 8, entry);
        self.put[i] = (self.put[i] + 1) % ENTRIES;
        self.cpu.write_u32(userd + 0x8c, self.put[i]);
        std::sync::atomic::fence(Ordering::SeqCst);
        self.doorbell.write_u32(0x90, self.tokens[i]);
    }
}

/// The words of a semaphore release by the host.
pub fn release(va: u64, value: u32) -> [u32; 6] {
    use tegrarm_abi::methods::host::NVC56F_SEM_ADDR_LO;
    [1 << 29 | 5 << 16 | NVC56F_SEM_ADDR_LO >> 2, va as u32, (va >> 32) as u32, value, 0, 1]
}

/// Waits for the GPU to write a word.
pub fn await_word(mem: &DeviceMem, at: usize, value: u32) {
    for _ in 0..20_000 {
        if mem.read_u32(at) == value {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the GPU never wrote {value:#x}; there is {:#x}", mem.read_u32(at));
}

/// Makes the client's own mmap. The mapping is removed when the result is dropped.
pub fn raw_mmap(at: Option<u64>, size: u64, flags: i32, fd: RawFd) -> DeviceMem {
    let fixed = if at.is_some() { libc::MAP_FIXED } else { 0 };
    // SAFETY: the address lies in the client's own range, or the kernel chooses a free one.
    let p = unsafe {
        let hint = at.unwrap_or(0) as *mut libc::c_void;
        libc::mmap(hint, size as usize, libc::PROT_READ | libc::PROT_WRITE, flags | fixed, fd, 0)
    };
    assert_ne!(p, libc::MAP_FAILED, "{}", Errno::last());
    let start = std::ptr::NonNull::new(p.cast()).expect("not NULL");
    // SAFETY: the range was just mapped, and no other code knows it.
    DeviceMem::new(unsafe { Mapping::from_raw(start, size as usize) })
}

/// The inode of the file that is mapped at an address.
pub fn inode_at(addr: u64) -> u64 {
    maps::own().iter().find(|m| (m.address.0..m.address.1).contains(&addr)).map_or(0, |m| m.inode)
}
