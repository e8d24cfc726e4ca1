//! host1x's node of fences (`/dev/host1x-fence`): ioctls and argument structures.
//!
//! It makes a Linux sync file of a syncpoint and a value, and says which syncpoints a sync file waits for. Numbers:
//! `tests/data/abi/extra.json`.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static HOST1X_STRUCTS: Abi::Linux;

    /// Argument of `HOST1X_IOCTL_CREATE_FENCE`.
    pub struct host1x_create_fence {
        id: u32,
        threshold: u32,
        fence_fd: i32,
        reserved: u32,
    }

    /// One entry of the list that `HOST1X_IOCTL_FENCE_EXTRACT` writes.
    pub struct host1x_fence_extract_fence {
        id: u32,
        threshold: u32,
    }

    /// Argument of `HOST1X_IOCTL_FENCE_EXTRACT`.
    pub struct host1x_fence_extract {
        fence_fd: i32,
        num_fences: u32,
        fences_ptr: u64,
        reserved: [u32; 2],
    }
}

abi_ioctls! {
    /// Every ioctl of the node, by number.
    pub static HOST1X_IOCTLS: Abi::Linux, Node::Host1x;

    HOST1X_IOCTL_CREATE_FENCE: 0xc0105802 => host1x_create_fence;
    HOST1X_IOCTL_FENCE_EXTRACT: 0xc0185805 => host1x_fence_extract;
}
