//! The constructors of objects, one for each kind of class. A constructor that fails leaves nothing behind.

use crate::rm::alloc::AllocCall;
use crate::rm::channel::{ChannelObject, ChannelPlan};
use crate::rm::debugger::DebuggerObject;
use crate::rm::group::{ContextShare, Group};
use crate::rm::memory::{Memory, Traits};
use crate::rm::object::{Device, Kind, Object};
use crate::rm::params;
use crate::rm::profiler::ProfilerObject;
use crate::rm::usermode::Usermode;
use crate::rm::vaspace::{Management, VaSpace, VirtualRange};
use crate::status::{During, RmResult, fail};
use crate::tegra::{PAGE, USER_VA_END, USER_VA_START, VA_UNIT};
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::NV01_MEMORY_SYSTEM;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The constructor of rows for which no constructor is ever called: refused classes, and clients, which have no parent.
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
    // The range that a client names may be wider than the GPU's range. Each mapping is checked on its own.
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
    // RM clamps the range that the client asks for to the range of the GPU, and writes the result back.
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
    // The addresses of a client that chooses them are not looked at: it is told the range, and may map elsewhere.
    let space = match owner {
        Management::Library => {
            let range = start / VA_UNIT * VA_UNIT..end.next_multiple_of(VA_UNIT);
            VaSpace::with_range(&call.client.gpu, owner, range)
        }
        _ => VaSpace::new(&call.client.gpu, owner),
    };
    Ok(Kind::VaSpace(space))
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

/// The request for a channel, in a form that does not depend on the driver's structure.
struct ChannelRequest {
    error_notifier: u32,
    ring_va: u64,
    entries: u32,
    context_share: u32,
    vaspace: u32,
    userd: u32,
    userd_offset: u64,
    engine_type: u32,
}

/// The allocation parameters of a channel in one driver's layout.
trait ChannelParams: FromBytes + IntoBytes + Immutable {
    fn request(&self) -> ChannelRequest;
    fn set_channel_id(&mut self, id: u32);
}

macro_rules! channel_params {
    ($($layout:ty),+) => {$(
        impl ChannelParams for $layout {
            fn request(&self) -> ChannelRequest {
                ChannelRequest {
                    error_notifier: self.hObjectError,
                    ring_va: self.gpFifoOffset,
                    entries: self.gpFifoEntries,
                    context_share: self.hContextShare,
                    vaspace: self.hVASpace,
                    userd: self.hUserdMemory[0],
                    userd_offset: self.userdOffset[0],
                    engine_type: self.engineType,
                }
            }

            fn set_channel_id(&mut self, id: u32) {
                self.cid = id;
            }
        }
    )+};
}
// The structure of 560 is that of 570 without its end. 610 inserted a field.
channel_params!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610);

/// The size of the parameters from 610 on.
pub const SIZE_610: usize = size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610>();

pub fn channel(call: &mut AllocCall) -> RmResult<Kind> {
    match call.params.len() {
        SIZE_610 => channel_as::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610>(call),
        _ => channel_as::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS>(call),
    }
}

fn channel_as<P: ChannelParams>(call: &mut AllocCall) -> RmResult<Kind> {
    let mut params: P = params::get(call.params);
    let p = params.request();
    let (group, share, space) = find_context(call, &p)?;
    if p.userd == 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "hUserdMemory[0] is 0: allocate a page for USERD and name it");
    }
    let userd = call.object(p.userd)?.memory(NV_ERR_INVALID_OBJECT)?.store();
    let notifier = match p.error_notifier {
        0 => None,
        handle => Some(call.object(handle)?.memory(NV_ERR_INVALID_OBJECT)?.store()),
    };
    let (ring_va, entries, userd_offset) = (p.ring_va, p.entries, p.userd_offset);
    let plan = ChannelPlan { group, share, space, ring_va, entries, userd, userd_offset, notifier };
    let channel = ChannelObject::new(&call.client.gpu, plan)?;
    tracing::debug!("{}", channel.describe());
    params.set_channel_id(channel.id());
    params::put(call.params, &params);
    Ok(Kind::Channel(Arc::new(channel)))
}

type Context = (Arc<Group>, Option<Arc<ContextShare>>, Arc<VaSpace>);

/// The group, subcontext and VA space of a new channel, by RM's rules about which object may name a VA space.
fn find_context(call: &mut AllocCall, p: &ChannelRequest) -> RmResult<Context> {
    let in_group = matches!(call.parent.kind, Kind::Group(_));
    if p.vaspace != 0 && (in_group || p.context_share != 0) {
        fail!(NV_ERR_INVALID_ARGUMENT, "hVASpace {:#x}: the channel group or context share decides that", p.vaspace);
    }
    if p.context_share != 0 && !in_group {
        fail!(NV_ERR_INVALID_ARGUMENT, "hContextShare {:#x} on a channel outside a channel group", p.context_share);
    }
    if p.context_share != 0 {
        let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
        let share = call.object(p.context_share)?.context_share(NV_ERR_INVALID_OBJECT)?.clone();
        if !Arc::ptr_eq(&share.group, &group) {
            fail!(NV_ERR_INVALID_ARGUMENT, "context share {:#x} belongs to another channel group", p.context_share);
        }
        call.depends_on.push(p.context_share);
        let space = share.space.clone();
        return Ok((group, Some(share), space));
    }
    if in_group {
        let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
        let space = group.space.clone();
        return Ok((group, None, space));
    }
    let space = call.vaspace(p.vaspace)?;
    let group = Group::new(&call.client.gpu, p.engine_type, space.clone(), p.vaspace != 0)?;
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
    let target = context_target(call, app, p.hClass3dObject)?;
    match target.owning_channel() {
        Some(channel) => {
            let handle = if target.as_channel().is_some() { target.handle } else { target.parent };
            Ok(Kind::Debugger(DebuggerObject::new(&channel, handle)))
        }
        None => fail!(NV_ERR_INVALID_OBJECT, "{target} is no engine object of a channel: there is nothing to debug"),
    }
}

/// Without a client's handle it looks at no context, whatever the other handle is, as RM has it.
pub fn profiler(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NVB2CC_ALLOC_PARAMETERS = params::get(call.params);
    let group = if p.hClientTarget == 0 {
        None
    } else {
        let target = context_target(call, p.hClientTarget, p.hContextTarget)?;
        Some(match (&target.kind, target.owning_channel()) {
            (Kind::Group(group), _) => group.clone(),
            (_, Some(channel)) => channel.group.clone(),
            _ => fail!(
                NV_ERR_INVALID_OBJECT,
                "{target} is no channel group and no channel: there is no context to profile"
            ),
        })
    };
    Ok(Kind::Profiler(Arc::new(ProfilerObject::new(&call.client.gpu, group)?)))
}

/// An object that parameters name together with its client. One of the client's own ends the new object with it.
fn context_target(call: &mut AllocCall, client: u32, object: u32) -> RmResult<Arc<Object>> {
    if client == call.client.handle {
        call.depends_on.push(object);
        return call.object(object);
    }
    call.rm.client(client, NV_ERR_INVALID_CLIENT)?.object(object)
}
