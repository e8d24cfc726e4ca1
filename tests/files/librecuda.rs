//! LibreCUDA's calls, in its order, with its arguments and on its objects, where these differ from the first
//! frontend's. The sequence of calls is LibreCUDA's, and the code is not.

use crate::common::door::*;
use crate::common::*;
use tegrarm_abi::methods::compute::NVC6C0_SET_OBJECT;
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::{NVC56F_NON_STALL_INTERRUPT, NVC56F_SEM_ADDR_LO};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_kmd::DeviceMem;
use zerocopy::{FromZeros, IntoBytes};

const FIFO_AREA: u64 = 2 * MIB;
const CHANNEL_VA: u64 = 64 * MIB;
/// The offsets of the rings in one area. Each ring has its USERD right behind it.
const OFFSETS: [u64; 2] = [0, 0x10_0000];
/// The NVOS33 flags of the area: direct, fixed, reserved on unmapping, write-combined.
const AREA_FLAGS: u32 = 1 << 16 | 1 << 18 | 1 << 19 | 2 << 23;

/// A client that gives out addresses in ascending order. They are the same for the CPU and the GPU.
struct Libre {
    d: Desktop,
    next: u64,
    first_uvm: i32,
}

struct Fifo {
    ring: u64,
    userd: u64,
    channel: u32,
    token: u32,
    put: u32,
    _notifier: DeviceMem,
}

impl Libre {
    fn init() -> Libre {
        let mut d = Desktop::open(default_release());
        let first_uvm = d.uvm;
        d.uvm = d.node("/dev/nvidia-uvm");
        d.client = d.try_alloc(0, 0, NV01_ROOT_CLIENT, 0).hObjectNew;
        assert_eq!(d.uvm(UVM_INITIALIZE, &mut UVM_INITIALIZE_PARAMS::new_zeroed()), NV_OK);
        let second = d.node("/dev/nvidia-uvm");
        let mut mm = UVM_MM_INITIALIZE_PARAMS::new_zeroed();
        mm.uvmFd = d.uvm;
        d.ioctl(second, u64::from(UVM_MM_INITIALIZE), mm.as_mut_bytes()).expect("understood");
        assert!(matches!(mm.rmStatus, NV_OK | NV_WARN_NOTHING_TO_DO), "{:#x}", mm.rmStatus);
        d.door.close(second).expect("open until now");
        let next = stretch() + 16 * MIB;
        Libre { d, next, first_uvm }
    }

    fn bump(&mut self, size: u64, alignment: u64) -> u64 {
        let va = self.next.next_multiple_of(alignment);
        self.next = va + size;
        va
    }

    /// Makes an RM_MAP_MEMORY on a new open file, then the client's mmap at the address, and then a close.
    fn map_to_cpu(&self, memory: u32, size: u64, va: u64, flags: u32, system: bool) -> DeviceMem {
        let d = &self.d;
        let fd = if system { d.node("/dev/nvidiactl") } else { d.gpu_fd() };
        let mut p = nv_ioctl_nvos33_parameters_with_fd::new_zeroed();
        (p.params.hClient, p.params.hDevice, p.params.hMemory) = (d.client, d.device, memory);
        (p.params.length, p.params.flags, p.fd) = (size, flags, fd);
        d.escape(d.ctl, NV_ESC_RM_MAP_MEMORY, &mut p).expect("understood");
        assert_eq!(p.params.status, NV_OK);
        let mem = raw_mmap(Some(va), size, libc::MAP_SHARED, fd);
        d.door.close(fd).expect("open until now");
        mem
    }

    fn map_to_gpu(&self, memory: u32, va: u64, size: u64) {
        assert_eq!(self.d.range(va, size), NV_OK);
        assert_eq!(self.d.map_external(memory, va, size, 0), NV_OK);
    }

    /// Allocates video memory, which is mapped to the GPU first.
    fn gpu_alloc(&mut self, size: u64, huge: bool, flags: u32) -> (u32, u64, DeviceMem) {
        let alignment = if huge { 2 * MIB } else { 4096 };
        let size = size.next_multiple_of(alignment);
        let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (p.owner, p.size, p.alignment, p.limit) = (self.d.client, size, alignment, size - 1);
        (p.attr, p.attr2, p.format) = (u32::from(huge) << 23 | 2 << 27, 1 << 2, 6);
        let memory = self.d.alloc_with(self.d.device, NV01_MEMORY_LOCAL_USER, &mut p);
        let va = self.bump(size, alignment);
        self.map_to_gpu(memory, va, size);
        (memory, va, self.map_to_cpu(memory, size, va, flags, false))
    }

    /// Allocates system memory, which is mapped to the CPU first.
    fn system_alloc(&mut self, size: u64) -> (u32, u64, DeviceMem) {
        let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (p.owner, p.type_, p.size, p.alignment, p.limit) = (self.d.client, NVOS32_TYPE_NOTIFIER, size, 4096, size - 1);
        (p.attr, p.attr2, p.format) = (2 << 27 | 1 << 25, 2 << 2, 6);
        let memory = self.d.alloc_with(self.d.device, NV01_MEMORY_SYSTEM, &mut p);
        let va = self.bump(size, 4096);
        let mem = self.map_to_cpu(memory, size, va, 0, true);
        self.map_to_gpu(memory, va, size);
        (memory, va, mem)
    }

