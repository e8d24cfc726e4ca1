//! Launch descriptors: a valid one with any bits flipped, before any code.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegra_sim::decode::{Kind, text};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;
use tegrarm_fuzz::harness::methods;
use tegrarm_fuzz::{CODE, DATA, Rig};

/// EXIT, and the endless branch that compilers put behind it.
const PROGRAM: [u64; 4] =
    [0x0000_0000_0000_794d, 0x000f_ea00_0380_0000, 0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff];
/// Start a grid: invalidate, schedule (gpu-frontend §5.5).
const START: u32 = 9;

/// A descriptor that launches one warp and releases a semaphore.
fn valid() -> [u32; 64] {
    let mut words = [0; 64];
    for (bits, value) in [
        (QMD_MAJOR_VERSION, 3),
        (CTA_RASTER_WIDTH, 1),
        (CTA_RASTER_HEIGHT, 1),
        (CTA_RASTER_DEPTH, 1),
        (CTA_THREAD_DIMENSION0, 32),
        (CTA_THREAD_DIMENSION1, 1),
        (CTA_THREAD_DIMENSION2, 1),
        (REGISTER_COUNT_V, 16),
        (PROGRAM_ADDRESS_LOWER, CODE & 0xffff_ffff),
        (PROGRAM_ADDRESS_UPPER, CODE >> 32),
        (RELEASE0_ADDRESS_LOWER, (DATA + 0x1000) & 0xffff_ffff),
        (RELEASE0_ADDRESS_UPPER, DATA >> 32),
        (RELEASE0_PAYLOAD_LOWER, 7),
        (RELEASE0_ENABLE, 1),
    ] {
        bits.put_words(&mut words, value);
    }
    words
}

// Pairs of bytes and what to flip in them: position in the descriptor, mask; after 128 of them, instructions.
fuzz_target!(|bytes: &[u8]| {
    let (flips, code) = bytes.split_at(bytes.len().min(256));
    let mut rig = Rig::new();
    let mut qmd: Vec<u8> = valid().iter().flat_map(|w| w.to_le_bytes()).collect();
    for pair in flips.chunks_exact(2) {
        qmd[usize::from(pair[0])] ^= pair[1];
    }
    let _ = text(Kind::Qmd, &qmd);
    rig.data.fill(0, &tegrarm_fuzz::words(&qmd));
    for (i, half) in PROGRAM.iter().enumerate() {
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
