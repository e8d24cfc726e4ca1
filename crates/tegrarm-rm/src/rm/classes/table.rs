//! The rows of the class table.

use super::make::*;
use super::{ClassRow, Params, Parents, Support};
use crate::rm::object::{Tag, Tags};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;

const ON_CLIENT: Parents = Parents::Of(Tags::of(&[Tag::Client]));
const ON_DEVICE: Parents = Parents::Of(Tags::of(&[Tag::Device]));
const ON_SUBDEVICE: Parents = Parents::Of(Tags::of(&[Tag::Subdevice]));
const ON_GPU: Parents = Parents::Of(Tags::of(&[Tag::Device, Tag::Subdevice]));
const ON_GROUP: Parents = Parents::Of(Tags::of(&[Tag::Group]));
const FOR_CHANNELS: Parents = Parents::Of(Tags::of(&[Tag::Group, Tag::Device]));
const ON_CHANNEL: Parents = Parents::Of(Tags::of(&[Tag::Channel]));

/// The parameters of a client. RM knows only the new handle. The headers have a structure that begins with the handle
/// and is meant for their own use.
const CLIENT_PARAMS: Params = Params::Optional(&[size_of::<u32>(), size_of::<NV0000_ALLOC_PARAMETERS>()]);
/// The parameters of memory. Before driver 545, they end in front of `numaNode`, which the library does not read.
const MEMORY_PARAMS: Params = Params::Required(&[
    std::mem::offset_of!(NV_MEMORY_ALLOCATION_PARAMS, numaNode),
    size_of::<NV_MEMORY_ALLOCATION_PARAMS>(),
]);
/// The parameters of a channel, in the layouts of 560, of 570 and 580, and of 610, which moved fields (see
/// `make::channel`). The smallest comes first: if an older frontend passes no size, the library must not read bytes
/// that the frontend does not own.
const CHANNEL_PARAMS: Params = Params::Required(&[
    size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V560>(),
    size_of::<NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS>(),
    SIZE_610,
]);
const ENGINE_PARAMS: Params = Params::Optional(&[size_of::<NV_GR_ALLOCATION_PARAMETERS>()]);
const COPY_PARAMS: Params =
    Params::Optional(&[size_of::<NVB0B5_ALLOCATION_PARAMETERS>(), size_of::<NV_GR_ALLOCATION_PARAMETERS>()]);

