//! Helpers of the object door's tests: a virtual board, and a client that makes channels on it.
#![allow(dead_code, unused_imports, reason = "each test program uses its own part")]

pub mod board;
pub mod c_device;
pub mod calls;
pub mod device;
pub mod door;
pub mod no_nodes;
pub mod shown;

pub use board::{Board, board, default_release};
pub use c_device::{last_sentence, launch_config, open_c_device};
pub use calls::{CFunctions, Calls};
pub use device::{DEADLINE, LINE, cubin, open_device, vecadd};
pub use no_nodes::NoNodes;
pub use shown::{note, shows, status};

use std::sync::Arc;
use tegra_sim::L4t;
use tegrarm::rm::{DmaRequest, MapRequest, Rm};
use tegrarm::status::RmResult;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_kmd::Kmd;
use tegrarm_kmd::maps::{self, MMPermissions};
use zerocopy::FromZeros;

pub const MIB: u64 = 1 << 20;

/// Makes a manager that works on a kernel.
pub fn manager(kmd: Arc<dyn Kmd>) -> Rm {
    Rm::new(kmd, CacheMode::WriteCombine)
}

/// A manager of its own kernel, and a client of it that has channels.
pub struct Bench {
    pub rm: Rm,
    pub b: Bringup,
}

impl Bench {
    /// Makes the client on a new virtual board.
    pub fn on(l4t: L4t) -> Bench {
        Bench::over(board(l4t))
    }

    /// Makes the client on a kernel.
    pub fn over(kmd: Arc<dyn Kmd>) -> Bench {
        let rm = manager(kmd);
        let b = Bringup::open(&rm).unwrap();
        Bench { rm, b }
    }
}

/// A client with a device, a subdevice, a VA space and a mapper into it.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub client: u32,
    pub device: u32,
    pub subdevice: u32,
    pub vaspace: u32,
    pub mapper: u32,
}

impl Session {
    pub fn open<R: Calls>(rm: &R) -> RmResult<Session> {
        let client = rm.make(0, 0, NV01_ROOT_CLIENT)?;
        Session::build(rm, client).inspect_err(|_| rm.free(client, client).expect("a client can be freed"))
    }

    fn build<R: Calls>(rm: &R, client: u32) -> RmResult<Session> {
        let device = rm.make_with(client, client, NV01_DEVICE_0, &mut NV0080_ALLOC_PARAMETERS::new_zeroed())?;
        let subdevice = rm.make(client, device, NV20_SUBDEVICE_0)?;
        let mut space = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
        let vaspace = rm.make_with(client, device, FERMI_VASPACE_A, &mut space)?;
        let mut range = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS::new_zeroed();
        range.hVASpace = vaspace;
        let mapper = rm.make_with(client, device, NV01_MEMORY_VIRTUAL, &mut range)?;
        Ok(Session { client, device, subdevice, vaspace, mapper })
    }

    pub fn close<R: Calls>(self, rm: &R) {
        rm.free(self.client, self.client).expect("a client can be freed");
    }

    pub fn memory<R: Calls>(&self, rm: &R, size: u64) -> RmResult<u32> {
        let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        params.size = size;
        params.attr = NVOS32_ATTR_COHERENCY_WRITE_COMBINE << 29;
        rm.make_with(self.client, self.device, NV01_MEMORY_LOCAL_USER, &mut params)
    }

    pub fn map_gpu<R: Calls>(&self, rm: &R, memory: u32, length: u64) -> RmResult<u64> {
        let request = DmaRequest { dma: self.mapper, memory, offset: 0, length, flags: 0, dma_offset: 0 };
        rm.map_memory_dma(self.client, self.device, &request)
    }

    pub fn map_cpu<R: Calls>(&self, rm: &R, memory: u32, length: u64) -> RmResult<usize> {
        rm.map_memory(self.client, self.device, &MapRequest { memory, offset: 0, length, at: None, flags: 0 })
    }
}

