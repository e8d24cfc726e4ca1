//! The escapes that concern the node itself: cards, versions and events.

use super::call::{Call, Fail, invalid};
use super::node::Kind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::params::{edit, get, put, set_text};
use tegrarm_rm::rm::{DRIVER_VERSION, GPU_ID};
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::FromZeros;

/// NVIDIA's PCI vendor id.
const VENDOR: u16 = 0x10de;
/// The number that says that memory belongs to no NUMA node.
const NO_NODE: i32 = -1;
/// `NV_RM_API_VERSION_CMD_STRICT`: the versions must be equal. The other commands only ask for the version.
const STRICT: u32 = 0;
/// `NV_RM_API_VERSION_REPLY_RECOGNIZED`.
const RECOGNIZED: u32 = 1;

/// Describes the only card in the first element and fills the other elements with zeros. Bytes behind the last whole
/// element are not written.
pub fn card_info(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut card = nv_ioctl_card_info_t::new_zeroed();
    card.valid = 1;
    card.pci_info.bus = (GPU_ID >> 8) as u8;
    card.pci_info.vendor_id = VENDOR;
    card.pci_info.device_id = call.file.held().pci_device_id();
    card.gpu_id = GPU_ID;
    set_text(&mut card.dev_name, "nvidia0");
    let whole = arg.len() - arg.len() % size_of_val(&card);
    arg[..whole].fill(0);
    put(arg, &card);
    Ok(())
}

/// Ties a file to a control file. This is possible once, and not with a control file that is itself tied to another
/// one.
pub fn register_fd(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: nv_ioctl_register_fd_t = get(arg);
    let control = match call.other(p.ctl_fd) {
        Some(file) if file.kind == Kind::Control => file,
        _ => return Err(invalid(format!("descriptor {} is no open file of /dev/nvidiactl", p.ctl_fd))),
    };
    if Arc::ptr_eq(&control, call.file) || control.is_registered() {
        return Err(invalid(format!("descriptor {} is the same file, or itself registered with another", p.ctl_fd)));
    }
    if !call.file.register(control) {
        return Err(invalid("this open file was registered before: open another"));
    }
    Ok(())
}

/// Notes that a control file has named the GPUs it will use. A second call is refused.
pub fn attach_gpus(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    for id in arg.chunks_exact(4).map(get::<u32>) {
        if id != GPU_ID {
            return Err(invalid(format!("there is no GPU {id:#x}; the one there is has id {GPU_ID:#x}")));
        }
    }
    if call.file.attached.swap(true, Ordering::Relaxed) {
        return Err(invalid("GPUs were attached to this open file before"));
    }
    Ok(())
}

/// Writes the library's version back, whatever the caller's version is. With the strict command, a caller that has a
/// different version gets an error.
pub fn check_version(_call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: nv_ioctl_rm_api_version_t = get(arg);
    let theirs = p.versionString;
    set_text(&mut p.versionString, DRIVER_VERSION);
    p.reply = RECOGNIZED;
    put(arg, &p);
    let len = theirs.iter().position(|b| *b == 0).unwrap_or(theirs.len());
    let theirs = String::from_utf8_lossy(&theirs[..len]);
    if p.cmd == STRICT && theirs != DRIVER_VERSION {
        return Err(invalid(format!("the caller is made for driver {theirs}; this is {DRIVER_VERSION}")));
    }
    Ok(())
}

/// Notes or forgets a descriptor for events.
pub fn os_event(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: nv_ioctl_alloc_os_event_t = get(arg);
    Ok(check_event(call, &p)?)
}

fn check_event(call: &Call, p: &nv_ioctl_alloc_os_event_t) -> RmResult<()> {
    let fd = p.fd as i32;
    if call.other(fd).is_none() {
        fail!(NV_ERR_INVALID_ARGUMENT, "descriptor {fd} is no open file of RM's nodes");
    }
    call.rm().object_count(p.hClient).map(drop)
}

/// Answers that the card is in order.
pub fn status_code(_call: &Call, _arg: &mut [u8]) -> Result<(), Fail> {
    Ok(())
}

/// Answers that the GPU has no NUMA node, because it has no memory of its own.
pub fn numa_info(_call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    arg.fill(0);
    edit(arg, |p: &mut NumaHead| p.nid = NO_NODE);
    Ok(())
}

/// The start of `nv_ioctl_numa_info_t`. The rest of the structure is zero.
#[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
#[repr(C)]
struct NumaHead {
    nid: i32,
}

/// Answers at once, because opening a node is complete when `open(2)` returns.
pub fn wait_open_complete(_call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    put(arg, &nv_ioctl_wait_open_complete_t { rc: 0, adapterStatus: NV_OK });
    Ok(())
}
