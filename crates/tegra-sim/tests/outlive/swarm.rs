//! Processes and threads that make calls in a random order, under signals, and of which some are killed.

use super::{compile, run, succeeds};

/// The seeds, unless `TEGRARM_TEST_SEED` names one.
const SEEDS: std::ops::Range<u32> = 1..4;
/// The calls of each thread.
const CALLS: &str = "150";

/// A failure names the seed that shows it again: `TEGRARM_TEST_SEED=2 cargo test -p tegra-sim --test outlive swarm`.
#[test]
fn a_swarm_under_signals_and_kills_leaves_nothing_behind() {
    let program = compile("swarm");
    let seeds = match std::env::var("TEGRARM_TEST_SEED") {
        Ok(seed) => vec![seed],
        Err(_) => SEEDS.map(|seed| seed.to_string()).collect(),
    };
    let mut killed = 0;
    for seed in &seeds {
        for options in [&["--quiet"][..], &["--quiet", "--interruptible"], &["--quiet", "--trap-paths"]] {
            let said = succeeds(&run(options, &[&program, seed, "8", "4", CALLS]));
            print!("seed {seed}, {options:?}: {said}");
            killed += said.split(' ').nth(2).and_then(|n| n.parse::<u32>().ok()).unwrap();
        }
    }
    assert!(killed > 0, "no process was killed");
}
