//! Controls of the NVA06C interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_A06C_STRUCTS: Abi::Rm570;

    /// Parameters of `NVA06C_CTRL_CMD_GPFIFO_SCHEDULE`.
    pub struct NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS {
        bEnable: u8,
        bSkipSubmit: u8,
    }

    /// Parameters of `NVA06C_CTRL_CMD_SET_TIMESLICE`.
    pub struct NVA06C_CTRL_SET_TIMESLICE_PARAMS {
        timesliceUs: u64,
    }

    /// Parameters of `NVA06C_CTRL_CMD_GET_TIMESLICE`.
    pub struct NVA06C_CTRL_GET_TIMESLICE_PARAMS {
        timesliceUs: u64,
    }

    /// Parameters of `NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL` and `NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL`.
    pub struct NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS {
        tsgInterleaveLevel: u32,
    }

    /// Parameters of `NVA06C_CTRL_CMD_PREEMPT`.
    pub struct NVA06C_CTRL_PREEMPT_PARAMS {
        bWait: u8,
        bManualTimeout: u8,
        _pad0: [u8; 2],
        timeoutUs: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_A06C_CONSTS: Abi::Rm570;

    NVA06C_CTRL_CMD_GPFIFO_SCHEDULE: u32 = 0xa06c0101;
    NVA06C_CTRL_CMD_SET_TIMESLICE: u32 = 0xa06c0103;
    NVA06C_CTRL_CMD_GET_TIMESLICE: u32 = 0xa06c0104;
    NVA06C_CTRL_CMD_PREEMPT: u32 = 0xa06c0105;
    NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL: u32 = 0xa06c0107;
    NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL: u32 = 0xa06c0108;
    NVA06C_CTRL_INTERLEAVE_LEVEL_LOW: u32 = 0;
    NVA06C_CTRL_INTERLEAVE_LEVEL_MEDIUM: u32 = 1;
    NVA06C_CTRL_INTERLEAVE_LEVEL_HIGH: u32 = 2;
}