/// A session with a channel group, a context share, an area, a compute and a copy channel.
#[derive(Clone, Copy, Debug)]
pub struct Bringup {
    pub s: Session,
    pub group: u32,
    pub share: u32,
    pub veid: u32,
    pub area: u32,
    pub area_va: u64,
    pub area_cpu: usize,
    pub usermode: u32,
    pub doorbell: usize,
    pub notifier: u32,
    pub channels: [u32; 2],
    pub tokens: [u32; 2],
    pub engines: [u32; 2],
}

/// The number of entries of each ring, as in tinygrad.
pub const ENTRIES: u32 = 0x10000;
/// The offsets of ring and USERD of the two channels in the area.
pub const PLACES: [(u64, u64); 2] = [(0, 0x80000), (0x100000, 0x180000)];
pub const AREA: u64 = 3 * MIB;

impl Bringup {
    /// Makes everything up to two channels with their engines. If a step fails, nothing is left.
    pub fn open<R: Calls>(rm: &R) -> RmResult<Bringup> {
        let s = Session::open(rm)?;
        Bringup::build(rm, s).inspect_err(|_| s.close(rm))
    }

    fn build<R: Calls>(rm: &R, s: Session) -> RmResult<Bringup> {
        let usermode = rm.make(s.client, s.subdevice, TURING_USERMODE_A)?;
        let doorbell = rm.map_memory(
            s.client,
            s.device,
            &MapRequest { memory: usermode, offset: 0, length: 0x10000, at: None, flags: 0 },
        )?;
        let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        group.engineType = NV2080_ENGINE_TYPE_GR0;
        let group = rm.make_with(s.client, s.device, KEPLER_CHANNEL_GROUP_A, &mut group)?;
        let area = s.memory(rm, AREA)?;
        let area_va = s.map_gpu(rm, area, AREA)?;
        let area_cpu = s.map_cpu(rm, area, AREA)?;
        let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
        (share.hVASpace, share.flags) = (s.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
        let hshare = rm.make_with(s.client, group, FERMI_CONTEXT_SHARE_A, &mut share)?;
        let mut notifier = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (notifier.size, notifier.type_) = (48 * MIB, NVOS32_TYPE_NOTIFIER);
        let notifier = rm.make_with(s.client, s.device, NV01_MEMORY_SYSTEM, &mut notifier)?;
        let mut b = Bringup {
            s,
            group,
            share: hshare,
            veid: share.subctxId,
            area,
            area_va,
            area_cpu,
            usermode,
            doorbell,
            notifier,
            channels: [0; 2],
            tokens: [0; 2],
            engines: [0; 2],
        };
        for (i, class) in [AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B].into_iter().enumerate() {
            let mut params = b.channel_params(i);
            b.channels[i] = rm.make_with(s.client, group, AMPERE_CHANNEL_GPFIFO_A, &mut params)?;
            b.engines[i] = rm.make(s.client, b.channels[i], class)?;
            let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
            rm.ask(s.client, b.channels[i], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
            b.tokens[i] = token.workSubmitToken;
        }
        Ok(b)
    }

    pub fn channel_params(&self, i: usize) -> NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS {
        let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        (params.hObjectError, params.hObjectBuffer) = (self.notifier, self.area);
        (params.gpFifoOffset, params.gpFifoEntries) = (self.area_va + PLACES[i].0, ENTRIES);
        params.hContextShare = self.share;
        (params.hUserdMemory[0], params.userdOffset[0]) = (self.area, PLACES[i].1);
        params
    }
}

/// The descriptors of the process, and its mappings of files, which include all mappings of the library.
#[derive(Debug, PartialEq, Eq)]
pub struct Holdings {
    pub fds: Vec<String>,
    pub maps: Vec<String>,
}

/// Reads them from /proc. Heaps, stacks and libraries are left out, because they belong to the test.
pub fn holdings() -> Holdings {
    let links =
        std::fs::read_dir("/proc/self/fd").expect("proc").filter_map(|e| std::fs::read_link(e.ok()?.path()).ok());
    let mut fds: Vec<String> =
        links.map(|l| l.to_string_lossy().into_owned()).filter(|l| !l.contains("/proc/")).collect();
    fds.sort();
    let maps = maps::own().into_iter().filter(|m| m.perms.contains(MMPermissions::SHARED));
    Holdings { fds, maps: maps.map(|m| format!("{m:?}")).collect() }
}
