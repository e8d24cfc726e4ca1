//! The escapes of `/dev/nvidiactl` and `/dev/nvidia0`: one row each.

use super::call::{Call, Fail, Outcome, invalid, with_argument};
use super::node::Kind;
use super::{cards, heap, verbs};
use crate::rm::classes::State;
use std::mem::offset_of;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::extra::NVOS46_PARAMETERS_V580;
use tegrarm_abi::rm::status::NV_ERR_NOT_SUPPORTED;
use tegrarm_kmd::Errno;

/// Answers an escape: reads and writes the argument in place.
pub type Run = fn(&Call, &mut [u8]) -> Result<(), Fail>;

/// Which node takes an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `/dev/nvidiactl` only.
    Control,
    /// `/dev/nvidia0` only.
    Gpu,
    /// Both.
    Any,
}

/// The argument: sizes tell layouts of different driver generations apart.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// One of these sizes, with the offset of its status if it has one.
    Sizes(&'static [(usize, Option<usize>)]),
    /// Any number of items of this size.
    Items(usize),
    /// Not known, so not decoded.
    Unknown,
}

/// One escape.
pub struct EscapeRow {
    /// Its number.
    pub nr: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// Where it may be called.
    pub gate: Gate,
    /// What it takes.
    pub args: Args,
    /// What answers it.
    pub run: Run,
    /// What the answer amounts to.
    pub state: State,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

/// Largest argument, also by way of `NV_ESC_IOCTL_XFER_CMD`.
const MAX_SIZE: usize = 16384;

/// `_IOC_NR` and `_IOC_SIZE` of a request. Like desktop RM, direction and type are not looked at.
fn decode(request: u32) -> (u32, usize) {
    (request & 0xff, (request >> 16 & 0x3fff) as usize)
}

/// The row of an escape.
pub fn find(nr: u32) -> Option<&'static EscapeRow> {
    ESCAPES.iter().find(|row| row.nr == nr)
}

/// One ioctl on a control or GPU file.
pub fn ioctl(call: &Call, request: u32, argp: u64) -> Outcome {
    let (nr, size) = decode(request);
    if nr != NV_ESC_IOCTL_XFER_CMD {
        return escape(call, nr, size, argp);
    }
    let mut inner = Outcome::default();
    let outer = with_argument(argp, size, None, |bytes| {
        if bytes.len() != size_of::<nv_ioctl_xfer_t>() {
            return Err(invalid(format!("NV_ESC_IOCTL_XFER_CMD: {size} bytes of argument")));
        }
        let xfer: nv_ioctl_xfer_t = crate::rm::params::get(bytes);
        if xfer.size as usize > MAX_SIZE {
            return Err(invalid(format!("NV_ESC_IOCTL_XFER_CMD: {} bytes, the most is {MAX_SIZE}", xfer.size)));
        }
        inner = escape(call, xfer.cmd, xfer.size as usize, xfer.ptr);
        Ok(())
    });
    if outer.errno.is_some() { outer } else { inner }
}

fn escape(call: &Call, nr: u32, size: usize, argp: u64) -> Outcome {
    let refuse = |text: String| Outcome { errno: Some(Errno::EINVAL), sentence: text };
    let Some(row) = find(nr) else { return refuse(format!("there is no escape {nr:#x}")) };
    let here = match row.gate {
        Gate::Any => true,
        Gate::Control => call.file.kind == Kind::Control,
        Gate::Gpu => call.file.kind == Kind::Gpu,
    };
    if !here {
        return refuse(format!("{} is no escape of this node; its node: {:?}", row.name, row.gate));
    }
    let status = match row.args {
        Args::Sizes(sizes) => sizes.iter().find(|(s, _)| *s == size).map(|(_, status)| *status),
        Args::Items(item) => (size > 0 && size.is_multiple_of(item)).then_some(None),
        Args::Unknown => None,
    };
    let Some(status) = status else {
        return refuse(format!("{}: an argument of {size} bytes; takes {:?}", row.name, row.args));
    };
    tracing::trace!("{}", row.name);
    with_argument(argp, size, status, |bytes| (row.run)(call, bytes))
}

