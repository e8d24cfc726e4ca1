//! Any bytes are read as a host object of either CPU. The object is linked at an address and never called.
//!
//! Seeds: `cargo +nightly fuzz run hostobj tests/data/hostobj`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_images::hostobj::{Image, Machine};

fuzz_target!(|bytes: &[u8]| {
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let Ok(image) = Image::parse(bytes, machine) else { continue };
        let (size, code) = (image.size(), image.code_size());
        assert!(code <= size);
        assert!(image.exports().values().all(|&at| at <= size));
        if let Ok(linked) = image.link(0x4000_0000, &|_| Some(0x1234)) {
            assert!(linked.len() as u64 <= size);
        }
    }
});
