//! A GPU in step mode, and channels that are made as the kernel makes them.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::sys::memfd::{MFdFlags, memfd_create};
use tegra_gpu::{Gpu, GpuConfig};
use tegra_hw::{GpuPort, HwChannel, HwGpu, HwSpace, HwTsg, Place, Speeds, Vitals};
use tegra_mm::{Backing, Extent};
use tegrarm_abi::methods::host::*;
use tegrarm_kmd::{DeviceMem, Mapping, Placement, Prot};

/// The offsets of USERD words (docs/hardware/gpu-doorbell-and-ring.md#userd).
pub const REFERENCE: usize = 0x48;
pub const GP_GET: usize = 0x88;
pub const GP_PUT: usize = 0x8c;
/// The process of group 0. The other groups are those of the processes behind it.
pub const PROCESS: i32 = 4200;

/// Memory that the CPU sees and that may have a GPU address. Kernel memory has none.
pub struct Buffer {
    pub va: u64,
    pub mem: DeviceMem,
    pub backing: Arc<Backing>,
}

impl Buffer {
    pub fn new(va: u64, len: usize) -> Buffer {
        let fd = memfd_create(c"test", MFdFlags::MFD_CLOEXEC).expect("memfd");
        nix::unistd::ftruncate(&fd, len as i64).expect("size");
        let map = Mapping::new(fd.as_fd(), Placement::Anywhere, len, Prot::ReadWrite, 0).expect("map");
        let backing = Arc::new(Backing::from_memfd(fd, len).expect("back"));
        Buffer { va, mem: DeviceMem::new(map), backing }
    }

    pub fn place(&self) -> Place {
        Place { backing: self.backing.clone(), offset: 0 }
    }

    pub fn extent(&self) -> Extent {
        let len = self.backing.len() as u64;
        Extent { va: self.va, len, backing: Some(self.backing.clone()), writable: true, ..Extent::default() }
    }

    pub fn words(&self, offset: usize, count: usize) -> Vec<u32> {
        (0..count).map(|i| self.mem.read_u32(offset + 4 * i)).collect()
    }

