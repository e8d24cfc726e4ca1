//! Devices: opening, waiting, faults.

use super::super::guard::status;
use super::super::instance;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, close_device};
use super::opaque::tegrarm_device;
use super::pointers::{give, present};
use crate::runtime::device::Device;
use crate::runtime::fault::{Cause, FaultInfo};
use crate::status::fail;
use std::ffi::c_char;
use std::time::Duration;
use tegrarm_abi::rm::status::*;

/// What stopped a device. Set `size` to `sizeof` before the call; later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_fault {
    /// In: bytes the caller has. Out: bytes that are valid.
    pub size: usize,
    /// 0 none: the device works; 1 MMU fault; 2 SM exception; 3 exception of the compute engine; 4 scheduler
    /// timeout; 5 error in the pushbuffer; 6 another.
    pub cause: u32,
    /// nvgpu's error code (`NVGPU_CHANNEL_*`).
    pub code: u32,
    /// Number of the channel.
    pub channel: u32,
    /// The SM that reported an error; `UINT32_MAX`: none did.
    pub sm: u32,
    /// That SM's warp error register; 0 without one.
    pub warp_error: u32,
    /// Address of the instruction; 0 without one.
    pub pc: u64,
    /// A sentence with all of it, NUL-terminated.
    pub text: [c_char; 256],
}

/// Opens GPU `index` (0 on a Tegra): an address space, a channel with compute and copy engines, local memory.
///
/// `*device` is a new handle; close it with `tegrarm_device_close`. Any thread may use it. Errors: 0x26 no such
/// device, 0x3D NULL, 0x51 out of memory, what `tegrarm_device_count` says when there is no GPU at all.
///
/// # Safety
/// `device` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_open(index: NvU32, device: *mut *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        present(device, "device")?;
        let opened = Device::open(&instance::get()?, index)?;
        // SAFETY: `device` is not NULL and so valid for writes, as `tegrarm_device_open` asks of its caller.
        unsafe { give(device, DEVICES.insert(opened)?, "device") }
    })
}

/// Closes a device and everything that belongs to it: buffers, modules, kernels and replays. Waits up to ten seconds for work
/// in flight. Pointers into its buffers are invalid afterwards. Errors: 0x57 no such device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_device_close(device: *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        close_device(DEVICES.remove(device)?);
        Ok(())
    })
}

/// `*fence` is what to wait for to have all work given so far finished. Errors: 0x57 no such device, 0x3D NULL.
///
/// # Safety
/// `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence(device: *mut tegrarm_device, fence: *mut NvU64) -> NV_STATUS {
    status(|| {
        let last = DEVICES.get(device)?.fence();
        // SAFETY: `fence` is not NULL and so valid for writes, as `tegrarm_fence` asks of its caller.
        unsafe { give(fence, last, "fence") }
    })
}

/// Waits until everything up to `fence` has finished: spins shortly, then sleeps. `timeout_ns` is how long to wait at
/// most, in nanoseconds; `UINT64_MAX` waits for as long as it takes, 0 only looks.
///
/// Errors: 0x57 no such device, 0x1F a fence never given, 0x62 the device was stopped by a fault (at once; the sentence
/// names it), 0x65 the time is over (the sentence says what is pending).
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_wait(device: *mut tegrarm_device, fence: NvU64, timeout_ns: NvU64) -> NV_STATUS {
    status(|| {
        let deadline = (timeout_ns != u64::MAX).then(|| Duration::from_nanos(timeout_ns));
        DEVICES.get(device)?.wait(fence, deadline)
    })
}

/// What stopped a device; `cause` 0 while it works. A stopped device runs nothing any more: close it.
///
/// Errors: 0x57 no such device, 0x3D NULL, 0x3A `fault->size` too small.
///
/// # Safety
/// `fault` is NULL or points at `fault->size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_fault(device: *mut tegrarm_device, fault: *mut tegrarm_fault) -> NV_STATUS {
    status(|| {
        present(fault, "fault")?;
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*fault).size).read_unaligned() };
        if size < size_of::<tegrarm_fault>() {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "fault->size is {size}: set it to sizeof(struct tegrarm_fault)");
        }
        let found = tegrarm_fault::of(DEVICES.get(device)?.fault()?);
        // SAFETY: the caller has at least that many bytes.
        unsafe { give(fault, found, "fault") }
    })
}

impl tegrarm_fault {
    fn of(info: Option<FaultInfo>) -> tegrarm_fault {
        let size = size_of::<tegrarm_fault>();
        let mut fault =
            tegrarm_fault { size, cause: 0, code: 0, channel: 0, sm: u32::MAX, warp_error: 0, pc: 0, text: [0; 256] };
        let Some(info) = info else { return fault };
        fault.cause = match info.cause {
            Cause::Mmu => 1,
            Cause::Sm => 2,
            Cause::Graphics => 3,
            Cause::Timeout => 4,
            Cause::Pushbuffer => 5,
            Cause::Other => 6,
        };
        (fault.code, fault.channel) = (info.code, info.channel);
        (fault.sm, fault.warp_error) = info.sm.unwrap_or((u32::MAX, 0));
        fault.pc = info.pc.unwrap_or(0);
        for (to, from) in fault.text[..255].iter_mut().zip(info.to_string().bytes()) {
            *to = from as c_char;
        }
        fault
    }
}
