//! Controls of channel groups (NVA06C) and of channels (NVA06F, NVC36F): command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of one interface, for `tests/layout.rs` and for decoding.
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
    /// Constants of one interface, for `tests/layout.rs`.
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

abi_structs! {
    /// Layouts of one interface, for `tests/layout.rs` and for decoding.
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
    /// Constants of one interface, for `tests/layout.rs`.
    pub static CTRL_A06F_CONSTS: Abi::Rm570;

    NVA06F_CTRL_CMD_GPFIFO_SCHEDULE: u32 = 0xa06f0103;
    NVA06F_CTRL_CMD_BIND: u32 = 0xa06f0104;
}

abi_structs! {
    /// Layouts of one interface, for `tests/layout.rs` and for decoding.
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
    /// Constants of one interface, for `tests/layout.rs`.
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
