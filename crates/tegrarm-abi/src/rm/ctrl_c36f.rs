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

abi_structs! {
    /// Further layouts of this file, from `tests/data/abi/extra.json`.
    pub static FURTHER_CTRL_C36F_STRUCTS: Abi::Extra;

    /// Parameters of `NV906F_CTRL_GET_CLASS_ENGINEID` and `NVC36F_CTRL_GET_CLASS_ENGINEID`.
    pub struct NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS {
        hObject: u32,
        classEngineID: u32,
        classID: u32,
        engineID: u32,
    }
}

abi_consts! {
    /// Further constants of this file, from `tests/data/abi/extra.json`.
    pub static FURTHER_CTRL_C36F_CONSTS: Abi::Extra;

    NV906F_CTRL_GET_CLASS_ENGINEID: u32 = 0x906f0101;
    NVC36F_CTRL_GET_CLASS_ENGINEID: u32 = 0xc36f0101;
}
