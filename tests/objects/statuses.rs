//! Every NV_STATUS that a client of the object door can provoke, through the Rust core and through the C functions.

use crate::common::*;
use std::sync::Arc;
use tegrarm::rm::{CLIENT_HANDLES, DmaRequest, MapRequest, MemoryRequest, OBJECT_HANDLES};
use tegrarm::tegra::{USER_VA_END, USER_VA_START};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Errno, Faulty};
use zerocopy::{FromZeros, IntoBytes};

crate::over_both_doors! {
    object_handles_run_out,
    handles_come_from_their_ranges_and_are_honoured,
    rm_alloc_checks_in_rms_order,
    a_failed_allocation_leaves_its_handle_free,
    a_tree_may_be_six_levels_deep,
    freeing_is_recursive_and_reaches_dependants,
    clients_do_not_see_each_other,
    controls_check_client_object_command_and_size,
    lists_in_client_memory_may_be_short_or_missing,
    memory_says_no_to_impossible_sizes,
    cpu_mappings_check_ranges,
    gpu_mappings_check_mapper_memory_range_and_address,
    memory_of_the_process_checks_flags_and_pages,
    channels_check_ring_userd_and_context,
    channel_controls_answer,
    a_handle_that_is_no_channel_is_an_invalid_channel,
}

/// The report at the end of a program lists what was refused.
#[test]
fn a_refused_control_is_counted() {
    let rm = manager(board(default_release()));
    let s = Session::open(&rm).unwrap();
    let promote = NV2080_CTRL_CMD_GPU_PROMOTE_CTX;
    assert_eq!(status(rm.tell(s.client, s.subdevice, promote, &mut [0; 8])), NV_ERR_INSUFFICIENT_PERMISSIONS);
    let refused = rm.report().refused();
    assert!(refused.iter().any(|(what, count)| *what == tegrarm::rm::Asked::Control(promote) && *count == 1));
}

/// A failed allocation leaves no object.
#[test]
fn a_failed_allocation_is_no_object() {
    let rm = manager(board(default_release()));
    let s = Session::open(&rm).unwrap();
    let count = rm.object_count(s.client).unwrap();
    let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
    group.engineType = 0x77;
    rm.make_with(s.client, s.device, KEPLER_CHANNEL_GROUP_A, &mut group).unwrap_err();
    assert_eq!(rm.object_count(s.client).unwrap(), count);
}

fn object_handles_run_out(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INSUFFICIENT_RESOURCES]);
    let s = Session::open(rm).unwrap();
    let mut made = 0;
    let refused = loop {
        match rm.make(s.client, s.device, NV01_EVENT) {
            Ok(handle) => assert!(OBJECT_HANDLES.contains(&handle)),
            Err(e) => break e,
        }
        made += 1;
    };
    assert_eq!(note(refused.status), NV_ERR_INSUFFICIENT_RESOURCES, "{refused}");
    assert_eq!(made, OBJECT_HANDLES.len() - 4, "device, subdevice, VA space and mapper have one each");
    assert_eq!(rm.make_as(s.client, s.device, 0x1001, NV01_EVENT), Ok(0x1001), "the client's own are others");
    let freed = OBJECT_HANDLES.start + 1000;
    rm.free(s.client, freed).unwrap();
    assert_eq!(rm.make(s.client, s.device, NV01_EVENT), Ok(freed));
    s.close(rm);
}

fn handles_come_from_their_ranges_and_are_honoured(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INSERT_DUPLICATE_NAME]);
    let s = Session::open(rm).unwrap();
    assert!(CLIENT_HANDLES.contains(&s.client) && OBJECT_HANDLES.contains(&s.device));
    assert_eq!(rm.make_as(s.client, s.device, 0x1001, NV20_SUBDEVICE_0), Ok(0x1001));
    let again = rm.make_as(s.client, s.device, 0x1001, NV20_SUBDEVICE_0);
    assert_eq!(status(again), NV_ERR_INSERT_DUPLICATE_NAME);
    for reserved in [s.client, CLIENT_HANDLES.start, CLIENT_HANDLES.end - 1] {
        let refused = rm.make_as(s.client, s.device, reserved, NV20_SUBDEVICE_0);
        assert_eq!(status(refused), NV_ERR_INVALID_OBJECT_HANDLE, "{reserved:#x}");
    }
    assert_eq!(rm.make_as(0, 0, 0xabc, NV01_ROOT), Ok(0xabc));
    assert_eq!(status(rm.make_as(0, 0, 0xabc, NV01_ROOT_NON_PRIV)), NV_ERR_INSERT_DUPLICATE_NAME);
    rm.free(0xabc, 0xabc).unwrap();
    s.close(rm);
}

