//! The smallest possible launch, for tests of everything around it.

use tegrarm_abi::methods::qmd::*;

/// EXIT, and the endless branch that compilers put behind it.
pub const EXIT: [u64; 4] = [0x0000_0000_0000_794d, 0x000f_ea00_0380_0000, 0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff];

/// A descriptor that runs one warp of the program at `code` and then releases 7 at `semaphore`.
pub fn descriptor(code: u64, semaphore: u64) -> [u32; 64] {
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
        (PROGRAM_ADDRESS_LOWER, code & 0xffff_ffff),
        (PROGRAM_ADDRESS_UPPER, code >> 32),
        (RELEASE0_ADDRESS_LOWER, semaphore & 0xffff_ffff),
        (RELEASE0_ADDRESS_UPPER, semaphore >> 32),
        (RELEASE0_PAYLOAD_LOWER, 7),
        (RELEASE0_ENABLE, 1),
    ] {
        bits.put_words(&mut words, value);
    }
    words
}
