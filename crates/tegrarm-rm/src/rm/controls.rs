//! The control table: every control that a desktop frontend may send, and how the library answers.

use super::classes::{self, Support};
use super::client::Client;
use super::context::{self, Inside};
use super::control::{bus, channel, debug_memory, debugger, device, engines, fb, gpu, gr, plain, profiler, system};
use super::index::{Index, index};
use super::object::{Object, Tag, Tags};
use super::{Asked, Rm};
use crate::status::{RmError, RmResult};
use std::borrow::Cow;
use std::sync::Arc;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0041::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::ctrl_others::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;

pub use super::control::row::{ControlCall, ControlRow, Run};

/// A control whose object and row are known. The caller has to hand over the parameters next.
pub struct PreparedControl {
    client: Arc<Client>,
    object: Arc<Object>,
    /// The row, or `None` for command 0, which does nothing.
    row: Option<&'static ControlRow>,
}

/// The largest size of parameters. A control with larger ones is refused before they are read.
const MAX_PARAMS: u32 = 1 << 20;

static INDEX: Index<1024> = index!(CONTROLS, cmd, 1024);

/// The row of a control.
#[inline]
pub fn find(cmd: u32) -> Option<&'static ControlRow> {
    INDEX.find(CONTROLS, cmd, |row| row.cmd)
}

impl Rm {
    /// The first half of [`Rm::control`]: makes every check that needs no parameters. `has_params` is whether the
    /// caller passed a pointer, and `size` is the size that the caller gives for the memory behind it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when the caller passes a pointer without a size, a size without a pointer, or a size above the limit; INVALID_CLIENT
    /// for an unknown client, OBJECT_NOT_FOUND for an unknown object, NOT_SUPPORTED for a control that the object does not have, INVALID_PARAM_STRUCT for a
    /// size that no driver used.
    #[inline(always)]
    pub fn prepare_control(
        &self,
        client: u32,
        object: u32,
        cmd: u32,
        has_params: bool,
        size: u32,
    ) -> RmResult<PreparedControl> {
        if has_params != (size != 0) || size > MAX_PARAMS {
            return Err(bad_pointer(cmd, has_params, size));
        }
        let (client, object) = self.client_object(client, object)?;
        if cmd == 0 {
            return Ok(PreparedControl { client, object, row: None });
        }
        let Some(row) = find(cmd) else {
            return Err(self.refuse_control(&object, cmd, None));
        };
        if !row.objects.have(object.kind.tag()) || matches!(row.state, Support::Refused(_)) {
            return Err(self.refuse_control(&object, cmd, Some(row)));
        }
        if row.sizes.first() != Some(&(size as usize)) && !row.sizes.contains(&(size as usize)) {
            return Err(self.bad_size(row, size));
        }
        Ok(PreparedControl { client, object, row: Some(row) })
    }

    /// `RM_CONTROL`. `params` has the length that [`Rm::prepare_control`] was told. If the call fails, `params` is not
    /// changed.
    ///
    /// # Errors
    /// Those of the control.
    #[inline(always)]
    pub fn control(&self, prepared: &PreparedControl, params: &mut [u8]) -> RmResult<()> {
        let Some(row) = prepared.row else { return Ok(()) };
        let _inside = context::enter(Inside::Control(row.cmd));
        tracing::trace!("{} of {}", row.name, prepared.object);
        (row.run)(&ControlCall { rm: self, client: &prepared.client, object: &prepared.object, row }, params)
    }
}

impl Rm {
    #[cold]
    fn refuse_control(&self, object: &Object, cmd: u32, row: Option<&ControlRow>) -> RmError {
        let (status, why) = match row {
            None => (NV_ERR_NOT_SUPPORTED, "it is not in the control table".to_owned()),
            Some(row) if !row.objects.is_empty() && !row.objects.have(object.kind.tag()) => {
                (NV_ERR_NOT_SUPPORTED, format!("it belongs to: {}", row.objects.words()))
            }
            Some(ControlRow { state: Support::Refused(status), why, .. }) => (*status, (*why).to_owned()),
            Some(row) => (NV_ERR_NOT_SUPPORTED, row.why.to_owned()),
        };
        let (asked, name) = (Asked::Control(cmd), name_of(cmd));
        self.report().refuse(asked, &name, &why);
        RmError::new(status, format!("{} of {object} is refused: {why}", asked.called(&name)))
    }
}

impl Rm {
    #[cold]
    fn bad_size(&self, row: &ControlRow, size: u32) -> RmError {
        let ControlRow { name, cmd, sizes, .. } = row;
        let text = format!("parameters of {name} ({cmd:#x}) are {sizes:?} bytes, not {size}");
        self.report().refuse(Asked::Control(*cmd), name, &text);
        RmError::new(NV_ERR_INVALID_PARAM_STRUCT, text)
    }
}

/// The name of a control. The upper half of its number is the class of its interface, which is given for a control that is in no table.
fn name_of(cmd: u32) -> Cow<'static, str> {
    match (find(cmd), classes::find(cmd >> 16)) {
        (Some(row), _) => row.name.into(),
        (None, Some(class)) => format!("unknown, of {}", class.name).into(),
        (None, None) => format!("unknown, of class {:#06x}", cmd >> 16).into(),
    }
}

