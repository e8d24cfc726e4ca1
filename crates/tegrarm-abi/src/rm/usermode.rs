//! The pages that a client maps to give work to a channel: its control page (USERD), and the usermode page with the
//! doorbell. The names are those of the class headers.
//!
//! Numbers: `tests/data/abi/rm-570.json` and `tests/data/abi/extra.json`.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static USERD_STRUCTS: Abi::Rm570;

    /// USERD of a channel, 512 bytes. Programs need only `GPGet` and `GPPut`.
    pub struct AmpereAControlGPFifo {
        Ignored00: [u32; 16],
        Put: u32,
        Get: u32,
        Reference: u32,
        PutHi: u32,
        Ignored01: [u32; 2],
        TopLevelGet: u32,
        TopLevelGetHi: u32,
        GetHi: u32,
        Ignored02: [u32; 7],
        Ignored03: u32,
        Ignored04: [u32; 1],
        GPGet: u32,
        GPPut: u32,
        Ignored05: [u32; 92],
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static USERMODE_CONSTS: Abi::Extra;

    NVC361_NOTIFY_CHANNEL_PENDING: u32 = 0x90;
}