/// Makes a row from the name of its constant.
macro_rules! class {
    ($name:ident, $parents:expr, $params:expr, $listed:expr, $make:expr) => {
        class!($name, $parents, $params, $listed, $make, Support::Done, "")
    };
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

/// Makes the row of a refused class.
macro_rules! refused {
    ($name:ident, $why:expr) => {
        ClassRow {
            number: $name,
            name: stringify!($name),
            parents: Parents::Nothing,
            params: Params::None,
            listed: NOT_LISTED,
            make: never,
            state: Support::Refused(NV_ERR_INVALID_CLASS),
            why: $why,
        }
    };
}

/// Class lists contain the class.
const LISTED: bool = true;
/// Class lists leave the class out.
const NOT_LISTED: bool = false;

const DISCRETE: &str = "hardware or firmware a Tegra does not have";
const OTHER_CHIP: &str = "a class of another GPU generation; ga10b does not accept it";
const OTHER_ENGINE: &str = "on a Tegra this is a separate engine with its own driver";
const KERNEL: &str = "nvgpu keeps this to the kernel";
const NOT_EXPOSED: &str = "nvgpu has no counterpart that user space can reach";

/// Every class, sorted by number.
pub static CLASSES: &[ClassRow] = &[
    class!(NV01_ROOT, Parents::Nothing, CLIENT_PARAMS, NOT_LISTED, never),
    class!(NV01_ROOT_NON_PRIV, Parents::Nothing, CLIENT_PARAMS, NOT_LISTED, never),
    class!(
        NV01_CONTEXT_DMA,
        Parents::Any,
        Params::Required(&[size_of::<NV_CONTEXT_DMA_ALLOCATION_PARAMS>()]),
        NOT_LISTED,
        context_dma,
        Support::Partial,
        "another name of a memory object; its offset and limit are not enforced"
    ),
    class!(
        NV01_EVENT,
        Parents::Any,
        Params::Optional(&[size_of::<NV0005_ALLOC_PARAMETERS>()]),
        NOT_LISTED,
        event,
        Support::Accepted,
        "nvgpu posts no RM events: it never fires"
    ),
    class!(NV01_MEMORY_SYSTEM, ON_GPU, MEMORY_PARAMS, LISTED, memory),
    class!(NV01_MEMORY_LOCAL_USER, ON_GPU, MEMORY_PARAMS, LISTED, memory),
    class!(NV01_ROOT_CLIENT, Parents::Nothing, CLIENT_PARAMS, NOT_LISTED, never),
    class!(
        NV01_MEMORY_VIRTUAL,
        ON_DEVICE,
        Params::Required(&[size_of::<NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS>()]),
        LISTED,
        memory_virtual
    ),
    class!(
        NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        ON_DEVICE,
        Params::None,
        LISTED,
        os_descriptor,
        Support::Done,
        "through rm_alloc_memory; rm_alloc of it is NOT_SUPPORTED, as in RM"
    ),
    refused!(NV04_DISPLAY_COMMON, OTHER_ENGINE),
    class!(
        NV01_EVENT_OS_EVENT,
        Parents::Any,
        Params::Optional(&[size_of::<NV0005_ALLOC_PARAMETERS>()]),
        NOT_LISTED,
        event,
        Support::Accepted,
        "nvgpu posts no RM events: it never fires"
    ),
    class!(NV01_DEVICE_0, ON_CLIENT, Params::Optional(&[size_of::<NV0080_ALLOC_PARAMETERS>()]), LISTED, device),
    refused!(NV_SEMAPHORE_SURFACE, NOT_EXPOSED),
    refused!(RM_USER_SHARED_DATA, DISCRETE),
    refused!(NV_MEMORY_EXPORT, DISCRETE),
    refused!(NV_IMEX_SESSION, DISCRETE),
    refused!(NV_MEMORY_FABRIC, DISCRETE),
    refused!(NV_MEMORY_FABRIC_IMPORTED_REF, DISCRETE),
    refused!(NV_MEMORY_MULTICAST_FABRIC, DISCRETE),
    refused!(NV_MEMORY_MAPPER, NOT_EXPOSED),
    class!(NV20_SUBDEVICE_0, ON_DEVICE, Params::Optional(&[size_of::<NV2080_ALLOC_PARAMETERS>()]), LISTED, subdevice),
    refused!(NV2081_BINAPI, KERNEL),
    refused!(NV20_SUBDEVICE_DIAG, KERNEL),
    refused!(NV50_P2P, DISCRETE),
    refused!(NV50_THIRD_PARTY_P2P, DISCRETE),
    class!(NV50_MEMORY_VIRTUAL, ON_DEVICE, MEMORY_PARAMS, NOT_LISTED, nv50_memory_virtual),
    class!(
        GT200_DEBUGGER,
        ON_DEVICE,
        Params::Required(&[size_of::<NV83DE_ALLOC_PARAMETERS>()]),
        LISTED,
        debugger,
        Support::Partial,
        "errors, memory, mappings, registers and suspension of its channel; stepping needs SMs that stop, which nvgpu keeps to itself"
    ),
    refused!(MPS_COMPUTE, DISCRETE),
    class!(FERMI_TWOD_A, ON_CHANNEL, ENGINE_PARAMS, LISTED, engine),
    class!(
        FERMI_CONTEXT_SHARE_A,
        ON_GROUP,
        Params::Required(&[size_of::<NV_CTXSHARE_ALLOCATION_PARAMETERS>()]),
        LISTED,
        context_share
    ),
    refused!(GF100_DISP_SW, OTHER_ENGINE),
    refused!(GF100_ZBC_CLEAR, NOT_EXPOSED),
    class!(
        GF100_PROFILER,
        ON_SUBDEVICE,
        Params::None,
        NOT_LISTED,
        unsupported,
        Support::Refused(NV_ERR_NOT_SUPPORTED),
        "the older profiler: MAXWELL_PROFILER_DEVICE has its counters and power features; tinygrad and LibreCUDA do not make one, and gVisor's nvproxy lets only profilers make one"
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
        LISTED,
        vaspace
    ),
    class!(
        KEPLER_CHANNEL_GROUP_A,
        ON_DEVICE,
        Params::Required(&[size_of::<NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS>()]),
        LISTED,
        group
    ),
    refused!(NVENC_SW_SESSION, OTHER_ENGINE),
    class!(KEPLER_INLINE_TO_MEMORY_B, ON_CHANNEL, ENGINE_PARAMS, LISTED, engine),
    class!(
        MAXWELL_PROFILER_DEVICE,
        ON_SUBDEVICE,
        Params::Required(&[size_of::<NVB2CC_ALLOC_PARAMETERS>()]),
        NOT_LISTED,
        profiler
    ),
    refused!(NVB8B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVB8D1_VIDEO_NVJPG, OTHER_ENGINE),
    refused!(NVB8FA_VIDEO_OFA, OTHER_ENGINE),
    class!(VOLTA_USERMODE_A, ON_SUBDEVICE, Params::None, NOT_LISTED, usermode),
    class!(TURING_USERMODE_A, ON_SUBDEVICE, Params::None, LISTED, usermode),
    class!(TURING_CHANNEL_GPFIFO_A, FOR_CHANNELS, CHANNEL_PARAMS, LISTED, channel),
    refused!(NVC4B0_VIDEO_DECODER, OTHER_ENGINE),
    refused!(NVC4B7_VIDEO_ENCODER, OTHER_ENGINE),
    refused!(NVC4D1_VIDEO_NVJPG, OTHER_ENGINE),
    class!(AMPERE_CHANNEL_GPFIFO_A, FOR_CHANNELS, CHANNEL_PARAMS, LISTED, channel),
    class!(TURING_A, ON_CHANNEL, ENGINE_PARAMS, NOT_LISTED, engine),
    class!(TURING_DMA_COPY_A, ON_CHANNEL, COPY_PARAMS, NOT_LISTED, engine),
    class!(TURING_COMPUTE_A, ON_CHANNEL, ENGINE_PARAMS, NOT_LISTED, engine),
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
    // This is the host class that the chip has. Frontends ask for the desktop's class 0xC56F.
    class!(AMPERE_CHANNEL_GPFIFO_B, FOR_CHANNELS, CHANNEL_PARAMS, LISTED, channel),
    class!(AMPERE_B, ON_CHANNEL, ENGINE_PARAMS, LISTED, engine),
    refused!(NVC7B0_VIDEO_DECODER, OTHER_ENGINE),
    class!(AMPERE_DMA_COPY_B, ON_CHANNEL, COPY_PARAMS, LISTED, engine),
    refused!(NVC7B7_VIDEO_ENCODER, OTHER_ENGINE),
    class!(AMPERE_COMPUTE_B, ON_CHANNEL, ENGINE_PARAMS, LISTED, engine),
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
