//! Every row of the class table and of the control table is tested one by one: the library does what the row claims.
#![allow(unsafe_code)] // controls write through pointers in their parameters

use crate::common::*;
use std::sync::Arc;
use tegrarm::rm::Rm;
use tegrarm::rm::Tag;
use tegrarm::rm::classes::{CLASSES, ClassRow, Params, Support};
use tegrarm::rm::controls::{CONTROLS, ControlRow};
use tegrarm::status::RmResult;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Faulty};
use zerocopy::{FromZeros, IntoBytes};

/// A part of the bring-up's area that its channels do not use.
const SPARE: u64 = 2 * MIB;

/// A session that has an object of every kind.
struct Objects {
    kmd: Arc<Faulty>,
    rm: Rm,
    b: Bringup,
    objects: Vec<(Tag, u32)>,
}

impl Objects {
    fn new() -> Objects {
        let kmd = Arc::new(Faulty::new(board(default_release())));
        let rm = manager(kmd.clone());
        let b = Bringup::open(&rm).unwrap();
        let (c, device) = (b.s.client, b.s.device);
        let mut dma = NV_CONTEXT_DMA_ALLOCATION_PARAMS::new_zeroed();
        dma.hMemory = b.area;
        let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
        (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
        let mut profiler = NVB2CC_ALLOC_PARAMETERS { hClientTarget: c, hContextTarget: b.group };
        // Without a context share: 3D engines live in subcontext 0 only.
        let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        (group.engineType, group.hVASpace) = (NV2080_ENGINE_TYPE_GR0, b.s.vaspace);
        let group = rm.make_with(c, device, KEPLER_CHANNEL_GROUP_A, &mut group).unwrap();
        let mut channel = b.channel_params(0);
        (channel.gpFifoOffset, channel.gpFifoEntries) = (b.area_va + SPARE + 0x4_0000, 1024);
        (channel.hContextShare, channel.userdOffset[0]) = (0, SPARE + 0x5_0000);
        let channel = rm.make_with(c, group, AMPERE_CHANNEL_GPFIFO_A, &mut channel).unwrap();
        let objects = vec![
            (Tag::Client, c),
            (Tag::Device, device),
            (Tag::Subdevice, b.s.subdevice),
            (Tag::Memory, b.area),
            (Tag::ContextDma, rm.make_with(c, device, NV01_CONTEXT_DMA, &mut dma).unwrap()),
            (Tag::Virtual, b.s.mapper),
            (Tag::VaSpace, b.s.vaspace),
            (Tag::Group, group),
            (Tag::ContextShare, b.share),
            (Tag::Channel, channel),
            (Tag::Engine, b.engines[1]),
            (Tag::Usermode, b.usermode),
            (Tag::Debugger, rm.make_with(c, device, GT200_DEBUGGER, &mut debugger).unwrap()),
            (Tag::Profiler, rm.make_with(c, b.s.subdevice, MAXWELL_PROFILER_DEVICE, &mut profiler).unwrap()),
            (Tag::Event, rm.make(c, device, NV01_EVENT).unwrap()),
        ];
        Objects { kmd, rm, b, objects }
    }

    fn send(&self, object: u32, row: &ControlRow, params: &mut [u8]) -> RmResult<()> {
        self.rm.tell(self.b.s.client, object, row.cmd, params)
    }

    /// The object of this kind.
    fn object(&self, kind: Tag) -> u32 {
        self.objects.iter().find(|(tag, _)| *tag == kind).expect("every kind").1
    }

    /// The first object that takes a control. For controls of classes that are not made, it is the subdevice.
    fn taker(&self, row: &ControlRow) -> u32 {
        let taker = self.objects.iter().find(|(tag, _)| row.objects.have(*tag));
        assert!(taker.is_some() || row.objects.is_empty(), "some object takes {}", row.name);
        taker.map_or(self.b.s.subdevice, |(_, object)| *object)
    }
}

/// Allocates an object of a class under each parent that its row names, and frees it.
fn allocate(w: &Objects, row: &ClassRow) {
    let (rm, b, c) = (&w.rm, &w.b, w.b.s.client);
    let size = match row.params {
        Params::None => 0,
        Params::Optional(sizes) | Params::Required(sizes) => sizes[0],
    };
    let mut made = 0;
    for &(tag, parent) in &w.objects {
        if !row.parents.allow(tag) {
            let prepared = rm.prepare_alloc(row.number, size > 0, 0).unwrap();
            let refused = rm.alloc(prepared, c, parent, 0, &mut vec![0; size]);
            assert_eq!(status(refused), NV_ERR_INVALID_OBJECT_PARENT, "{} below a {}", row.name, tag.word());
            continue;
        }
        let handle = match (row.number, tag) {
            (NV01_CONTEXT_DMA, _) => {
                let mut p = NV_CONTEXT_DMA_ALLOCATION_PARAMS::new_zeroed();
                p.hMemory = b.area;
                rm.make_with(c, parent, row.number, &mut p)
            }
            (NV01_MEMORY_SYSTEM | NV01_MEMORY_LOCAL_USER | NV50_MEMORY_VIRTUAL, _) => {
                let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
                (p.size, p.hVASpace) = (4096, b.s.vaspace);
                rm.make_with(c, parent, row.number, &mut p)
            }
            (GT200_DEBUGGER, _) => {
                let mut p = NV83DE_ALLOC_PARAMETERS::new_zeroed();
                (p.hAppClient, p.hClass3dObject) = (c, b.engines[0]);
                rm.make_with(c, parent, row.number, &mut p)
            }
            (FERMI_CONTEXT_SHARE_A, _) => {
                let mut p = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
                (p.hVASpace, p.flags) = (b.s.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
                rm.make_with(c, parent, row.number, &mut p)
            }
            (KEPLER_CHANNEL_GROUP_A, _) => {
                let mut p = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
                p.engineType = NV2080_ENGINE_TYPE_GR0;
                rm.make_with(c, parent, row.number, &mut p)
            }
            (TURING_CHANNEL_GPFIFO_A | AMPERE_CHANNEL_GPFIFO_A | AMPERE_CHANNEL_GPFIFO_B, _) => {
                let mut p = b.channel_params(0);
                (p.gpFifoOffset, p.gpFifoEntries) = (b.area_va + SPARE, 1024);
                (p.hContextShare, p.userdOffset[0]) = (0, SPARE + 0x1_0000);
                if tag == Tag::Device {
                    p.hVASpace = b.s.vaspace;
                    p.engineType = NV2080_ENGINE_TYPE_GR0;
                }
                rm.make_with(c, parent, row.number, &mut p)
            }
            (NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, _) => {
                assert_eq!(status(rm.make(c, parent, row.number)), NV_ERR_NOT_SUPPORTED, "rm_alloc_memory makes it");
                made += 1;
                continue;
            }
            _ => {
                let prepared = rm.prepare_alloc(row.number, size > 0, 0).unwrap();
                rm.alloc(prepared, c, parent, 0, &mut vec![0; size])
            }
        };
        let handle = handle.unwrap_or_else(|e| panic!("{} below a {}: {e}", row.name, tag.word()));
        rm.free(c, handle).unwrap();
        made += 1;
    }
    assert!(made > 0, "{}", row.name);
}

#[test]
fn every_class_that_is_not_refused_can_be_allocated_below_each_of_its_parents_and_nowhere_else() {
    let w = Objects::new();
    for row in CLASSES.iter().filter(|row| !matches!(row.state, Support::Refused(_))) {
        if row.is_client() {
            let client = w.rm.make(0, 0, row.number).unwrap();
            w.rm.free(client, client).unwrap();
        } else {
            allocate(&w, row);
        }
    }
    w.b.s.close(&w.rm);
}

#[test]
fn every_refused_class_answers_its_status() {
    let w = Objects::new();
    for row in CLASSES {
        let Support::Refused(wanted) = row.state else { continue };
        let refused = match row.params {
            _ if wanted == NV_ERR_INVALID_CLASS => w.rm.make(w.b.s.client, w.b.s.subdevice, row.number),
            Params::None => w.rm.make(w.b.s.client, w.b.s.subdevice, row.number),
            Params::Optional(sizes) | Params::Required(sizes) => {
                let prepared = w.rm.prepare_alloc(row.number, true, 0).unwrap();
                w.rm.alloc(prepared, w.b.s.client, w.b.s.subdevice, 0, &mut vec![0; sizes[0]])
            }
        };
        assert_eq!(status(refused), wanted, "{}", row.name);
    }
    w.b.s.close(&w.rm);
}

#[test]
fn every_refused_control_answers_its_status() {
    let w = Objects::new();
    for row in CONTROLS {
        let Support::Refused(wanted) = row.state else { continue };
        assert_eq!(status(w.send(w.taker(row), row, &mut [0; 8])), wanted, "{}", row.name);
    }
    w.b.s.close(&w.rm);
}

#[test]
fn every_control_belongs_to_its_objects_and_has_its_sizes() {
    let w = Objects::new();
    for row in CONTROLS {
        for (tag, object) in w.objects.iter().filter(|(tag, _)| !row.objects.have(*tag)) {
            let size = row.sizes.first().copied().unwrap_or(4);
            let refused = w.send(*object, row, &mut vec![0; size]);
            assert_eq!(status(refused), NV_ERR_NOT_SUPPORTED, "{} of a {}", row.name, tag.word());
        }
        if matches!(row.state, Support::Refused(_)) {
            continue;
        }
        let unknown = (1..).find(|n| !row.sizes.contains(n)).expect("there are more numbers than sizes");
        let refused = w.send(w.taker(row), row, &mut vec![0; unknown]);
        assert_eq!(status(refused), NV_ERR_INVALID_PARAM_STRUCT, "{}", row.name);
    }
    w.b.s.close(&w.rm);
}

fn words<P: IntoBytes + zerocopy::Immutable>(params: &P) -> Vec<u32> {
    params.as_bytes().chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect()
}

/// Does what has to come before a control of a profiler: what is released must be held, and what works must be bound.
fn prepare(w: &Objects, row: &ControlRow) {
    let tell = |cmd, params: &mut [u8]| w.rm.tell(w.b.s.client, w.object(Tag::Profiler), cmd, params).unwrap();
    let hold = || tell(NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, &mut [0]);
    let stream = || {
        let mut p = NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS::new_zeroed();
        (p.hMemPmaBuffer, p.hMemPmaBytesAvailable, p.pmaBufferSize) = (w.b.area, w.b.area, 4096);
        tell(NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, p.as_mut_bytes());
    };
    match row.cmd {
        NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY | NVB0CC_CTRL_CMD_BIND_PM_RESOURCES => hold(),
        NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC => tell(NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC, &mut [0]),
        NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER => tell(NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER, &mut []),
        NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES | NVB0CC_CTRL_CMD_EXEC_REG_OPS => {
            hold();
            tell(NVB0CC_CTRL_CMD_BIND_PM_RESOURCES, &mut []);
        }
        NVB0CC_CTRL_CMD_FREE_PMA_STREAM | NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT => stream(),
        _ => {}
    }
}

/// Controls whose effect cannot be seen here, so that `tests/profiling/profiler.rs` shows it: one closes a descriptor, which is no
/// call that can fail, and no virtual board answers the others.
const SHOWN_ELSEWHERE: [u32; 4] = [
    NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES,
    NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS,
    NVB0CC_CTRL_CMD_SET_HS_CREDITS,
    NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL,
];

/// Parameters that a control may find meaningful, as words. What `list` has room for is the client's own.
fn attempts(w: &Objects, row: &ControlRow, size: usize, list: &mut [u32; 4]) -> Vec<Vec<u32>> {
    let (c, b) = (w.b.s.client, &w.b);
    let [channel, debugged, group] = [Tag::Channel, Tag::Engine, Tag::Group].map(|tag| w.object(tag));
    let pointer = |word: &u32| [(&raw const *word as u64) as u32, (&raw const *word as u64 >> 32) as u32];
    let [low, high] = pointer(&list[0]);
    let [out_low, out_high] = pointer(&list[2]);
    let mut found = match row.cmd {
        NV0080_CTRL_CMD_GR_GET_INFO | NV2080_CTRL_CMD_GR_GET_INFO => {
            list[0] = NV2080_CTRL_GR_INFO_INDEX_SM_VERSION;
            vec![vec![1, 0, low, high]]
        }
        NV2080_CTRL_CMD_FB_GET_INFO => {
            list[0] = NV2080_CTRL_FB_INFO_INDEX_TOTAL_RAM_SIZE;
            vec![vec![1, 0, low, high]]
        }
        NV2080_CTRL_CMD_BUS_GET_INFO => {
            list[0] = NV2080_CTRL_BUS_INFO_INDEX_TYPE;
            vec![vec![1, 0, low, high]]
        }
        NV2080_CTRL_CMD_FB_GET_INFO_V2 => vec![vec![1, NV2080_CTRL_FB_INFO_INDEX_TOTAL_RAM_SIZE]],
        NV2080_CTRL_CMD_BUS_GET_INFO_V2 => vec![vec![1, NV2080_CTRL_BUS_INFO_INDEX_TYPE]],
        NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST => {
            list[0] = channel;
            vec![vec![1, 0, low, high, out_low, out_high]]
        }
        NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS => {
            let mut p = NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS::new_zeroed();
            (p.bDisable, p.numChannels, p.hClientList[0], p.hChannelList[0]) = (1, 1, c, channel);
            vec![words(&p)]
        }
        NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM => {
            let mut p = NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS::new_zeroed();
            (p.hMemPmaBuffer, p.hMemPmaBytesAvailable, p.pmaBufferSize) = (b.area, b.area, 4096);
            vec![words(&p)]
        }
        NVB0CC_CTRL_CMD_EXEC_REG_OPS => vec![vec![1, NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR]],
        NV83DE_CTRL_CMD_DEBUG_READ_MEMORY | NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY => {
            vec![vec![b.area, 4, SPARE as u32, 0, low, high]]
        }
        NV83DE_CTRL_CMD_GET_MAPPINGS => vec![vec![0, 0, u32::MAX, 0xff]],
        NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS => vec![vec![0, 1, 0, 0, 0, 0x9400]],
        NV2080_CTRL_CMD_GR_CTXSW_ZCULL_BIND => vec![vec![c, channel, b.area_va as u32, (b.area_va >> 32) as u32, 0]],
        NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE => vec![vec![1, b.channels[0], 0, 1]],
        NVA06C_CTRL_CMD_SET_TIMESLICE => vec![vec![2000]],
        NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL => vec![vec![2]],
        NV0000_CTRL_CMD_GPU_GET_ID_INFO => vec![vec![GPU]],
        NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK => {
            (NV2080_ENGINE_TYPE_COPY0..=NV2080_ENGINE_TYPE_COPY9).map(|engine| vec![engine]).collect()
        }
        NV906F_CTRL_GET_CLASS_ENGINEID | NVC36F_CTRL_GET_CLASS_ENGINEID => {
            w.rm.make(c, channel, AMPERE_DMA_COPY_B).map_or(vec![], |engine| vec![vec![engine]])
        }
        _ => vec![],
    };
    // For most controls, one word in all places is enough, because the control finds it wherever it looks.
    let words = [0, u32::MAX, 0x0101_0101, 1, 2, GPU, b.area, channel, debugged, group];
    found.extend(words.map(|word| vec![word; size / 4]));
    found
}

/// The id of the only GPU.
const GPU: u32 = 0x100;

/// The contents of the list that a control may write, before it writes.
const UNTOUCHED: [u32; 4] = [0xdead_0000, 0xdead_0001, 0xdead_0002, 0xdead_0003];

/// Whether a control answers OK to parameters and changes them, the client's list or something in the kernel. A refusal
/// does not count, because a handler that ignores its parameters also refuses garbage.
fn acts(w: &Objects, row: &ControlRow, size: usize, attempt: usize) -> Option<bool> {
    let mut list = UNTOUCHED;
    let words = attempts(w, row, size, &mut list).into_iter().nth(attempt)?;
    let mut params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    params.resize(size, 0);
    let (before, list_before) = (params.clone(), list);
    w.kmd.count(CallKind::Any);
    let answer = w.send(w.taker(row), row, &mut params);
    // SAFETY: the control writes through a pointer that the compiler does not see, so the list is read as volatile.
    let list = unsafe { (&raw const list).read_volatile() };
    Some(answer.is_ok() && (params != before || list != list_before || w.kmd.calls() > 0))
}

/// A control that answers OK, writes nothing and makes no kernel call has done nothing. Its row must say why it may.
#[test]
fn no_control_silently_does_nothing() {
    let mut idle = Vec::new();
    for row in CONTROLS.iter().filter(|row| !matches!(row.state, Support::Refused(_) | Support::Accepted)) {
        if SHOWN_ELSEWHERE.contains(&row.cmd) {
            continue;
        }
        // r35's driver has no such switch. `tests/profiling/debugger.rs` shows that it is refused there.
        if row.cmd == NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG && default_release().is_r35() {
            continue;
        }
        // A board of its own: some controls stop channels.
        let w = Objects::new();
        prepare(&w, row);
        let mut tries = row.sizes.iter().flat_map(|size| (0..).map_while(|n| acts(&w, row, *size, n)));
        if !tries.any(|acted| acted) {
            idle.push(row.name);
        }
        w.b.s.close(&w.rm);
    }
    assert_eq!(idle, [""; 0], "these do nothing, whatever they are asked");
}
