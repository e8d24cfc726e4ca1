//! Constructors of objects, one per kind of class. A failing one leaves nothing behind.

use crate::rm::alloc::AllocCall;
use crate::rm::channel::{ChannelObject, ChannelPlan};
use crate::rm::group::{ContextShare, Group};
use crate::rm::memory::{Memory, Traits};
use crate::rm::object::{Device, Kind, Object};
use crate::rm::params;
use crate::rm::usermode::Usermode;
use crate::rm::vaspace::{Management, VaSpace, VirtualRange};
use crate::status::{During, RmResult, fail};
use crate::tegra::{PAGE, USER_VA_END, USER_VA_START};
use std::mem::offset_of;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::NV01_MEMORY_SYSTEM;
use tegrarm_abi::rm::extra::*;
use tegrarm_abi::rm::status::*;

/// The constructor of rows that never get that far: refused ones, and clients, which have no parent.
pub fn never(call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_INVALID_ARGUMENT, "{} is allocated without a client and a parent", call.class.name)
}

pub fn unsupported(call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_NOT_SUPPORTED, "{}", call.class.why)
}

pub fn device(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV0080_ALLOC_PARAMETERS = params::get(call.params);
    if p.deviceId != 0 {
        fail!(NV_ERR_INVALID_DEVICE, "there is no device {}; a Tegra has one GPU, device 0", p.deviceId);
    }
    Ok(Kind::Device(Device { default_space: VaSpace::new(&call.client.gpu, Management::Default) }))
}

pub fn subdevice(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV2080_ALLOC_PARAMETERS = params::get(call.params);
    if p.subDeviceId != 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "there is no subdevice {}; a Tegra has one, 0", p.subDeviceId);
    }
    Ok(Kind::Subdevice)
}

pub fn event(_call: &mut AllocCall) -> RmResult<Kind> {
    Ok(Kind::Event)
}

pub fn context_dma(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV_CONTEXT_DMA_ALLOCATION_PARAMS = params::get(call.params);
    let memory = call.object(p.hMemory)?.memory(NV_ERR_INVALID_OBJECT)?.clone();
    call.depends_on.push(p.hMemory);
    Ok(Kind::ContextDma(memory))
}

pub fn memory(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_MEMORY_ALLOCATION_PARAMS = params::get(call.params);
    if p.size == 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "a size of 0 bytes");
    }
    if p.alignment != 0 && !p.alignment.is_power_of_two() {
        fail!(NV_ERR_INVALID_ARGUMENT, "an alignment of {:#x}: must be a power of two", p.alignment);
    }
    let traits = Traits::of(&p, call.class.number == NV01_MEMORY_SYSTEM);
    let memory = Memory::new(&call.client.gpu, p.size, traits)?;
    (p.size, p.limit, p.offset) = (memory.size, memory.size - 1, 0);
    p.alignment = p.alignment.max(PAGE);
    params::put(call.params, &p);
    Ok(Kind::Memory(Arc::new(memory)))
}

pub fn os_descriptor(_call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_NOT_SUPPORTED, "memory of the process itself is registered with rm_alloc_memory (RM_ALLOC_MEMORY)")
}

pub fn memory_virtual(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS = params::get(call.params);
    let space = call.vaspace(p.hVASpace)?;
    let last = if p.limit == 0 { USER_VA_END - 1 } else { p.limit };
    if p.offset > last {
        fail!(NV_ERR_INVALID_ARGUMENT, "offset {:#x} is above the limit {last:#x}", p.offset);
    }
    // The range a client names may be wider than the GPU's: mappings are checked one by one.
    let range = p.offset..last.saturating_add(1);
    p.limit = last;
    params::put(call.params, &p);
    Ok(Kind::Virtual(Arc::new(VirtualRange { space, range, reserved: false })))
}

pub fn nv50_memory_virtual(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_MEMORY_ALLOCATION_PARAMS = params::get(call.params);
    let space = call.vaspace(p.hVASpace)?;
    if p.size == 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "a size of 0 bytes");
    }
    let fixed = (p.flags & NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE != 0).then_some(p.offset);
    let Some(size) = p.size.checked_next_multiple_of(PAGE).filter(|s| *s <= USER_VA_END) else {
        fail!(NV_ERR_NO_MEMORY, "no {:#x} GPU addresses", p.size);
    };
    let start = space.space()?.reserve(fixed, size, false);
    let start = start.during(|| format!("reserving {size:#x} GPU addresses at {:#x}", fixed.unwrap_or(0)))?;
    (p.size, p.offset, p.limit) = (size, start, start + size - 1);
    params::put(call.params, &p);
    Ok(Kind::Virtual(Arc::new(VirtualRange { space, range: start..start + size, reserved: true })))
}

pub fn vaspace(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_VASPACE_ALLOCATION_PARAMETERS = params::get(call.params);
    let owner = if p.flags & NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED != 0 {
        Management::Client
    } else {
        Management::Library
    };
    // RM clamps what the client asks for to what the GPU has, and says so.
    let start = p.vaBase.clamp(USER_VA_START, USER_VA_END);
    let end = if p.vaSize == 0 { USER_VA_END } else { p.vaBase.saturating_add(p.vaSize).min(USER_VA_END) };
    if end <= start {
        fail!(
            NV_ERR_OUT_OF_RANGE,
            "VA space {:#x}+{:#x} lies outside the GPU's {USER_VA_START:#x}..{USER_VA_END:#x}",
            p.vaBase,
            p.vaSize
        );
    }
    (p.vaBase, p.vaSize) = (start, end - start);
    params::put(call.params, &p);
    Ok(Kind::VaSpace(VaSpace::new(&call.client.gpu, owner)))
}

