//! Compares the simulated kernel with NVIDIA's own driver, which `judge/nvgpu` builds (docs/judge.md).

mod compare;
mod driver;
#[path = "../../crates/tegra-sim/tests/judged/model.rs"]
mod model;
#[path = "../../crates/tegra-sim/tests/judged/program.rs"]
mod program;
mod random;
mod spaces;

use compare::Judge;
use driver::{Board, Driver};
use spaces::Spaces;
use std::process::ExitCode;
use tegra_sim::{Chip, SimConfig};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, library, board, count, ..] = args.as_slice() else {
        eprintln!("usage: tegrarm-judge LIBRARY orin|xavier PROGRAMS [FIRST [record]]");
        return ExitCode::from(2);
    };
    let board = if board == "xavier" { Board::Xavier } else { Board::Orin };
    let count: u64 = count.parse().expect("a number of programs");
    let first: u64 = args.get(4).map_or(0, |n| n.parse().expect("a number"));
    let driver = match Driver::boot(library, board) {
        Ok(driver) => driver,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(2);
        }
    };
    let chip = if board == Board::Xavier { Chip::Gv11b } else { Chip::AgxOrin };
    let judge = Judge { driver: &driver, config: SimConfig::new(chip) };
    let record = args.get(5).is_some_and(|word| word == "record");
    let (mut calls, mut different) = (0, 0);
    for seed in first..first + count {
        let outcome = judge.play(&mut Spaces::new(seed, board));
        calls += outcome.calls;
        if outcome.difference.is_none() {
            if record {
                println!("# program {seed}");
                for (step, answer) in outcome.steps.iter().zip(&outcome.answers) {
                    println!("{}\n{}", step.to_line(), answer.to_line());
                }
            }
            continue;
        }
        different += 1;
        if different > 12 {
            continue;
        }
        let short = judge.shorten(outcome.steps);
        println!("program {seed}:");
        short.steps.iter().enumerate().for_each(|(i, step)| println!("  {i} {}", step.to_line()));
        println!("{}\n", short.difference.unwrap_or_default());
    }
    eprintln!("{count} programs, {calls} calls, {different} programs differ");
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
