//! The runtime: devices, buffers, modules, host objects, launches, replays, queues, events, profiles.

mod handles;
pub mod opaque;
pub mod pointers;
mod row;
mod slots;

// In the header's order.
pub mod device;

pub mod limits;

pub mod buffers;

pub mod modules;

pub mod kernels;

pub mod hostobj;

pub mod launch;

pub mod launch_now;

pub mod replay;

pub mod queues;

pub mod copies;

pub mod host_work;

pub mod fences;

pub mod syncpoints;

pub mod events;

pub mod profile;

pub mod printf;

pub mod state;

pub mod measure;

pub(super) use handles::{close_all, forget_handles, report_leaks};
