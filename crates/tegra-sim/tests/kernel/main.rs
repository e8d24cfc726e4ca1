//! The kernel model's tests, in one program: one ioctl at a time, as a program makes it.

#[path = "../../../tegra-gpu/tests/front_end/one_warp.rs"]
mod one_warp;
mod support;

mod bounds;
mod bring_up;
mod calls;
mod channel;
mod channel_rare;
mod ctrl;
mod ctrl_device;
mod ctrl_fifo;
mod debug;
mod debug_memory;
mod dispatch;
mod fences;
mod group;
mod lifetimes;
mod nvmap;
mod nvmap_rare;
mod observed;
mod profiler;
mod r39;
mod releases;
mod sched;
mod space;
mod submit;
mod sysfs;
