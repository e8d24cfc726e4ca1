//! `/dev/nvidia-uvm`: one row per call.
//!
//! UVM's numbers are bare integers and carry no size; the layouts are those of the driver version RM reports. Every
//! call that is known returns 0 with its status inside.

mod calls;
mod policy;
mod ranges;
mod space;

pub use space::Space;

use super::call::{Call, Fail, Outcome, with_argument};
use super::node::Kind;
use crate::rm::classes::State;
use crate::status::fail;
use std::mem::offset_of;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_kmd::Errno;

/// Answers a call: reads and writes the argument in place.
pub type Run = fn(&Call, &mut Space, &mut [u8]) -> Result<(), Fail>;

/// What answers a call.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Runs before UVM_INITIALIZE too, on the file itself.
    File(fn(&Call, &mut [u8]) -> Result<(), Fail>),
    /// Runs on what UVM_INITIALIZE made.
    Space(Run),
}

/// One call.
pub struct UvmRow {
    /// Its number.
    pub nr: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// Bytes of its argument.
    pub size: usize,
    /// Offset of its status; a call without one has no argument either.
    pub status: Option<usize>,
    /// What answers it.
    pub answer: Answer,
    /// What the answer amounts to.
    pub state: State,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

/// The row of a call.
pub fn find(nr: u64) -> Option<&'static UvmRow> {
    CALLS.iter().find(|row| u64::from(row.nr) == nr)
}

/// One ioctl on a UVM file.
pub fn ioctl(call: &Call, request: u64, argp: u64) -> Outcome {
    // Callers sign-extend or not: ioctl numbers have 32 bits.
    let nr = request & 0xffff_ffff;
    let row = if call.file.kind == Kind::Uvm { find(nr) } else { None };
    let Some(row) = row else {
        let text = format!("{:?} files have no call {nr:#x}", call.file.kind);
        return Outcome { errno: Some(Errno::EINVAL), sentence: text };
    };
    tracing::trace!("{}", row.name);
    if row.status.is_none() {
        return Outcome::default();
    }
    with_argument(argp, row.size, row.status, |bytes| match row.answer {
        Answer::File(run) => run(call, bytes),
        Answer::Space(run) => match &mut *call.file.uvm.lock() {
            Some(space) => run(call, space, bytes),
            None => not_initialised(row.name),
        },
    })
}

fn not_initialised(name: &str) -> Result<(), Fail> {
    let refuse = || fail!(NV_ERR_ILLEGAL_ACTION, "{name} before UVM_INITIALIZE");
    refuse().map_err(Fail::Status)
}

fn accept(_call: &Call, _space: &mut Space, _arg: &mut [u8]) -> Result<(), Fail> {
    Ok(())
}

fn unsupported(_call: &Call, _space: &mut Space, _arg: &mut [u8]) -> Result<(), Fail> {
    let refuse = || fail!(NV_ERR_NOT_SUPPORTED, "this UVM call is not supported");
    refuse().map_err(Fail::Status)
}

/// A row from the names of its constant and its structure.
macro_rules! row {
    ($nr:ident, $t:ident, $answer:expr) => {
        row!($nr, $t, $answer, State::Done, "")
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
const REFUSED: State = State::Refused(NV_ERR_NOT_SUPPORTED);

/// Every call that is answered. The rest, tools and sessions among them, is `EINVAL`.
pub static CALLS: &[UvmRow] = &[
    row!(UVM_INITIALIZE, UVM_INITIALIZE_PARAMS, Answer::File(calls::initialize)),
    UvmRow {
        nr: UVM_DEINITIALIZE,
        name: "UVM_DEINITIALIZE",
        size: 0,
        status: None,
        answer: Answer::Space(accept),
        state: State::Accepted,
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
        Answer::Space(unsupported),
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
        Answer::Space(unsupported),
        REFUSED,
        "its memory is mapped through the UVM file itself, which can stand for one buffer only"
    ),
    row!(UVM_CREATE_RANGE_GROUP, UVM_CREATE_RANGE_GROUP_PARAMS, Answer::Space(policy::create_range_group)),
    row!(UVM_DESTROY_RANGE_GROUP, UVM_DESTROY_RANGE_GROUP_PARAMS, Answer::Space(policy::destroy_range_group)),
    row!(
        UVM_SET_RANGE_GROUP,
        UVM_SET_RANGE_GROUP_PARAMS,
        Answer::Space(policy::set_range_group),
        State::Accepted,
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
        State::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_ALLOW_MIGRATION_RANGE_GROUPS,
        UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_SET_PREFERRED_LOCATION,
        UVM_SET_PREFERRED_LOCATION_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_UNSET_PREFERRED_LOCATION,
        UVM_UNSET_PREFERRED_LOCATION_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_ENABLE_READ_DUPLICATION,
        UVM_ENABLE_READ_DUPLICATION_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        ONE_MEMORY
    ),
    row!(
        UVM_DISABLE_READ_DUPLICATION,
        UVM_DISABLE_READ_DUPLICATION_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        ONE_MEMORY
    ),
    row!(UVM_SET_ACCESSED_BY, UVM_SET_ACCESSED_BY_PARAMS, Answer::Space(accept), State::Accepted, ONE_MEMORY),
    row!(UVM_UNSET_ACCESSED_BY, UVM_UNSET_ACCESSED_BY_PARAMS, Answer::Space(accept), State::Accepted, ONE_MEMORY),
    row!(UVM_MIGRATE, UVM_MIGRATE_PARAMS, Answer::Space(policy::migrate), State::Accepted, ONE_MEMORY),
    row!(UVM_MIGRATE_RANGE_GROUP, UVM_MIGRATE_RANGE_GROUP_PARAMS, Answer::Space(accept), State::Accepted, ONE_MEMORY),
    row!(
        UVM_CLEAN_UP_ZOMBIE_RESOURCES,
        UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        "nothing outlives its file"
    ),
    row!(UVM_ALLOC_DEVICE_P2P, UVM_ALLOC_DEVICE_P2P_PARAMS, Answer::Space(unsupported), REFUSED, "there is one GPU"),
    row!(
        UVM_CLEAR_ALL_ACCESS_COUNTERS,
        UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS,
        Answer::Space(accept),
        State::Accepted,
        "pages that cannot move are not counted"
    ),
];
