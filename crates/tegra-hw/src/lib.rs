//! The objects that the kernel programs into the GPU: address spaces, channel groups and channels.
//!
//! This is the contract between the two halves of the virtual Orin. The kernel side (`tegra-kernel`) creates these
//! objects when ioctls ask for them, and calls the GPU through [`GpuPort`]. The GPU side (`tegra-gpu`) only runs them.
//! Neither half imports the other. Locks are held for a few instructions, never while a kernel or a copy executes.

mod channel;
mod checks;
mod fault;
mod gpu;
mod interrupts;
mod load;
mod names;
mod port;
mod residency;
mod space;
mod switches;
mod timeouts;
mod tsg;
mod vitals;

pub use channel::HwChannel;
pub use checks::{CheckLog, Checks, Schedules, UnknownCheck};
pub use fault::{Fault, FaultLog, Insight, NotifierCode, SmError};
pub use gpu::{HwGpu, Speeds};
pub use interrupts::{Expectation, Interrupts};
pub use load::Load;
pub use names::{CodeLine, CodeModule, CodeNames, HostNews, MarkedRange, NotUnderstood};
pub use port::GpuPort;
pub use residency::Residency;
pub use space::{HwSpace, Place};
pub use switches::{SwitchLog, Switches};
pub use timeouts::Timeouts;
pub use tsg::{Awakening, HwTsg, Listener};
pub use vitals::{CTXSW_TIMEOUT_MS, Syncpoint, Vitals};
