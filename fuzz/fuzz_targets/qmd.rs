//! Launch descriptors: the input flips any bits of a valid descriptor and contains the code that it launches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegra_sim::listing::{Kind, text};
use tegrarm_abi::methods::compute::*;
use tegrarm_fuzz::harness::methods;
use tegrarm_fuzz::one_warp::{EXIT, descriptor};
use tegrarm_fuzz::{CODE, DATA, Rig};

/// The action that starts a grid: invalidate and schedule (docs/hardware/gpu-compute-class.md#pcas-actions).
const START: u32 = 9;

// The input has pairs of bytes: a position in the descriptor, and the mask of bits to flip there. After 128 pairs come
// instructions.
fuzz_target!(|bytes: &[u8]| {
    let (flips, code) = bytes.split_at(bytes.len().min(256));
    let mut rig = Rig::new();
    let mut qmd: Vec<u8> = descriptor(CODE, DATA + 0x1000).iter().flat_map(|w| w.to_le_bytes()).collect();
    for pair in flips.chunks_exact(2) {
        qmd[usize::from(pair[0])] ^= pair[1];
    }
    let _ = text(Kind::Qmd, &qmd);
    rig.data.fill(0, &tegrarm_fuzz::words(&qmd));
    for (i, half) in EXIT.iter().enumerate() {
        rig.code.mem.write_u64(8 * i, *half);
    }
    for (i, half) in code.chunks_exact(8).take(512).enumerate() {
        rig.code.mem.write_u64(8 * i, u64::from_le_bytes(half.try_into().expect("eight bytes")));
    }
    let mut words = methods(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, &[0xfd, 0]);
    words.extend(methods(1, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, &[0xfe, 0]));
    words.extend(methods(1, NVC6C0_SEND_PCAS_A, &[(DATA >> 8) as u32]));
    words.extend(methods(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[START]));
    rig.lane.submit(&words);
    rig.go();
});
