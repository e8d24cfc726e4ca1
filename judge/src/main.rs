//! Compares the simulated kernel with NVIDIA's own driver, which `judge/nvgpu` builds (docs/judge.md).

mod addresses;
#[allow(dead_code, reason = "the replay reads the lines")]
#[path = "../../crates/tegra-sim/tests/judged/addresses.rs"]
mod calls;
mod channels;
mod compare;
mod ctrl;
mod driver;
mod kmd;
mod malformed;
#[path = "../../crates/tegra-sim/tests/judged/model.rs"]
mod model;
mod nvmap;
#[path = "../../crates/tegra-sim/tests/judged/program.rs"]
mod program;
mod random;
mod spaces;
mod threads;

use channels::{Channels, View};
use compare::{Author, Judge, Older, Outcome, Written};
use ctrl::Ctrl;
use driver::{Board, Driver};
use malformed::Malformed;
use nvmap::Nvmap;
use program::Step;
use spaces::Spaces;
use std::path::Path;
use std::process::ExitCode;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};

/// How many programs with a difference a family shows.
const SHOWN: u64 = 6;

/// A family of programs: its name, and who writes the program of a seed.
struct Family {
    name: &'static str,
    author: fn(u64, Board) -> Box<dyn Author>,
}

const FAMILIES: [Family; 6] = [
    Family { name: "spaces", author: |seed, board| Box::new(Spaces::new(seed, board)) },
    Family { name: "channels", author: |seed, _| Box::new(Channels::new(seed, View::Channels)) },
    Family { name: "groups", author: |seed, _| Box::new(Channels::new(seed, View::Groups)) },
    Family { name: "failures", author: |seed, _| Box::new(Channels::new(seed, View::Failures)) },
    Family { name: "ctrl", author: |seed, _| Box::new(Ctrl::new(seed)) },
    Family { name: "malformed", author: |seed, _| Box::new(Malformed::new(seed)) },
];

/// The family of nvmap, which is another library.
const NVMAP: Family = Family { name: "nvmap", author: |seed, _| Box::new(Nvmap::new(seed)) };

/// The family whose programs are calls of the allocator of addresses alone.
const ADDRESSES: &str = "addresses";

/// The family whose programs have several threads.
const THREADS: &str = "threads";

/// The tables of what was found. Their first column is the family.
const FINDINGS: &str = include_str!("../../docs/judge.md");

/// How many rows of a family a chapter of the findings has.
fn findings(chapter: &str, family: &str) -> usize {
    let text = FINDINGS.split("\n## ").find(|text| text.starts_with(chapter)).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(&format!("| {family} |"))).count()
}

/// Who writes the program of a seed, for the release of the comparison.
fn author(judge: &Judge<'_>, family: &Family, seed: u64, board: Board) -> Box<dyn Author> {
    let author = (family.author)(seed, board);
    if judge.config.l4t.is_r35() { Box::new(Older(author)) } else { author }
}

fn print(title: &str, outcome: &Outcome) {
    println!("# {title}");
    for (step, answer) in outcome.steps.iter().zip(&outcome.answers) {
        println!("{}\n{}", step.to_line(), answer.to_line());
    }
}

/// Plays the programs of a family. Returns how many calls were compared and how many programs differ.
fn compare(judge: &Judge<'_>, family: &Family, board: Board, seeds: std::ops::Range<u64>) -> (usize, u64) {
    let (mut calls, mut different) = (0, 0);
    for seed in seeds {
        let outcome = judge.play(&mut *author(judge, family, seed, board));
        calls += outcome.calls;
        if outcome.difference.is_none() {
            continue;
        }
        different += 1;
        if different <= SHOWN {
            let short = judge.shorten(outcome.steps);
            println!("{} {seed}:", family.name);
            short.steps.iter().enumerate().for_each(|(i, step)| println!("  {i} {}", step.to_line()));
            println!("{}\n", short.difference.unwrap_or_default());
        }
    }
    (calls, different)
}

/// Reads programs from standard input and prints them with the driver's answers. Lines with answers are left out.
fn answer(judge: &Judge<'_>, nvmap: Option<&Judge<'_>>) {
    let text = std::io::read_to_string(std::io::stdin()).expect("programs on standard input");
    for program in text.split("# ").filter(|program| !program.is_empty()) {
        let (title, lines) = program.split_once('\n').unwrap_or((program, ""));
        let steps = lines.lines().filter(|line| !line.starts_with('='));
        let steps: Vec<Step> = steps.map(|line| Step::from_line(line).unwrap_or_else(|| panic!("{line}"))).collect();
        let asked = if steps.contains(&Step::Open("nvmap".into())) { nvmap.expect("nvmap is built") } else { judge };
        print(title, &asked.play(&mut Written(&steps)));
    }
}

