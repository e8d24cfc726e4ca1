//! The library's requests to nvgpu and nvmap: one type per kind of file descriptor, with typed methods over raw ioctls.
//!
//! This module knows nothing of RM. Every object owns its descriptor and closes it when it is dropped, so a multi-step
//! operation that fails undoes itself. Where releases of L4T differ, [`Release`] decides. The library finds it out
//! once, by asking the kernel. nvmap is a kernel module of its own, so its release is asked for separately.

mod address_space;
mod channel;
mod clocks;
mod ctrl;
mod debugger;
mod error;
mod host1x;
mod nodes;
mod nvmap;
mod procmaps;
mod profiler;
mod release;
mod report;
mod sensors;
mod topology;
mod tsg;

pub use address_space::{AddressSpace, MapFlags, PAGE, USER_VA_END, USER_VA_START, VA_UNIT};
pub use channel::Channel;
pub use clocks::MinFrequency;
pub use ctrl::{Ctrl, DOORBELL_SIZE, Doorbell, EngineInfo};
pub use debugger::{DebugRegOp, DebugSession, MappedRange};
pub use error::KernelError;
use error::call;
pub use host1x::Host1x;
pub use nvmap::{Backing, CacheMode, Nvmap};
pub use procmaps::file_mappings;
pub use profiler::{
    ChipletCredits, CreditPool, PmResource, Profiler, RegOp, RegOpsResult, StreamPlan, StreamQuery, StreamState,
};
pub use release::{Characteristics, Release};
pub use report::report;
pub use sensors::{Places, Sensors};
pub use topology::{SM_PER_TPC, SmPlace, Topology};
pub use tsg::{SmError, Tsg};