/// Answers escapes whose state says why they may be ignored.
fn accept(_call: &Call, _arg: &mut [u8]) -> Result<(), Fail> {
    Ok(())
}

/// Answers escapes that have no meaning here.
fn refuse(_call: &Call, _arg: &mut [u8]) -> Result<(), Fail> {
    Err(invalid("this escape is not supported"))
}

/// Answers them in the structure.
fn unsupported(_call: &Call, _arg: &mut [u8]) -> Result<(), Fail> {
    Err(crate::status::RmError::new(NV_ERR_NOT_SUPPORTED, "this escape is not supported").into())
}

/// Sizes and status offsets from structures.
macro_rules! args {
    ($($t:ty $(: $($status:ident).+)?),+) => {
        Args::Sizes(&[$((size_of::<$t>(), args!(@status $t $(, $($status).+)?))),+])
    };
    (@status $t:ty) => { None };
    (@status $t:ty, $($status:ident).+) => { Some(offset_of!($t, $($status).+)) };
}

/// A row from the name of its constant.
macro_rules! row {
    ($nr:ident, $gate:ident, $args:expr, $run:expr) => {
        row!($nr, $gate, $args, $run, State::Done, "")
    };
    ($nr:ident, $gate:ident, $args:expr, $run:expr, $state:expr, $why:expr) => {
        EscapeRow {
            nr: $nr,
            name: stringify!($nr),
            gate: Gate::$gate,
            args: $args,
            run: $run,
            state: $state,
            why: $why,
        }
    };
}

const NOT_HERE: &str = "no such thing on a Tegra";
const NO_EVENTS: &str = "events never fire: nvgpu has none that RM's mean";
const REFUSED: State = State::Refused(NV_ERR_NOT_SUPPORTED);

