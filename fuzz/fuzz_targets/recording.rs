//! Any text is used as a recording. It is performed on a virtual board, and replayed to a program that opens every
//! node.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tegra_sim::{Chip, SimConfig, SimKmd};
use tegrarm_kmd::{Kmd, Replayed, perform};

fuzz_target!(|bytes: &[u8]| {
    // The header is always valid, because guessing it would find nothing new.
    let text = [b"{\"recording\":1}\n", bytes].concat();
    let board = Arc::new(SimKmd::new(SimConfig { mem_total: 64 << 20, step: true, ..SimConfig::new(Chip::AgxOrin) }));
    let _ = perform(&text[..], board.clone());
    assert_eq!(board.kernel().open_files(), 0, "nothing stays open");
    if let Ok(replay) = Replayed::new(&text[..]) {
        for path in board.kernel().node_paths() {
            if let Ok(fd) = replay.open(&path) {
                replay.close(fd);
            }
        }
    }
});