fn rm_alloc_checks_in_rms_order(rm: &impl Calls) {
    let _shown = shows(&[
        NV_ERR_INVALID_ARGUMENT,
        NV_ERR_INVALID_CLASS,
        NV_ERR_INVALID_DEVICE,
        NV_ERR_INVALID_OBJECT_PARENT,
        NV_ERR_INVALID_PARAM_STRUCT,
        NV_ERR_OBJECT_NOT_FOUND,
    ]);
    let s = Session::open(rm).unwrap();
    let nobody = 0xc1df_0000;
    // The library checks the class before the parameters, these before the client, the client before the parent, and
    // the parent before its kind.
    assert_eq!(status(rm.make(nobody, 0, 0x1234)), NV_ERR_INVALID_CLASS);
    assert_eq!(status(rm.make(nobody, 0, FERMI_VASPACE_A)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(status(rm.make(nobody, 0xbad, NV20_SUBDEVICE_0)), NV_ERR_INVALID_OBJECT_HANDLE);
    assert_eq!(status(rm.make(s.client, 0xbad, NV20_SUBDEVICE_0)), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(status(rm.make(s.client, s.client, NV20_SUBDEVICE_0)), NV_ERR_INVALID_OBJECT_PARENT);
    assert_eq!(status(rm.make_as(s.client, s.subdevice, s.device, NV20_SUBDEVICE_0)), NV_ERR_INVALID_OBJECT_PARENT);
    // The parent 0 is the client itself.
    assert!(rm.make(s.client, 0, NV01_DEVICE_0).is_ok());
    let mut too_short = NV2080_ALLOC_PARAMETERS::new_zeroed();
    let wrong_size = rm.make_with(s.client, s.device, FERMI_VASPACE_A, &mut too_short);
    assert_eq!(status(wrong_size), NV_ERR_INVALID_PARAM_STRUCT);
    for class in [HOPPER_USERMODE_A, ADA_COMPUTE_A, BLACKWELL_CHANNEL_GPFIFO_A, NVC9B0_VIDEO_DECODER] {
        assert_eq!(status(rm.make(s.client, s.subdevice, class)), NV_ERR_INVALID_CLASS, "{class:#x}");
    }
    assert_eq!(status(rm.make(s.client, s.subdevice, GF100_PROFILER)), NV_ERR_NOT_SUPPORTED);
    assert_eq!(status(rm.make(s.client, s.device, NV01_MEMORY_SYSTEM_OS_DESCRIPTOR)), NV_ERR_NOT_SUPPORTED);
    let mut device = NV0080_ALLOC_PARAMETERS::new_zeroed();
    device.deviceId = 1;
    assert_eq!(status(rm.make_with(s.client, s.client, NV01_DEVICE_0, &mut device)), NV_ERR_INVALID_DEVICE);
    s.close(rm);
}

fn a_failed_allocation_leaves_its_handle_free(rm: &impl Calls) {
    let s = Session::open(rm).unwrap();
    let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
    group.engineType = 0x77;
    let failed = rm.alloc_as(s.client, s.device, 0x1001, KEPLER_CHANNEL_GROUP_A, Some(group.as_mut_bytes()));
    assert_eq!(status(failed), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(rm.make_as(s.client, s.device, 0x1001, NV01_EVENT), Ok(0x1001), "nobody has it");
    s.close(rm);
}

fn a_tree_may_be_six_levels_deep(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_ILLEGAL_ACTION]);
    let s = Session::open(rm).unwrap();
    let mut parent = s.device;
    for _ in 0..5 {
        parent = rm.make(s.client, parent, NV01_EVENT).unwrap();
    }
    assert_eq!(status(rm.make(s.client, parent, NV01_EVENT)), NV_ERR_ILLEGAL_ACTION);
    s.close(rm);
}

fn freeing_is_recursive_and_reaches_dependants(rm: &impl Calls) {
    let b = Bringup::open(rm).unwrap();
    let s = b.s;
    rm.free(s.client, 0xbad).unwrap();
    assert_eq!(status(rm.free(0xbad, 1)), NV_ERR_INVALID_OBJECT_HANDLE);
    // Freeing the VA space frees the context share, this frees its channels, and these free their engines. The group
    // stays.
    rm.free(s.client, s.vaspace).unwrap();
    for gone in [s.mapper, b.share, b.channels[0], b.channels[1], b.engines[0]] {
        assert_eq!(status(rm.make(s.client, gone, NV01_EVENT)), NV_ERR_OBJECT_NOT_FOUND, "{gone:#x}");
    }
    assert!(rm.make(s.client, b.group, NV01_EVENT).is_ok());
    rm.free(s.client, s.client).unwrap();
    assert_eq!(status(rm.free(s.client, s.client)), NV_ERR_INVALID_OBJECT_HANDLE, "freed twice");
}

fn clients_do_not_see_each_other(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_CLIENT]);
    let a = Session::open(rm).unwrap();
    let b = Session::open(rm).unwrap();
    let memory = a.memory(rm, 4096).unwrap();
    let mut p = NV2080_CTRL_GPU_GET_ID_PARAMS::new_zeroed();
    let theirs = rm.make_as(a.client, a.device, 0x5005, NV20_SUBDEVICE_0).unwrap();
    assert_eq!(status(rm.ask(b.client, theirs, NV2080_CTRL_CMD_GPU_GET_ID, &mut p)), NV_ERR_OBJECT_NOT_FOUND);
    // A duplicate passes memory from one client to another and keeps it alive.
    let dup = rm.dup_object(b.client, b.device, 0, a.client, memory).unwrap();
    a.close(rm);
    assert!(b.map_cpu(rm, dup, 4096).is_ok());
    assert_eq!(status(rm.dup_object(b.client, b.device, 0, b.client, b.subdevice)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(status(rm.dup_object(b.client, b.client, 0, b.client, dup)), NV_ERR_INVALID_OBJECT_PARENT);
    assert_eq!(status(rm.dup_object(b.client, b.device, 0, a.client, memory)), NV_ERR_INVALID_CLIENT);
    b.close(rm);
}

fn controls_check_client_object_command_and_size(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INSUFFICIENT_PERMISSIONS, NV_ERR_NOT_SUPPORTED]);
    let s = Session::open(rm).unwrap();
    let cmd = NV2080_CTRL_CMD_GPU_GET_ID;
    assert_eq!(rm.tell(s.client, s.subdevice, 0, &mut [0; 4]), Ok(()), "command 0 does nothing");
    for told in [(true, 0), (false, 4), (true, (1 << 20) + 1)] {
        let refused = rm.control_as((s.client, s.subdevice), cmd, told, &mut [0; 4]);
        assert_eq!(status(refused), NV_ERR_INVALID_ARGUMENT, "{told:?}");
    }
    assert_eq!(status(rm.tell(0xbad, s.subdevice, cmd, &mut [0; 4])), NV_ERR_INVALID_CLIENT);
    assert_eq!(status(rm.tell(s.client, 0xbad, cmd, &mut [0; 4])), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(status(rm.tell(s.client, s.device, cmd, &mut [0; 4])), NV_ERR_NOT_SUPPORTED, "not this object's");
    assert_eq!(status(rm.tell(s.client, s.subdevice, 0x2080_7777, &mut [0; 4])), NV_ERR_NOT_SUPPORTED);
    assert_eq!(status(rm.tell(s.client, s.subdevice, cmd, &mut [0; 8])), NV_ERR_INVALID_PARAM_STRUCT);
    let promote = NV2080_CTRL_CMD_GPU_PROMOTE_CTX;
    assert_eq!(status(rm.tell(s.client, s.subdevice, promote, &mut [0; 8])), NV_ERR_INSUFFICIENT_PERMISSIONS);
    let mut id = NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS::new_zeroed();
    id.gpuId = 7;
    assert_eq!(
        status(rm.ask(s.client, s.client, NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, &mut id)),
        NV_ERR_INVALID_ARGUMENT
    );
    s.close(rm);
}

fn lists_in_client_memory_may_be_short_or_missing(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_BUFFER_TOO_SMALL]);
    let s = Session::open(rm).unwrap();
    let cmd = NV0080_CTRL_CMD_GPU_GET_CLASSLIST;
    let mut p = NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS::new_zeroed();
    rm.ask(s.client, s.device, cmd, &mut p).unwrap();
    let mut list = vec![0u32; p.numClasses as usize];
    let count = p.numClasses;
    assert!(count <= 100, "old frontends have room for 100");
    p.classList = list.as_mut_ptr() as u64;
    p.numClasses = count - 1;
    assert_eq!(status(rm.ask(s.client, s.device, cmd, &mut p)), NV_ERR_INVALID_PARAM_STRUCT);
    assert_eq!(p.numClasses, count - 1, "untouched on failure");
    p.numClasses = count;
    rm.ask(s.client, s.device, cmd, &mut p).unwrap();
    for wanted in [TURING_USERMODE_A, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B] {
        assert!(list.contains(&wanted), "{wanted:#x}");
    }
    for never in [HOPPER_USERMODE_A, ADA_COMPUTE_A, BLACKWELL_CHANNEL_GPFIFO_A, NVC9B0_VIDEO_DECODER] {
        assert!(!list.contains(&never), "{never:#x}");
    }
    p.classList = 8;
    assert_eq!(status(rm.ask(s.client, s.device, cmd, &mut p)), NV_ERR_INVALID_POINTER, "a wild pointer is no crash");
    let mut engines = NV2080_CTRL_GPU_GET_ENGINES_PARAMS::new_zeroed();
    (engines.engineCount, engines.engineList) = (0, list.as_mut_ptr() as u64);
    let short = rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GPU_GET_ENGINES, &mut engines);
    assert_eq!(status(short), NV_ERR_BUFFER_TOO_SMALL);
    s.close(rm);
}

