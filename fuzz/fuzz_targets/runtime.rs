//! The runtime's C functions in sequences, compared with the model of `tests/runtime_sequences`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tegrarm_fuzz::machine::World;
use tegrarm_fuzz::machine::step::{BYTES, Step};
use tegrarm_fuzz::program::{choose, descriptors};

// The first byte chooses the release, and every ten bytes after it are a step.
fuzz_target!(|bytes: &[u8]| {
    let Some((release, steps)) = bytes.split_first() else { return };
    choose(*release);
    let before = descriptors();
    let mut world = World::new(c"sim");
    for step in steps.as_chunks::<BYTES>().0.iter().take(200) {
        world.step(&Step::of(*step));
    }
    world.finish();
    assert_eq!(descriptors(), before, "every descriptor is closed");
});
