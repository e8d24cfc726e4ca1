//! `/dev/nvidia-uvm`. Each call has one row.
//!
//! The numbers of UVM calls are bare integers without a size. The layouts are those of the driver version that RM
//! reports. Every known call returns 0, and its status is in the structure.

mod calls;
mod policy;
mod ranges;
mod space;

pub use space::Space;

use super::call::{Call, Fail, Outcome, with_argument};
use super::node::Kind;
use std::mem::offset_of;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_rm::rm::classes::Support;
use tegrarm_rm::rm::{Asked, Index, index};
use tegrarm_rm::status::RmError;

/// A handler, which reads and writes the argument in place.
pub type Run = fn(&Call, &mut Space, &mut [u8]) -> Result<(), Fail>;

/// How a call is answered.
#[derive(Clone, Copy)]
pub enum Answer {
    /// A handler that works on the file itself, also before UVM_INITIALIZE.
    File(fn(&Call, &mut [u8]) -> Result<(), Fail>),
    /// A handler that works on the state that UVM_INITIALIZE made.
    Space(Run),
    /// Not answered: `ioctl(2)` returns -1 with `EINVAL`.
    Einval,
    /// Not answered: after UVM_INITIALIZE, the status in the structure says that the call is not supported.
    Unsupported,
}

/// One UVM call.
pub struct UvmRow {
    /// The number of the call.
    pub nr: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// The size of its argument in bytes.
    pub size: usize,
    /// The offset of its status. A call without a status has no argument either.
    pub status: Option<usize>,
    /// How it is answered.
    pub answer: Answer,
    /// How far it is supported.
    pub state: Support,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

static INDEX: Index<256> = index!(CALLS, nr, 256);

/// The row of a call number.
pub fn find(nr: u32) -> Option<&'static UvmRow> {
    INDEX.find(CALLS, nr, |row| row.nr)
}

/// Answers one ioctl on a UVM file.
pub fn ioctl(call: &Call, request: u64, argp: u64) -> Outcome {
    // Some callers sign-extend the number and some do not. Ioctl numbers have 32 bits.
    let nr = request as u32;
    let Some(row) = find(nr) else {
        return Err(call.refuse(Asked::Uvm(nr), "unknown", "it is not in the UVM table"));
    };
    let asked = Asked::Uvm(nr);
    if call.file.kind != Kind::Uvm {
        return Err(call.refuse(asked, row.name, TOOLS));
    }
    tracing::trace!("{}", row.name);
    let run = |bytes: &mut [u8], run: Run| match &mut *call.file.uvm.lock() {
        Some(space) => run(call, space, bytes),
        None => not_initialised(row.name),
    };
    match row.answer {
        Answer::Einval => Err(call.refuse(asked, row.name, row.why)),
        // A call without an argument has no place for a status.
        _ if row.status.is_none() => Ok(None),
        Answer::File(run) => with_argument(argp, row.size, row.status, |bytes| run(call, bytes)),
        Answer::Space(answer) => with_argument(argp, row.size, row.status, |bytes| run(bytes, answer)),
        Answer::Unsupported => with_argument(argp, row.size, row.status, |bytes| {
            run(bytes, |_, _, _| Ok(()))?;
            call.unsupported(asked, row.name, row.why)
        }),
    }
}

#[cold]
fn not_initialised(name: &str) -> Result<(), Fail> {
    Err(RmError::new(NV_ERR_ILLEGAL_ACTION, format!("{name} before UVM_INITIALIZE")).into())
}

fn accept(_call: &Call, _space: &mut Space, _arg: &mut [u8]) -> Result<(), Fail> {
    Ok(())
}

/// Makes a row from the names of its constant and its structure. A call that is not answered has its constant and the
/// reason.
macro_rules! row {
    ($nr:ident, $why:expr) => {
        UvmRow {
            nr: $nr,
            name: stringify!($nr),
            size: 0,
            status: None,
            answer: Answer::Einval,
            state: REFUSED,
            why: $why,
        }
    };
    ($nr:ident, $t:ident, $answer:expr) => {
        row!($nr, $t, $answer, Support::Done, "")
    };
    ($nr:ident, $t:ident, $answer:expr, $state:expr, $why:expr) => {
        UvmRow {
            nr: $nr,
            name: stringify!($nr),
            size: size_of::<$t>(),
            status: Some(offset_of!($t, rmStatus)),
            answer: $answer,
            state: $state,
            why: $why,
        }
    };
}

const ONE_MEMORY: &str = "CPU and GPU share one memory: there is nowhere to move pages to";
const TOOLS: &str = "nvgpu reports no page events and no migrations that tools could watch";
const RETIRED: &str = "desktop UVM does not answer it either";
const REFUSED: Support = Support::Refused(NV_ERR_NOT_SUPPORTED);