#[cold]
fn bad_pointer(cmd: u32, has_params: bool, size: u32) -> RmError {
    let pointer = if has_params { "valid" } else { "NULL" };
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("control {cmd:#x}: a {pointer} pointer with a size of {size}"))
}

/// Makes a row from the name of its constant.
macro_rules! row {
    ($cmd:ident, [$($tag:ident),*], [$($size:expr),*], $run:expr, $state:expr, $why:expr) => {
        ControlRow {
            cmd: $cmd,
            name: stringify!($cmd),
            objects: Tags::of(&[$(Tag::$tag),*]),
            sizes: &[$($size),*],
            run: $run,
            state: $state,
            why: $why,
        }
    };
}
/// Makes the row of a control that is answered as desktop RM would answer it.
macro_rules! done {
    ($cmd:ident, [$($tag:ident),+], [$($ty:ty),+], $run:expr) => {
        row!($cmd, [$($tag),+], [$(size_of::<$ty>()),+], $run, Support::Done, "")
    };
}
/// Makes the row of a control that is answered in part.
macro_rules! partial {
    ($cmd:ident, [$($tag:ident),+], [$($ty:ty),+], $run:expr, $why:expr) => {
        row!($cmd, [$($tag),+], [$(size_of::<$ty>()),+], $run, Support::Partial, $why)
    };
}
/// Makes the row of a control that is accepted without effect.
macro_rules! accepted {
    ($cmd:ident, [$($tag:ident),+], [$($ty:ty),+], $run:expr, $why:expr) => {
        row!($cmd, [$($tag),+], [$(size_of::<$ty>()),+], $run, Support::Accepted, $why)
    };
}
/// Makes the row of a control that is refused with a status.
macro_rules! refused {
    ($cmd:ident, [$($tag:ident),*], $status:expr, $why:expr) => {
        row!($cmd, [$($tag),*], [], plain::nothing, Support::Refused($status), $why)
    };
}

const ONE_GPU: &str = "there is only one GPU, so there is nothing to say about others";
const ALWAYS_ATTACHED: &str = "the GPU is attached as long as the kernel has it; its id is checked";
const NO_NVLINK: &str = "there is no NVLink";
const NO_FABRIC: &str = "there is no NVLink fabric";
const NO_PCIE: &str = "the GPU is on an AXI bus, not PCI Express";
const NO_ECC: &str = "the memory has no ECC that nvgpu reports";
const NO_CAPS: &str = "this GPU has no capability for which there is a bit, so all bits are 0";
const NO_EVENTS: &str = "nvgpu posts no RM events";
const NOT_EXPOSED: &str = "nvgpu has no counterpart that user space can reach";
const SINCE_R39: &str = "nvgpu tells and sets credits since r39; NOT_SUPPORTED on a kernel that does not";
const PHYSICAL: &str = "only the kernel may do this: nvgpu does not pass it to user space";
const EXPORT: &str = "objects cannot be exported as file descriptors";
const NO_OBJECT: &str = "it belongs to a class that the library does not make";
const NO_CONFIDENTIAL: &str = "there is no confidential computing";
const OTHER_ENGINE: &str = "on a Tegra this is a separate engine with its own driver";

/// Before driver 550, these parameters end in front of the last field.
const P2P_CAPS_V535: usize = std::mem::offset_of!(NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS, busEgmPeerIds);
type FamilyOfSchedule = NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS_V580;

