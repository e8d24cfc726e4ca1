//! Any words are used as a pushbuffer segment. It executes, blocks or faults, and the simulator never crashes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_fuzz::{Rig, words};

fuzz_target!(|bytes: &[u8]| {
    let words = words(&bytes[..bytes.len().min(16 << 10)]);
    let _ = tegra_sim::listing::text(tegra_sim::listing::Kind::Pushbuffer, bytes);
    if words.is_empty() {
        return;
    }
    let mut rig = Rig::new();
    rig.lane.submit(&words);
    rig.go();
});
