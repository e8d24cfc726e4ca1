//! The virtual Orin: a software nvgpu and nvmap kernel and a ga10b GPU, put together.
//!
//! It answers the ioctls that a Jetson answers (`tegra-kernel`), keeps GPU page tables (`tegra-mm`), consumes GPFIFO rings and
//! pushbuffers when a doorbell rings (`tegra-gpu`), and executes sm_87 machine code (`sm87`). It never imports the library
//! that it is used to test: all that the two share are the numbers of `tegrarm-abi` and the trait `tegrarm_kmd::Kmd`.
//!
//! ```text
//!   SimKmd (in process)      supervisor (out of process)
//!         └─────────┬─────────────────┘        both reach callers through `tegra_kernel::process::Process`
//!                   │
//!      tegra-kernel │ nodes, objects, errno rules ─┐
//!                   │                              ├─ tegra-hw   what the kernel programs into the GPU
//!         tegra-gpu │ doorbell, ring, methods ─────┘
//!              │
//!            sm87     decodes and executes machine code
//!              │
//!          tegra-mm   backing memory, page tables, address picker
//! ```

mod board;
pub mod kmsg;
pub mod listing;
pub mod slow_kernels;
pub mod supervisor;

pub use board::{SimKmd, boot, boot_profiled};
pub use tegra_kernel::{Census, Checks, Chip, Clock, ConfigError, Kernel, L4t, PowerMode, Refusals, SimConfig};
