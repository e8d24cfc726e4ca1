//! Any entries in the ring, any GP_PUT, and the pushbuffer rewritten between doorbells.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_fuzz::harness::GP_PUT;
use tegrarm_fuzz::{DATA, Input, Rig};

/// Entries of the rig's ring.
const ENTRIES: u32 = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut rig = Rig::new();
    // A byte says what the next bytes are.
    while !input.0.is_empty() {
        match input.byte() % 6 {
            0 => rig.lane.entry(u64::from_le_bytes(input.bytes())),
            // One that points into memory that is there.
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
