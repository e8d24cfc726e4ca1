//! The escapes of `/dev/nvidiactl` and `/dev/nvidia0`. Each escape has one row.

use super::call::{Call, Fail, Outcome, Refused, invalid, with_argument};
use super::node::Kind;
use super::{cards, heap, verbs};
use std::mem::offset_of;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::NV_ERR_NOT_SUPPORTED;
use tegrarm_abi::rm::versions::{NVOS46_PARAMETERS_V580, NVOS47_PARAMETERS_V535};
use tegrarm_rm::rm::classes::Support;
use tegrarm_rm::rm::params::word;
use tegrarm_rm::rm::{Asked, Index, index};

/// How an escape is answered.
#[derive(Clone, Copy)]
pub enum Answer {
    /// A handler that reads and writes a copy of the argument.
    Copied(fn(&Call, &mut [u8]) -> Result<(), Fail>),
    /// A handler that gets the address of the argument and copies it itself.
    Whole(fn(&Call, u64) -> Outcome),
    /// Not answered: `ioctl(2)` returns -1 with `EINVAL`.
    Einval,
    /// Not answered: the status in the structure says that the escape is not supported.
    Unsupported,
}
use Answer::{Copied, Einval, Unsupported, Whole};

/// The nodes that take an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `/dev/nvidiactl` only.
    Control,
    /// `/dev/nvidia0` only.
    Gpu,
    /// Both nodes.
    Any,
}

/// What argument an escape takes. The size tells the layouts of different driver generations apart.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// One of these sizes, with the offset of its status if it has one.
    Sizes(&'static [(usize, Option<usize>)]),
    /// Any number of items of this size.
    Items(usize),
    /// As many whole items of this size as fit, at least one. Bytes behind the last whole item are ignored.
    ItemsAndRest(usize),
    /// The argument may have any size, because the answer does not depend on it.
    Any,
}

/// One escape.
pub struct EscapeRow {
    /// The number of the escape.
    pub nr: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// The nodes on which it may be called.
    pub gate: Gate,
    /// The argument that it takes.
    pub args: Args,
    /// True if the argument begins with a client, which must belong to the file.
    pub of_client: bool,
    /// How it is answered.
    pub answer: Answer,
    /// How far it is supported.
    pub state: Support,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

impl EscapeRow {
    /// Makes a copy of the row whose argument begins with a client.
    const fn of_client(self) -> EscapeRow {
        EscapeRow { of_client: true, ..self }
    }
}

/// The size of the largest argument, also when `NV_ESC_IOCTL_XFER_CMD` passes it.
const MAX_SIZE: usize = 16384;

/// The `_IOC_NR` and `_IOC_SIZE` of a request. Like desktop RM, this code ignores direction and type.
fn decode(request: u32) -> (u32, usize) {
    (request & 0xff, (request >> 16 & 0x3fff) as usize)
}

static INDEX: Index<128> = index!(ESCAPES, nr, 128);

/// The row of an escape number.
#[inline]
pub fn find(nr: u32) -> Option<&'static EscapeRow> {
    INDEX.find(ESCAPES, nr, |row| row.nr)
}

/// Answers one ioctl on a control or GPU file.
#[inline(always)]
pub fn ioctl(call: &Call, request: u32, argp: u64) -> Outcome {
    let (nr, size) = decode(request);
    // RM_CONTROL is the call that frontends make most. Its row is a constant here, so the compiler removes the look-up.
    // A control writes a trace line of its own.
    if nr == CONTROL.nr {
        return answer(call, &CONTROL, size, argp);
    }
    any(call, nr, size, argp)
}

fn any(call: &Call, nr: u32, size: usize, argp: u64) -> Outcome {
    if nr != NV_ESC_IOCTL_XFER_CMD {
        return escape(call, nr, size, argp);
    }
    let mut inner = Ok(None);
    with_argument(argp, size, None, |bytes| {
        if bytes.len() != size_of::<nv_ioctl_xfer_t>() {
            return Err(invalid(format!("NV_ESC_IOCTL_XFER_CMD: {size} bytes of argument")));
        }
        let xfer: nv_ioctl_xfer_t = tegrarm_rm::rm::params::get(bytes);
        if xfer.size as usize > MAX_SIZE {
            return Err(invalid(format!("NV_ESC_IOCTL_XFER_CMD: {} bytes, the most is {MAX_SIZE}", xfer.size)));
        }
        inner = escape(call, xfer.cmd, xfer.size as usize, xfer.ptr);
        Ok(())
    })?;
    inner
}

