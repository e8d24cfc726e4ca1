//! The virtual Orin: a software nvgpu + nvmap kernel and a ga10b GPU.
//!
//! It answers the ioctls a Jetson answers ([`kernel`]), keeps GPU page tables ([`mm`]), consumes GPFIFO rings
//! and pushbuffers when a doorbell rings ([`gpu`]), and executes sm_87 machine code ([`sm`]). It never imports
//! the library it is used to test; all they share are the numbers of `tegrarm-abi` and the trait
//! `tegrarm_kmd::Kmd`.
//!
//! ```text
//!   SimKmd (in process)        supervisor (out of process)    
//!        └────────┬─────────────────────┘      both reach callers through `process::Process`
//!              kernel   nodes, objects, errno rules            facts: nvgpu-rules
//!                │ hw   what the kernel programs into the GPU
//!               gpu     doorbell, GPFIFO, host, copy, compute  facts: gpu-frontend
//!                │
//!               sm      decode and execute machine code        facts: sass-*
//!                │
//!               mm      backing memory, page tables, VA picker
//! ```

mod config;
pub mod decode;
pub mod gpu;
pub mod kernel;
pub mod mm;
pub mod process;
mod sim_kmd;
pub mod sm;
pub mod supervisor;

pub use config::{Chip, ConfigError, L4t, SimConfig};
pub use kernel::{Census, Kernel};
pub use sim_kmd::{SimKmd, boot};