/// Every control, sorted by command. RM keeps some answers in a cache for each GPU. It answers from this cache for
/// every device and subdevice of that GPU and does not look at the object's class. The rows of these controls therefore
/// name both kinds of object.
#[rustfmt::skip]
pub static CONTROLS: &[ControlRow] = &[
    done!(NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION, [Client], [NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS], system::build_version),
    partial!(NV0000_CTRL_CMD_SYSTEM_GET_CPU_INFO, [Client], [NV0000_CTRL_SYSTEM_GET_CPU_INFO_PARAMS], system::cpu_info, "type and processor count; no cache sizes or clocks"),
    row!(NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS, [Client], [P2P_CAPS_V535, size_of::<NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS>()], plain::zero_after::<132>, Support::Accepted, ONE_GPU),
    accepted!(NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2, [Client], [NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS], plain::zero_after::<132>, ONE_GPU),
    accepted!(NV0000_CTRL_CMD_SYSTEM_GET_FABRIC_STATUS, [Client], [NV0000_CTRL_SYSTEM_GET_FABRIC_STATUS_PARAMS], plain::zero_after::<0>, NO_FABRIC),
    accepted!(NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_MATRIX, [Client], [NV0000_CTRL_SYSTEM_GET_P2P_CAPS_MATRIX_PARAMS], plain::zero_after::<72>, ONE_GPU),
    done!(NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, [Client], [NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS], system::build_version_v2),
    accepted!(NV0000_CTRL_CMD_SYSTEM_GET_FEATURES, [Client], [NV0000_CTRL_SYSTEM_GET_FEATURES_PARAMS], plain::zero_after::<0>, NO_CAPS),
    done!(NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS, [Client], [NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS], system::gpu_ids),
    done!(NV0000_CTRL_CMD_GPU_GET_ID_INFO, [Client], [NV0000_CTRL_GPU_GET_ID_INFO_PARAMS], system::id_info),
    done!(NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS, [Client], [NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS], system::device_ids),
    done!(NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, [Client], [NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS], system::id_info_v2),
    done!(NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, [Client], [NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS, NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS_V580], system::probed_ids),
    accepted!(NV0000_CTRL_CMD_GPU_ATTACH_IDS, [Client], [NV0000_CTRL_GPU_ATTACH_IDS_PARAMS], system::attach_ids, ALWAYS_ATTACHED),
    accepted!(NV0000_CTRL_CMD_GPU_DETACH_IDS, [Client], [NV0000_CTRL_GPU_DETACH_IDS_PARAMS], system::detach_ids, ALWAYS_ATTACHED),
    done!(NV0000_CTRL_CMD_GPU_GET_PCI_INFO, [Client], [NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS], system::pci_info),
    done!(NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID, [Client], [NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS], system::uuid_from_gpu_id),
    accepted!(NV0000_CTRL_CMD_GPU_QUERY_DRAIN_STATE, [Client], [NV0000_CTRL_GPU_QUERY_DRAIN_STATE_PARAMS], plain::zero_after::<4>, "the GPU is never drained"),
    accepted!(NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE, [Client], [NV0000_CTRL_GPU_GET_MEMOP_ENABLE_PARAMS], plain::zero_after::<0>, NO_CAPS),
    done!(NV0000_CTRL_CMD_GPU_GET_ACTIVE_DEVICE_IDS, [Client], [NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS_PARAMS], system::active_devices),
    accepted!(NV0000_CTRL_CMD_GPU_ASYNC_ATTACH_ID, [Client], [NV0000_CTRL_GPU_ASYNC_ATTACH_ID_PARAMS], system::attach_one, ALWAYS_ATTACHED),
    accepted!(NV0000_CTRL_CMD_GPU_WAIT_ATTACH_ID, [Client], [NV0000_CTRL_GPU_WAIT_ATTACH_ID_PARAMS], system::attach_one, ALWAYS_ATTACHED),
    accepted!(NV0000_CTRL_CMD_GSYNC_GET_ATTACHED_IDS, [Client], [NV0000_CTRL_GSYNC_GET_ATTACHED_IDS_PARAMS], system::no_gsync, "there is no G-Sync board"),
    row!(NV0000_CTRL_CMD_SYNC_GPU_BOOST_GROUP_INFO, [Client], [2244], plain::zero_after::<0>, Support::Accepted, ONE_GPU),
    accepted!(NV0000_CTRL_CMD_GPUACCT_GET_ACCOUNTING_STATE, [Client], [NV0000_CTRL_GPUACCT_GET_ACCOUNTING_STATE_PARAMS], plain::zero_after::<8>, "there is no accounting"),
    done!(NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE, [Client], [NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS], system::addr_space_type),
    accepted!(NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY, [Client], [NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS], plain::nothing, "clients of other processes never see these objects"),
    refused!(NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD, [Client], NV_ERR_NOT_SUPPORTED, EXPORT),
    refused!(NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_FROM_FD, [Client], NV_ERR_NOT_SUPPORTED, EXPORT),
    refused!(NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO, [Client], NV_ERR_NOT_SUPPORTED, EXPORT),
    refused!(NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECTS_TO_FD, [Client], NV_ERR_NOT_SUPPORTED, EXPORT),
    refused!(NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECTS_FROM_FD, [Client], NV_ERR_NOT_SUPPORTED, EXPORT),
    refused!(NV0041_CTRL_CMD_GET_SURFACE_INFO, [Memory], NV_ERR_NOT_SUPPORTED, "buffers have no surface layout"),
    done!(NV0080_CTRL_CMD_GPU_GET_CLASSLIST, [Device], [NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS], device::class_list),
    done!(NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES, [Device, Subdevice], [NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS], device::num_subdevices),
    accepted!(NV0080_CTRL_CMD_GPU_QUERY_SW_STATE_PERSISTENCE, [Device], [NV0080_CTRL_GPU_QUERY_SW_STATE_PERSISTENCE_PARAMS], plain::zero_after::<0>, "the kernel driver stays loaded anyway"),
    accepted!(NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE, [Device], [NV0080_CTRL_GPU_GET_VIRTUALIZATION_MODE_PARAMS], plain::zero_after::<0>, "the GPU is not virtualised"),
    refused!(UNKNOWN_CONTROL_COMMAND_80028B, [Device], NV_ERR_NOT_SUPPORTED, "no published header names it"),
    done!(NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2, [Device], [NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS, NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS_V580], device::class_list_v2),
    accepted!(NV0080_CTRL_CMD_GR_GET_CAPS, [Device], [NV0080_CTRL_GR_GET_CAPS_PARAMS], device::no_caps, NO_CAPS),
    done!(NV0080_CTRL_CMD_GR_GET_INFO, [Device], [NV0080_CTRL_GR_GET_INFO_PARAMS], gr::info),
    refused!(NV0080_CTRL_CMD_GR_SET_TPC_PARTITION_MODE, [Device], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    accepted!(NV0080_CTRL_CMD_GR_GET_CAPS_V2, [Device], [NV0080_CTRL_GR_GET_CAPS_V2_PARAMS], gr::no_caps_v2, NO_CAPS),
    accepted!(NV0080_CTRL_CMD_FB_GET_CAPS, [Device], [NV0080_CTRL_FB_GET_CAPS_PARAMS], device::no_caps, NO_CAPS),
    accepted!(NV0080_CTRL_CMD_FB_GET_CAPS_V2, [Device, Subdevice], [NV0080_CTRL_FB_GET_CAPS_V2_PARAMS], plain::zero_after::<0>, NO_CAPS),
    accepted!(NV0080_CTRL_CMD_HOST_GET_CAPS_V2, [Device, Subdevice], [NV0080_CTRL_HOST_GET_CAPS_V2_PARAMS], plain::zero_after::<0>, NO_CAPS),
    accepted!(NV0080_CTRL_CMD_FIFO_GET_CAPS, [Device], [NV0080_CTRL_FIFO_GET_CAPS_PARAMS], device::no_caps, NO_CAPS),
    accepted!(NV0080_CTRL_CMD_FIFO_GET_ENGINE_CONTEXT_PROPERTIES, [Device], [NV0080_CTRL_FIFO_GET_ENGINE_CONTEXT_PROPERTIES_PARAMS], plain::zero_after::<4>, "the kernel allocates engine contexts itself"),
    done!(NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST, [Device], [NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS], device::channel_list),
    accepted!(NV0080_CTRL_CMD_FIFO_GET_CAPS_V2, [Device], [NV0080_CTRL_FIFO_GET_CAPS_V2_PARAMS], plain::zero_after::<0>, NO_CAPS),
    partial!(NV0080_CTRL_CMD_DMA_ADV_SCHED_GET_VA_CAPS, [Device], [NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PARAMS], device::va_caps, "sizes; no page table formats, which the kernel keeps to itself"),
    accepted!(NV0080_CTRL_CMD_DMA_GET_CAPS, [Device], [NV0080_CTRL_DMA_GET_CAPS_PARAMS], plain::zero_after::<4>, NO_CAPS),
    refused!(NV0080_CTRL_CMD_PERF_CUDA_LIMIT_SET_CONTROL, [Device], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV0080_CTRL_CMD_MSENC_GET_CAPS, [Device], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    refused!(NV0080_CTRL_CMD_BSP_GET_CAPS_V2, [Device], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    refused!(NV0080_CTRL_CMD_NVJPG_GET_CAPS_V2, [Device], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    refused!(NV_SEMAPHORE_SURFACE_CTRL_CMD_BIND_CHANNEL, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV_SEMAPHORE_SURFACE_CTRL_CMD_UNBIND_CHANNEL, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00DE_CTRL_CMD_REQUEST_DATA_POLL, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00E0_CTRL_CMD_IMPORT_MEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00F1_CTRL_CMD_GET_FABRIC_EVENTS, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00F1_CTRL_CMD_FINISH_MEM_UNIMPORT, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00F1_CTRL_CMD_DISABLE_IMPORTERS, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00F8_CTRL_CMD_DESCRIBE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00F8_CTRL_CMD_ATTACH_MEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FB_CTRL_CMD_VALIDATE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_GET_INFO, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_ATTACH_MEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_ATTACH_GPU, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_DETACH_MEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_ATTACH_REMOTE_GPU, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV00FD_CTRL_CMD_SET_FAILURE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    accepted!(NV2080_CTRL_CMD_GPU_GET_INFO_V2, [Subdevice, Device], [NV2080_CTRL_GPU_GET_INFO_V2_PARAMS, NV2080_CTRL_GPU_GET_INFO_V2_PARAMS_V580, NV2080_CTRL_GPU_GET_INFO_V2_PARAMS_V610], gpu::info_v2, NO_CAPS),
    done!(NV2080_CTRL_CMD_GPU_GET_NAME_STRING, [Subdevice, Device], [NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS, NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_V610], gpu::name),
    done!(NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING, [Subdevice, Device], [NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS], gpu::short_name),
    accepted!(NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO, [Subdevice, Device], [NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS], plain::zero_after::<0>, "means NVIDIA's own simulators; the profile says whether the Orin is virtual"),
    refused!(NV2080_CTRL_CMD_GPU_EXEC_REG_OPS, [Subdevice], NV_ERR_INSUFFICIENT_PERMISSIONS, "register access is privileged"),
    done!(NV2080_CTRL_CMD_GPU_GET_ENGINES, [Subdevice], [NV2080_CTRL_GPU_GET_ENGINES_PARAMS], engines::list),
    refused!(NV2080_CTRL_CMD_GPU_PROMOTE_CTX, [Subdevice], NV_ERR_INSUFFICIENT_PERMISSIONS, PHYSICAL),
    accepted!(NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS, [Subdevice], [NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS], plain::zero_after::<0>, NO_ECC),
    accepted!(NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES, [Subdevice], [NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS], plain::zero_after::<0>, "rule 0: anybody may compute"),
    refused!(NV2080_CTRL_CMD_GPU_QUERY_ECC_CONFIGURATION, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_ECC),
    refused!(NV2080_CTRL_CMD_GPU_GET_OEM_BOARD_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, "there is no InfoROM"),
    done!(NV2080_CTRL_CMD_GPU_GET_ID, [Subdevice], [NV2080_CTRL_GPU_GET_ID_PARAMS], gpu::id),
    row!(NV2080_CTRL_CMD_GPU_ACQUIRE_COMPUTE_MODE_RESERVATION, [Subdevice], [0], plain::nothing, Support::Accepted, "there is no compute mode to reserve"),
    row!(NV2080_CTRL_CMD_GPU_RELEASE_COMPUTE_MODE_RESERVATION, [Subdevice], [0], plain::nothing, Support::Accepted, "there is no compute mode to release"),
    accepted!(NV2080_CTRL_CMD_GPU_GET_ENGINE_PARTNERLIST, [Subdevice], [NV2080_CTRL_GPU_GET_ENGINE_PARTNERLIST_PARAMS], plain::zero_after::<12>, "engines have no partners"),
    done!(NV2080_CTRL_CMD_GPU_GET_GID_INFO, [Subdevice], [NV2080_CTRL_GPU_GET_GID_INFO_PARAMS], gpu::gid),
    accepted!(NV2080_CTRL_CMD_GPU_GET_INFOROM_OBJECT_VERSION, [Subdevice], [NV2080_CTRL_GPU_GET_INFOROM_OBJECT_VERSION_PARAMS], plain::zero_after::<3>, "there is no InfoROM"),
    accepted!(NV2080_CTRL_CMD_GPU_GET_INFOROM_IMAGE_VERSION, [Subdevice, Device], [NV2080_CTRL_GPU_GET_INFOROM_IMAGE_VERSION_PARAMS], plain::zero_after::<0>, "there is no InfoROM"),
    refused!(NV2080_CTRL_CMD_GPU_QUERY_INFOROM_ECC_SUPPORT, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_ECC),
    refused!(NV2080_CTRL_CMD_GPU_GET_ENCODER_CAPACITY, [Subdevice], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    refused!(NV2080_CTRL_CMD_GPU_GET_NVENC_SW_SESSION_STATS, [Subdevice], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    done!(NV2080_CTRL_CMD_GPU_GET_ENGINES_V2, [Subdevice], [NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS], engines::list_v2),
    refused!(NV2080_CTRL_CMD_GPU_GET_NVFBC_SW_SESSION_STATS, [Subdevice], NV_ERR_NOT_SUPPORTED, OTHER_ENGINE),
    accepted!(NV2080_CTRL_CMD_GPU_GET_ACTIVE_PARTITION_IDS, [Subdevice], [NV2080_CTRL_GPU_GET_ACTIVE_PARTITION_IDS_PARAMS], plain::zero_after::<0>, "the GPU is not partitioned"),
    refused!(NV2080_CTRL_CMD_GPU_GET_PIDS, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_GPU_GET_PID_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    accepted!(NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG, [Subdevice], [NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS], plain::zero_after::<0>, "no policy is configured"),
    refused!(NV2080_CTRL_CMD_GPU_GET_SKYLINE_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    accepted!(NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO, [Subdevice], [NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO_PARAMS], plain::zero_after::<0>, NO_FABRIC),
    refused!(NV2080_CTRL_CMD_GPU_GET_CHIP_DETAILS, [Subdevice], NV_ERR_NOT_SUPPORTED, "there is no PCI device behind the GPU"),
    accepted!(NV2080_CTRL_CMD_GPU_GET_RECOVERY_ACTION, [Subdevice], [NV2080_CTRL_GPU_GET_RECOVERY_ACTION_PARAMS], plain::zero_after::<0>, "the kernel recovers by itself"),
    accepted!(NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION, [Subdevice], [NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS], plain::nothing, NO_EVENTS),
    done!(NV2080_CTRL_CMD_TIMER_GET_TIME, [Subdevice], [NV2080_CTRL_TIMER_GET_TIME_PARAMS], gpu::time),
    done!(NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO, [Subdevice], [NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS], gpu::time_correlation),
    refused!(NV2080_CTRL_CMD_TIMER_SET_GR_TICK_FREQ, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_THERMAL_SYSTEM_EXECUTE_V2, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_BIOS_GET_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, "there is no VBIOS"),
    refused!(NV2080_CTRL_CMD_INTERNAL_STATIC_KGR_GET_INFO, [Subdevice], NV_ERR_INSUFFICIENT_PERMISSIONS, PHYSICAL),
    refused!(NV2080_CTRL_CMD_INTERNAL_BUS_FLUSH_WITH_SYSMEMBAR, [Subdevice], NV_ERR_INSUFFICIENT_PERMISSIONS, PHYSICAL),
    done!(NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, [Subdevice], [NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS], channel::disable_channels),
    done!(NV2080_CTRL_CMD_GR_GET_INFO, [Subdevice], [NV2080_CTRL_GR_GET_INFO_PARAMS], gr::info),
    done!(NV2080_CTRL_CMD_GR_GET_ZCULL_INFO, [Subdevice], [NV2080_CTRL_GR_GET_ZCULL_INFO_PARAMS], gr::zcull_info),
    done!(NV2080_CTRL_CMD_GR_CTXSW_ZCULL_BIND, [Subdevice], [NV2080_CTRL_GR_CTXSW_ZCULL_BIND_PARAMS], gr::zcull_bind),
    done!(NV2080_CTRL_CMD_GR_GET_SM_TO_GPC_TPC_MAPPINGS, [Subdevice], [NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS], gr::sm_mappings),
    done!(NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, [Subdevice], [NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS], gr::preemption_mode),
    partial!(NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE, [Subdevice], [NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS], gr::context_size, "the zcull context, the only one the client can allocate"),
    done!(NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER, [Subdevice], [NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS, NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_V580], gr::sm_order),
    accepted!(NV2080_CTRL_CMD_GR_GET_CAPS_V2, [Subdevice], [NV2080_CTRL_GR_GET_CAPS_V2_PARAMS], gr::no_caps_v2, NO_CAPS),
    done!(NV2080_CTRL_CMD_GR_GET_GPC_MASK, [Subdevice], [NV2080_CTRL_GR_GET_GPC_MASK_PARAMS], gr::gpc_mask),
    done!(NV2080_CTRL_CMD_GR_GET_TPC_MASK, [Subdevice], [NV2080_CTRL_GR_GET_TPC_MASK_PARAMS], gr::tpc_mask),
    accepted!(NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER, [Subdevice], [NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS], plain::zero_after::<16>, "issue rates are not limited"),
    row!(NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER_V2, [Subdevice], [2044], gpu::info_v2, Support::Accepted, "issue rates are not limited"),
    refused!(NV2080_CTRL_CMD_GR_GET_SM_ISSUE_THROTTLE_CTRL, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    done!(NV2080_CTRL_CMD_FB_GET_INFO, [Subdevice], [NV2080_CTRL_FB_GET_INFO_PARAMS], fb::info),
    done!(NV2080_CTRL_CMD_FB_GET_INFO_V2, [Subdevice], [NV2080_CTRL_FB_GET_INFO_V2_PARAMS, NV2080_CTRL_FB_GET_INFO_V2_PARAMS_V580], fb::info_v2),
    done!(NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE, [Subdevice], [NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS], fb::flush_cache),
    accepted!(NV2080_CTRL_CMD_FB_GET_GPU_CACHE_INFO, [Subdevice], [NV2080_CTRL_FB_GET_GPU_CACHE_INFO_PARAMS], plain::zero_after::<0>, "the L2 is on and writes back, and 0 stands for this"),
    done!(NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO, [Subdevice], [NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS], fb::regions),
    accepted!(NV2080_CTRL_CMD_FB_GET_OFFLINED_PAGES, [Subdevice], [NV2080_CTRL_FB_GET_OFFLINED_PAGES_PARAMS], plain::zero_after::<0>, NO_ECC),
    refused!(NV2080_CTRL_CMD_FB_GET_FS_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_FB_GET_SEMAPHORE_SURFACE_LAYOUT, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_INFOROM_SUPPORT_V575, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_INFOROM_SUPPORT, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_STATUS, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    done!(NV2080_CTRL_CMD_MC_GET_ARCH_INFO, [Subdevice, Device], [NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS], gpu::arch),
    accepted!(NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS, [Subdevice], [NV2080_CTRL_MC_SERVICE_INTERRUPTS_PARAMS], plain::nothing, "the kernel services interrupts as they come"),
    done!(NV2080_CTRL_CMD_BUS_GET_PCI_INFO, [Subdevice, Device], [NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS], bus::pci_info),
    done!(NV2080_CTRL_CMD_BUS_GET_INFO, [Subdevice], [NV2080_CTRL_BUS_GET_INFO_PARAMS], bus::info),
    done!(NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO, [Subdevice, Device], [NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS], plain::zero_after::<0>),
    accepted!(NV2080_CTRL_CMD_BUS_GET_PEX_COUNTERS, [Subdevice], [NV2080_CTRL_BUS_GET_PEX_COUNTERS_PARAMS], plain::zero_after::<4>, NO_PCIE),
    accepted!(NV2080_CTRL_CMD_BUS_GET_PEX_UTIL_COUNTERS, [Subdevice], [NV2080_CTRL_BUS_GET_PEX_UTIL_COUNTERS_PARAMS], plain::zero_after::<4>, NO_PCIE),
    done!(NV2080_CTRL_CMD_BUS_GET_INFO_V2, [Subdevice], [NV2080_CTRL_BUS_GET_INFO_V2_PARAMS], bus::info_v2),
    accepted!(NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS, [Subdevice], [NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS_PARAMS], plain::zero_after::<8>, NO_PCIE),
    accepted!(NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS, [Subdevice], [NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS], plain::zero_after::<8>, NO_PCIE),
    accepted!(NV2080_CTRL_CMD_BUS_GET_C2C_INFO, [Subdevice], [NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS], plain::zero_after::<0>, "there is no chip-to-chip link"),
    accepted!(NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS, [Subdevice, Device], [NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS_PARAMS], plain::zero_after::<0>, NO_PCIE),
    done!(NV2080_CTRL_CMD_PERF_BOOST, [Subdevice], [NV2080_CTRL_PERF_BOOST_PARAMS], gpu::boost),
    accepted!(NV2080_CTRL_CMD_PERF_GET_CURRENT_PSTATE, [Subdevice], [NV2080_CTRL_PERF_GET_CURRENT_PSTATE_PARAMS], gpu::pstate, "devfreq has no performance states, so P0 is the only one"),
    refused!(NV2080_CTRL_CMD_PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    accepted!(NV2080_CTRL_CMD_RC_GET_WATCHDOG_INFO, [Subdevice], [NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS], plain::zero_after::<0>, "user-mode channels have no watchdog"),
    row!(NV2080_CTRL_CMD_RC_RELEASE_WATCHDOG_REQUESTS, [Subdevice], [0], plain::nothing, Support::Accepted, "user-mode channels have no watchdog"),
    row!(NV2080_CTRL_CMD_RC_SOFT_DISABLE_WATCHDOG, [Subdevice], [0], plain::nothing, Support::Accepted, "user-mode channels have no watchdog"),
    done!(NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK, [Subdevice, Device], [NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS], engines::pce_mask),
    accepted!(NV2080_CTRL_CMD_CE_GET_CAPS_V2, [Subdevice], [NV2080_CTRL_CE_GET_CAPS_V2_PARAMS], plain::zero_after::<4>, NO_CAPS),
    partial!(NV2080_CTRL_CMD_CE_GET_ALL_CAPS, [Subdevice], [NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS], engines::copy_caps, "which copy engines there are; no capability bits"),
    accepted!(NV2080_CTRL_CMD_NVLINK_GET_NVLINK_CAPS, [Subdevice], [NV2080_CTRL_CMD_NVLINK_GET_NVLINK_CAPS_PARAMS], plain::zero_after::<0>, NO_NVLINK),
    row!(NV2080_CTRL_CMD_NVLINK_GET_NVLINK_STATUS, [Subdevice], [13320], plain::zero_after::<0>, Support::Accepted, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_GET_PLATFORM_INFO, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_LOCK_REMAP_TABLE_AND_MSE, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_SETUP_NVLE_ENCRYPTION_KEY, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_GET_REMAP_TABLE_INFO_V2, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_GET_UPDATE_NVLE_LIDS_V2, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_NVLINK_GET_UPDATE_NVLE_LIDS_V3, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_NVLINK),
    refused!(NV2080_CTRL_CMD_FLCN_GET_CTX_BUFFER_SIZE, [Subdevice], NV_ERR_NOT_SUPPORTED, NOT_EXPOSED),
    refused!(NV2080_CTRL_CMD_ECC_GET_REPAIR_STATUS, [Subdevice], NV_ERR_NOT_SUPPORTED, NO_ECC),
    accepted!(NV2080_CTRL_CMD_GSP_GET_FEATURES, [Subdevice], [NV2080_CTRL_GSP_GET_FEATURES_PARAMS], plain::zero_after::<0>, "there is no GSP firmware: not valid"),
    partial!(NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO, [Subdevice], [NV2080_CTRL_GRMGR_GET_GR_FS_INFO_PARAMS], gr::floorsweeping, "GPCs and TPCs; PPCs, ROPs and partitions are NOT_SUPPORTED in their query"),
    accepted!(NV2080_CTRL_CMD_OS_UNIX_VIDMEM_PERSISTENCE_STATUS, [Subdevice], [NV2080_CTRL_OS_UNIX_VIDMEM_PERSISTENCE_STATUS_PARAMS], plain::zero_after::<0>, "there is no memory of the GPU's own to preserve"),
    refused!(NV208F_CTRL_CMD_GPU_VERIFY_INFOROM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV503C_CTRL_CMD_REGISTER_VA_SPACE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV503C_CTRL_CMD_REGISTER_VIDMEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV503C_CTRL_CMD_UNREGISTER_VIDMEM, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    done!(NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG, [Debugger], [NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS], debugger::mmu_debug),
    partial!(NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK, [Debugger], [NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS], debugger::exception_mask, "none and fatal ones; the others are NOT_SUPPORTED, since nvgpu does not know them"),
    done!(NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, [Debugger], [NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS], debugger::sm_error),
    done!(NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, [Debugger], [NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS], debugger::sm_errors),
    partial!(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, [Debugger], [NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS], debugger::clear_sm_error, "the record that the kernel saved; the hardware's registers are cleared for all SMs or for none"),
    done!(NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES, [Debugger], [NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS], debugger::clear_sm_errors),
    done!(NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE, [Debugger], [NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_PARAMS], debugger::next_stop),
    done!(NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, [Debugger], [NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS], debug_memory::read),
    done!(NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY, [Debugger], [NV83DE_CTRL_DEBUG_WRITE_MEMORY_PARAMS], debug_memory::write),
    done!(NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT, [Debugger], [NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS], debugger::suspend),
    row!(NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT, [Debugger], [0], debugger::resume, Support::Done, ""),
    partial!(NV83DE_CTRL_CMD_GET_MAPPINGS, [Debugger], [NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS], debug_memory::mappings, "a range of 4 GiB and more is told as one of 0xffffffff bytes"),
    partial!(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, [Debugger], [NV83DE_CTRL_DEBUG_EXEC_REG_OPS_PARAMS], debug_memory::reg_ops, "what the kernel's list of registers allows; a refused transaction is INVALID_ARGUMENT and does not tell which operation it was"),
    partial!(NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG, [Debugger], [NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS], debugger::errbar, "whether a warp's end waits for its errors, since r36; NOT_SUPPORTED on r35"),
    partial!(NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, [Debugger], [NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS], debugger::mmu_fault, "that there was a fault; its address is in the kernel's log only"),
    done!(NV906F_CTRL_GET_CLASS_ENGINEID, [Channel], [NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS], channel::class_engine),
    done!(NV906F_CTRL_CMD_RESET_CHANNEL, [Channel], [NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS], channel::reset),
    refused!(NV9096_CTRL_CMD_SET_ZBC_COLOR_CLEAR, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV9096_CTRL_CMD_GET_ZBC_CLEAR_TABLE_SIZE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV9096_CTRL_CMD_GET_ZBC_CLEAR_TABLE_ENTRY, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV90CC_CTRL_CMD_POWER_REQUEST_FEATURES, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV90CC_CTRL_CMD_POWER_RELEASE_FEATURES, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV90E6_CTRL_CMD_MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV90E7_CTRL_CMD_BBX_GET_LAST_FLUSH_TIME, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    done!(NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, [Group], [NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS, FamilyOfSchedule], channel::schedule_group),
    done!(NVA06C_CTRL_CMD_SET_TIMESLICE, [Group], [NVA06C_CTRL_SET_TIMESLICE_PARAMS], channel::set_timeslice),
    done!(NVA06C_CTRL_CMD_GET_TIMESLICE, [Group], [NVA06C_CTRL_GET_TIMESLICE_PARAMS], channel::timeslice),
    done!(NVA06C_CTRL_CMD_PREEMPT, [Group], [NVA06C_CTRL_PREEMPT_PARAMS], channel::preempt),
    done!(NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, [Group], [NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS], channel::set_interleave),
    done!(NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL, [Group], [NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS], channel::interleave),
    done!(NVA06F_CTRL_CMD_GPFIFO_SCHEDULE, [Channel], [NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS, FamilyOfSchedule], channel::schedule),
    accepted!(NVA06F_CTRL_CMD_BIND, [Channel], [NVA06F_CTRL_BIND_PARAMS], plain::nothing, "the channel was bound to its runlist when it was made"),
    done!(NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, [Profiler], [NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS], profiler::reserve_hwpm),
    row!(NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY, [Profiler], [0], profiler::release_hwpm, Support::Done, ""),
    done!(NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC, [Profiler], [NVB0CC_CTRL_RESERVE_PM_AREA_SMPC_PARAMS], profiler::reserve_smpc),
    row!(NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC, [Profiler], [0], profiler::release_smpc, Support::Done, ""),
    partial!(NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, [Profiler], [NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS], profiler::alloc_stream, "one stream, and its count at the front of a buffer: another place for the count is NOT_SUPPORTED"),
    done!(NVB0CC_CTRL_CMD_FREE_PMA_STREAM, [Profiler], [NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS], profiler::free_stream),
    row!(NVB0CC_CTRL_CMD_BIND_PM_RESOURCES, [Profiler], [0], profiler::bind, Support::Done, ""),
    row!(NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES, [Profiler], [0], profiler::unbind, Support::Done, ""),
    done!(NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, [Profiler], [NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS], profiler::update_stream),
    partial!(NVB0CC_CTRL_CMD_EXEC_REG_OPS, [Profiler], [NVB0CC_CTRL_EXEC_REG_OPS_PARAMS], profiler::reg_ops, "what the kernel's list of registers allows; a refused \"all or none\" is INVALID_ARGUMENT and does not tell which operation it was"),
    row!(NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER, [Profiler], [0], profiler::reserve_sampler, Support::Done, ""),
    row!(NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER, [Profiler], [0], profiler::release_sampler, Support::Done, ""),
    partial!(NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, [Profiler], [NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS], profiler::total_credits, SINCE_R39),
    partial!(NVB0CC_CTRL_CMD_SET_HS_CREDITS, [Profiler], [NVB0CC_CTRL_SET_HS_CREDITS_PARAMS], profiler::set_credits, SINCE_R39),
    partial!(NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL, [Profiler], [NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL], profiler::credit_pools, SINCE_R39),
    refused!(NVB0CC_CTRL_CMD_RESERVE_CCU_PROF, [Profiler], NV_ERR_NOT_SUPPORTED, "ga10b has no counter collection unit"),
    partial!(NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, [Profiler], [NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS], profiler::request_power, "nvgpu switches ELCG, BLCG, SLCG and ELPG together; idle slowdown and VAT are answered as not supported"),
    done!(NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, [Profiler], [NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS], profiler::release_power),
    done!(NVC36F_CTRL_GET_CLASS_ENGINEID, [Channel], [NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS], channel::class_engine),
    done!(NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, [Channel], [NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS], channel::work_submit_token),
    accepted!(NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX, [Channel], [NVC36F_CTRL_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX_PARAMS], plain::nothing, "a channel's token never changes: nothing to notify about"),
    refused!(NVC56F_CTRL_CMD_GET_KMB, [Channel], NV_ERR_NOT_SUPPORTED, NO_CONFIDENTIAL),
    refused!(NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_NUM_SECURE_CHANNELS, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
    refused!(NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_KEY_ROTATION_STATE, [], NV_ERR_NOT_SUPPORTED, NO_OBJECT),
];