    pub fn fill(&self, offset: usize, words: &[u32]) {
        for (i, w) in words.iter().enumerate() {
            self.mem.write_u32(offset + 4 * i, *w);
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.words(0, self.backing.len() / 4).iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    pub fn set_bytes(&self, bytes: &[u8]) {
        for (i, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
            self.mem.write_u32(4 * i, u32::from_le_bytes(*word));
        }
    }
}

pub fn config() -> GpuConfig {
    GpuConfig { step: true, ..GpuConfig::default() }
}

/// The same GPU with modelled time, on a module with this speed.
pub fn modelled() -> GpuConfig {
    let speeds = Speeds {
        gpu_hz: 1_300_000_000,
        dram_bytes_per_second: 204_800_000_000,
        l2_bytes: 4 << 20,
        l2_slices: 8,
        lowest_hz: 306_000_000,
        ramp_ns: 0,
        launch_ns: 0,
    };
    GpuConfig { speeds: Some(speeds), ..config() }
}

/// A GPU with an address space and a doorbell page.
pub struct Machine {
    pub gpu: Arc<Gpu>,
    pub space: Arc<HwSpace>,
    pub doorbell: Buffer,
}

impl Machine {
    pub fn new() -> Machine {
        Machine::with(config())
    }

    pub fn with(config: GpuConfig) -> Machine {
        let gpu = Gpu::new(config);
        let doorbell = Buffer::new(0, 65536);
        gpu.watch_doorbell(doorbell.place());
        Machine { gpu, space: Arc::new(HwSpace::default()), doorbell }
    }

    /// Maps new memory at a GPU address.
    pub fn map(&self, va: u64, len: usize) -> Buffer {
        let buffer = Buffer::new(va, len);
        self.space.update(|t| t.insert(buffer.extent()));
        buffer
    }

    /// A group of the process [`PROCESS`] + `id`.
    pub fn tsg(&self, id: u32) -> Arc<HwTsg> {
        Arc::new(HwTsg::new(id, PROCESS + id as i32, 16, Arc::new(HwGpu::default())))
    }

    /// Makes a channel in a group, with its pushbuffer at `pushbuffer`.
    pub fn channel(&self, id: u32, tsg: &Arc<HwTsg>, pushbuffer: u64) -> Lane {
        let (ring, userd, notifier) = (Buffer::new(0, 4096), Buffer::new(0, 4096), Buffer::new(0, 4096));
        let vitals = Arc::new(Vitals::new(id));
        *vitals.notifier.lock() = Some(notifier.place());
        vitals.unserviceable.store(false, Ordering::Release);
        tsg.members.lock().push(vitals.clone());
        let hw = Arc::new(HwChannel {
            id,
            runlist: 0,
            veid: 1,
            tsg: tsg.clone(),
            space: self.space.clone(),
            ring: ring.place(),
            entries: 16,
            userd: userd.place(),
            vitals,
            enabled: AtomicBool::new(true),
            gp_get: AtomicU32::new(0),
            acquire_timeout_ms: AtomicU32::new(0),
        });
        self.gpu.add_channel(hw.clone()).unwrap();
        Lane { hw, ring, userd, notifier, pushbuffer: self.map(pushbuffer, 64 << 10), put: 0, at: 0 }
    }

    /// Makes one group with one channel.
    pub fn lane(&self) -> Lane {
        let tsg = self.tsg(0);
        self.channel(511, &tsg, 0x1_0000_0000)
    }

    /// Rings the doorbell, which several threads may do at once: the thread sanitizer wants an atomic store.
    pub fn ring(&self, lane: &Lane) {
        assert!(self.doorbell.backing.store_u32(0x90, lane.hw.id));
    }

    /// Steps until no step does anything.
    pub fn drain(&self) {
        while self.gpu.step() {}
    }

    /// Submits words as one segment, rings the doorbell and finishes all work.
    pub fn run(&self, lane: &mut Lane, words: &[u32]) {
        lane.submit(words);
        self.ring(lane);
        self.drain();
    }
}

/// A channel and its memory.
pub struct Lane {
    pub hw: Arc<HwChannel>,
    pub ring: Buffer,
    pub userd: Buffer,
    pub notifier: Buffer,
    pub pushbuffer: Buffer,
    /// The next index to write in the ring.
    pub put: u32,
    /// The number of bytes of the pushbuffer that are used.
    pub at: usize,
}

impl Lane {
    /// Writes a segment and its entry, and advances GP_PUT.
    pub fn submit(&mut self, words: &[u32]) {
        let va = self.write(words);
        self.entry(entry(va, words.len()));
    }

    /// Writes words to the pushbuffer.
    pub fn write(&mut self, words: &[u32]) -> u64 {
        if self.at + 4 * words.len() > self.pushbuffer.backing.len() {
            self.at = 0;
        }
        let at = self.at;
        self.pushbuffer.fill(at, words);
        self.at += 4 * words.len();
        self.pushbuffer.va + at as u64
    }

    /// Adds an entry to the ring.
    pub fn entry(&mut self, entry: u64) {
        self.ring.mem.write_u64(8 * self.put as usize, entry);
        self.put = (self.put + 1) % self.hw.entries;
        self.userd.mem.write_u32(GP_PUT, self.put);
    }

    pub fn gp_get(&self) -> u32 {
        self.userd.mem.read_u32(GP_GET)
    }

    pub fn dead(&self) -> bool {
        self.hw.dead()
    }

    /// The code in the error notifier, if one was written.
    pub fn notified(&self) -> Option<u32> {
        (self.notifier.mem.read_u32(12) >> 16 == 0xffff).then(|| self.notifier.mem.read_u32(8))
    }
}

pub fn entry(va: u64, words: usize) -> u64 {
    va | (words as u64) << 42 | 1 << 41
}

/// The header of an incrementing sequence.
pub fn inc(subchannel: u32, method: u32, count: u32) -> u32 {
    header(NVC56F_DMA_SEC_OP_INC_METHOD, subchannel, method, count)
}

pub fn header(op: u32, subchannel: u32, method: u32, count: u32) -> u32 {
    NVC56F_DMA_SEC_OP.put(op)
        | NVC56F_DMA_METHOD_COUNT.put(count)
        | NVC56F_DMA_METHOD_SUBCHANNEL.put(subchannel)
        | NVC56F_DMA_METHOD_ADDRESS.put(method / 4)
}

/// An incrementing sequence with its data.
pub fn methods(subchannel: u32, method: u32, data: &[u32]) -> Vec<u32> {
    let mut words = vec![inc(subchannel, method, data.len() as u32)];
    words.extend(data);
    words
}

/// A host semaphore operation.
pub fn semaphore(va: u64, payload: u64, execute: u32) -> Vec<u32> {
    methods(0, NVC56F_SEM_ADDR_LO, &[va as u32, (va >> 32) as u32, payload as u32, (payload >> 32) as u32, execute])
}

/// A RELEASE of a 32-bit payload.
pub fn release(va: u64, payload: u32) -> Vec<u32> {
    semaphore(va, payload.into(), NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE))
}
