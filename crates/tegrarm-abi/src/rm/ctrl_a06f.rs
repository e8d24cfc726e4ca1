//! Controls of the NVA06F interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_A06F_STRUCTS: Abi::Rm570;

    /// Parameters of `NVA06F_CTRL_CMD_GPFIFO_SCHEDULE`.
    pub struct NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS {
        bEnable: u8,
        bSkipSubmit: u8,
    }

    /// Parameters of `NVA06F_CTRL_CMD_BIND`.
    pub struct NVA06F_CTRL_BIND_PARAMS {
        engineType: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_A06F_CONSTS: Abi::Rm570;

    NVA06F_CTRL_CMD_GPFIFO_SCHEDULE: u32 = 0xa06f0103;
    NVA06F_CTRL_CMD_BIND: u32 = 0xa06f0104;
}
