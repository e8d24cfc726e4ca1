//! Controls of the NV0041 interface, of memory objects: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/extra.json`.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_0041_STRUCTS: Abi::Extra;

    /// Parameters of `NV0041_CTRL_CMD_GET_SURFACE_INFO`.
    pub struct NV0041_CTRL_GET_SURFACE_INFO_PARAMS {
        surfaceInfoListSize: u32,
        _pad0: [u8; 4],
        surfaceInfoList: u64,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_0041_CONSTS: Abi::Extra;

    NV0041_CTRL_CMD_GET_SURFACE_INFO: u32 = 0x410110;
}
