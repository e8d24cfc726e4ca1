//! What libtegrarm asks of nvgpu and nvmap: one type per kind of file descriptor, typed methods over raw ioctls.
//!
//! Nothing here knows RM. Every object owns its descriptor and gives it back when dropped, so a failed multi-step
//! operation undoes itself. Where releases of L4T differ, [`Release`] decides; it is found out once, by asking.
//! nvmap, a module of its own, is asked on its own.

mod address_space;
mod channel;
mod clocks;
mod ctrl;
mod debugger;
mod error;
mod nodes;
mod nvmap;
mod procmaps;
mod profiler;
mod release;
mod report;
mod sensors;
mod topology;
mod tsg;

pub use address_space::{AddressSpace, MapFlags, PAGE, USER_VA_END, USER_VA_START};
pub use channel::Channel;
pub use clocks::MinFrequency;
pub use ctrl::{Ctrl, DOORBELL_SIZE, Doorbell, EngineInfo};
pub use debugger::{DebugRegOp, DebugSession, MappedRange};
pub use error::KernelError;
use error::call;
pub use nvmap::{Backing, CacheMode, Nvmap};
pub use procmaps::file_mappings;
pub use profiler::{
    ChipletCredits, CreditPool, PmResource, Profiler, RegOp, RegOpsResult, StreamPlan, StreamQuery, StreamState,
};
pub use release::{Characteristics, Release};
pub use report::report;
pub use sensors::{Sensors, sensors};
pub use topology::{SM_PER_TPC, SmPlace, Topology};
pub use tsg::{SmError, Tsg};
