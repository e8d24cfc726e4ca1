//! Every row of the class and the control table, one by one: what it claims is what happens.

mod common;

use common::*;
use std::sync::Arc;
use tegrarm::rm::Rm;
use tegrarm::rm::Tag;
use tegrarm::rm::classes::{CLASSES, ClassRow, Params, Support};
use tegrarm::rm::controls::{CONTROLS, ControlRow};
use tegrarm::status::RmResult;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Faulty};
use zerocopy::FromZeros;

/// Part of the bring-up's area that its channels leave alone.
const SPARE: u64 = 2 * MIB;

/// A session in which every kind of object exists.
struct World {
    kmd: Arc<Faulty>,
    rm: Rm,
    b: Bringup,
    objects: Vec<(Tag, u32)>,
}

impl World {
    fn new() -> World {
        let kmd = Arc::new(Faulty::new(board(default_release())));
        let rm = manager(kmd.clone());
        let b = Bringup::open(&rm).unwrap();
        let (c, device) = (b.s.client, b.s.device);
        let mut dma = NV_CONTEXT_DMA_ALLOCATION_PARAMS::new_zeroed();
        dma.hMemory = b.area;
        let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
        (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
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
            (Tag::Event, rm.make(c, device, NV01_EVENT).unwrap()),
        ];
        World { kmd, rm, b, objects }
    }

    fn send(&self, object: u32, row: &ControlRow, params: &mut [u8]) -> RmResult<()> {
        self.rm.tell(self.b.s.client, object, row.cmd, params)
    }

    /// The first object that takes a control.
    fn taker(&self, row: &ControlRow) -> u32 {
        self.objects.iter().find(|(tag, _)| row.objects.have(*tag)).expect("some object takes it").1
    }
}

/// Allocates an object of a class under each parent its row names, and frees it.
fn allocate(w: &World, row: &ClassRow) {
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
    let w = World::new();
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
    let w = World::new();
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
    let w = World::new();
    for row in CONTROLS {
        let Support::Refused(wanted) = row.state else { continue };
        assert_eq!(status(w.send(w.taker(row), row, &mut [0; 8])), wanted, "{}", row.name);
    }
    w.b.s.close(&w.rm);
}

#[test]
fn every_control_belongs_to_its_objects_and_has_its_sizes() {
    let w = World::new();
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

/// A control that says yes, writes nothing and asks the kernel nothing has done nothing: its row has to say why it may.
#[test]
fn no_control_silently_does_nothing() {
    let mut idle = Vec::new();
    for row in CONTROLS.iter().filter(|row| !matches!(row.state, Support::Refused(_) | Support::Accepted)) {
        // A board of its own: some controls stop channels.
        let w = World::new();
        let object = w.taker(row);
        let mut did = false;
        for &size in row.sizes {
            for fill in [0x00, 0x01, 0xff] {
                let mut params = vec![fill; size];
                w.kmd.count(CallKind::Any);
                let answer = w.send(object, row, &mut params);
                did |= answer.is_err() || params.iter().any(|b| *b != fill) || w.kmd.calls() > 0;
            }
        }
        if !did {
            idle.push(row.name);
        }
        w.b.s.close(&w.rm);
    }
    assert_eq!(idle, [""; 0], "these say yes to anything and do nothing");
}
