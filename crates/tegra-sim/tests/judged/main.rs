//! Programs that NVIDIA's own driver has answered (docs/judge.md), replayed on the simulated kernel without the driver.

#![allow(unsafe_code, reason = "descriptors that ioctls made become owned")]

#[allow(dead_code, reason = "the comparison writes the file")]
mod addresses;
mod model;
#[allow(dead_code, reason = "the comparison writes programs, shortens them and numbers them anew")]
mod program;

use addresses::{Call, Range};
use model::Model;
use program::Step;
use std::path::Path;
use tegra_mm::Buddy;
use tegra_sim::{Chip, L4t, SimConfig};

/// The text of a file of recorded answers.
fn text(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judged").join(name)).unwrap()
}

/// Plays every program of a file and compares each answer with that of the driver of a release.
fn replay(name: &str, l4t: L4t) -> usize {
    let text = text(name);
    let mut calls = 0;
    for program in text.split("# ").filter(|program| !program.is_empty()) {
        let mut model = Model::new(SimConfig { l4t, ..SimConfig::new(Chip::AgxOrin) });
        let mut lines = program.lines();
        let title = lines.next().unwrap();
        for number in 0.. {
            let (Some(step), Some(answer)) = (lines.next(), lines.next()) else { break };
            let step = Step::from_line(step).unwrap_or_else(|| panic!("{title}: {step}"));
            assert_eq!(model.step(number, &step).to_line(), answer, "{title}: {}", step.to_line());
            calls += 1;
        }
        assert_eq!(model.finish(), "0 files, 0 channels, 0 groups, 0 bytes", "{title}");
    }
    calls
}

#[test]
fn nodes_channels_groups_nvmap_and_malformed_calls_answer_as_the_drivers_of_r36() {
    assert!(replay("calls-r36.txt", L4t::R36) > 1000);
}

#[test]
fn address_spaces_answer_as_the_driver_of_r36() {
    assert!(replay("spaces-r36.txt", L4t::R36) > 1000);
}

#[test]
fn spaces_channels_groups_and_ctrl_answer_as_the_driver_of_r35() {
    assert!(replay("calls-r35.txt", L4t::R35_4) > 500);
}

#[test]
fn addresses_are_those_that_the_driver_of_r36_chooses() {
    let (mut model, mut calls) = (Buddy::new(0x1000, 0x2000), 0);
    for (at, line) in text("addresses-r36.txt").lines().enumerate() {
        if let Some(range) = Range::from_line(line) {
            model = Buddy::new(range.start, range.end);
            continue;
        }
        let (call, answer) = line.split_once(" = ").unwrap();
        let call = Call::from_line(call).unwrap_or_else(|| panic!("line {}: {line}", at + 1));
        assert_eq!(format!("{:x}", call.answer(&mut model)), answer, "line {}: {line}", at + 1);
        calls += 1;
    }
    assert!(calls > 1000);
}
