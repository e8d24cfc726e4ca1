//! The names of special registers.

/// The name of the special register `index`.
pub(super) fn special(index: u32) -> String {
    let name = match index {
        0x00 => "LANEID",
        0x01 => "CLOCK",
        0x02 => "VIRTCFG",
        0x03 => "VIRTID",
        0x20 => "TID",
        0x21 => "TID.X",
        0x22 => "TID.Y",
        0x23 => "TID.Z",
        0x25 => "CTAID.X",
        0x26 => "CTAID.Y",
        0x27 => "CTAID.Z",
        0x28 => "NTID",
        0x2e => "LWINHI",
        0x2f => "SWINHI",
        0x30 => "SWINLO",
        0x31 => "SWINSZ",
        0x32 => "SMEMSZ",
        0x33 => "SMEMBANKS",
        0x34 => "LWINLO",
        0x35 => "LWINSZ",
        0x36 => "LMEMLOSZ",
        0x37 => "LMEMHIOFF",
        0x38 => "EQMASK",
        0x39 => "LTMASK",
        0x3a => "LEMASK",
        0x3b => "GTMASK",
        0x3c => "GEMASK",
        0x3d => "REGALLOC",
        0x3e => "BARRIERALLOC",
        0x40 => "GLOBALERRORSTATUS",
        0x42 => "WARPERRORSTATUS",
        0x43 => "VIRTUALSMID",
        0x44 => "VIRTUALENGINEID",
        0x50 => "CLOCKLO",
        0x51 => "CLOCKHI",
        0x52 => "GLOBALTIMERLO",
        0x53 => "GLOBALTIMERHI",
        0x60 => "HWTASKID",
        0x64..=0x83 => {
            let (snap, n) = if index < 0x74 { ("", index - 0x64) } else { ("SNAP_", index - 0x74) };
            return format!("SR_{snap}PM{}{}", if n & 1 == 1 { "_HI" } else { "" }, n / 2);
        }
        0xff => return "SRZ".to_owned(),
        n => return format!("SR{n}"),
    };
    format!("SR_{name}")
}
