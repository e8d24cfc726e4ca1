//! The runtime's C functions in sequences that nobody wrote, on each release of the kernel, compared with a model.
//!
//! In `cargo test` there are few sequences for each release. `PROPTEST_CASES=5000 cargo test --test runtime_sequences`
//! tries more, and the fuzz target `runtime` looks for them (`make fuzz`).
#![cfg(feature = "sim")]
#![allow(unsafe_code)] // calls what C calls

#[path = "../common/mod.rs"]
mod common;
mod machine;

use common::board::{behind_nodes, releases};
use machine::World;
use machine::step::{BYTES, Step};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::process::Command;
use tegra_sim::L4t;

/// In a process that runs sequences on one release, this variable is set.
const ROLE: &str = "TEGRARM_TEST_SEQUENCES";
/// The number of sequences for each release, unless `PROPTEST_CASES` names another one.
const CASES: u32 = 48;
/// The most steps of a sequence.
const STEPS: usize = 120;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs sequences in this process.
fn run() {
    let backend = if behind_nodes() { c"nvgpu" } else { c"sim" };
    let cases = std::env::var("PROPTEST_CASES").map_or(CASES, |n| n.parse().expect("a number of cases"));
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2000, ..Default::default() };
    World::new(backend).finish();
    let before = descriptors();
    let steps = vec(any::<[u8; BYTES]>(), 1..STEPS);
    let tried = TestRunner::new(config).run(&steps, |steps| {
        let mut world = World::new(backend);
        steps.into_iter().for_each(|bytes| world.step(&Step::of(bytes)));
        world.finish();
        assert_eq!(descriptors(), before, "every descriptor is closed");
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn every_call_answers_as_the_header_says() {
    if std::env::var_os(ROLE).is_some() {
        return run();
    }
    // The release of the library's own kernel is chosen when it starts.
    for l4t in releases(&L4t::ALL) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["every_call_answers_as_the_header_says", "--exact", "--nocapture"]);
        // Faults are a part of the sequences, and nobody reads about each.
        child
            .env(ROLE, "1")
            .env("TEGRARM_SIM_L4T", l4t.name())
            .env("TEGRARM_SIM_FAULTS", "0")
            .env("RUST_BACKTRACE", "0");
        let output = child.output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let tail: Vec<&str> = said[1].lines().rev().take(200).collect();
        let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
        assert!(output.status.success() && said[0].contains("1 passed"), "{}:\n{tail}\n{}", l4t.name(), said[0]);
    }
}
