//! The user ABI of nvgpu: one module per device node for r36, and modules with the differences of r35 and r39.

pub mod address_space;
pub mod channel;
pub mod ctrl_fifo;
pub mod ctxsw;
pub mod debugger;
pub mod nvsched;
pub mod profiler;
pub mod r35;
pub mod r39;
pub mod sched;
pub mod tsg;

/// nvgpu ctrl node: ioctls, argument structures, constants (L4T r36).
pub mod ctrl {
    pub mod args;
    pub mod info;
    pub mod numbers;

    pub use args::*;
    pub use info::*;
    pub use numbers::*;
}
