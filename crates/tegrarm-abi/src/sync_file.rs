//! Fences as files (`linux/sync_file.h`): ioctls, argument structures, constants.
//!
//! With `NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE`, the fences of nvgpu are such files. Numbers:
//! `tests/data/abi/extra.json`.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static SYNC_FILE_STRUCTS: Abi::Linux;

    /// Argument of `SYNC_IOC_MERGE`.
    pub struct sync_merge_data {
        name: [u8; 32],
        fd2: i32,
        fence: i32,
        flags: u32,
        pad: u32,
    }

    /// Argument of `SYNC_IOC_FILE_INFO`.
    pub struct sync_file_info {
        name: [u8; 32],
        status: i32,
        flags: u32,
        num_fences: u32,
        pad: u32,
        sync_fence_info: u64,
    }

    /// One entry of the list that `SYNC_IOC_FILE_INFO` writes.
    pub struct sync_fence_info {
        obj_name: [u8; 32],
        driver_name: [u8; 32],
        status: i32,
        flags: u32,
        timestamp_ns: u64,
    }
}

abi_ioctls! {
    /// Every ioctl of such a file, by number.
    pub static SYNC_FILE_IOCTLS: Abi::Linux, Node::SyncFile;

    SYNC_IOC_MERGE: 0xc0303e03 => sync_merge_data;
    SYNC_IOC_FILE_INFO: 0xc0383e04 => sync_file_info;
}
