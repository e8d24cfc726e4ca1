//! Any bytes are read as a cubin. The result is an error or a module. There is never a panic, and never a large use of
//! memory.
//!
//! Seeds: `cargo +nightly fuzz run cubin tests/data/cubin`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_images::cubin::Cubin;
use tegrarm::runtime::library::Library;

fuzz_target!(|bytes: &[u8]| {
    let Ok(cubin) = Cubin::parse_with(bytes, 87, Library::functions_for(87)) else { return };
    for kernel in cubin.kernels() {
        assert!(kernel.code + kernel.code_size <= cubin.memory_size());
        let _ = (kernel.local_memory(), kernel.shared_memory(u32::MAX));
    }
    if let Ok(image) = cubin.place_with(0xff_1234_5000, 0xfe_8765_4000) {
        assert!(image.len() as u64 <= cubin.memory_size());
    }
});
