//! A board, and short functions for its ioctls, with which the kernel tests drive it. Every call goes through the trait
//! `Kmd`, with raw structures.
#![allow(dead_code, unused_imports, reason = "each test file uses its part of it")]

pub mod noting;
pub mod running;

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
pub use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::layout::copy_shared_fields;
pub use tegrarm_abi::nvgpu::address_space::*;
pub use tegrarm_abi::nvgpu::channel::*;
pub use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::{NVMAP_IOC_ALLOC_R35, nvmap_alloc_handle_r35};
use tegrarm_abi::nvgpu::r39::{NVMAP_IOC_ALLOC_R39, nvmap_alloc_handle_r39};
pub use tegrarm_abi::nvgpu::tsg::*;
pub use tegrarm_abi::nvmap::*;
pub use tegrarm_kmd::{Arg, Errno, File, Kmd, Node, Placement, Prot};
pub use zerocopy::FromZeros;

/// The first address of the address spaces in the published logs.
pub const START: u64 = 0x20_0000;
/// The end of address spaces that is recommended.
pub const END: u64 = 0xff_0000_0000;
/// The end in the published logs.
pub const OBSERVED_END: u64 = 0xff_ffe0_0000;

/// Makes a structure of zeros that `fill` changes.
pub fn args<T: AbiStruct>(fill: impl FnOnce(&mut T)) -> T {
    let mut value = T::new_zeroed();
    fill(&mut value);
    value
}

/// A virtual board, with the open nodes that every test needs.
pub struct Board {
    pub sim: Arc<SimKmd>,
    pub kmd: Arc<dyn Kmd>,
    pub nvmap: File,
    pub ctrl: File,
    pub l4t: L4t,
}

/// A buffer: the id of its handle, and one descriptor of its dmabuf.
pub struct Buffer {
    pub handle: u32,
    pub fd: File,
}

impl Buffer {
    pub fn raw(&self) -> RawFd {
        self.fd.raw()
    }
}

/// A channel, a group and an address space, which are bound. There is no watchdog. SETUP_BIND needs only memory in
/// addition.
pub struct Rig {
    pub space: File,
    pub tsg: File,
    pub channel: File,
    pub veid: u32,
}

impl Board {
    pub fn new() -> Board {
        Board::with(SimConfig::new(Chip::AgxOrin))
    }

    /// Makes the board of the published logs.
    pub fn observed() -> Board {
        Board::with(SimConfig::new(Chip::AgxOrinPowerGated))
    }

    pub fn r35() -> Board {
        Board::with(SimConfig::new(Chip::AgxOrin).on(L4t::R35))
    }

    pub fn r39() -> Board {
        Board::with(SimConfig::new(Chip::AgxOrin).on(L4t::R39))
    }

    pub fn with(config: SimConfig) -> Board {
        let sim = Arc::new(SimKmd::new(config));
        let kmd: Arc<dyn Kmd> = Arc::new(noting::Noting::over(sim.clone()));
        let nvmap = File::open(&kmd, Node::Nvmap, "/dev/nvmap").unwrap();
        let ctrl = File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
        Board { sim, kmd, nvmap, ctrl, l4t: config.l4t }
    }

    /// Owns a descriptor that an ioctl returned.
    pub fn file(&self, node: Node, fd: RawFd) -> File {
        File::from_output(&self.kmd, node, fd).unwrap()
    }

    /// Makes the raw call and returns its result or errno, as the kernel gives it.
    pub fn raw(&self, file: &File, request: u32, bytes: &mut [u8]) -> Result<i32, Errno> {
        use std::os::fd::AsFd;
        self.kmd.ioctl(file.as_fd(), file.node(), request, Arg::Bytes(bytes))
    }

    pub fn create(&self, size: u32) -> u32 {
        let mut create = args::<nvmap_create_handle>(|a| a.size = size);
        self.nvmap.ioctl(NVMAP_IOC_CREATE, &mut create).unwrap();
        create.handle
    }

    pub fn alloc(&self, handle: u32) -> Result<(), Errno> {
        self.alloc_with(handle, |_| ())
    }

