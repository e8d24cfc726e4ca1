//! The escapes that are RM's verbs. Each unpacks its structure, calls the core and packs the answer.

use super::call::{Call, Fail, Outcome, fault, finish, invalid};
use super::node::Kind;
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::{NV01_EVENT, NV01_EVENT_OS_EVENT, NV01_MEMORY_SYSTEM};
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::NVOS46_PARAMETERS_V580;
use tegrarm_kmd::memory::{Own, Unwritable};
use tegrarm_rm::rm::params::{get, put, set_word};
use tegrarm_rm::rm::{Borrower, DmaRequest, MapRequest, MemoryRequest, PreparedControl, user};
use tegrarm_rm::status::{During, RmError, RmResult, fail};
use zerocopy::{FromZeros, IntoBytes};

/// The offset of the new handle, which is the same in every form of allocation.
const NEW: usize = offset_of!(NVOS21_PARAMETERS, hObjectNew);

/// The fields that all forms of `NV_ESC_RM_ALLOC` and `NV_ESC_RM_ALLOC_OBJECT` have in common.
struct Alloc {
    root: u32,
    parent: u32,
    wanted: u32,
    class: u32,
    params: u64,
    /// The size of the class's parameters. 0 means the size that the class has. The size in the short form is ignored,
    /// because RM never looked at it.
    size: u32,
}

pub fn alloc(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let short: NVOS21_PARAMETERS = get(arg);
    if call.file.kind != Kind::Control && !matches!(short.hClass, NV01_EVENT | NV01_EVENT_OS_EVENT) {
        return Err(invalid("on /dev/nvidia0 it makes events only; other classes belong to /dev/nvidiactl"));
    }
    let size = if arg.len() == size_of::<NVOS64_PARAMETERS>() { get::<NVOS64_PARAMETERS>(arg).paramsSize } else { 0 };
    let request = Alloc {
        root: short.hRoot,
        parent: short.hObjectParent,
        wanted: short.hObjectNew,
        class: short.hClass,
        params: short.pAllocParms,
        size,
    };
    alloc_any(call, arg, &request)
}

pub fn alloc_object(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: NVOS05_PARAMETERS = get(arg);
    let (root, parent, wanted, class) = (p.hRoot, p.hObjectParent, p.hObjectNew, p.hClass);
    alloc_any(call, arg, &Alloc { root, parent, wanted, class, params: 0, size: 0 })
}

fn alloc_any(call: &Call, arg: &mut [u8], request: &Alloc) -> Result<(), Fail> {
    let rm = call.rm();
    let prepared = rm.prepare_alloc(request.class, request.params != 0, request.size)?;
    call.check_client(request.root)?;
    let made = user::with_copy(request.params, prepared.params_len(), |params| {
        rm.alloc(prepared, request.root, request.parent, request.wanted, params)
    });
    let handle = match made {
        Ok((handle, None)) => handle,
        Ok((handle, Some(unwritable))) => {
            let root = if request.root == 0 { handle } else { request.root };
            rm.free(root, handle)?;
            return Err(unwritable.into());
        }
        Err(e) => return Err(e.into()),
    };
    if request.root == 0 {
        call.file.own_client(handle);
    }
    set_word(arg, NEW, handle);
    Ok(())
}

pub fn free(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: NVOS00_PARAMETERS = get(arg);
    call.rm().free(p.hRoot, p.hObjectOld)?;
    if p.hRoot == p.hObjectOld {
        call.file.disown_client(p.hRoot);
    }
    Ok(())
}

