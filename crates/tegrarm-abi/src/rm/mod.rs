//! Desktop Resource Manager: classes, allocation parameters, controls, escapes, UVM, status codes.

pub mod classes;
pub mod ctrl_0000;
pub mod ctrl_0041;
pub mod ctrl_0080;
pub mod ctrl_2080;
pub mod ctrl_83de;
pub mod ctrl_b0cc;
pub mod ctrl_channels;
pub mod ctrl_others;
pub mod status;
pub mod usermode;
pub mod versions;

/// Allocation parameters of the RM classes, and the flags inside them.
pub mod alloc {
    pub mod flags;
    pub mod params;

    pub use flags::*;
    pub use params::*;
}

/// `/dev/nvidia-uvm`: ioctl numbers and argument structures.
pub mod uvm {
    pub mod managed;
    pub mod mapping;
    pub mod numbers;
    pub mod tools;

    pub use managed::*;
    pub use mapping::*;
    pub use numbers::*;
    pub use tools::*;
}

/// Escape ioctls of `/dev/nvidiactl` and `/dev/nvidiaN`: numbers and argument structures.
pub mod escapes {
    pub mod nodes;
    pub mod numbers;
    pub mod objects;
    pub mod vid_heap;

    pub use nodes::*;
    pub use numbers::*;
    pub use objects::*;
    pub use vid_heap::*;
}
