//! Devices: opening, waiting, faults.

use super::super::guard::status;
use super::super::instance;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, QUEUES, close_device};
use super::opaque::tegrarm_device;
use super::pointers::{give, give_any, present};
use super::printf::print_to_standard_output;
use crate::runtime::device::Device;
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::fault::{Cause, FaultInfo};
use std::ffi::c_char;
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::fail;

/// A wait without a limit: a value of every `timeout_ns`.
pub const TEGRARM_WAIT_FOREVER: u64 = u64::MAX;
/// A wait that only looks: a value of every `timeout_ns`.
pub const TEGRARM_WAIT_POLL: u64 = 0;
/// `tegrarm_fault.sm` when no SM reported an error.
pub const TEGRARM_FAULT_NO_SM: u32 = u32::MAX;
/// Bytes of `tegrarm_fault.text`, with its NUL.
pub const TEGRARM_FAULT_TEXT_SIZE: usize = 256;
/// The number of bytes of `tegrarm_fault.sentence`, with its NUL.
pub const TEGRARM_FAULT_SENTENCE_SIZE: usize = 4096;

/// The cause for which a device stopped: a value of `tegrarm_fault.cause`. Later versions may add values.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_fault_cause {
    /// Nothing: the device works.
    TEGRARM_FAULT_NONE = 0,
    /// The GPU accessed an address that is not mapped, or wrote one that is mapped read-only.
    TEGRARM_FAULT_MMU = 1,
    /// An SM refused an instruction: it is illegal, or its address is bad.
    TEGRARM_FAULT_SM = 2,
    /// The compute engine refused a launch or a method.
    TEGRARM_FAULT_COMPUTE = 3,
    /// The work did not end in time while another channel waited.
    TEGRARM_FAULT_TIMEOUT = 4,
    /// The pushbuffer cannot be decoded.
    TEGRARM_FAULT_PUSHBUFFER = 5,
    /// Another error.
    TEGRARM_FAULT_OTHER = 6,
    /// The kernel executed a trap.
    TEGRARM_FAULT_TRAP = 7,
    /// An assertion of the kernel failed.
    TEGRARM_FAULT_ASSERT = 8,
    /// The kernel freed memory that `malloc` did not give, or that it had freed before.
    TEGRARM_FAULT_FREE = 9,
}

impl tegrarm_fault_cause {
    fn of(cause: Cause) -> tegrarm_fault_cause {
        match cause {
            Cause::Mmu => Self::TEGRARM_FAULT_MMU,
            Cause::Sm => Self::TEGRARM_FAULT_SM,
            Cause::Trap => Self::TEGRARM_FAULT_TRAP,
            Cause::Assert => Self::TEGRARM_FAULT_ASSERT,
            Cause::Free => Self::TEGRARM_FAULT_FREE,
            Cause::Graphics => Self::TEGRARM_FAULT_COMPUTE,
            Cause::Timeout => Self::TEGRARM_FAULT_TIMEOUT,
            Cause::Pushbuffer => Self::TEGRARM_FAULT_PUSHBUFFER,
            Cause::Other => Self::TEGRARM_FAULT_OTHER,
        }
    }
}

/// What stopped a device. Set `size` to `sizeof(struct tegrarm_fault)` before the call. Later versions only append
/// fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_fault {
    /// Before the call, how many bytes the caller has. After it, how many bytes are valid.
    pub size: usize,
    /// A value of `enum tegrarm_fault_cause`.
    pub cause: u32,
    /// The error code that nvgpu wrote to the error notifier of the channel, one of its `NVGPU_CHANNEL_` constants.
    pub code: u32,
    /// Number of the channel that was stopped.
    pub channel: u32,
    /// Number of the SM that reported an error, or `TEGRARM_FAULT_NO_SM`.
    pub sm: u32,
    /// The warp error register (`hww_warp_esr`) of that SM. It is 0 if no SM reported an error.
    pub warp_error: u32,
    /// GPU address of the instruction at which that SM stopped. It is 0 if no SM reported an error.
    pub pc: u64,
    /// The beginning of the sentence, with a NUL at its end.
    pub text: [c_char; TEGRARM_FAULT_TEXT_SIZE],
    /// A sentence that describes the fault completely, with a NUL at its end.
    pub sentence: [c_char; TEGRARM_FAULT_SENTENCE_SIZE],
}

/// The number of bytes that the structure had before `sentence` was added.
const FIRST_SIZE: usize = std::mem::offset_of!(tegrarm_fault, sentence);

/// Opens GPU `index`, which is 0 on a Tegra: an address space, a channel with the compute and copy engines, and local
/// memory. `*device` is a new handle. Close it with `tegrarm_device_close`.
///
/// A GPU can be opened several times. Each device has memory of its own, which kernels of the others cannot read. No two of up to 14 devices
/// of a process that are open at the same time have memory at the same address.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `device` is NULL.
/// - `NV_ERR_INVALID_DEVICE`: there is no GPU `index`.
/// - `NV_ERR_CARD_NOT_PRESENT`, `NV_ERR_INSUFFICIENT_PERMISSIONS`: the GPU cannot be opened, as in
///   `tegrarm_device_count`.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the GPU has no channel left, or no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_open(index: NvU32, device: *mut *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        present(device, "device")?;
        let opened = Device::open(&instance::get()?, index)?;
        print_to_standard_output(&opened);
        let handle = DEVICES.insert(opened.clone())?;
        if let Err(e) = QUEUES.insert(QueueRef::own(&opened)) {
            let _ = DEVICES.remove(handle);
            return Err(e);
        }
        // SAFETY: `device` is not NULL and so valid for writes, as `tegrarm_device_open` asks of its caller.
        unsafe { give(device, handle, "device") }
    })
}