    /// Makes the device, the subdevice, the doorbell and the VA space. Returns the doorbell.
    fn create_context(&mut self) -> DeviceMem {
        let d = &mut self.d;
        let mut device = NV0080_ALLOC_PARAMETERS::new_zeroed();
        (device.hClientShare, device.vaMode) = (d.client, 2);
        d.device = d.alloc_with(d.client, NV01_DEVICE_0, &mut device);
        d.subdevice = d.alloc(d.device, NV20_SUBDEVICE_0);
        let usermode = d.alloc(d.subdevice, TURING_USERMODE_A);
        let va = self.bump(0x10000, 4096);
        let doorbell = self.map_to_cpu(usermode, 0x10000, va, 2, false);
        let d = &mut self.d;
        let mut gid = NV2080_CTRL_GPU_GET_GID_INFO_PARAMS::new_zeroed();
        (gid.flags, gid.length) = (2, 16);
        assert_eq!(d.control(d.subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &mut gid), NV_OK);
        d.uuid.uuid.copy_from_slice(&gid.data[..16]);
        let mut space = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
        (space.flags, space.vaSize, space.vaBase) = (0x48, 0x1_ffff_fb00_0000, 0x1000);
        d.vaspace = d.alloc_with(d.device, FERMI_VASPACE_A, &mut space);
        assert_eq!((d.register_gpu(), d.register_vaspace()), (NV_OK, NV_OK));
        doorbell
    }

    /// Makes a channel with both engines and a notifier that the CPU maps.
    fn make_fifo(&mut self, group: u32, share: u32, (area, area_va): (u32, u64), offset: u64) -> Fifo {
        let (notifier, _, mem) = self.system_alloc(48 * MIB);
        let d = &self.d;
        let mut p = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        (p.hObjectError, p.hObjectBuffer, p.hContextShare) = (notifier, area, share);
        (p.gpFifoOffset, p.gpFifoEntries) = (area_va + offset, ENTRIES);
        (p.hUserdMemory[0], p.userdOffset[0]) = (area, u64::from(ENTRIES) * 8 + offset);
        let channel = d.alloc_with(group, AMPERE_CHANNEL_GPFIFO_A, &mut p);
        d.alloc(channel, AMPERE_COMPUTE_B);
        d.alloc(channel, AMPERE_DMA_COPY_B);
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS { workSubmitToken: u32::MAX };
        assert_eq!(d.control(channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token), NV_OK);
        assert_ne!(token.workSubmitToken, u32::MAX);
        let mut r = UVM_REGISTER_CHANNEL_PARAMS::new_zeroed();
        (r.gpuUuid, r.rmCtrlFd, r.hClient, r.hChannel) = (d.uuid, d.ctl, d.client, channel);
        (r.base, r.length) = (self.bump(CHANNEL_VA, 4096), CHANNEL_VA);
        assert_eq!(self.d.uvm(UVM_REGISTER_CHANNEL, &mut r), NV_OK);
        let userd = u64::from(ENTRIES) * 8 + offset;
        Fifo { ring: offset, userd, channel, token: token.workSubmitToken, put: 0, _notifier: mem }
    }

    fn close(self) {
        self.d.door.close(self.first_uvm).expect("open until now");
    }
}

fn method(subchannel: u32, method: u32, words: &[u32]) -> Vec<u32> {
    [&[1 << 29 | (words.len() as u32) << 16 | subchannel << 13 | method >> 2][..], words].concat()
}

