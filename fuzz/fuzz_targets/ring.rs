//! The input sets any entries in the ring and any GP_PUT, and rewrites the pushbuffer between doorbells.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_fuzz::harness::GP_PUT;
use tegrarm_fuzz::{DATA, Input, Rig};

/// The number of entries of the ring.
const ENTRIES: u32 = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut rig = Rig::new();
    // The first byte tells the meaning of the bytes that follow.
    while !input.0.is_empty() {
        match input.byte() % 6 {
            0 => rig.lane.entry(u64::from_le_bytes(input.bytes())),
            // This entry points into memory that exists.
            1 => {
                let [at, words] = input.bytes();
                rig.lane.entry(DATA + 4 * u64::from(at) | u64::from(words) << 42);
            }
            2 => rig.lane.userd.mem.write_u32(GP_PUT, u32::from(input.byte()) % (2 * ENTRIES)),
            3 => rig.lane.userd.mem.write_u32(GP_PUT, u32::from_le_bytes(input.bytes())),
            4 => rig.data.mem.write_u32(4 * usize::from(input.byte()), u32::from_le_bytes(input.bytes())),
            _ => rig.go(),
        }
    }
    rig.go();
});
