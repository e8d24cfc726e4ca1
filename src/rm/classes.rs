//! The class table: every class a desktop frontend may allocate, and what becomes of it.

use super::alloc::{AllocCall, is_client_class};
use super::channel::{ChannelObject, ChannelPlan};
use super::group::{ContextShare, Group};
use super::memory::{Memory, Traits};
use super::object::{Device, Kind, Object, Tag};
use super::params;
use super::usermode::Usermode;
use super::vaspace::{Management, VaSpace, VirtualRange};
use crate::status::{During, RmResult, fail};
use crate::tegra::{PAGE, USER_VA_END, USER_VA_START};
use std::mem::offset_of;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::extra::*;
use tegrarm_abi::rm::status::*;

/// What a row amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Does what desktop RM does.
    Done,
    /// Does part of it; the row says which part is missing.
    Partial,
    /// Accepted and ignored; the row says why that is right.
    Accepted,
    /// Answered with this status; the row says why.
    Refused(u32),
}

/// Which objects may be the parent.
#[derive(Clone, Copy, Debug)]
pub enum Parents {
    /// None: clients.
    Nothing,
    /// One of these.
    Of(&'static [Tag]),
    /// Any object.
    Any,
}

/// Allocation parameters: their sizes over driver generations, this driver's own (or, where only later ones grew,
/// the smallest) first.
#[derive(Clone, Copy, Debug)]
pub enum Params {
    /// None; anything passed is ignored.
    None,
    /// May be absent.
    Optional(&'static [usize]),
    /// Must be there.
    Required(&'static [usize]),
}

/// Makes the object of a class.
pub type Make = fn(&mut AllocCall) -> RmResult<Kind>;

/// One class.
pub struct ClassRow {
    /// Its number.
    pub number: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// Where it may be allocated.
    pub parents: Parents,
    /// What it takes.
    pub params: Params,
    /// Whether class lists advertise it. Frontends pick the newest class they find listed.
    pub listed: bool,
    /// Its constructor.
    pub make: Make,
    /// What it amounts to.
    pub state: State,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

impl ClassRow {
    /// Whether it makes a client.
    pub fn is_client(&self) -> bool {
        is_client_class(self.number)
    }
}

impl Parents {
    /// Whether an object of this kind may be the parent.
    pub fn allow(&self, tag: Tag) -> bool {
        match self {
            Parents::Nothing => false,
            Parents::Of(tags) => tags.contains(&tag),
            Parents::Any => true,
        }
    }

    /// For sentences and tables.
    pub fn words(&self) -> String {
        match self {
            Parents::Nothing => "nothing".to_owned(),
            Parents::Of(tags) => tags.iter().map(|t| t.word()).collect::<Vec<_>>().join(", "),
            Parents::Any => "any object".to_owned(),
        }
    }
}

/// The row of a class.
pub fn find(class: u32) -> Option<&'static ClassRow> {
    CLASSES.binary_search_by_key(&class, |row| row.number).ok().map(|at| &CLASSES[at])
}

/// The classes that class lists advertise, in order.
pub fn listed() -> impl Iterator<Item = u32> {
    CLASSES.iter().filter(|row| row.listed).map(|row| row.number)
}

const ON_CLIENT: Parents = Parents::Of(&[Tag::Client]);
const ON_DEVICE: Parents = Parents::Of(&[Tag::Device]);
const ON_SUBDEVICE: Parents = Parents::Of(&[Tag::Subdevice]);
const ON_GPU: Parents = Parents::Of(&[Tag::Device, Tag::Subdevice]);
const ON_GROUP: Parents = Parents::Of(&[Tag::Group]);
const FOR_CHANNELS: Parents = Parents::Of(&[Tag::Group, Tag::Device]);
const ON_CHANNEL: Parents = Parents::Of(&[Tag::Channel]);

const CLIENT_PARAMS: Params = Params::Optional(&[size_of::<NV0000_ALLOC_PARAMETERS>()]);
const MEMORY_PARAMS: Params = Params::Required(&[size_of::<NV_MEMORY_ALLOCATION_PARAMS>()]);
/// 560; 570 and 580; 610, which moved fields (see `ChannelLayout`). The smallest first: an older frontend that
/// passes no size must not have bytes read that it does not own.
const CHANNEL_PARAMS: Params = Params::Required(&[
    size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V560>(),
    size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS>(),
    SIZE_610,
]);
const ENGINE_PARAMS: Params = Params::Optional(&[size_of::<NV_GR_ALLOCATION_PARAMETERS>()]);
const COPY_PARAMS: Params =
    Params::Optional(&[size_of::<NVB0B5_ALLOCATION_PARAMETERS>(), size_of::<NV_GR_ALLOCATION_PARAMETERS>()]);

/// A row from the name of its constant.
macro_rules! class {
    ($name:ident, $parents:expr, $params:expr, $listed:expr, $make:expr, $state:expr, $why:expr) => {
        ClassRow {
            number: $name,
            name: stringify!($name),
            parents: $parents,
            params: $params,
            listed: $listed,
            make: $make,
            state: $state,
            why: $why,
        }
    };
}

/// A refused class.
macro_rules! refused {
    ($name:ident, $why:expr) => {
        ClassRow {
            number: $name,
            name: stringify!($name),
            parents: Parents::Nothing,
            params: Params::None,
            listed: false,
            make: never,
            state: State::Refused(NV_ERR_INVALID_CLASS),
            why: $why,
        }
    };
}

const DISCRETE: &str = "hardware or firmware a Tegra does not have";
const OTHER_CHIP: &str = "a class of another GPU generation; ga10b does not accept it";
const OTHER_ENGINE: &str = "an engine of its own on Tegra, with its own driver";
const KERNEL: &str = "nvgpu keeps this to the kernel";
const NOT_EXPOSED: &str = "nvgpu has no counterpart that user space can reach";

/// Every class, sorted by number.
pub static CLASSES: &[ClassRow] = &[
    class!(NV01_ROOT, Parents::Nothing, CLIENT_PARAMS, false, never, State::Done, ""),
    class!(NV01_ROOT_NON_PRIV, Parents::Nothing, CLIENT_PARAMS, false, never, State::Done, ""),
    class!(
        NV01_CONTEXT_DMA,
        Parents::Any,
        Params::Required(&[size_of::<NV_CONTEXT_DMA_ALLOCATION_PARAMS>()]),
        false,
        context_dma,
        State::Partial,
        "another name of a memory object; its offset and limit are not enforced"
    ),
    class!(
        NV01_EVENT,
        Parents::Any,
        Params::Optional(&[size_of::<NV0005_ALLOC_PARAMETERS>()]),
        false,
        event,
        State::Accepted,
        "nvgpu posts no RM events: it never fires"
    ),
    class!(NV01_MEMORY_SYSTEM, ON_GPU, MEMORY_PARAMS, true, memory, State::Done, ""),
    class!(NV01_MEMORY_LOCAL_USER, ON_GPU, MEMORY_PARAMS, true, memory, State::Done, ""),
    class!(NV01_ROOT_CLIENT, Parents::Nothing, CLIENT_PARAMS, false, never, State::Done, ""),
    class!(
        NV01_MEMORY_VIRTUAL,
        ON_DEVICE,
        Params::Required(&[size_of::<NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS>()]),
        true,
        memory_virtual,
        State::Done,
        ""
    ),
    class!(
        NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        ON_DEVICE,
        Params::None,
        true,
        os_descriptor,
        State::Done,
        "through rm_alloc_memory; rm_alloc of it is 0x56, as in RM"
    ),
    refused!(NV04_DISPLAY_COMMON, OTHER_ENGINE),
    class!(
        NV01_EVENT_OS_EVENT,
        Parents::Any,
        Params::Optional(&[size_of::<NV0005_ALLOC_PARAMETERS>()]),
        false,
        event,
        State::Accepted,
        "nvgpu posts no RM events: it never fires"
    ),
    class!(
        NV01_DEVICE_0,
        ON_CLIENT,
        Params::Optional(&[size_of::<NV0080_ALLOC_PARAMETERS>()]),
        true,
        device,
        State::Done,
        ""
    ),
    refused!(NV_SEMAPHORE_SURFACE, NOT_EXPOSED),
    refused!(RM_USER_SHARED_DATA, DISCRETE),
    refused!(NV_MEMORY_EXPORT, DISCRETE),
    refused!(NV_IMEX_SESSION, DISCRETE),
    refused!(NV_MEMORY_FABRIC, DISCRETE),
    refused!(NV_MEMORY_FABRIC_IMPORTED_REF, DISCRETE),
    refused!(NV_MEMORY_MULTICAST_FABRIC, DISCRETE),
    refused!(NV_MEMORY_MAPPER, NOT_EXPOSED),
    class!(
        NV20_SUBDEVICE_0,
        ON_DEVICE,
        Params::Optional(&[size_of::<NV2080_ALLOC_PARAMETERS>()]),
        true,
        subdevice,
        State::Done,
        ""
    ),
    refused!(NV2081_BINAPI, KERNEL),
    refused!(NV20_SUBDEVICE_DIAG, KERNEL),
    refused!(NV50_P2P, DISCRETE),
    refused!(NV50_THIRD_PARTY_P2P, DISCRETE),
    class!(NV50_MEMORY_VIRTUAL, ON_DEVICE, MEMORY_PARAMS, false, nv50_memory_virtual, State::Done, ""),
    class!(
        GT200_DEBUGGER,
        ON_DEVICE,
        Params::Required(&[size_of::<NV83DE_ALLOC_PARAMETERS>()]),
        true,
        debugger,
        State::Partial,
        "reports errors of its channel; stepping and memory access are not exposed"
    ),
    refused!(MPS_COMPUTE, DISCRETE),
    class!(FERMI_TWOD_A, ON_CHANNEL, ENGINE_PARAMS, true, engine, State::Done, ""),
    class!(
        FERMI_CONTEXT_SHARE_A,
        ON_GROUP,
        Params::Required(&[size_of::<NV_CTXSHARE_ALLOCATION_PARAMETERS>()]),
        true,
        context_share,
        State::Done,
        ""
    ),
    refused!(GF100_DISP_SW, OTHER_ENGINE),
    refused!(GF100_ZBC_CLEAR, NOT_EXPOSED),
    class!(
        GF100_PROFILER,
        ON_SUBDEVICE,
        Params::None,
        false,
        unsupported,
        State::Refused(NV_ERR_NOT_SUPPORTED),
        "profiling is not connected to nvgpu's profiler node"
    ),
    refused!(GF100_SUBDEVICE_MASTER, KERNEL),
    refused!(GF100_SUBDEVICE_INFOROM, DISCRETE),
    class!(
        FERMI_VASPACE_A,
        ON_GPU,
        Params::Required(&[
            size_of::<NV_VASPACE_ALLOCATION_PARAMETERS>(),
            size_of::<NV_VASPACE_ALLOCATION_PARAMETERS_V580>(),
        ]),
        true,
        vaspace,
        State::Done,
        ""
    ),
    class!(
        KEPLER_CHANNEL_GROUP_A,
        ON_DEVICE,
        Params::Required(&[size_of::<NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS>()]),
        true,
        group,
        State::Done,
        ""
    ),
    refused!(NVENC_SW_SESSION, OTHER_ENGINE),
    class!(KEPLER_INLINE_TO_MEMORY_B, ON_CHANNEL, ENGINE_PARAMS, true, engine, State::Done, ""),
    class!(
        MAXWELL_PROFILER_DEVICE,
        ON_SUBDEVICE,
        Params::Required(&[size_of::<NVB2CC_ALLOC_PARAMETERS>()]),
        false,
        unsupported,
        State::Refused(NV_ERR_NOT_SUPPORTED),
        "profiling is not connected to nvgpu's profiler node: leave PMA off"
    ),
    refused!(NVB8B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVB8D1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVB8FA_VIDEO_OFA, OTHER_ENGINE),
    class!(VOLTA_USERMODE_A, ON_SUBDEVICE, Params::None, false, usermode, State::Done, ""),
    class!(TURING_USERMODE_A, ON_SUBDEVICE, Params::None, true, usermode, State::Done, ""),
    class!(TURING_CHANNEL_GPFIFO_A, FOR_CHANNELS, CHANNEL_PARAMS, true, channel, State::Done, ""),
    refused!(NVC4B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVC4B7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(NVC4D1_VIDEO_NVJPG, OTHER_ENGINE),
    class!(AMPERE_CHANNEL_GPFIFO_A, FOR_CHANNELS, CHANNEL_PARAMS, true, channel, State::Done, ""),
    class!(TURING_A, ON_CHANNEL, ENGINE_PARAMS, false, engine, State::Done, ""),
    class!(TURING_DMA_COPY_A, ON_CHANNEL, COPY_PARAMS, false, engine, State::Done, ""),
    class!(TURING_COMPUTE_A, ON_CHANNEL, ENGINE_PARAMS, false, engine, State::Done, ""),
    refused!(AMPERE_SMC_PARTITION_REF, NOT_EXPOSED),
    refused!(AMPERE_SMC_EXEC_PARTITION_REF, NOT_EXPOSED),
    refused!(AMPERE_SMC_CONFIG_SESSION, NOT_EXPOSED),
    refused!(AMPERE_SMC_MONITOR_SESSION, NOT_EXPOSED),
    refused!(HOPPER_USERMODE_A, OTHER_CHIP),
    refused!(AMPERE_A, OTHER_CHIP),
    refused!(NVC6B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(AMPERE_DMA_COPY_A, OTHER_CHIP),
    refused!(AMPERE_COMPUTE_A, OTHER_CHIP),
    refused!(NVC6FA_VIDEO_OFA, OTHER_ENGINE),
    refused!(BLACKWELL_USERMODE_A, OTHER_CHIP),
    // The chip's own host class; frontends ask for the desktop's 0xC56F.
    class!(AMPERE_CHANNEL_GPFIFO_B, FOR_CHANNELS, CHANNEL_PARAMS, true, channel, State::Done, ""),
    class!(AMPERE_B, ON_CHANNEL, ENGINE_PARAMS, true, engine, State::Done, ""),
    refused!(NVC7B0_VIDEO_DECODER, OTHER_ENGINE),
    class!(AMPERE_DMA_COPY_B, ON_CHANNEL, COPY_PARAMS, true, engine, State::Done, ""),
    refused!(NVC7B7_VIDEO_ENCODER, OTHER_ENGINE),
    class!(AMPERE_COMPUTE_B, ON_CHANNEL, ENGINE_PARAMS, true, engine, State::Done, ""),
    refused!(NVC7FA_VIDEO_OFA, OTHER_ENGINE),
    refused!(HOPPER_CHANNEL_GPFIFO_A, OTHER_CHIP),
    refused!(HOPPER_DMA_COPY_A, OTHER_CHIP),
    refused!(BLACKWELL_CHANNEL_GPFIFO_A, OTHER_CHIP),
    refused!(ADA_A, OTHER_CHIP),
    refused!(NVC9B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(BLACKWELL_DMA_COPY_A, OTHER_CHIP),
    refused!(NVC9B7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(ADA_COMPUTE_A, OTHER_CHIP),
    refused!(NVC9D1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVC9FA_VIDEO_OFA, OTHER_ENGINE),
    refused!(BLACKWELL_CHANNEL_GPFIFO_B, OTHER_CHIP),
    refused!(BLACKWELL_DMA_COPY_B, OTHER_CHIP),
    refused!(NV_CONFIDENTIAL_COMPUTE, DISCRETE),
    refused!(HOPPER_A, OTHER_CHIP),
    refused!(HOPPER_SEC2_WORK_LAUNCH_A, OTHER_CHIP),
    refused!(HOPPER_COMPUTE_A, OTHER_CHIP),
    refused!(NV_COUNTER_COLLECTION_UNIT, OTHER_CHIP),
    refused!(BLACKWELL_INLINE_TO_MEMORY_A, OTHER_CHIP),
    refused!(BLACKWELL_A, OTHER_CHIP),
    refused!(NVCDB0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(BLACKWELL_COMPUTE_A, OTHER_CHIP),
    refused!(NVCDD1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVCDFA_VIDEO_OFA, OTHER_ENGINE),
    refused!(BLACKWELL_B, OTHER_CHIP),
    refused!(NVCEB0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVCEB7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(BLACKWELL_COMPUTE_B, OTHER_CHIP),
    refused!(NVCEFA_VIDEO_OFA, OTHER_ENGINE),
    refused!(NVCFB0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVCFB7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(NVCFD1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVCFFA_VIDEO_OFA, OTHER_ENGINE),
    refused!(NVD1B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVD1B7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(NVD1FA_VIDEO_OFA, OTHER_ENGINE),
    refused!(NVD2B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVD2D1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVD2FA_VIDEO_OFA, OTHER_ENGINE),
];

/// The constructor of rows that never get that far: refused ones, and clients, which have no parent.
fn never(call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_INVALID_ARGUMENT, "{} is allocated without a client and a parent", call.class.name)
}

fn unsupported(call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_NOT_SUPPORTED, "{}", call.class.why)
}

fn device(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV0080_ALLOC_PARAMETERS = params::get(call.params);
    if p.deviceId != 0 {
        fail!(NV_ERR_INVALID_DEVICE, "there is no device {}; a Tegra has one GPU, device 0", p.deviceId);
    }
    Ok(Kind::Device(Device { default_space: VaSpace::new(&call.client.gpu, Management::Default) }))
}

fn subdevice(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV2080_ALLOC_PARAMETERS = params::get(call.params);
    if p.subDeviceId != 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "there is no subdevice {}; a Tegra has one, 0", p.subDeviceId);
    }
    Ok(Kind::Subdevice)
}

fn event(_call: &mut AllocCall) -> RmResult<Kind> {
    Ok(Kind::Event)
}

fn context_dma(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV_CONTEXT_DMA_ALLOCATION_PARAMS = params::get(call.params);
    let memory = call.object(p.hMemory)?.memory(NV_ERR_INVALID_OBJECT)?.clone();
    call.depends_on.push(p.hMemory);
    Ok(Kind::ContextDma(memory))
}

fn memory(call: &mut AllocCall) -> RmResult<Kind> {
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

fn os_descriptor(_call: &mut AllocCall) -> RmResult<Kind> {
    fail!(NV_ERR_NOT_SUPPORTED, "memory of the process itself is registered with rm_alloc_memory (RM_ALLOC_MEMORY)")
}

fn memory_virtual(call: &mut AllocCall) -> RmResult<Kind> {
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

fn nv50_memory_virtual(call: &mut AllocCall) -> RmResult<Kind> {
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

fn vaspace(call: &mut AllocCall) -> RmResult<Kind> {
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

fn group(call: &mut AllocCall) -> RmResult<Kind> {
    let p: NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS = params::get(call.params);
    let space = call.vaspace(p.hVASpace)?;
    Ok(Kind::Group(Group::new(&call.client.gpu, p.engineType, space, p.hVASpace != 0)?))
}

fn context_share(call: &mut AllocCall) -> RmResult<Kind> {
    let mut p: NV_CTXSHARE_ALLOCATION_PARAMETERS = params::get(call.params);
    let group = call.parent.group(NV_ERR_INVALID_OBJECT_PARENT)?.clone();
    let space = if p.hVASpace == 0 && group.has_own_space { group.space.clone() } else { call.vaspace(p.hVASpace)? };
    let share = ContextShare::new(&group, &space, p.flags, p.subctxId)?;
    p.subctxId = share.veid;
    params::put(call.params, &p);
    Ok(Kind::ContextShare(Arc::new(share)))
}

fn usermode(call: &mut AllocCall) -> RmResult<Kind> {
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
const SIZE_610: usize = size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610>();

fn channel(call: &mut AllocCall) -> RmResult<Kind> {
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

fn engine(call: &mut AllocCall) -> RmResult<Kind> {
    let channel = call.parent.channel(NV_ERR_INVALID_OBJECT_PARENT)?;
    let is_3d = call.class.number & 0xff == 0x97;
    channel.channel().alloc_object(call.class.number).during(|| match is_3d {
        true => "attaching the engine to its channel, which for a 3D engine must be in subcontext 0 (no context share)",
        false => "attaching the engine to its channel",
    })?;
    Ok(Kind::Engine(Arc::downgrade(channel)))
}

fn debugger(call: &mut AllocCall) -> RmResult<Kind> {
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