/// Every call.
pub static CALLS: &[UvmRow] = &[
    row!(UVM_INITIALIZE, UVM_INITIALIZE_PARAMS, Answer::File(calls::initialize)),
    UvmRow {
        nr: UVM_DEINITIALIZE,
        name: "UVM_DEINITIALIZE",
        size: 0,
        status: None,
        answer: Answer::Space(accept),
        state: Support::Accepted,
        why: "closing the file undoes everything",
    },
    row!(UVM_MM_INITIALIZE, UVM_MM_INITIALIZE_PARAMS, Answer::File(calls::mm_initialize)),
    row!(UVM_IS_8_SUPPORTED, UVM_IS_8_SUPPORTED_PARAMS, Answer::File(calls::is_8_supported)),
    row!(UVM_REGISTER_GPU, UVM_REGISTER_GPU_PARAMS, Answer::Space(calls::register_gpu)),
    row!(UVM_UNREGISTER_GPU, UVM_UNREGISTER_GPU_PARAMS, Answer::Space(calls::unregister_gpu)),
    row!(UVM_REGISTER_GPU_VASPACE, UVM_REGISTER_GPU_VASPACE_PARAMS, Answer::Space(calls::register_gpu_vaspace)),
    row!(UVM_UNREGISTER_GPU_VASPACE, UVM_UNREGISTER_GPU_VASPACE_PARAMS, Answer::Space(calls::unregister_gpu_vaspace)),
    row!(UVM_REGISTER_CHANNEL, UVM_REGISTER_CHANNEL_PARAMS, Answer::Space(calls::register_channel)),
    row!(UVM_UNREGISTER_CHANNEL, UVM_UNREGISTER_CHANNEL_PARAMS, Answer::Space(calls::unregister_channel)),
    row!(UVM_ENABLE_PEER_ACCESS, UVM_ENABLE_PEER_ACCESS_PARAMS, Answer::Space(calls::peer_access)),
    row!(UVM_DISABLE_PEER_ACCESS, UVM_DISABLE_PEER_ACCESS_PARAMS, Answer::Space(calls::peer_access)),
    row!(UVM_CREATE_EXTERNAL_RANGE, UVM_CREATE_EXTERNAL_RANGE_PARAMS, Answer::Space(calls::create_external_range)),
    row!(UVM_MAP_EXTERNAL_ALLOCATION, UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, Answer::Space(calls::map_external)),
    row!(UVM_UNMAP_EXTERNAL, UVM_UNMAP_EXTERNAL_PARAMS, Answer::Space(calls::unmap_external)),
    row!(
        UVM_MAP_EXTERNAL_SPARSE,
        UVM_MAP_EXTERNAL_SPARSE_PARAMS,
        Answer::Unsupported,
        REFUSED,
        "no compute frontend maps sparsely"
    ),
    row!(UVM_FREE, UVM_FREE_PARAMS, Answer::Space(calls::free)),
    row!(
        UVM_MAP_DYNAMIC_PARALLELISM_REGION,
        UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS,
        Answer::Space(calls::map_dynamic_parallelism_region)
    ),
    row!(
        UVM_ALLOC_SEMAPHORE_POOL,
        UVM_ALLOC_SEMAPHORE_POOL_PARAMS,
        Answer::Unsupported,
        REFUSED,
        "its memory is mapped through the UVM file itself, which can stand for one buffer only"
    ),
    row!(UVM_CREATE_RANGE_GROUP, UVM_CREATE_RANGE_GROUP_PARAMS, Answer::Space(policy::create_range_group)),
    row!(UVM_DESTROY_RANGE_GROUP, UVM_DESTROY_RANGE_GROUP_PARAMS, Answer::Space(policy::destroy_range_group)),
    row!(
        UVM_SET_RANGE_GROUP,
        UVM_SET_RANGE_GROUP_PARAMS,
        Answer::Space(policy::set_range_group),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(UVM_PAGEABLE_MEM_ACCESS, UVM_PAGEABLE_MEM_ACCESS_PARAMS, Answer::Space(policy::pageable_access)),
    row!(
        UVM_PAGEABLE_MEM_ACCESS_ON_GPU,
        UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS,
        Answer::Space(policy::pageable_access_on_gpu)
    ),
    row!(UVM_POPULATE_PAGEABLE, UVM_POPULATE_PAGEABLE_PARAMS, Answer::Space(policy::populate_pageable)),
    row!(UVM_VALIDATE_VA_RANGE, UVM_VALIDATE_VA_RANGE_PARAMS, Answer::Space(policy::validate_va_range)),
    row!(
        UVM_PREVENT_MIGRATION_RANGE_GROUPS,
        UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_ALLOW_MIGRATION_RANGE_GROUPS,
        UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_SET_PREFERRED_LOCATION,
        UVM_SET_PREFERRED_LOCATION_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_UNSET_PREFERRED_LOCATION,
        UVM_UNSET_PREFERRED_LOCATION_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_ENABLE_READ_DUPLICATION,
        UVM_ENABLE_READ_DUPLICATION_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_DISABLE_READ_DUPLICATION,
        UVM_DISABLE_READ_DUPLICATION_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        ONE_MEMORY
    ),
    row!(UVM_SET_ACCESSED_BY, UVM_SET_ACCESSED_BY_PARAMS, Answer::Space(accept), Support::Accepted, ONE_MEMORY),
    row!(UVM_UNSET_ACCESSED_BY, UVM_UNSET_ACCESSED_BY_PARAMS, Answer::Space(accept), Support::Accepted, ONE_MEMORY),
    row!(UVM_MIGRATE, UVM_MIGRATE_PARAMS, Answer::Space(policy::migrate), Support::Accepted, ONE_MEMORY),
    row!(UVM_MIGRATE_RANGE_GROUP, UVM_MIGRATE_RANGE_GROUP_PARAMS, Answer::Space(accept), Support::Accepted, ONE_MEMORY),
    row!(
        UVM_CLEAN_UP_ZOMBIE_RESOURCES,
        UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        "nothing outlives its file"
    ),
    row!(UVM_ALLOC_DEVICE_P2P, UVM_ALLOC_DEVICE_P2P_PARAMS, Answer::Unsupported, REFUSED, "there is one GPU"),
    row!(
        UVM_CLEAR_ALL_ACCESS_COUNTERS,
        UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS,
        Answer::Space(accept),
        Support::Accepted,
        "pages that cannot move are not counted"
    ),
    row!(UVM_TOOLS_INIT_EVENT_TRACKER, TOOLS),
    row!(UVM_TOOLS_SET_NOTIFICATION_THRESHOLD, TOOLS),
    row!(UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS, TOOLS),
    row!(UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS, TOOLS),
    row!(UVM_TOOLS_ENABLE_COUNTERS, TOOLS),
    row!(UVM_TOOLS_DISABLE_COUNTERS, TOOLS),
    row!(UVM_TOOLS_READ_PROCESS_MEMORY, TOOLS),
    row!(UVM_TOOLS_WRITE_PROCESS_MEMORY, TOOLS),
    row!(UVM_TOOLS_GET_PROCESSOR_UUID_TABLE, TOOLS),
    row!(UVM_TOOLS_FLUSH_EVENTS, TOOLS),
    row!(UVM_TOOLS_INIT_EVENT_TRACKER_V2, TOOLS),
    row!(UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2, TOOLS),
    row!(UVM_RESERVE_VA, RETIRED),
    row!(UVM_RELEASE_VA, RETIRED),
    row!(UVM_REGION_COMMIT, RETIRED),
    row!(UVM_REGION_DECOMMIT, RETIRED),
    row!(UVM_REGION_SET_STREAM, RETIRED),
    row!(UVM_SET_STREAM_RUNNING, RETIRED),
    row!(UVM_SET_STREAM_STOPPED, RETIRED),
    row!(UVM_RUN_TEST, RETIRED),
    row!(UVM_ADD_SESSION, RETIRED),
    row!(UVM_REMOVE_SESSION, RETIRED),
    row!(UVM_ENABLE_COUNTERS, RETIRED),
    row!(UVM_MAP_COUNTER, RETIRED),
    row!(UVM_CREATE_EVENT_QUEUE, RETIRED),
    row!(UVM_REMOVE_EVENT_QUEUE, RETIRED),
    row!(UVM_MAP_EVENT_QUEUE, RETIRED),
    row!(UVM_EVENT_CTRL, RETIRED),
    row!(UVM_REGISTER_MPS_SERVER, RETIRED),
    row!(UVM_REGISTER_MPS_CLIENT, RETIRED),
    row!(UVM_GET_GPU_UUID_TABLE, RETIRED),
    row!(UVM_MEM_MAP, RETIRED),
    row!(UVM_DEBUG_ACCESS_MEMORY, RETIRED),
    row!(UVM_ENABLE_SYSTEM_WIDE_ATOMICS, RETIRED),
    row!(UVM_DISABLE_SYSTEM_WIDE_ATOMICS, RETIRED),
];