pub fn group(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS = params::get(call.params);
    let space = call.vaspace(p.hVASpace)?;
    Ok(Kind::Group(Group::new(&call.client.gpu, p.engineType, space, p.hVASpace != 0)?))
}

pub fn context_share(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_CTXSHARE_ALLOCATION_PARAMETERS = params::get(call.params);
    let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
    let space = if p.hVASpace == 0 && group.has_own_space { group.space.clone() } else { call.vaspace(p.hVASpace)? };
    let share = ContextShare::new(&group, &space, p.flags, p.subctxId)?;
    p.subctxId = share.veid;
    params::put(call.params, &p);
    Ok(Kind::ContextShare(Arc::new(share)))
}

pub fn usermode(call: &mut AllocCall) -> RmResult<Kind> {
    Ok(Kind::Usermode(Usermode::new(&call.client.gpu)))
}

/// Byte offsets of the channel parameters that matter; 610 inserted a field.
struct ChannelLayout {
    userd_memory: usize,
    userd_offset: usize,
    engine_type: usize,
    cid: usize,
}

const SINCE_560: ChannelLayout = ChannelLayout {
    userd_memory: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, hUserdMemory),
    userd_offset: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, userdOffset),
    engine_type: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, engineType),
    cid: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, cid),
};
const SINCE_610: ChannelLayout = ChannelLayout {
    userd_memory: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, hUserdMemory),
    userd_offset: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, userdOffset),
    engine_type: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, engineType),
    cid: offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, cid),
};
/// Size of the parameters from 610 on.
pub const SIZE_610: usize = size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610>();

pub fn channel(call: &mut AllocCall) -> RmResult<Kind> {
    let layout = if call.params.len() == SIZE_610 { SINCE_610 } else { SINCE_560 };
    // Everything up to the context share and VA space is where it always was.
    let p: NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS = params::get(call.params);
    let (group, share, space) = find_context(call, &p, params::word(call.params, layout.engine_type))?;
    let userd_handle = params::word(call.params, layout.userd_memory);
    if userd_handle == 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "hUserdMemory[0] is 0: allocate a page for USERD and name it");
    }
    let userd = call.object(userd_handle)?.memory(NV_ERR_INVALID_OBJECT)?.store();
    let notifier = match p.hObjectError {
        0 => None,
        handle => Some(call.object(handle)?.memory(NV_ERR_INVALID_OBJECT)?.store()),
    };
    let plan = ChannelPlan {
        group,
        share,
        space,
        ring_va: p.gpFifoOffset,
        entries: p.gpFifoEntries,
        userd,
        userd_offset: params::long(call.params, layout.userd_offset),
        notifier,
    };
    let channel = ChannelObject::new(&call.client.gpu, plan)?;
    tracing::debug!("{}", channel.describe());
    params::set_word(call.params, layout.cid, channel.id());
    Ok(Kind::Channel(Arc::new(channel)))
}

type Context = (Arc<Group>, Option<Arc<ContextShare>>, Arc<VaSpace>);

/// Group, subcontext and VA space of a new channel, by RM's rules about who may name a VA space.
fn find_context(
    call: &mut AllocCall,
    p: &NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS,
    engine_type: u32,
) -> RmResult<Context> {
    let in_group = matches!(call.parent.kind, Kind::Group(_));
    if p.hVASpace != 0 && (in_group || p.hContextShare != 0) {
        fail!(NV_ERR_INVALID_ARGUMENT, "hVASpace {:#x}: the channel group or context share decides that", p.hVASpace);
    }
    if p.hContextShare != 0 && !in_group {
        fail!(NV_ERR_INVALID_ARGUMENT, "hContextShare {:#x} on a channel outside a channel group", p.hContextShare);
    }
    if p.hContextShare != 0 {
        let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
        let share = call.object(p.hContextShare)?.context_share(NV_ERR_INVALID_OBJECT)?.clone();
        if !Arc::ptr_eq(&share.group, &group) {
            fail!(NV_ERR_INVALID_ARGUMENT, "context share {:#x} belongs to another channel group", p.hContextShare);
        }
        call.depends_on.push(p.hContextShare);
        let space = share.space.clone();
        return Ok((group, Some(share), space));
    }
    if in_group {
        let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
        let space = group.space.clone();
        return Ok((group, None, space));
    }
    let space = call.vaspace(p.hVASpace)?;
    let group = Group::new(&call.client.gpu, engine_type, space.clone(), p.hVASpace != 0)?;
    Ok((group, None, space))
}

pub fn engine(call: &mut AllocCall) -> RmResult<Kind> {
    let channel = call.parent.channel(NV_ERR_INVALID_OBJECT_PARENT)?;
    let is_3d = call.class.number & 0xff == 0x97;
    channel.channel().alloc_object(call.class.number).during(|| match is_3d {
        true => "attaching the engine to its channel, which for a 3D engine must be in subcontext 0 (no context share)",
        false => "attaching the engine to its channel",
    })?;
    Ok(Kind::Engine(Arc::downgrade(channel)))
}

pub fn debugger(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV83DE_ALLOC_PARAMETERS = params::get(call.params);
    let app = if p.hAppClient == 0 { call.client.handle } else { p.hAppClient };
    let target: Arc<Object> = if app == call.client.handle {
        call.depends_on.push(p.hClass3dObject);
        call.object(p.hClass3dObject)?
    } else {
        call.rm.client(app, NV_ERR_INVALID_CLIENT)?.object(p.hClass3dObject)?
    };
    match target.owning_channel() {
        Some(channel) => Ok(Kind::Debugger(Arc::downgrade(&channel))),
        None => fail!(NV_ERR_INVALID_OBJECT, "{target} is no engine object of a channel: there is nothing to debug"),
    }
}
