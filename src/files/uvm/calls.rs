//! The UVM calls that set things up: the file, GPUs, VA spaces, channels and external memory.

use super::Space;
use super::ranges::{Purpose, check_pages};
use crate::files::call::{Call, Fail};
use crate::files::node::Kind;
use std::mem::offset_of;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_rm::rm::Extent;
use tegrarm_rm::rm::params::{get, put, word};
use tegrarm_rm::status::{During, RmResult, fail};

/// `UvmGpuMappingTypeReadOnly`. The values 0, 1 and 2 are three ways to allow writing.
const READ_ONLY: u32 = 3;

pub fn initialize(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_INITIALIZE_PARAMS = get(arg);
    let mut slot = call.file.uvm.lock();
    Ok(start(&mut slot, p.flags)?)
}

fn start(slot: &mut Option<Space>, flags: u64) -> RmResult<()> {
    let space = slot.get_or_insert_with(|| Space::new(flags));
    if space.flags != flags {
        fail!(NV_ERR_INVALID_ARGUMENT, "UVM_INITIALIZE with flags {flags:#x} after {:#x}", space.flags);
    }
    Ok(())
}

pub fn mm_initialize(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_MM_INITIALIZE_PARAMS = get(arg);
    let file = call.other(p.uvmFd).filter(|file| file.kind == Kind::Uvm);
    let check = || match file {
        Some(file) if file.uvm.lock().is_some() => Ok(()),
        Some(_) => fail!(NV_ERR_ILLEGAL_ACTION, "descriptor {} comes before its UVM_INITIALIZE", p.uvmFd),
        None => fail!(NV_ERR_INVALID_ARGUMENT, "descriptor {} is no open file of /dev/nvidia-uvm", p.uvmFd),
    };
    Ok(check()?)
}

pub fn is_8_supported(_call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    put(arg, &UVM_IS_8_SUPPORTED_PARAMS { is8Supported: 1, rmStatus: 0 });
    Ok(())
}

/// Checks a descriptor that names a control file. It may be absent.
fn check_control_fd(call: &Call, fd: i32) -> RmResult<()> {
    if fd != -1 && call.other(fd).is_none_or(|file| file.kind != Kind::Control) {
        fail!(NV_ERR_INVALID_ARGUMENT, "rmCtrlFd {fd} is no open file of /dev/nvidiactl");
    }
    Ok(())
}

pub fn register_gpu(call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: UVM_REGISTER_GPU_PARAMS = get(arg);
    let uuid = call.file.held().uuid();
    if p.gpu_uuid.uuid != uuid {
        let unknown = || fail!(NV_ERR_GPU_UUID_NOT_FOUND, "no GPU {:02x?}; there is {uuid:02x?}", p.gpu_uuid.uuid);
        unknown()?;
    }
    check_control_fd(call, p.rmCtrlFd)?;
    space.register(uuid)?;
    (p.numaEnabled, p.numaNodeId) = (0, -1);
    put(arg, &p);
    Ok(())
}

pub fn unregister_gpu(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_UNREGISTER_GPU_PARAMS = get(arg);
    space.check_gpu(&p.gpu_uuid)?;
    space.unregister();
    Ok(())
}

pub fn register_gpu_vaspace(call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_REGISTER_GPU_VASPACE_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    if space.vaspace.is_some() {
        let twice = || fail!(NV_ERR_INVALID_DEVICE, "the GPU has a VA space in this UVM file already");
        twice()?;
    }
    check_control_fd(call, p.rmCtrlFd)?;
    space.vaspace = Some(call.rm().external_space(p.hClient, p.hVaSpace)?);
    Ok(())
}

pub fn unregister_gpu_vaspace(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_UNREGISTER_GPU_VASPACE_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    space.vaspace()?;
    space.unlink();
    Ok(())
}

/// Registers a channel at the addresses that the caller names. The kernel manages the channel's own buffers, so nothing
/// is mapped there; the addresses are reserved all the same.
pub fn register_channel(call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_REGISTER_CHANNEL_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    check_control_fd(call, p.rmCtrlFd)?;
    call.rm().check_channel(p.hClient, p.hChannel)?;
    Ok(space.ranges.insert(p.base, p.length, Purpose::Channel(p.hClient, p.hChannel))?)
}