#[test]
fn libre_cuda_initialises_copies_and_asks() {
    let mut l = Libre::init();

    let mut cards = [nv_ioctl_card_info_t::new_zeroed(); 128];
    l.d.ioctl(l.d.ctl, request(NV_ESC_CARD_INFO, size_of_val(&cards)), cards.as_mut_bytes()).expect("understood");
    assert_eq!(cards.iter().take_while(|card| card.valid != 0).count(), 1);
    let mut id = NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS::new_zeroed();
    id.gpuId = cards[0].gpu_id;
    assert_eq!(l.d.control(l.d.client, NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, &mut id), NV_OK);
    assert_eq!(id.deviceInstance, 0, "it opens /dev/nvidia and this number");

    let doorbell = l.create_context();
    let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
    group.engineType = 1;
    let group = l.d.alloc_with(l.d.device, KEPLER_CHANNEL_GROUP_A, &mut group);
    let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
    (share.hVASpace, share.flags) = (l.d.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
    let share = l.d.alloc_with(group, FERMI_CONTEXT_SHARE_A, &mut share);

    let mut slots = [0u32; 100];
    let mut list = NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS::new_zeroed();
    (list.numClasses, list.classList) = (100, slots.as_mut_ptr() as u64);
    assert_eq!(l.d.control(l.d.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut list), NV_OK);
    let compute = slots.into_iter().find(|class| [ADA_COMPUTE_A, AMPERE_COMPUTE_B].contains(class));
    assert_eq!(compute, Some(AMPERE_COMPUTE_B), "the first of the classes it knows");

    let (area, area_va, ring) = l.gpu_alloc(FIFO_AREA, true, AREA_FLAGS);
    let mut fifos = OFFSETS.map(|offset| l.make_fifo(group, share, (area, area_va), offset));
    let mut enable = NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS::new_zeroed();
    enable.bEnable = 1;
    assert_eq!(l.d.control(group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut enable), NV_OK);
    assert_ne!(fifos[0].channel, fifos[1].channel);

    let (_, commands_va, commands) = l.gpu_alloc(8 * MIB, false, 0);
    let (_, signals_va, signals) = l.system_alloc(16 * 65536);
    let (buffer, data_va, data) = l.gpu_alloc(8192, false, 0);
    let submit = |fifo: &mut Fifo, at: u64, words: &[u32]| {
        for (i, word) in words.iter().enumerate() {
            commands.write_u32(at as usize + i * 4, *word);
        }
        let entry = (commands_va + at) | (words.len() as u64) << 42 | 1 << 41;
        ring.write_u64(fifo.ring as usize + fifo.put as usize * 8, entry);
        fifo.put += 1;
        ring.write_u32(fifo.userd as usize + 0x8c, fifo.put);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        doorbell.write_u32(0x90, fifo.token);
    };

    // These are the commands on its compute queue: the class, then a 64-bit release with a time, and then an interrupt
    // for which nobody waits.
    let low = |va: u64| va as u32;
    let high = |va: u64| (va >> 32) as u32;
    let release = [low(signals_va), high(signals_va), 1, 0, 1 | 1 << 20 | 1 << 24 | 1 << 25];
    let first = [
        method(1, NVC6C0_SET_OBJECT, &[AMPERE_COMPUTE_B]),
        method(0, NVC56F_SEM_ADDR_LO, &release),
        method(4, NVC56F_NON_STALL_INTERRUPT, &[0]),
    ];
    submit(&mut fifos[0], 0, &first.concat());
    await_word(&signals, 0, 1);
    assert!(signals.read_u64(8) > 0, "the time of the release");

    // These are the commands on its copy queue.
    (0..1024).for_each(|i| data.write_u32(i * 4, 0xabc0_0000 | i as u32));
    let signal = signals_va + 16;
    let copy = [
        method(4, NVC6C0_SET_OBJECT, &[AMPERE_DMA_COPY_B]),
        method(4, NVC6B5_OFFSET_IN_UPPER, &[high(data_va), low(data_va), high(data_va + 4096), low(data_va + 4096)]),
        method(4, NVC6B5_LINE_LENGTH_IN, &[4096]),
        method(4, NVC6B5_LAUNCH_DMA, &[2 | 1 << 7 | 1 << 8]),
        method(4, NVC6B5_SET_SEMAPHORE_A, &[high(signal), low(signal), 7]),
        method(4, NVC6B5_LAUNCH_DMA, &[0x14]),
    ];
    submit(&mut fifos[1], 0x1000, &copy.concat());
    await_word(&signals, 16, 7);
    assert!((0..1024).all(|i| data.read_u32(4096 + i * 4) == 0xabc0_0000 | i as u32));

    // These are controls of a subdevice that are sent to the device.
    let mut name = NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS::new_zeroed();
    assert_eq!(l.d.control(l.d.device, NV2080_CTRL_CMD_GPU_GET_NAME_STRING, &mut name), NV_OK);
    let mut arch = NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS::new_zeroed();
    assert_eq!(l.d.control(l.d.device, NV2080_CTRL_CMD_MC_GET_ARCH_INFO, &mut arch), NV_OK);
    assert_eq!(arch.architecture, 0x170, "Ampere, which it gives 99 KiB of shared memory");

    // The client frees memory but not its mappings. Closing the files frees the rest.
    assert_eq!(l.d.free(buffer), NV_OK);
    l.close();
}

/// The report has everything that was refused on the way, by name and with the reason.
#[test]
fn refused_and_failed_escapes_are_in_the_report() {
    let d = Desktop::open(default_release());
    let mut arg = [0u8; 64];
    for (fd, nr, size) in
        [(d.ctl, NV_ESC_CARD_INFO, 71), (d.ctl, 0x99, 8), (d.gpu, NV_ESC_RM_FREE, 16), (d.ctl, NV_ESC_RM_FREE, 20)]
    {
        d.ioctl(fd, request(nr, size), &mut arg).expect_err("refused");
    }
    let report = d.rm.report().to_string();
    for name in ["NV_ESC_CARD_INFO", "0x99", "NV_ESC_RM_FREE"] {
        assert!(report.contains(name), "{name} is not in\n{report}");
    }
}
