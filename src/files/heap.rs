//! `NV_ESC_RM_VID_HEAP_CONTROL`: the older way to allocate memory. It uses the same allocator as `NV_ESC_RM_ALLOC`.

use super::call::{Call, Fail};
use std::mem::offset_of;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::params::{get, put};
use tegrarm_rm::rm::{MemoryRequest, Rm};
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The offset at which the union of functions starts.
const DATA: usize = offset_of!(NVOS32_PARAMETERS, data);
/// `NVOS32_ATTR_LOCATION`, bits 25 and 26.
const LOCATION: u32 = 25;

pub fn control(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut head: NVOS32_PARAMETERS = get(arg);
    let rm = call.rm();
    match head.function {
        NVOS32_FUNCTION_ALLOC_SIZE => answer(arg, |p| alloc_size(rm, &head, p))?,
        NVOS32_FUNCTION_FREE => answer(arg, |p: &mut NVOS32_PARAMETERS_data_Free| rm.free(head.hRoot, p.hMemory))?,
        NVOS32_FUNCTION_ALLOC_OS_DESCRIPTOR => answer(arg, |p| alloc_os_descriptor(rm, &head, p))?,
        NVOS32_FUNCTION_INFO => {
            (head.total, head.free) = call.file.held().memory()?;
            answer(arg, |p: &mut NVOS32_PARAMETERS_data_Info| {
                (p.offset, p.size, p.base) = (0, head.free, 0);
                Ok(())
            })?;
        }
        other => refuse(other)?,
    }
    if head.function == NVOS32_FUNCTION_INFO {
        let data = arg[DATA..].to_vec();
        put(arg, &head);
        arg[DATA..].copy_from_slice(&data);
    }
    Ok(())
}

fn refuse(function: u32) -> RmResult<()> {
    fail!(
        NV_ERR_NOT_SUPPORTED,
        "function {function}; there are ALLOC_SIZE ({NVOS32_FUNCTION_ALLOC_SIZE}), FREE ({NVOS32_FUNCTION_FREE}), INFO ({NVOS32_FUNCTION_INFO}) and ALLOC_OS_DESCRIPTOR ({NVOS32_FUNCTION_ALLOC_OS_DESCRIPTOR})"
    )
}

/// Runs a function on its own member of the union.
fn answer<T: FromBytes + IntoBytes + Immutable>(
    arg: &mut [u8],
    run: impl FnOnce(&mut T) -> RmResult<()>,
) -> RmResult<()> {
    let data = &mut arg[DATA..];
    let mut member: T = get(data);
    run(&mut member)?;
    put(data, &member);
    Ok(())
}

fn alloc_size(rm: &Rm, head: &NVOS32_PARAMETERS, p: &mut NVOS32_PARAMETERS_data_AllocSize) -> RmResult<()> {
    let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    (params.owner, params.type_, params.flags) = (p.owner, p.type_, p.flags);
    (params.attr, params.attr2, params.format) = (p.attr, p.attr2, p.format);
    (params.size, params.alignment, params.offset) = (p.size, p.alignment, p.offset);
    params.hVASpace = head.hVASpace;
    let virtual_range = p.flags & NVOS32_ALLOC_FLAGS_VIRTUAL != 0;
    let class = match p.attr >> LOCATION & 3 {
        _ if virtual_range => NV50_MEMORY_VIRTUAL,
        NVOS32_ATTR_LOCATION_VIDMEM => NV01_MEMORY_LOCAL_USER,
        _ => NV01_MEMORY_SYSTEM,
    };
    let prepared = rm.prepare_alloc(class, true, 0)?;
    p.hMemory = rm.alloc(prepared, head.hRoot, head.hObjectParent, p.hMemory, params.as_mut_bytes())?;
    (p.size, p.offset, p.limit, p.alignment) = (params.size, params.offset, params.limit, params.alignment);
    Ok(())
}

fn alloc_os_descriptor(rm: &Rm, head: &NVOS32_PARAMETERS, p: &mut NVOS32_PARAMETERS_data_AllocOsDesc) -> RmResult<()> {
    if p.descriptorType != NVOS32_DESCRIPTOR_TYPE_VIRTUAL_ADDRESS {
        fail!(NV_ERR_NOT_SUPPORTED, "descriptor type {}: only virtual addresses (0)", p.descriptorType);
    }
    let request = MemoryRequest {
        class: NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        flags: NVOS02_FLAGS_LOCATION_PCI << 8 | NVOS02_FLAGS_MAPPING_NO_MAP << 30,
        address: p.descriptor,
        limit: p.limit,
    };
    (p.hMemory, _) = rm.alloc_memory(head.hRoot, head.hObjectParent, p.hMemory, &request)?;
    Ok(())
}