/// The status for whether all is well.
fn status(result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let [_, library, board, command, rest @ ..] = words.as_slice() else {
        eprintln!(
            "usage: tegrarm-judge LIBRARY orin[:RELEASE]|xavier compare PROGRAMS [FAMILY [FIRST]] | record PROGRAMS FAMILY [FIRST] | answer | perform RECORDING... | suites FOLDER"
        );
        return ExitCode::from(2);
    };
    let (board, release) = board.split_once(':').unwrap_or((board, "r36"));
    let board = if board == "xavier" { Board::Xavier } else { Board::Orin };
    let Some(l4t) = L4t::ALL.into_iter().find(|l4t| l4t.name() == release) else {
        eprintln!("there is no release {release}");
        return ExitCode::from(2);
    };
    if let ("suites", [folder]) = (*command, rest) {
        return status(kmd::suites(
            library,
            if board == Board::Orin { "orin" } else { "xavier" },
            release,
            Path::new(folder),
        ));
    }
    let driver = match Driver::boot(library, board, l4t.is_r35()) {
        Ok(driver) => driver,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(2);
        }
    };
    let chip = if board == Board::Xavier { Chip::Gv11b } else { Chip::AgxOrin };
    let config = SimConfig { l4t, ..SimConfig::new(chip) };
    if *command == "perform" {
        // A board of a test has less memory than a module (tests/common/board.rs).
        let mem_total = if rest.iter().any(|name| name.contains(',')) { 512 << 20 } else { config.mem_total };
        let others = SimKmd::new(SimConfig { step: true, mem_total, ..config });
        return status(kmd::perform(driver, others, rest));
    }
    let judge = Judge { driver: &driver, config };
    // nvmap is built beside the driver if its sources were named.
    let beside = Path::new(library).with_file_name("libnvmap-judge.so");
    let nvmap = if beside.exists() {
        match Driver::boot_nvmap(&beside.to_string_lossy(), config.mem_total) {
            Ok(nvmap) => Some(nvmap),
            Err(reason) => {
                eprintln!("{reason}");
                return ExitCode::from(2);
            }
        }
    } else {
        None
    };
    let nvmap = nvmap.as_ref().map(|driver| Judge { driver, config });
    let number = |at: usize| rest.get(at).map_or(0, |word| word.parse::<u64>().expect("a number"));
    let (count, first) = (number(0), number(2));
    let families = FAMILIES.iter().filter(|family| rest.get(1).is_none_or(|name| *name == family.name));
    match *command {
        "answer" => answer(&judge, nvmap.as_ref()),
        "record" if rest.get(1) == Some(&NVMAP.name) => {
            let judge = nvmap.expect("nvmap is built");
            for seed in first..first + count {
                print(&format!("{} {seed}", NVMAP.name), &judge.play(&mut *(NVMAP.author)(seed, board)));
            }
        }
        "record" if rest.get(1) == Some(&ADDRESSES) => {
            for seed in first..first + count {
                addresses::play(&driver, seed, &mut |line| println!("{line}"));
            }
        }
        "record" if rest.get(1) == Some(&THREADS) => {
            (first..first + count).for_each(|seed| threads::record(&driver, judge.config, seed));
        }
        "record" => {
            for family in families {
                for seed in first..first + count {
                    let outcome = judge.play(&mut *author(&judge, family, seed, board));
                    print(&format!("{} {seed}", family.name), &outcome);
                }
            }
        }
        _ => {
            let seeds = first..first + count;
            let mut rows: Vec<_> =
                families.map(|family| (family.name, compare(&judge, family, board, seeds.clone()))).collect();
            if rest.get(1).is_none_or(|name| *name == ADDRESSES) {
                rows.push((ADDRESSES, addresses::compare(&driver, seeds.clone(), SHOWN)));
            }
            if rest.get(1).is_none_or(|name| *name == THREADS) {
                rows.push((THREADS, threads::compare(&driver, judge.config, seeds, SHOWN)));
            }
            if let Some(judge) = nvmap.filter(|_| rest.get(1).is_none_or(|name| *name == NVMAP.name)) {
                rows.push((NVMAP.name, compare(&judge, &NVMAP, board, first..first + count)));
            }
            println!("family      programs     calls   differ   mended stand-in's   limits");
            for (name, (calls, different)) in &rows {
                let found = |chapter| findings(chapter, name);
                let (mended, stand_ins, limits) =
                    (found("What it showed"), found("What is the stand-ins'"), found("What is not compared"));
                println!("{name:10} {count:9} {calls:9} {different:8} {mended:8} {stand_ins:10} {limits:8}");
            }
            let all_equal = rows.iter().all(|(_, (_, different))| *different == 0);
            return if all_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    }
    ExitCode::SUCCESS
}