fn memory_says_no_to_impossible_sizes(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_NO_MEMORY]);
    let s = Session::open(rm).unwrap();
    assert_eq!(status(s.memory(rm, 0)), NV_ERR_INVALID_ARGUMENT);
    for size in [1 << 40, 1 << 63, u64::MAX] {
        assert_eq!(status(s.memory(rm, size)), NV_ERR_NO_MEMORY, "{size:#x}");
    }
    let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    (params.size, params.alignment) = (4096, 3);
    let crooked = rm.make_with(s.client, s.device, NV01_MEMORY_LOCAL_USER, &mut params);
    assert_eq!(status(crooked), NV_ERR_INVALID_ARGUMENT);
    (params.size, params.alignment) = (5000, 0);
    rm.make_with(s.client, s.device, NV01_MEMORY_LOCAL_USER, &mut params).unwrap();
    assert_eq!((params.size, params.limit), (8192, 8191), "whole pages, written back");
    s.close(rm);
}

fn cpu_mappings_check_ranges(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_BASE, NV_ERR_INVALID_LIMIT]);
    let s = Session::open(rm).unwrap();
    let m = s.memory(rm, 8192).unwrap();
    let map = |offset, len| {
        rm.map_memory(s.client, s.device, &MapRequest { memory: m, offset, length: len, at: None, flags: 0 })
    };
    assert_eq!(status(map(0, 0)), NV_ERR_INVALID_LIMIT);
    assert_eq!(status(map(4096, 8192)), NV_ERR_INVALID_BASE);
    assert_eq!(status(map(u64::MAX, 2)), NV_ERR_INVALID_BASE);
    assert_eq!(status(map(0, 1 << 63)), NV_ERR_INVALID_BASE);
    assert_eq!(status(map(1, 4096)), NV_ERR_INVALID_OFFSET);
    assert_eq!(
        status(rm.map_memory(s.client, 0xbad, &MapRequest { memory: m, offset: 0, length: 4096, at: None, flags: 0 })),
        NV_ERR_OBJECT_NOT_FOUND
    );
    assert_eq!(
        status(rm.map_memory(s.client, m, &MapRequest { memory: m, offset: 0, length: 4096, at: None, flags: 0 })),
        NV_ERR_INVALID_DEVICE
    );
    assert_eq!(
        status(rm.map_memory(
            s.client,
            s.device,
            &MapRequest { memory: s.vaspace, offset: 0, length: 4096, at: None, flags: 0 }
        )),
        NV_ERR_INVALID_OBJECT
    );
    assert_eq!(
        status(rm.map_memory(
            s.client,
            s.device,
            &MapRequest { memory: m, offset: 0, length: 4096, at: Some(0x1001), flags: 0 }
        )),
        NV_ERR_INVALID_ADDRESS
    );
    let at = map(4096, 4096).unwrap();
    assert_eq!(rm.unmap_memory(s.client, s.device, m, at), Ok(()));
    assert_eq!(status(rm.unmap_memory(s.client, s.device, m, at)), NV_ERR_OBJECT_NOT_FOUND);
    let usermode = rm.make(s.client, s.subdevice, TURING_USERMODE_A).unwrap();
    let door = |offset, len| {
        rm.map_memory(s.client, s.device, &MapRequest { memory: usermode, offset, length: len, at: None, flags: 0 })
    };
    assert_eq!(status(door(0, 0)), NV_ERR_INVALID_LIMIT);
    assert_eq!(status(door(0, 0x20000)), NV_ERR_INVALID_BASE);
    assert_eq!(status(door(0x1000, 0x1000)), NV_ERR_INVALID_BASE);
    let pages = [door(0, 0x10000).unwrap(), door(0, 0x1000).unwrap()];
    for page in pages {
        rm.unmap_memory(s.client, s.subdevice, usermode, page).unwrap();
    }
    s.close(rm);
}