/// Closes a device and everything that belongs to it: its buffers, modules, kernels and replays. All these handles, and
/// all pointers into its buffers, are invalid afterwards. The call waits up to ten seconds for work that has not
/// finished.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_device_close(device: *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        close_device(DEVICES.remove(device)?);
        Ok(())
    })
}

/// Waits until the work up to `fence`, of any queue of the device, has finished. The call reads in a loop for a short
/// time, and then it sleeps.
///
/// `timeout_ns` is how long to wait at most, in nanoseconds. `TEGRARM_WAIT_FOREVER` sets no limit, and
/// `TEGRARM_WAIT_POLL` looks once without sleeping.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence. The call returns at once; `tegrarm_device_fault` says
///   what happened.
/// - `NV_ERR_RESOURCE_LOST`: a fault stopped the queue before the work finished, and `tegrarm_device_recover` was called since.
/// - `NV_ERR_TIMEOUT`: the time is over. The work goes on and can be waited for again.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_wait(device: *mut tegrarm_device, fence: NvU64, timeout_ns: NvU64) -> NV_STATUS {
    status(|| DEVICES.get(device)?.wait(fence, deadline(timeout_ns)))
}

/// How long a wait takes at most.
pub(super) fn deadline(timeout_ns: NvU64) -> Option<Duration> {
    (timeout_ns != TEGRARM_WAIT_FOREVER).then(|| Duration::from_nanos(timeout_ns))
}

/// Says what stopped a queue of a device: writes the fault to `*fault`. `fault->cause` is `TEGRARM_FAULT_NONE` while
/// the device works. The queue runs nothing until `tegrarm_device_recover` is called. Other queues continue. If several
/// were stopped, the fault is that of the queue that was opened first.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `fault` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `fault->size` is smaller than the structure.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_fault(device: *mut tegrarm_device, fault: *mut tegrarm_fault) -> NV_STATUS {
    status(|| {
        present(fault, "fault")?;
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*fault).size).read_unaligned() };
        if size < FIRST_SIZE {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "fault->size is {size}: set it to sizeof(struct tegrarm_fault)");
        }
        let mut found = tegrarm_fault::of(DEVICES.get(device)?.fault()?);
        found.size = size.min(size_of::<tegrarm_fault>());
        // SAFETY: the caller has memory for that many bytes, and they are not more than the structure has.
        unsafe { std::ptr::copy_nonoverlapping((&raw const found).cast::<u8>(), fault.cast::<u8>(), found.size) };
        Ok(())
    })
}

impl tegrarm_fault {
    fn of(info: Option<FaultInfo>) -> tegrarm_fault {
        let size = size_of::<tegrarm_fault>();
        let mut fault = tegrarm_fault {
            size,
            cause: tegrarm_fault_cause::TEGRARM_FAULT_NONE as u32,
            code: 0,
            channel: 0,
            sm: TEGRARM_FAULT_NO_SM,
            warp_error: 0,
            pc: 0,
            text: [0; TEGRARM_FAULT_TEXT_SIZE],
            sentence: [0; TEGRARM_FAULT_SENTENCE_SIZE],
        };
        let Some(info) = info else { return fault };
        fault.cause = tegrarm_fault_cause::of(info.cause) as u32;
        (fault.code, fault.channel) = (info.code, info.channel);
        (fault.sm, fault.warp_error) = info.sm.unwrap_or((TEGRARM_FAULT_NO_SM, 0));
        fault.pc = info.pc.unwrap_or(0);
        let sentence = info.to_string();
        put_text(&mut fault.text, &sentence);
        put_text(&mut fault.sentence, &sentence);
        fault
    }
}

/// Writes a sentence to `to`. A sentence that is too long is cut. There is always a NUL at the end.
fn put_text(to: &mut [c_char], sentence: &str) {
    let mut end = sentence.len().min(to.len() - 1);
    while !sentence.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in to.iter_mut().zip(sentence[..end].bytes()) {
        *to = from as c_char;
    }
}

/// Stops the queues of a device whose work has not finished, as a fault does: a kernel that never ends, for example. If
/// `stopped` is not NULL, `*stopped` is how many there were. `tegrarm_device_recover` makes them work again.
///
/// Queues that have finished their work are not disturbed. A replay has its own channel, which is not stopped.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_stop(device: *mut tegrarm_device, stopped: *mut NvU32) -> NV_STATUS {
    status(|| {
        let count = DEVICES.get(device)?.stop()?;
        // SAFETY: `stopped` is NULL or valid for writes, as `tegrarm_device_stop` asks of its caller.
        unsafe { give_any(stopped, count as NvU32) };
        Ok(())
    })
}

/// Makes the queues of a device that a fault stopped work again. If `recovered` is not NULL, `*recovered` is how many there
/// were, which is 0 for a device that works.
///
/// The work that these queues had not finished is lost: `tegrarm_wait` returns `NV_ERR_RESOURCE_LOST` for its fences,
/// and a part of what it would have written may be written. Everything else is kept: all handles, buffers with their
/// addresses and contents, modules with their variables, events, fences that have passed, limits. Other queues that
/// wait for lost work continue. A replay has its own channel, and stays stopped if a fault stopped it.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory. The device stays stopped, and the call can be made again.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the GPU has no channel left. The call can be made again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_recover(device: *mut tegrarm_device, recovered: *mut NvU32) -> NV_STATUS {
    status(|| {
        let count = DEVICES.get(device)?.recover()?;
        // SAFETY: `recovered` is NULL or valid for writes, as `tegrarm_device_recover` asks of its caller.
        unsafe { give_any(recovered, count as NvU32) };
        Ok(())
    })
}