    /// Allocates from system memory as inner cacheable. `fill` changes the arguments.
    pub fn alloc_with(&self, handle: u32, fill: impl FnOnce(&mut nvmap_alloc_handle)) -> Result<(), Errno> {
        let mut alloc = args::<nvmap_alloc_handle>(|a| {
            a.handle = handle;
            a.heap_mask = NVMAP_HEAP_IOVMM;
            a.flags = 0x0900_0000 | NVMAP_HANDLE_INNER_CACHEABLE;
            a.align = 4096;
            fill(a);
        });
        let mut older = nvmap_alloc_handle_r35::new_zeroed();
        let mut newer = nvmap_alloc_handle_r39::new_zeroed();
        copy_shared_fields(&alloc, &mut older);
        copy_shared_fields(&alloc, &mut newer);
        match self.l4t {
            L4t::R39 => self.nvmap.ioctl(NVMAP_IOC_ALLOC_R39, &mut newer),
            L4t::R36 => self.nvmap.ioctl(NVMAP_IOC_ALLOC, &mut alloc),
            L4t::R35 | L4t::R35_4 => self.nvmap.ioctl(NVMAP_IOC_ALLOC_R35, &mut older),
        }
    }

    pub fn get_fd(&self, handle: u32) -> Result<File, Errno> {
        let mut get = args::<nvmap_create_handle>(|a| a.handle = handle);
        self.nvmap.ioctl(NVMAP_IOC_GET_FD, &mut get)?;
        Ok(self.file(Node::Dmabuf, get.size as RawFd))
    }

    pub fn free(&self, handle: u32) {
        self.nvmap.ioctl_value(NVMAP_IOC_FREE, u64::from(handle)).unwrap();
    }

    /// Makes an allocated buffer.
    pub fn buffer(&self, size: u32) -> Buffer {
        let handle = self.create(size);
        self.alloc(handle).unwrap();
        Buffer { handle, fd: self.get_fd(handle).unwrap() }
    }

    pub fn alloc_as(&self, start: u64, end: u64) -> Result<File, Errno> {
        let mut alloc = args::<nvgpu_alloc_as_args>(|a| {
            a.flags = NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA;
            a.va_range_start = start;
            a.va_range_end = end;
        });
        self.ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut alloc)?;
        Ok(self.file(Node::As, alloc.as_fd))
    }

    pub fn space(&self) -> File {
        self.alloc_as(START, END).unwrap()
    }

    pub fn tsg(&self) -> File {
        let mut open = args::<nvgpu_gpu_open_tsg_args>(|_| ());
        self.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_TSG, &mut open).unwrap();
        self.file(Node::Tsg, open.tsg_fd as RawFd)
    }

    pub fn channel(&self) -> File {
        let mut open = args::<nvgpu_gpu_open_channel_args>(|a| a.channel_fd = -1);
        self.ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut open).unwrap();
        self.file(Node::Channel, open.channel_fd)
    }

    pub fn subcontext(&self, tsg: &File, space: &File) -> Result<u32, Errno> {
        let mut create = args::<nvgpu_tsg_create_subcontext_args>(|a| {
            a.type_ = NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC;
            a.as_fd = space.raw();
        });
        tsg.ioctl(NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut create)?;
        Ok(create.veid)
    }

    /// Makes all objects that are needed before SETUP_BIND.
    pub fn rig(&self) -> Rig {
        let (space, tsg) = (self.space(), self.tsg());
        let veid = self.subcontext(&tsg, &space).unwrap();
        let channel = self.bound_channel(&space, &tsg, veid);
        Rig { space, tsg, channel, veid }
    }

    pub fn bound_channel(&self, space: &File, tsg: &File, veid: u32) -> File {
        let channel = self.channel();
        bind_space(space, &channel).unwrap();
        bind_tsg(tsg, &channel, veid).unwrap();
        wdt(&channel, NVGPU_IOCTL_CHANNEL_DISABLE_WDT).unwrap();
        channel
    }

    /// Makes the SETUP_BIND of a usermode channel with 1024 entries. Returns its ring, its USERD and its token.
    pub fn setup(&self, channel: &File) -> (Buffer, Buffer, u32) {
        let (ring, userd) = (self.buffer(8192), self.buffer(4096));
        let token = setup_bind(channel, &ring, &userd, |_| ()).unwrap();
        (ring, userd, token)
    }
}

pub fn bind_space(space: &File, channel: &File) -> Result<(), Errno> {
    let mut bind = args::<nvgpu_as_bind_channel_args>(|a| a.channel_fd = channel.raw() as u32);
    space.ioctl(NVGPU_AS_IOCTL_BIND_CHANNEL, &mut bind)
}