fn escape(call: &Call, nr: u32, size: usize, argp: u64) -> Outcome {
    match find(nr) {
        Some(row) => {
            tracing::trace!("{}", row.name);
            answer(call, row, size, argp)
        }
        None => Err(call.refuse(Asked::Escape(nr), "unknown", "it is not in the escape table")),
    }
}

#[inline(always)]
fn answer(call: &Call, row: &EscapeRow, size: usize, argp: u64) -> Outcome {
    let nr = row.nr;
    let here = match row.gate {
        Gate::Any => true,
        Gate::Control => call.file.kind == Kind::Control,
        Gate::Gpu => call.file.kind == Kind::Gpu,
    };
    if !here {
        return Err(wrong_node(call, row));
    }
    let status = match row.args {
        Args::Sizes(sizes) => sizes.iter().find(|(s, _)| *s == size).map(|(_, status)| *status),
        Args::Items(item) => (size > 0 && size.is_multiple_of(item)).then_some(None),
        Args::ItemsAndRest(item) => (size >= item).then_some(None),
        Args::Any => Some(None),
    };
    let Some(status) = status else { return Err(wrong_size(call, row, size)) };
    match row.answer {
        Copied(run) => {
            let outcome = with_argument(argp, size, status, |bytes| {
                if row.of_client {
                    call.check_client(word(bytes, 0))?;
                }
                run(call, bytes)
            });
            note(call, row, &outcome);
            outcome
        }
        Whole(run) => run(call, argp),
        Einval => Err(call.refuse(Asked::Escape(nr), row.name, row.why)),
        Unsupported => with_argument(argp, size, status, |_| call.unsupported(Asked::Escape(nr), row.name, row.why)),
    }
}

#[cold]
fn wrong_node(call: &Call, row: &EscapeRow) -> Box<Refused> {
    let node = if row.gate == Gate::Control { "/dev/nvidiactl" } else { "/dev/nvidia0" };
    call.refuse(Asked::Escape(row.nr), row.name, &format!("it belongs to {node}"))
}

#[cold]
fn wrong_size(call: &Call, row: &EscapeRow, size: usize) -> Box<Refused> {
    call.refuse(Asked::Escape(row.nr), row.name, &format!("an argument of {size} bytes; it takes {:?}", row.args))
}

/// Notes a failed escape in the report, as a refused one. A refused allocation is noted by its class.
#[inline]
fn note(call: &Call, row: &EscapeRow, outcome: &Outcome) {
    match outcome {
        Ok(None) => {}
        Ok(Some(_)) if matches!(row.nr, NV_ESC_RM_ALLOC | NV_ESC_RM_ALLOC_OBJECT) => {}
        Ok(Some(e)) => failed(call, row, &e.text),
        Err(refused) => failed(call, row, &refused.sentence),
    }
}

#[cold]
fn failed(call: &Call, row: &EscapeRow, why: &str) {
    call.rm().report().refuse(Asked::Escape(row.nr), row.name, why);
}

/// Answers an escape with success and no effect. The `why` of its row says why it may be ignored.
fn accept(_call: &Call, _arg: &mut [u8]) -> Result<(), Fail> {
    Ok(())
}

/// Makes the list of sizes and status offsets from structures.
macro_rules! args {
    ($($t:ty $(: $($status:ident).+)?),+) => {
        Args::Sizes(&[$((size_of::<$t>(), args!(@status $t $(, $($status).+)?))),+])
    };
    (@status $t:ty) => { None };
    (@status $t:ty, $($status:ident).+) => { Some(offset_of!($t, $($status).+)) };
}