fn gpu_mappings_check_mapper_memory_range_and_address(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_OBJECT_HANDLE, NV_ERR_OUT_OF_RANGE, NV_ERR_PAGE_TABLE_NOT_AVAIL]);
    let s = Session::open(rm).unwrap();
    let m = s.memory(rm, 8192).unwrap();
    let base = DmaRequest { dma: s.mapper, memory: m, offset: 0, length: 8192, flags: 0, dma_offset: 0 };
    let map = |r: &DmaRequest| rm.map_memory_dma(s.client, s.device, r);
    let fixed = |at| DmaRequest { flags: 1 << 15, dma_offset: at, ..base };
    assert_eq!(status(map(&DmaRequest { dma: s.vaspace, ..base })), NV_ERR_INVALID_OBJECT_HANDLE);
    assert_eq!(status(map(&DmaRequest { memory: s.vaspace, ..base })), NV_ERR_INVALID_OBJECT);
    assert_eq!(status(map(&DmaRequest { length: 0, ..base })), NV_ERR_INVALID_LIMIT);
    assert_eq!(status(map(&DmaRequest { length: 8193, ..base })), NV_ERR_INVALID_BASE);
    assert_eq!(status(map(&DmaRequest { offset: 1 << 63, ..base })), NV_ERR_INVALID_BASE);
    assert_eq!(status(map(&fixed(0x10_0000_0001))), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(map(&fixed(USER_VA_END - 0x1000))), NV_ERR_INVALID_ARGUMENT, "outside the mapper");
    assert_eq!(status(map(&fixed(USER_VA_START - 0x1000))), NV_ERR_OUT_OF_RANGE);
    assert_eq!(status(map(&fixed(0xfd_0000_0000))), NV_ERR_PAGE_TABLE_NOT_AVAIL);
    assert_eq!(map(&fixed(0x10_0000_0000)), Ok(0x10_0000_0000));
    assert_eq!(map(&fixed(0x10_0000_0000)), Ok(0x10_0000_0000), "the same mapping twice is one");
    let other = DmaRequest { memory: s.memory(rm, 4096).unwrap(), length: 4096, ..fixed(0x10_0000_1000) };
    assert_eq!(status(map(&other)), NV_ERR_INSUFFICIENT_RESOURCES);
    let unmap = |at| rm.unmap_memory_dma(s.client, s.device, s.mapper, m, at);
    assert_eq!(unmap(0x10_0000_0000), Ok(()));
    assert_eq!(status(map(&other)), NV_ERR_INSUFFICIENT_RESOURCES, "mapped twice, unmapped once");
    assert_eq!(unmap(0x10_0000_0000), Ok(()));
    assert_eq!(status(unmap(0x10_0000_0000)), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(map(&other), Ok(0x10_0000_1000));
    let part = DmaRequest { offset: 4096, length: 4096, ..base };
    let va = map(&part).unwrap();
    assert_eq!(unmap(va), Ok(()));
    s.close(rm);
}