pub fn bind_tsg(tsg: &File, channel: &File, veid: u32) -> Result<(), Errno> {
    let mut bind = args::<nvgpu_tsg_bind_channel_ex_args>(|a| {
        a.channel_fd = channel.raw();
        a.subcontext_id = veid;
    });
    tsg.ioctl(NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &mut bind)
}

pub fn wdt(channel: &File, status: u32) -> Result<(), Errno> {
    let mut wdt = args::<nvgpu_channel_wdt_args>(|a| a.wdt_status = status);
    channel.ioctl(NVGPU_IOCTL_CHANNEL_WDT, &mut wdt)
}

pub fn setup_bind(
    channel: &File,
    ring: &Buffer,
    userd: &Buffer,
    fill: impl FnOnce(&mut nvgpu_channel_setup_bind_args),
) -> Result<u32, Errno> {
    let mut setup = args::<nvgpu_channel_setup_bind_args>(|a| {
        a.num_gpfifo_entries = 1024;
        a.flags = NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT | NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC;
        a.gpfifo_dmabuf_fd = ring.raw();
        a.userd_dmabuf_fd = userd.raw();
        fill(a);
    });
    channel.ioctl(NVGPU_IOCTL_CHANNEL_SETUP_BIND, &mut setup)?;
    Ok(setup.work_submit_token)
}

pub fn alloc_obj_ctx(channel: &File, class: u32) -> Result<(), Errno> {
    let mut alloc = args::<nvgpu_alloc_obj_ctx_args>(|a| a.class_num = class);
    channel.ioctl(NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &mut alloc)
}

pub fn timedout(channel: &File) -> u32 {
    let mut get = args::<nvgpu_get_param_args>(|_| ());
    channel.ioctl(NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, &mut get).unwrap();
    get.value
}

/// Maps a pitch buffer as cacheable with MAP_BUFFER_EX and returns the address. `fill` changes the arguments.
pub fn map_with(space: &File, fd: RawFd, fill: impl FnOnce(&mut nvgpu_as_map_buffer_ex_args)) -> Result<u64, Errno> {
    let mut map = args::<nvgpu_as_map_buffer_ex_args>(|a| {
        a.flags = NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE;
        a.compr_kind = -1;
        a.dmabuf_fd = fd as u32;
        fill(a);
    });
    space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_EX, &mut map)?;
    Ok(map.offset)
}

pub fn map(space: &File, buffer: &Buffer) -> Result<u64, Errno> {
    map_with(space, buffer.raw(), |_| ())
}

pub fn map_fixed(space: &File, buffer: &Buffer, at: u64) -> Result<u64, Errno> {
    map_with(space, buffer.raw(), |a| {
        a.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        a.offset = at;
    })
}

pub fn unmap(space: &File, va: u64) {
    let mut unmap = args::<nvgpu_as_unmap_buffer_args>(|a| a.offset = va);
    space.ioctl(NVGPU_AS_IOCTL_UNMAP_BUFFER, &mut unmap).unwrap();
}

/// Makes an ALLOC_SPACE of 4 KiB pages and returns the address.
pub fn alloc_space(space: &File, bytes: u64, flags: u32, at: u64) -> Result<u64, Errno> {
    let mut alloc = args::<nvgpu_as_alloc_space_args>(|a| {
        a.pages = bytes / 4096;
        a.page_size = 4096;
        a.flags = flags;
        a.o_a_offset = at;
    });
    space.ioctl(NVGPU_AS_IOCTL_ALLOC_SPACE, &mut alloc)?;
    Ok(alloc.o_a_offset)
}

pub fn reserve(space: &File, at: u64, bytes: u64) -> Result<u64, Errno> {
    alloc_space(space, bytes, NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET, at)
}

pub fn free_space(space: &File, va: u64) {
    let mut free = args::<nvgpu_as_free_space_args>(|a| a.offset = va);
    space.ioctl(NVGPU_AS_IOCTL_FREE_SPACE, &mut free).unwrap();
}

/// The number of open descriptors of this process.
pub fn open_fds() -> usize {
    let here = std::fs::File::open("/proc/self/fd").unwrap();
    let skip = here.as_raw_fd().to_string();
    let names = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|e| e.file_name());
    // The descriptor of the directory itself exists only during this call, so it is not counted.
    names.filter(|name| name.to_str() != Some(&skip)).count() - 1
}