/// Makes a row from the name of its constant.
macro_rules! row {
    ($nr:ident, $gate:ident, $args:expr, $answer:expr) => {
        row!($nr, $gate, $args, $answer, Support::Done, "")
    };
    ($nr:ident, $gate:ident, $args:expr, $answer:expr, $state:expr, $why:expr) => {
        EscapeRow {
            nr: $nr,
            name: stringify!($nr),
            gate: Gate::$gate,
            args: $args,
            of_client: false,
            answer: $answer,
            state: $state,
            why: $why,
        }
    };
}

const DISPLAY: &str = "the display has its own driver on a Tegra";
const NOT_HERE: &str = "a Tegra does not have this";
const NO_EVENTS: &str = "nvgpu has no events that correspond to RM's, so no event ever fires";
const REFUSED: Support = Support::Refused(NV_ERR_NOT_SUPPORTED);

const CONTROL: EscapeRow = row!(NV_ESC_RM_CONTROL, Control, args!(NVOS54_PARAMETERS: status), Whole(verbs::control));

/// Every escape, sorted by number. `NV_ESC_IOCTL_XFER_CMD` wraps the others and has no row.
pub static ESCAPES: &[EscapeRow] = &[
    row!(
        NV_ESC_RM_ALLOC_MEMORY,
        Gpu,
        args!(nv_ioctl_nvos02_parameters_with_fd: params.status),
        Copied(verbs::alloc_memory)
    )
    .of_client(),
    row!(NV_ESC_RM_ALLOC_OBJECT, Control, args!(NVOS05_PARAMETERS: status), Copied(verbs::alloc_object)),
    row!(NV_ESC_RM_FREE, Control, args!(NVOS00_PARAMETERS: status), Copied(verbs::free)).of_client(),
    CONTROL,
    row!(NV_ESC_RM_ALLOC, Any, args!(NVOS21_PARAMETERS: status, NVOS64_PARAMETERS: status), Copied(verbs::alloc)),
    row!(NV_ESC_RM_CONFIG_GET, Control, Args::Any, Einval, REFUSED, DISPLAY),
    row!(NV_ESC_RM_CONFIG_SET, Control, Args::Any, Einval, REFUSED, DISPLAY),
    row!(NV_ESC_RM_DUP_OBJECT, Control, args!(NVOS55_PARAMETERS: status), Copied(verbs::dup_object)).of_client(),
    row!(
        NV_ESC_RM_SHARE,
        Control,
        args!(NVOS57_PARAMETERS: status),
        Copied(accept),
        Support::Accepted,
        "clients of one process may always duplicate each other's memory"
    )
    .of_client(),
    row!(NV_ESC_RM_CONFIG_GET_EX, Control, Args::Any, Einval, REFUSED, DISPLAY),
    row!(NV_ESC_RM_CONFIG_SET_EX, Control, Args::Any, Einval, REFUSED, DISPLAY),
    row!(NV_ESC_RM_I2C_ACCESS, Gpu, args!(NVOS_I2C_ACCESS_PARAMS: status), Unsupported, REFUSED, NOT_HERE),
    row!(
        NV_ESC_RM_IDLE_CHANNELS,
        Control,
        args!(NVOS30_PARAMETERS: status),
        Copied(accept),
        Support::Accepted,
        "a client that submits by itself also waits by itself"
    )
    .of_client(),
    row!(NV_ESC_RM_VID_HEAP_CONTROL, Control, args!(NVOS32_PARAMETERS: status), Copied(heap::control)).of_client(),
    row!(NV_ESC_RM_ACCESS_REGISTRY, Control, args!(NVOS38_PARAMETERS: status), Unsupported, REFUSED, NOT_HERE),
    row!(
        NV_ESC_RM_MAP_MEMORY,
        Control,
        args!(nv_ioctl_nvos33_parameters_with_fd: params.status),
        Copied(verbs::map_memory)
    )
    .of_client(),
    row!(NV_ESC_RM_UNMAP_MEMORY, Control, args!(NVOS34_PARAMETERS: status), Copied(verbs::unmap_memory)).of_client(),
    row!(NV_ESC_RM_GET_EVENT_DATA, Control, args!(NVOS41_PARAMETERS: status), Einval, REFUSED, NO_EVENTS),
    row!(NV_ESC_RM_ALLOC_CONTEXT_DMA2, Control, args!(NVOS39_PARAMETERS: status), Copied(verbs::alloc_context_dma))
        .of_client(),
    row!(NV_ESC_RM_ADD_VBLANK_CALLBACK, Control, Args::Any, Einval, REFUSED, DISPLAY),
    row!(
        NV_ESC_RM_MAP_MEMORY_DMA,
        Control,
        args!(NVOS46_PARAMETERS: status, NVOS46_PARAMETERS_V580: status),
        Copied(verbs::map_memory_dma)
    )
    .of_client(),
    row!(
        NV_ESC_RM_UNMAP_MEMORY_DMA,
        Control,
        args!(NVOS47_PARAMETERS_V535: status, NVOS47_PARAMETERS: status),
        Copied(verbs::unmap_memory_dma)
    )
    .of_client(),
    row!(
        NV_ESC_RM_BIND_CONTEXT_DMA,
        Control,
        args!(NVOS49_PARAMETERS: status),
        Copied(accept),
        Support::Accepted,
        "channels find context DMAs by address, not by handle"
    )
    .of_client(),
    row!(NV_ESC_RM_EXPORT_OBJECT_TO_FD, Control, Args::Any, Einval, REFUSED, "no exports between processes"),
    row!(NV_ESC_RM_IMPORT_OBJECT_FROM_FD, Control, Args::Any, Einval, REFUSED, "no exports between processes"),
    row!(
        NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO,
        Control,
        args!(NVOS56_PARAMETERS: status),
        Copied(accept),
        Support::Accepted,
        "the kernel knows where a mapping is; RM need not"
    )
    .of_client(),
    row!(NV_ESC_RM_LOCKLESS_DIAGNOSTIC, Any, Args::Any, Einval, REFUSED, "desktop RM answers it in debug builds only"),
    row!(NV_ESC_CARD_INFO, Control, Args::ItemsAndRest(size_of::<nv_ioctl_card_info_t>()), Copied(cards::card_info)),
    row!(NV_ESC_REGISTER_FD, Any, args!(nv_ioctl_register_fd_t), Copied(cards::register_fd)),
    row!(
        NV_ESC_ALLOC_OS_EVENT,
        Control,
        args!(nv_ioctl_alloc_os_event_t: Status),
        Copied(cards::os_event),
        Support::Accepted,
        NO_EVENTS
    ),
    row!(
        NV_ESC_FREE_OS_EVENT,
        Control,
        args!(nv_ioctl_free_os_event_t: Status),
        Copied(cards::os_event),
        Support::Accepted,
        NO_EVENTS
    ),
    row!(NV_ESC_STATUS_CODE, Control, args!(nv_ioctl_status_code_t: status), Copied(cards::status_code)),
    row!(NV_ESC_CHECK_VERSION_STR, Control, args!(nv_ioctl_rm_api_version_t), Copied(cards::check_version)),
    row!(NV_ESC_ATTACH_GPUS_TO_FD, Control, Args::Items(size_of::<u32>()), Copied(cards::attach_gpus)),
    row!(NV_ESC_QUERY_DEVICE_INTR, Gpu, args!(nv_ioctl_query_device_intr), Einval, REFUSED, NOT_HERE),
    row!(
        NV_ESC_SYS_PARAMS,
        Control,
        args!(nv_ioctl_sys_params_t),
        Copied(accept),
        Support::Accepted,
        "the size of memory blocks matters to GPUs with memory of their own"
    ),
    row!(NV_ESC_NUMA_INFO, Gpu, args!(nv_ioctl_numa_info_t), Copied(cards::numa_info)),
    row!(
        NV_ESC_SET_NUMA_STATUS,
        Gpu,
        args!(nv_ioctl_set_numa_status_t),
        Copied(accept),
        Support::Accepted,
        "there is no memory of the GPU's own to bring online"
    ),
    row!(
        NV_ESC_EXPORT_TO_DMABUF_FD,
        Gpu,
        args!(nv_ioctl_export_to_dma_buf_fd_t: status),
        Unsupported,
        REFUSED,
        "no exports between processes"
    ),
    row!(NV_ESC_WAIT_OPEN_COMPLETE, Any, args!(nv_ioctl_wait_open_complete_t), Copied(cards::wait_open_complete)),
];