pub fn unregister_channel(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_UNREGISTER_CHANNEL_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    Ok(space.ranges.remove_channel(p.hClient, p.hChannel)?)
}

pub fn peer_access(_call: &Call, _space: &mut Space, _arg: &mut [u8]) -> Result<(), Fail> {
    let alone = || fail!(NV_ERR_INVALID_DEVICE, "a Tegra has one GPU, which has no peer");
    Ok(alone()?)
}

pub fn create_external_range(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_CREATE_EXTERNAL_RANGE_PARAMS = get(arg);
    Ok(space.ranges.insert(p.base, p.length, Purpose::External)?)
}

pub fn map_dynamic_parallelism_region(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    Ok(space.ranges.insert(p.base, p.length, Purpose::DynamicParallelism)?)
}

/// `UVM_MAP_EXTERNAL_ALLOCATION_PARAMS` by its fields. The structure has nine kilobytes, and only the part for one GPU
/// is used.
struct MapExternal {
    base: u64,
    length: u64,
    offset: u64,
    count: u64,
    control_fd: i32,
    client: u32,
    memory: u32,
}

impl MapExternal {
    fn of(arg: &[u8]) -> MapExternal {
        type P = UVM_MAP_EXTERNAL_ALLOCATION_PARAMS;
        let long = |at| tegrarm_rm::rm::params::long(arg, at);
        MapExternal {
            base: long(offset_of!(P, base)),
            length: long(offset_of!(P, length)),
            offset: long(offset_of!(P, offset)),
            count: long(offset_of!(P, gpuAttributesCount)),
            control_fd: word(arg, offset_of!(P, rmCtrlFd)) as i32,
            client: word(arg, offset_of!(P, hClient)),
            memory: word(arg, offset_of!(P, hMemory)),
        }
    }

    /// Checks the attributes of each GPU. The result is whether the mapping is read-only.
    fn read_only(&self, space: &Space, arg: &[u8]) -> RmResult<bool> {
        const AT: usize = offset_of!(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, perGpuAttributes);
        const ATTRIBUTES: u64 = 256;
        if self.count == 0 || self.count > ATTRIBUTES {
            fail!(NV_ERR_INVALID_ARGUMENT, "gpuAttributesCount {}: must be 1 to {ATTRIBUTES}", self.count);
        }
        let mut read_only = false;
        for bytes in arg[AT..].chunks_exact(size_of::<UvmGpuMappingAttributes>()).take(self.count as usize) {
            let attributes: UvmGpuMappingAttributes = get(bytes);
            space.check_gpu(&attributes.gpuUuid)?;
            if attributes.gpuMappingType > READ_ONLY {
                fail!(NV_ERR_INVALID_ARGUMENT, "mapping type {}: must be 0 to 3", attributes.gpuMappingType);
            }
            read_only = attributes.gpuMappingType == READ_ONLY;
        }
        Ok(read_only)
    }
}

pub fn map_external(call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p = MapExternal::of(arg);
    let what = || format!("mapping memory {:#x} at {:#x}+{:#x}", p.memory, p.base, p.length);
    let read_only = p.read_only(space, arg).during(what)?;
    check_pages(p.offset, p.length).during(what)?;
    check_control_fd(call, p.control_fd)?;
    space.ranges.external(p.base, p.length).during(what)?;
    let memory = call.rm().external_memory(p.client, p.memory).during(what)?;
    let extent = Extent {
        own: memory.own_pages(p.client, p.memory),
        memory,
        space: space.vaspace()?.clone(),
        va: p.base,
        len: p.length,
        offset: p.offset,
        read_only,
    };
    let range = space.ranges.external(p.base, p.length)?;
    Ok(range.map(extent).during(what)?)
}

pub fn unmap_external(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_UNMAP_EXTERNAL_PARAMS = get(arg);
    space.check_gpu(&p.gpuUuid)?;
    Ok(space.ranges.external(p.base, p.length)?.unmap(p.base, p.base + p.length)?)
}

/// Frees a range. Frontends never free the object with which they registered their own pages, so that it ends with its
/// last mapping: it would keep the pages, and the addresses in the device's own space, as long as the process lives.
pub fn free(call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_FREE_PARAMS = get(arg);
    for pages in space.ranges.free(p.base)? {
        call.rm().end_own_pages(&pages);
    }
    Ok(())
}
