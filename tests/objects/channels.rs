//! Channels: their parameters over driver generations, their number, their owners and their deaths.
#![allow(unsafe_code)] // looks at memory through the addresses that the library returns

use crate::common::*;
use std::sync::Arc;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm::rm::DmaRequest;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;
use zerocopy::{FromZeros, IntoBytes};

const PAGE: u64 = 4096;

/// A virtual board of this process for one test only, also when the other tests use the device nodes: the test needs
/// the first ids, and it inspects the board's kernel.
fn simulated(l4t: L4t) -> Arc<SimKmd> {
    let config = SimConfig { mem_total: 512 * MIB, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    Arc::new(SimKmd::new(config))
}

fn peek(addr: u64) -> u32 {
    // SAFETY: the tests pass addresses inside mappings that they hold.
    unsafe { (addr as *const u32).read_volatile() }
}

fn poke(addr: u64, value: u32) {
    // SAFETY: the same as for `peek`, and the mapping is writable.
    unsafe { (addr as *mut u32).write_volatile(value) }
}

#[test]
fn channel_parameters_of_three_driver_generations_are_told_apart_by_size() {
    let rm = manager(board(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    let mut plain = b.channel_params(0);
    (plain.gpFifoOffset, plain.gpFifoEntries) = (b.area_va + 2 * MIB, 1024);
    plain.userdOffset[0] = 2 * MIB + 0x8_0000;
    let mut moved = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610::new_zeroed();
    (moved.hObjectError, moved.hObjectBuffer) = (plain.hObjectError, plain.hObjectBuffer);
    (moved.gpFifoOffset, moved.gpFifoEntries) = (plain.gpFifoOffset, plain.gpFifoEntries);
    moved.hContextShare = plain.hContextShare;
    (moved.hUserdMemory[0], moved.userdOffset[0]) = (plain.hUserdMemory[0], plain.userdOffset[0]);
    let cid = std::mem::offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, cid);
    let cid_moved = std::mem::offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, cid);
    assert_ne!(cid, cid_moved);
    let variants = [
        (360, plain.as_bytes()[..360].to_vec(), cid),
        (368, plain.as_bytes().to_vec(), cid),
        (376, moved.as_bytes().to_vec(), cid_moved),
    ];
    for (size, mut bytes, cid) in variants {
        assert_eq!(bytes.len(), size);
        let prepared = rm.prepare_alloc(AMPERE_CHANNEL_GPFIFO_A, true, size as u32).unwrap();
        let channel = rm.alloc(prepared, s.client, b.group, 0, &mut bytes).unwrap();
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
        rm.ask(s.client, channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token).unwrap();
        let written = u32::from_le_bytes(bytes[cid..cid + 4].try_into().unwrap());
        assert_eq!(written, token.workSubmitToken & 0xffff, "{size} bytes");
        assert_ne!(written, 0);
        rm.free(s.client, channel).unwrap();
    }
    for size in [352, 364, 384] {
        let refused = rm.prepare_alloc(AMPERE_CHANNEL_GPFIFO_A, true, size);
        assert_eq!(refused.err().unwrap().status, NV_ERR_INVALID_PARAM_STRUCT, "{size} bytes");
    }
    s.close(&rm);
}

/// nvgpu ends a subcontext when its last channel is closed in its group, and gives the VEID to whoever asks next
/// (docs/hardware/nvgpu-tsg.md#create-subcontext). For a client of RM, the context share lives on.
#[test]
fn a_context_share_outlives_its_channels() {
    let rm = manager(simulated(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    for channel in b.channels {
        rm.free(s.client, channel).unwrap();
    }
    let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
    (share.hVASpace, share.flags) = (s.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
    rm.make_with(s.client, b.group, FERMI_CONTEXT_SHARE_A, &mut share).unwrap();
    assert_ne!(share.subctxId, b.veid, "the first share has its VEID still");
    for i in 0..2 {
        rm.make_with(s.client, b.group, AMPERE_CHANNEL_GPFIFO_A, &mut b.channel_params(i)).unwrap();
    }
    s.close(&rm);
}

#[test]
fn channels_and_subcontexts_run_out() {
    let rm = manager(simulated(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    let mut made = Vec::new();
    let refused = loop {
        let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
        (share.hVASpace, share.flags) = (s.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
        match rm.make_with(s.client, b.group, FERMI_CONTEXT_SHARE_A, &mut share) {
            Ok(handle) => made.push(handle),
            Err(e) => break e,
        }
        assert!(made.len() < 64, "there are 64 at most");
    };
    assert_eq!(refused.status, NV_ERR_INSUFFICIENT_RESOURCES, "{refused}");
    assert!(made.len() > 8);
    for handle in made.drain(..) {
        rm.free(s.client, handle).unwrap();
    }
    let area = s.memory(&rm, 4 * MIB).unwrap();
    let va = s.map_gpu(&rm, area, 4 * MIB).unwrap();
    let group = || {
        let mut params = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        (params.engineType, params.hVASpace) = (NV2080_ENGINE_TYPE_GR0, s.vaspace);
        rm.make_with(s.client, s.device, KEPLER_CHANNEL_GROUP_A, &mut params).unwrap()
    };
    let channel = |group, at| {
        let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        (params.gpFifoOffset, params.gpFifoEntries) = (va + at, 64);
        (params.hUserdMemory[0], params.userdOffset[0]) = (area, at + 0x1000);
        rm.make_with(s.client, group, AMPERE_CHANNEL_GPFIFO_A, &mut params)
    };
    let mut full = group();
    let refused = loop {
        if made.len() % 100 == 99 {
            full = group(); // a group has room for 128
        }
        match channel(full, made.len() as u64 * 0x2000) {
            Ok(handle) => made.push(handle),
            Err(e) => break e,
        }
        assert!(made.len() < 512, "there are 512 at most");
    };
    assert_eq!(refused.status, NV_ERR_INSUFFICIENT_RESOURCES, "{refused}");
    assert_eq!(made.len(), 510, "all but the two of the bring-up");
    rm.free(s.client, made[0]).unwrap();
    channel(full, 0).unwrap();
    s.close(&rm);
}

#[test]
fn two_clients_have_channels_of_their_own() {
    let kmd = simulated(default_release());
    let rm = manager(kmd.clone());
    let before = kmd.kernel().census();
    let (a, b) = (Bringup::open(&rm).unwrap(), Bringup::open(&rm).unwrap());
    assert_eq!((a.tokens, b.tokens), ([511, 510], [509, 508]));
    assert_eq!(a.area_va, b.area_va, "address spaces of their own");
    assert_ne!(a.area_cpu, b.area_cpu);
    poke(b.area_cpu as u64 + 2 * MIB, 0x5a);
    assert_eq!(peek(a.area_cpu as u64 + 2 * MIB), 0);
    a.s.close(&rm);
    let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
    rm.ask(b.s.client, b.channels[1], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token).unwrap();
    assert_eq!((token.workSubmitToken, peek(b.area_cpu as u64 + 2 * MIB)), (508, 0x5a));
    b.s.close(&rm);
    assert_eq!(kmd.kernel().census(), before);
}

/// tinygrad looks up the fault's type and access in tables of upstream's constants, which start at 0.
#[test]
fn an_mmu_fault_is_reported_with_a_type_that_frontends_know() {
    let _shown = shows(&[NV_ERR_RC_ERROR]);
    let rm = manager(simulated(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let c = b.s.client;
    let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
    let debugger = rm.make_with(c, b.s.device, GT200_DEBUGGER, &mut debugger).unwrap();
    let fault = || {
        let mut p = NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS::new_zeroed();
        rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, &mut p).unwrap();
        p
    };
    assert_eq!(fault().count, 0);
    // The entry points to four words of commands at an address where nothing is mapped.
    let entry = 0x12_3456_7000_u64 | 4 << 42;
    let (ring, userd) = (b.area_cpu as u64 + PLACES[0].0, b.area_cpu as u64 + PLACES[0].1);
    poke(ring, entry as u32);
    poke(ring + 4, (entry >> 32) as u32);
    poke(userd + 0x8c, 1);
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    poke(b.doorbell as u64 + 0x90, b.tokens[0]);
    let mut seen = fault();
    while seen.count == 0 {
        std::thread::yield_now();
        seen = fault();
    }
    assert_eq!(seen.count, 1);
    let first = seen.mmuFaultInfoList[0];
    assert_eq!((first.faultType, first.accessType), (0, 0));
    let mut sms = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    (sms.hTargetChannel, sms.numSMsToRead) = (b.channels[0], 100);
    rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut sms).unwrap();
    // When a channel dies, its group dies too. The group can be taken off the hardware but never be put back.
    for (object, cmd) in [
        (b.channels[0], NVA06F_CTRL_CMD_GPFIFO_SCHEDULE),
        (b.channels[1], NVA06F_CTRL_CMD_GPFIFO_SCHEDULE),
        (b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE),
    ] {
        assert_eq!(status(rm.tell(c, object, cmd, &mut [1, 0])), NV_ERR_RC_ERROR);
        rm.tell(c, object, cmd, &mut [0, 0]).unwrap();
        assert_eq!(status(rm.tell(c, object, cmd, &mut [1, 0])), NV_ERR_RC_ERROR);
    }
    b.s.close(&rm);
}

#[test]
fn a_duplicate_shows_the_same_bytes_and_outlives_the_original() {
    let rm = manager(board(default_release()));
    let (a, b) = (Session::open(&rm).unwrap(), Session::open(&rm).unwrap());
    let memory = a.memory(&rm, 2 * PAGE).unwrap();
    let theirs = a.map_cpu(&rm, memory, 2 * PAGE).unwrap() as u64;
    poke(theirs + PAGE, 7);
    let copy = rm.dup_object(b.client, b.device, 0x1234, a.client, memory).unwrap();
    assert_eq!(copy, 0x1234, "the wanted handle");
    assert_eq!(status(rm.dup_object(b.client, b.device, copy, a.client, memory)), NV_ERR_INSERT_DUPLICATE_NAME);
    assert_eq!(status(rm.dup_object(b.client, b.client, 0, a.client, memory)), NV_ERR_INVALID_OBJECT_PARENT);
    let ours = b.map_cpu(&rm, copy, 2 * PAGE).unwrap() as u64;
    poke(ours, 8);
    assert_eq!((peek(ours + PAGE), peek(theirs)), (7, 8));
    a.close(&rm);
    assert_eq!((peek(ours), peek(ours + PAGE)), (8, 7));
    b.map_gpu(&rm, copy, 2 * PAGE).unwrap();
    b.close(&rm);
}

#[test]
fn the_default_space_becomes_real_when_a_channel_uses_it() {
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let s = Session::open(&rm).unwrap();
    let mut range = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS::new_zeroed();
    range.limit = (1 << 49) - 1;
    let mapper = rm.make_with(s.client, s.device, NV01_MEMORY_VIRTUAL, &mut range).unwrap();
    let area = s.memory(&rm, MIB).unwrap();
    let request =
        DmaRequest { dma: mapper, memory: area, offset: 0, length: MIB, flags: 1 << 15, dma_offset: 0x10_0000_0000 };
    let files = kmd.census().map(|c| c.files);
    assert_eq!(rm.map_memory_dma(s.client, s.device, &request), Ok(0x10_0000_0000));
    assert_eq!(kmd.census().map(|c| c.files), files, "only written down");
    let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
    (params.gpFifoOffset, params.gpFifoEntries) = (0x10_0000_0000, 1024);
    (params.hUserdMemory[0], params.userdOffset[0]) = (area, 0x80000);
    params.engineType = NV2080_ENGINE_TYPE_GR0;
    let channel = rm.make_with(s.client, s.device, AMPERE_CHANNEL_GPFIFO_A, &mut params).unwrap();
    assert!(params.cid == 511 || !kmd.is_fresh());
    rm.make(s.client, channel, AMPERE_DMA_COPY_B).unwrap();
    s.close(&rm);
}
