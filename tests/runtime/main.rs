//! The runtime: devices, buffers, modules, launches, queues, events and replays.

#[path = "../common/mod.rs"]
mod common;

mod barrier;
mod cubin;
mod device;
mod events;
mod fences;
mod hostobj;
mod inputs;
mod kernels;
mod launch;
mod queues;
mod replay;
mod syncpoints;
