//! Escape ioctls of `/dev/nvidiactl` and `/dev/nvidiaN`: numbers and argument structures.

pub mod nodes;
pub mod numbers;
pub mod objects;
pub mod vid_heap;

pub use nodes::*;
pub use numbers::*;
pub use objects::*;
pub use vid_heap::*;