/// Every escape, by number; `NV_ESC_IOCTL_XFER_CMD` wraps them and has no row.
pub static ESCAPES: &[EscapeRow] = &[
    row!(NV_ESC_RM_ALLOC_MEMORY, Gpu, args!(nv_ioctl_nvos02_parameters_with_fd: params.status), verbs::alloc_memory),
    row!(NV_ESC_RM_ALLOC_OBJECT, Control, args!(NVOS05_PARAMETERS: status), verbs::alloc_object),
    row!(NV_ESC_RM_FREE, Control, args!(NVOS00_PARAMETERS: status), verbs::free),
    row!(NV_ESC_RM_CONTROL, Control, args!(NVOS54_PARAMETERS: status), verbs::control),
    row!(NV_ESC_RM_ALLOC, Control, args!(NVOS21_PARAMETERS: status, NVOS64_PARAMETERS: status), verbs::alloc),
    row!(NV_ESC_RM_DUP_OBJECT, Control, args!(NVOS55_PARAMETERS: status), verbs::dup_object),
    row!(
        NV_ESC_RM_SHARE,
        Control,
        args!(NVOS57_PARAMETERS: status),
        accept,
        State::Accepted,
        "clients of one process may always duplicate each other's memory"
    ),
    row!(NV_ESC_RM_I2C_ACCESS, Gpu, Args::Unknown, refuse, REFUSED, NOT_HERE),
    row!(
        NV_ESC_RM_IDLE_CHANNELS,
        Control,
        args!(NVOS30_PARAMETERS: status),
        accept,
        State::Accepted,
        "a client that submits by itself also waits by itself"
    ),
    row!(NV_ESC_RM_VID_HEAP_CONTROL, Control, args!(NVOS32_PARAMETERS: status), heap::control),
    row!(NV_ESC_RM_ACCESS_REGISTRY, Control, Args::Unknown, refuse, REFUSED, NOT_HERE),
    row!(NV_ESC_RM_MAP_MEMORY, Control, args!(nv_ioctl_nvos33_parameters_with_fd: params.status), verbs::map_memory),
    row!(NV_ESC_RM_UNMAP_MEMORY, Control, args!(NVOS34_PARAMETERS: status), verbs::unmap_memory),
    row!(NV_ESC_RM_GET_EVENT_DATA, Control, args!(NVOS41_PARAMETERS: status), refuse, REFUSED, NO_EVENTS),
    row!(NV_ESC_RM_ALLOC_CONTEXT_DMA2, Control, args!(NVOS39_PARAMETERS: status), verbs::alloc_context_dma),
    row!(
        NV_ESC_RM_MAP_MEMORY_DMA,
        Control,
        args!(NVOS46_PARAMETERS: status, NVOS46_PARAMETERS_V580: status),
        verbs::map_memory_dma
    ),
    row!(NV_ESC_RM_UNMAP_MEMORY_DMA, Control, args!(NVOS47_PARAMETERS: status), verbs::unmap_memory_dma),
    row!(
        NV_ESC_RM_BIND_CONTEXT_DMA,
        Control,
        args!(NVOS49_PARAMETERS: status),
        accept,
        State::Accepted,
        "channels find context DMAs by address, not by handle"
    ),
    row!(NV_ESC_RM_EXPORT_OBJECT_TO_FD, Control, Args::Unknown, refuse, REFUSED, "no exports between processes"),
    row!(NV_ESC_RM_IMPORT_OBJECT_FROM_FD, Control, Args::Unknown, refuse, REFUSED, "no exports between processes"),
    row!(
        NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO,
        Control,
        args!(NVOS56_PARAMETERS: status),
        accept,
        State::Accepted,
        "the kernel knows where a mapping is; RM need not"
    ),
    row!(NV_ESC_CARD_INFO, Control, Args::Items(size_of::<nv_ioctl_card_info_t>()), cards::card_info),
    row!(NV_ESC_REGISTER_FD, Gpu, args!(nv_ioctl_register_fd_t), cards::register_fd),
    row!(
        NV_ESC_ALLOC_OS_EVENT,
        Control,
        args!(nv_ioctl_alloc_os_event_t: Status),
        cards::os_event,
        State::Accepted,
        NO_EVENTS
    ),
    row!(
        NV_ESC_FREE_OS_EVENT,
        Control,
        args!(nv_ioctl_free_os_event_t: Status),
        cards::os_event,
        State::Accepted,
        NO_EVENTS
    ),
    row!(NV_ESC_STATUS_CODE, Control, args!(nv_ioctl_status_code_t: status), cards::status_code),
    row!(NV_ESC_CHECK_VERSION_STR, Control, args!(nv_ioctl_rm_api_version_t), cards::check_version),
    row!(NV_ESC_ATTACH_GPUS_TO_FD, Control, Args::Items(size_of::<u32>()), cards::attach_gpus),
    row!(NV_ESC_QUERY_DEVICE_INTR, Gpu, args!(nv_ioctl_query_device_intr), refuse, REFUSED, NOT_HERE),
    row!(
        NV_ESC_SYS_PARAMS,
        Control,
        args!(nv_ioctl_sys_params_t),
        accept,
        State::Accepted,
        "the size of memory blocks matters to GPUs with memory of their own"
    ),
    row!(NV_ESC_NUMA_INFO, Gpu, args!(nv_ioctl_numa_info_t), cards::numa_info),
    row!(
        NV_ESC_SET_NUMA_STATUS,
        Gpu,
        args!(nv_ioctl_set_numa_status_t),
        accept,
        State::Accepted,
        "there is no memory of the GPU's own to bring online"
    ),
    row!(
        NV_ESC_EXPORT_TO_DMABUF_FD,
        Gpu,
        args!(nv_ioctl_export_to_dma_buf_fd_t: status),
        unsupported,
        REFUSED,
        "no exports between processes"
    ),
    row!(NV_ESC_WAIT_OPEN_COMPLETE, Any, args!(nv_ioctl_wait_open_complete_t), cards::wait_open_complete),
];
