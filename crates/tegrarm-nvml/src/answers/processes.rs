//! The processes that use the GPU.

use super::Device;
use crate::abi::*;
use crate::clients::Client;
use crate::pointers::{give, list, present, take, version};
use crate::result::Answer;
use crate::session::{clients, device};

/// NVML's number for memory that is not known, and for a GPU that is not divided into instances.
const UNKNOWN: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

pub unsafe fn compute_v1(of: Device, count: *mut u32, to: *mut nvmlProcessInfo_v1_t) -> Answer {
    device(of)?;
    let item =
        |client: Client| nvmlProcessInfo_v1_t { pid: client.process, usedGpuMemory: client.bytes.unwrap_or(UNKNOWN) };
    // SAFETY: see `super`.
    unsafe { list(count, to, clients().into_iter().map(item).collect()) }
}

pub unsafe fn compute(of: Device, count: *mut u32, to: *mut nvmlProcessInfo_t) -> Answer {
    device(of)?;
    let item = |client: Client| nvmlProcessInfo_t {
        pid: client.process,
        usedGpuMemory: client.bytes.unwrap_or(UNKNOWN),
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    };
    // SAFETY: see `super`.
    unsafe { list(count, to, clients().into_iter().map(item).collect()) }
}

/// The list is empty, so that its version does not matter.
pub unsafe fn graphics(of: Device, count: *mut u32, _to: *mut u8) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(count, 0) }
}

pub unsafe fn details(of: Device, to: *mut nvmlProcessDetailList_t) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    let mut asked = unsafe {
        version(to, nvmlProcessDetailList_v1)?;
        take(to)
    }?;
    // The modes are compute, graphics and MPS. There is only the first.
    let found = if asked.mode == 0 { clients() } else { vec![] };
    let room = asked.numProcArrayEntries as usize;
    asked.numProcArrayEntries = found.len() as u32;
    // SAFETY: see `super`.
    unsafe { give(to, asked) }?;
    if room < found.len() {
        return Err(NVML_ERROR_INSUFFICIENT_SIZE);
    }
    if !found.is_empty() {
        present(asked.procArray)?;
    }
    for (at, client) in found.into_iter().enumerate() {
        let detail = nvmlProcessDetail_v1_t {
            pid: client.process,
            usedGpuMemory: client.bytes.unwrap_or(UNKNOWN),
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
            usedGpuCcProtectedMemory: 0,
        };
        // SAFETY: the array has room for all, as its caller says, see `super`.
        unsafe { asked.procArray.add(at).write_unaligned(detail) };
    }
    Ok(())
}
