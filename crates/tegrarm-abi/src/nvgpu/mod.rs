//! The user ABI of nvgpu: one module per device node for r36, and modules with the differences of r35 and r39.

pub mod address_space;
pub mod channel;
pub mod ctrl;
pub mod ctrl_fifo;
pub mod ctxsw;
pub mod debugger;
pub mod nvsched;
pub mod profiler;
pub mod r35;
pub mod r39;
pub mod sched;
pub mod tsg;
