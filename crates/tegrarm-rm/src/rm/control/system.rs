//! Controls of a client: versions, and which GPUs there are.

use super::row::ControlCall;
use crate::rm::object::Kind;
use crate::rm::params::{edit, get, put, set_text};
use crate::rm::{DRIVER_VERSION, GPU_ID, user};
use crate::status::{RmResult, fail};
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::status::*;

/// The number that ends lists of GPU ids.
const NO_GPU: u32 = NV0000_CTRL_GPU_INVALID_ID;
/// `gpuFlags`: in use (bit 0), part of a system on chip (bit 5).
const FLAGS: u32 = NV0000_CTRL_GPU_ID_INFO_IN_USE_TRUE | NV0000_CTRL_GPU_ID_INFO_SOC_TRUE << 5;
const NO_NUMA: i32 = -1;
/// `NV0000_CTRL_SYSTEM_CPU_TYPE_ARMV8A_GENERIC`.
const CPU_TYPE_ARMV8A: u32 = 0xa00f_f000;

fn check_gpu(id: u32) -> RmResult<()> {
    if id != GPU_ID {
        fail!(NV_ERR_INVALID_ARGUMENT, "there is no GPU {id:#x}; the one there is has id {GPU_ID:#x}");
    }
    Ok(())
}

pub fn build_version_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    edit(params, |p: &mut NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS| {
        set_text(&mut p.driverVersionBuffer, DRIVER_VERSION);
        set_text(&mut p.versionBuffer, DRIVER_VERSION);
        set_text(&mut p.driverBranch, DRIVER_VERSION);
        set_text(&mut p.titleBuffer, &title());
        (p.changelistNumber, p.officialChangelistNumber) = (0, 0);
    });
    Ok(())
}

fn title() -> String {
    format!("libtegrarm {}", env!("CARGO_PKG_VERSION"))
}

pub fn build_version(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS = get(params);
    let longest = title().len().max(DRIVER_VERSION.len()) + 1;
    let room = p.sizeOfStrings as usize;
    let buffers = [p.pDriverVersionBuffer, p.pVersionBuffer, p.pTitleBuffer];
    p.sizeOfStrings = longest as u32;
    (p.changelistNumber, p.officialChangelistNumber) = (0, 0);
    for (addr, text) in buffers.into_iter().zip([DRIVER_VERSION, DRIVER_VERSION, &title()]) {
        if addr == 0 {
            continue;
        }
        if room < longest {
            fail!(NV_ERR_BUFFER_TOO_SMALL, "sizeOfStrings {room}: needs {longest}");
        }
        let mut field = vec![0u8; text.len() + 1];
        set_text(&mut field, text);
        user::write(addr, &field)?;
    }
    put(params, &p);
    Ok(())
}

pub fn cpu_info(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    params.fill(0);
    edit(params, |p: &mut NV0000_CTRL_SYSTEM_GET_CPU_INFO_PARAMS| {
        p.type_ = CPU_TYPE_ARMV8A;
        (p.numLogicalCpus, p.numPhysicalCpus, p.coresOnDie) = (cpus, cpus, cpus);
    });
    Ok(())
}

pub fn gpu_ids(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    edit(params, |p: &mut NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS| {
        p.gpuIds = [NO_GPU; 32];
        p.gpuIds[0] = GPU_ID;
    });
    Ok(())
}

pub fn probed_ids(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    // 580 appended flags, which stay 0.
    params.fill(0);
    edit(params, |p: &mut NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS| {
        (p.gpuIds, p.excludedGpuIds) = ([NO_GPU; 32], [NO_GPU; 32]);
        p.gpuIds[0] = GPU_ID;
    });
    Ok(())
}

pub fn id_info(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0000_CTRL_GPU_GET_ID_INFO_PARAMS = get(params);
    check_gpu(p.gpuId)?;
    if p.szName != 0 {
        let mut name = [0u8; NV0000_CTRL_GPU_MAX_SZNAME as usize];
        set_text(&mut name, &super::gpu::full_name(call));
        user::write(p.szName, &name)?;
    }
    (p.gpuFlags, p.deviceInstance, p.subDeviceInstance) = (FLAGS, 0, 0);
    (p.sliStatus, p.boardId, p.gpuInstance, p.numaId) = (0, GPU_ID, 0, NO_NUMA);
    put(params, &p);
    Ok(())
}

pub fn id_info_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS = get(params);
    check_gpu(p.gpuId)?;
    (p.gpuFlags, p.deviceInstance, p.subDeviceInstance) = (FLAGS, 0, 0);
    (p.sliStatus, p.boardId, p.gpuInstance, p.numaId) = (0, GPU_ID, 0, NO_NUMA);
    put(params, &p);
    Ok(())
}

pub fn device_ids(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    put(params, &NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS { deviceIds: 1 });
    Ok(())
}

pub fn active_devices(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    params.fill(0);
    edit(params, |p: &mut NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS_PARAMS| {
        p.numDevices = 1;
        // The GPU is not partitioned, so each instance id says that there is none.
        let none = u32::MAX;
        p.devices[0] = NV0000_CTRL_GPU_ACTIVE_DEVICE { gpuId: GPU_ID, gpuInstanceId: none, computeInstanceId: none };
    });
    Ok(())
}

/// `NV0000_CTRL_GPU_ATTACH_ALL_PROBED_IDS`: this number stands for all GPUs instead of a list.
const ALL_PROBED: u32 = 0xffff;

pub fn attach_ids(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV0000_CTRL_GPU_ATTACH_IDS_PARAMS = get(params);
    if p.gpuIds[0] == ALL_PROBED {
        return Ok(());
    }
    p.gpuIds.iter().take_while(|id| **id != NO_GPU).try_for_each(|id| check_gpu(*id))
}

pub fn detach_ids(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV0000_CTRL_GPU_DETACH_IDS_PARAMS = get(params);
    if p.gpuIds[0] == ALL_PROBED {
        return Ok(());
    }
    p.gpuIds.iter().take_while(|id| **id != NO_GPU).try_for_each(|id| check_gpu(*id))
}

pub fn attach_one(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV0000_CTRL_GPU_ASYNC_ATTACH_ID_PARAMS = get(params);
    check_gpu(p.gpuId)
}

pub fn pci_info(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS = get(params);
    check_gpu(p.gpuId)?;
    // This PCI address is made up, because the GPU is not on PCI. It belongs to the made-up GPU id.
    (p.domain, p.bus, p.slot) = (0, (GPU_ID >> 8) as u16, 0);
    put(params, &p);
    Ok(())
}

pub fn uuid_from_gpu_id(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS = get(params);
    check_gpu(p.gpuId)?;
    p.uuidStrLen = super::gpu::write_uuid(call, p.flags, &mut p.gpuUuid);
    put(params, &p);
    Ok(())
}

pub fn no_gsync(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    params.fill(0xff);
    Ok(())
}

pub fn addr_space_type(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    /// `NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_*`.
    const SYSMEM: u32 = 1;
    const VIDMEM: u32 = 2;
    const REGMEM: u32 = 3;
    let mut p: NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS = get(params);
    let object = call.client.object(p.hObject)?;
    p.addrSpaceType = match &object.kind {
        Kind::Memory(memory) | Kind::ContextDma(memory) if memory.is_system() => SYSMEM,
        Kind::Memory(_) | Kind::ContextDma(_) => VIDMEM,
        Kind::Usermode(_) => REGMEM,
        _ => fail!(NV_ERR_INVALID_OBJECT, "{object} has no memory behind it"),
    };
    put(params, &p);
    Ok(())
}
