//! Controls of the NVC36F interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_C36F_STRUCTS: Abi::Rm570;

    /// Parameters of `NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN`.
    pub struct NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS {
        workSubmitToken: u32,
    }

    /// Parameters of `NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX`.
    pub struct NVC36F_CTRL_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX_PARAMS {
        index: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_C36F_CONSTS: Abi::Rm570;

    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN: u32 = 0xc36f0108;
    NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX: u32 = 0xc36f010a;
}