/// Answers RM_CONTROL, the call that frontends make most. The structure and the parameters are copied out with one
/// system call.
#[inline(always)]
pub fn control(call: &Call, argp: u64) -> Outcome {
    const LEN: usize = size_of::<NVOS54_PARAMETERS>();
    let own = Own::now();
    let mut arg = [0; LEN];
    if own.read(argp, &mut arg).is_err() {
        return Err(fault(user::bad_pointer("read", argp, LEN)));
    }
    let p: NVOS54_PARAMETERS = get(&arg);
    let prepared = match prepare_control(call, &p) {
        Ok(prepared) => prepared,
        Err(e) => return refuse_control(argp, &mut arg, e),
    };
    user::with_room(p.paramsSize as usize, |params| {
        if !params.is_empty() && own.read(p.params, params).is_err() {
            return refuse_control(argp, &mut arg, user::bad_pointer("read", p.params, params.len()));
        }
        if let Err(e) = call.rm().control(&prepared, params) {
            return refuse_control(argp, &mut arg, e);
        }
        set_word(&mut arg, CONTROL_STATUS, NV_OK);
        match own.write_both((p.params, params), (argp, &arg)) {
            Ok(()) => Ok(None),
            Err(Unwritable::First) => {
                refuse_control(argp, &mut arg, user::bad_pointer("written", p.params, params.len()))
            }
            Err(Unwritable::Second) => Err(fault(user::bad_pointer("written", argp, LEN))),
        }
    })
}

const CONTROL_STATUS: usize = offset_of!(NVOS54_PARAMETERS, status);

#[cold]
fn refuse_control(argp: u64, arg: &mut [u8], e: RmError) -> Outcome {
    finish(argp, arg, Some(CONTROL_STATUS), Err(e.into()))
}

#[inline(always)]
fn prepare_control(call: &Call, p: &NVOS54_PARAMETERS) -> RmResult<PreparedControl> {
    if p.flags != 0 {
        check_control_flags(p.flags)?;
    }
    let prepared = call.rm().prepare_control(p.hClient, p.hObject, p.cmd, p.params != 0, p.paramsSize);
    if call.file.owns_client(p.hClient) { prepared } else { of_foreign_client(call, p.hClient, prepared) }
}

/// RM checks the pointer and the size first, then whether the client belongs to the file, and then everything else.
#[cold]
fn of_foreign_client(call: &Call, client: u32, prepared: RmResult<PreparedControl>) -> RmResult<PreparedControl> {
    match prepared {
        Err(e) if e.status == NV_ERR_INVALID_ARGUMENT => Err(e),
        other => call.check_client(client).and(other),
    }
}

fn check_control_flags(flags: u32) -> RmResult<()> {
    if flags & (NVOS54_FLAGS_IRQL_RAISED | NVOS54_FLAGS_LOCK_BYPASS) != 0 {
        fail!(NV_ERR_INVALID_CLIENT, "control flags {flags:#x}: only the kernel may set those");
    }
    if flags & NVOS54_FLAGS_FINN_SERIALIZED != 0 {
        fail!(NV_ERR_NOT_SUPPORTED, "control flags {flags:#x}: serialized parameters are not understood");
    }
    Ok(())
}

pub fn dup_object(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: NVOS55_PARAMETERS = get(arg);
    p.hObject = call.rm().dup_object(p.hClient, p.hParent, p.hObject, p.hClientSrc, p.hObjectSrc)?;
    put(arg, &p);
    Ok(())
}

/// Allocates memory as the escape asks. The descriptor stays the caller's. With class 0x3E, if a mapping is wanted, the
/// descriptor becomes the one that the caller maps.
pub fn alloc_memory(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: nv_ioctl_nvos02_parameters_with_fd = get(arg);
    let q = &mut p.params;
    let mapped_by_fd = q.hClass == NV01_MEMORY_SYSTEM && p.fd >= 0 && q.flags >> 30 == NVOS02_FLAGS_MAPPING_DEFAULT;
    let flags = if mapped_by_fd { q.flags | NVOS02_FLAGS_MAPPING_NO_MAP << 30 } else { q.flags };
    let request = MemoryRequest { class: q.hClass, flags, address: q.pMemory, limit: q.limit };
    let (handle, address) = call.rm().alloc_memory(q.hRoot, q.hObjectParent, q.hObjectNew, &request)?;
    q.hObjectNew = handle;
    if let Some(address) = address {
        q.pMemory = address as u64;
    }
    if mapped_by_fd {
        let map = MapRequest { memory: handle, offset: 0, length: q.limit + 1, at: None, flags: 0 };
        match lend(call, q.hRoot, q.hObjectParent, &map, p.fd) {
            Ok(cookie) => q.pMemory = cookie,
            Err(e) => {
                call.rm().free(q.hRoot, handle)?;
                return Err(e.into());
            }
        }
    }
    put(arg, &p);
    Ok(())
}