fn memory_of_the_process_checks_flags_and_pages(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_FLAGS]);
    let s = Session::open(rm).unwrap();
    let good = MemoryRequest { class: 0x71, flags: 0x4000_1010, address: 0x1000, limit: 4095 };
    let make = |r: &MemoryRequest| rm.alloc_memory(s.client, s.device, 0, r);
    assert_eq!(status(make(&MemoryRequest { class: 0x40, ..good })), NV_ERR_INVALID_CLASS);
    assert_eq!(status(make(&MemoryRequest { flags: 0x1010, ..good })), NV_ERR_INVALID_FLAGS);
    assert_eq!(status(make(&MemoryRequest { flags: 0x4000_0210, ..good })), NV_ERR_INVALID_FLAGS);
    assert_eq!(status(make(&MemoryRequest { address: 0x1001, ..good })), NV_ERR_NOT_SUPPORTED);
    assert_eq!(status(make(&MemoryRequest { limit: u64::MAX, ..good })), NV_ERR_INVALID_LIMIT);
    assert_eq!(status(make(&good)), NV_ERR_INVALID_ADDRESS, "nothing is mapped there");
    s.close(rm);
}

fn channels_check_ring_userd_and_context(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_OBJECT, NV_ERR_INVALID_OFFSET]);
    let b = Bringup::open(rm).unwrap();
    let s = b.s;
    let make = |change: &dyn Fn(&mut NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS)| {
        let mut params = b.channel_params(0);
        change(&mut params);
        rm.make_with(s.client, b.group, AMPERE_CHANNEL_GPFIFO_A, &mut params)
    };
    assert_eq!(status(make(&|p| p.gpFifoEntries = 1000)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(status(make(&|p| p.gpFifoEntries = 0)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(status(make(&|p| p.gpFifoOffset = 0x1234_5000)), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(make(&|p| p.gpFifoOffset += 8)), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(make(&|p| p.gpFifoOffset += AREA - 4096)), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(make(&|p| p.userdOffset[0] = 16)), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(make(&|p| p.userdOffset[0] = AREA)), NV_ERR_INVALID_OFFSET);
    assert_eq!(status(make(&|p| p.userdOffset[0] = 0x1000)), NV_ERR_INVALID_OFFSET, "inside the ring");
    assert_eq!(status(make(&|p| p.hUserdMemory[0] = 0)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(status(make(&|p| p.hUserdMemory[0] = 0xbad)), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(status(make(&|p| p.hUserdMemory[0] = b.group)), NV_ERR_INVALID_OBJECT);
    assert_eq!(status(make(&|p| p.hVASpace = s.vaspace)), NV_ERR_INVALID_ARGUMENT);
    let mut outside = b.channel_params(0);
    let refused = rm.make_with(s.client, s.device, AMPERE_CHANNEL_GPFIFO_A, &mut outside);
    assert_eq!(status(refused), NV_ERR_INVALID_ARGUMENT, "a context share outside a group");
    assert_eq!(status(rm.make(s.client, b.group, AMPERE_COMPUTE_B)), NV_ERR_INVALID_OBJECT_PARENT);
    let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (debugger.hAppClient, debugger.hClass3dObject) = (s.client, s.device);
    let nothing = rm.make_with(s.client, s.device, GT200_DEBUGGER, &mut debugger);
    assert_eq!(status(nothing), NV_ERR_INVALID_OBJECT);
    b.s.close(rm);
}

fn channel_controls_answer(rm: &impl Calls) {
    let b = Bringup::open(rm).unwrap();
    let c = b.s.client;
    rm.tell(c, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut [1, 0]).unwrap();
    rm.tell(c, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut [0, 0, 0]).unwrap();
    rm.tell(c, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut [1, 0, 0]).unwrap();
    let mut slice = NVA06C_CTRL_SET_TIMESLICE_PARAMS { timesliceUs: 2000 };
    rm.ask(c, b.group, NVA06C_CTRL_CMD_SET_TIMESLICE, &mut slice).unwrap();
    let mut now = NVA06C_CTRL_GET_TIMESLICE_PARAMS::new_zeroed();
    rm.ask(c, b.group, NVA06C_CTRL_CMD_GET_TIMESLICE, &mut now).unwrap();
    assert_eq!(now.timesliceUs, 2000);
    slice.timesliceUs = 1 << 40;
    assert_eq!(status(rm.ask(c, b.group, NVA06C_CTRL_CMD_SET_TIMESLICE, &mut slice)), NV_ERR_INVALID_ARGUMENT);
    rm.tell(c, b.group, NVA06C_CTRL_CMD_PREEMPT, &mut [0; 8]).unwrap();
    let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
    let debugger = rm.make_with(c, b.s.device, GT200_DEBUGGER, &mut debugger).unwrap();
    let mut sms = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    (sms.hTargetChannel, sms.numSMsToRead) = (b.channels[0], 100);
    rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut sms).unwrap();
    assert_eq!(sms.mmuFault.valid, 0);
    let mut fault = NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS::new_zeroed();
    rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, &mut fault).unwrap();
    assert_eq!(fault.count, 0);
    rm.free(c, b.channels[0]).unwrap();
    let gone = rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, &mut fault);
    assert_eq!(status(gone), NV_ERR_OBJECT_NOT_FOUND, "a debugger goes with what it looks at");
    let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
    let gone = rm.ask(c, b.channels[0], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token);
    assert_eq!(status(gone), NV_ERR_OBJECT_NOT_FOUND);
    b.s.close(rm);
}

#[test]
fn a_board_without_its_node_is_no_card() {
    let _shown = shows(&[NV_ERR_CARD_NOT_PRESENT]);
    assert_eq!(status(Session::open(&manager(Arc::new(NoNodes)))), NV_ERR_CARD_NOT_PRESENT);
}

/// The kernel's errors, in RM's statuses.
#[test]
fn the_kernels_refusals_become_statuses() {
    let _shown = shows(&[NV_ERR_OPERATING_SYSTEM, NV_ERR_TIMEOUT, NV_ERR_RESOURCE_LOST]);
    let faulty = Arc::new(Faulty::new(board(default_release())));
    let rm = manager(faulty.clone());
    let s = Session::open(&rm).unwrap();
    let expected = [
        (Errno::ENOMEM, NV_ERR_NO_MEMORY),
        (Errno::EPERM, NV_ERR_INSUFFICIENT_PERMISSIONS),
        (Errno::EINVAL, NV_ERR_INVALID_ARGUMENT),
        (Errno::EBUSY, NV_ERR_STATE_IN_USE),
        (Errno::ETIMEDOUT, NV_ERR_TIMEOUT),
        (Errno::ENODEV, NV_ERR_RESOURCE_LOST),
        (Errno::ENOTTY, NV_ERR_NOT_SUPPORTED),
        (Errno::EMFILE, NV_ERR_OPERATING_SYSTEM),
        (Errno::EIO, NV_ERR_OPERATING_SYSTEM),
    ];
    for (errno, wanted) in expected {
        faulty.arm(CallKind::Any, 1, errno);
        assert_eq!(status(s.memory(&rm, 4096)), wanted, "{errno}");
        assert!(faulty.fired());
    }
}

fn a_handle_that_is_no_channel_is_an_invalid_channel(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_CHANNEL]);
    let b = Bringup::open(rm).unwrap();
    let c = b.s.client;
    let mut disable = NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS::new_zeroed();
    (disable.numChannels, disable.hClientList[0], disable.hChannelList[0]) = (1, c, b.s.device);
    let disabled = rm.ask(c, b.s.subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &mut disable);
    assert_eq!(status(disabled), NV_ERR_INVALID_CHANNEL);
    let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
    let debugger = rm.make_with(c, b.s.device, GT200_DEBUGGER, &mut debugger).unwrap();
    let mut sms = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    (sms.hTargetChannel, sms.numSMsToRead) = (b.s.device, 1);
    let read = rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut sms);
    assert_eq!(status(read), NV_ERR_INVALID_CHANNEL);
    b.s.close(rm);
}