/// Maps memory in the way that the descriptor asks for. A caller that names a descriptor maps it itself. A caller that
/// names none (-1) gets an address.
pub fn map_memory(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: nv_ioctl_nvos33_parameters_with_fd = get(arg);
    let q = &mut p.params;
    let map = MapRequest { memory: q.hMemory, offset: q.offset, length: q.length, at: None, flags: q.flags };
    q.pLinearAddress = if p.fd < 0 {
        call.rm().map_memory(q.hClient, q.hDevice, &map)? as u64
    } else {
        lend(call, q.hClient, q.hDevice, &map, p.fd)?
    };
    put(arg, &p);
    Ok(())
}

fn lend(call: &Call, client: u32, device: u32, map: &MapRequest, fd: i32) -> RmResult<u64> {
    let Some((file, node)) = call.other(fd).and_then(|f| f.lent_node().map(|node| (f, node))) else {
        fail!(NV_ERR_INVALID_ARGUMENT, "descriptor {fd} is no open file of /dev/nvidiactl or /dev/nvidia0");
    };
    if file.lent.swap(true, Ordering::Relaxed) {
        fail!(NV_ERR_STATE_IN_USE, "descriptor {fd} has something to map already: open another");
    }
    let lent = call.rm().lend_memory(client, device, map, Borrower { node, fd });
    match lent {
        Ok(_) => call.table.lent(fd, &file),
        Err(_) => file.lent.store(false, Ordering::Relaxed),
    }
    lent.during(|| format!("mapping through descriptor {fd}"))
}

pub fn unmap_memory(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: NVOS34_PARAMETERS = get(arg);
    Ok(call.rm().unmap_memory(p.hClient, p.hDevice, p.hMemory, p.pLinearAddress as usize)?)
}

/// Allocates a context DMA. The client is the parent, because the structure has no other field for a parent.
pub fn alloc_context_dma(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let mut p: NVOS39_PARAMETERS = get(arg);
    let rm = call.rm();
    let mut params = NV_CONTEXT_DMA_ALLOCATION_PARAMS::new_zeroed();
    (params.hSubDevice, params.flags, params.hMemory) = (p.hSubDevice, p.flags, p.hMemory);
    (params.offset, params.limit) = (p.offset, p.limit);
    let prepared = rm.prepare_alloc(p.hClass, true, 0)?;
    let bytes = params.as_mut_bytes();
    if prepared.params_len() != bytes.len() {
        return Err(invalid(format!("class {:#x} is no context DMA", p.hClass)));
    }
    p.hObjectNew = rm.alloc(prepared, p.hObjectParent, p.hObjectParent, p.hObjectNew, bytes)?;
    put(arg, &p);
    Ok(())
}

/// Maps memory into a GPU address space. Both layouts of the structure have the same fields.
pub fn map_memory_dma(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    macro_rules! map_as {
        ($layout:ty) => {{
            let mut p: $layout = get(arg);
            let (offset, length, dma_offset) = (p.offset, p.length, p.dmaOffset);
            let request = DmaRequest { dma: p.hDma, memory: p.hMemory, offset, length, flags: p.flags, dma_offset };
            p.dmaOffset = call.rm().map_memory_dma(p.hClient, p.hDevice, &request)?;
            put(arg, &p);
            Ok(())
        }};
    }
    match arg.len() {
        NEW_MAP_DMA => map_as!(NVOS46_PARAMETERS_V580),
        _ => map_as!(NVOS46_PARAMETERS),
    }
}

const NEW_MAP_DMA: usize = size_of::<NVOS46_PARAMETERS_V580>();

/// The layout of 535 has the fields that are read here at the same places.
pub fn unmap_memory_dma(call: &Call, arg: &mut [u8]) -> Result<(), Fail> {
    let p: NVOS47_PARAMETERS = get(arg);
    Ok(call.rm().unmap_memory_dma(p.hClient, p.hDevice, p.hDma, p.hMemory, p.dmaOffset)?)
}
