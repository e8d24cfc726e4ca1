//! The tables of rules and sections in `docs/simulator` are compared with the tests. Each rule and each section has a
//! test that is named after it. Each such test belongs to a rule or a section that is listed. Each difference is
//! described, and some row refers to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn here(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The pages with tables: the kernel's rules, the sections of the front end, and the supervisor's differences.
fn documentation() -> String {
    let pages = ["kernel.md", "front-end.md", "tools.md"];
    pages.map(|page| fs::read_to_string(here("../../docs/simulator").join(page)).unwrap()).concat()
}

/// The cells of each row in the table that begins with `head`.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let table =
        text.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    table.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The names of the kernel's tests, which are in one program and in two more that need a process each.
fn kernel_tests() -> BTreeSet<String> {
    tests_in("tests/kernel", &[""]).into_iter().chain(tests_in("tests", &["kernel_"])).collect()
}

/// Names of the tests in the files of a directory whose names begin with one of `prefixes`.
fn tests_in(directory: &str, prefixes: &[&str]) -> BTreeSet<String> {
    let files = fs::read_dir(here(directory)).unwrap().map(|e| e.unwrap().path());
    let named = |p: &Path| prefixes.iter().any(|prefix| p.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let sources = files.filter(|p| p.is_file() && named(p)).map(|p| fs::read_to_string(p).unwrap());
    let names = |source: String| {
        source
            .lines()
            .filter_map(|l| Some(l.trim_start().strip_prefix("fn ")?.split('(').next()?.to_owned()))
            .collect::<Vec<_>>()
    };
    sources.flat_map(names).collect()
}

#[test]
fn every_rule_has_a_test_and_every_test_a_rule() {
    let rules = numbers(&documentation(), "| rule |");
    assert!(rules.len() > 45, "{rules:?}");
    // Rule 8.6 needs a GPU that runs in time, and the kernel alone cannot show it.
    hold_together("rule_", &rules, &kernel_tests(), &["8_6"]);
}

/// The longest of `numbers` with which the rest of a test's name begins, after its prefix. `rule_7_1_small…` belongs to
/// 7.1 and not to 7, and `rule_7_10_…` to 7.10.
fn number_of(test: &str, prefix: &str, numbers: &BTreeSet<String>) -> Option<String> {
    let rest = test.strip_prefix(prefix)?;
    let fits = numbers.iter().filter(|number| rest.starts_with(&format!("{number}_")));
    fits.max_by_key(|number| number.len()).cloned()
}

/// Checks that every number has a test that is named after it, and that every test with the prefix has a number. The
/// numbers in `elsewhere` are tested under other names.
fn hold_together(prefix: &str, numbers: &BTreeSet<String>, tests: &BTreeSet<String>, elsewhere: &[&str]) {
    let number = |test: &String| number_of(test, prefix, numbers);
    let stray: Vec<&String> = tests.iter().filter(|t| t.starts_with(prefix) && number(t).is_none()).collect();
    assert!(stray.is_empty(), "tests of numbers that are not listed: {stray:?}");
    let tested: BTreeSet<String> = tests.iter().filter_map(number).collect();
    let untested: Vec<&String> = numbers.difference(&tested).filter(|n| !elsewhere.contains(&n.as_str())).collect();
    assert!(untested.is_empty(), "without a test: {untested:?}");
}

fn numbers(text: &str, head: &str) -> BTreeSet<String> {
    rows(text, head).into_iter().map(|row| row[0].replace('.', "_")).collect()
}

#[test]
fn every_section_has_a_test_and_every_test_a_section() {
    let sections = numbers(&documentation(), "| section |");
    assert!(sections.len() > 35, "{sections:?}");
    let tests = ["../tegra-gpu/tests/front_end", "../sm87/tests/sm"]
        .into_iter()
        .flat_map(|directory| tests_in(directory, &[""]))
        .collect();
    hold_together("section_", &sections, &tests, &[]);
}

#[test]
fn the_fourteen_steps_of_map_buffer_ex_are_tested() {
    let names = tests_in("tests/kernel", &["space"])
        .into_iter()
        .filter(|t| t.starts_with("map_buffer_ex_rule"))
        .collect::<Vec<_>>();
    let numbers = |name: &String| {
        let all: Vec<u32> = name.split('_').filter_map(|w| w.parse().ok()).collect();
        // "rules_5_to_7" stands for a range, and "rules_2_and_3" for two rules.
        if name.contains("_to_") { (all[0]..=all[1]).collect() } else { all }
    };
    let covered: BTreeSet<u32> = names.iter().flat_map(numbers).collect();
    assert_eq!(covered, (1..=14).collect());
}

#[test]
fn every_difference_is_described_and_numbered_once() {
    let text = documentation();
    let described: Vec<String> = text
        .lines()
        .filter_map(|l| l.strip_prefix("| ")?.split(' ').next().map(str::to_owned))
        .filter(|id| {
            let number = id.trim_start_matches("GPU-D").trim_start_matches("OOP-D").trim_start_matches('K');
            number.len() < id.len() && number.chars().all(|c| c.is_ascii_digit())
        })
        .collect();
    let unique: BTreeSet<&String> = described.iter().collect();
    assert_eq!(unique.len(), described.len(), "a number is used twice: {described:?}");
    let tables = rows(&text, "| rule |").into_iter().chain(rows(&text, "| section |"));
    let pointed: BTreeSet<String> = tables
        .flat_map(|row| row[2].split(", ").filter(|id| !id.is_empty()).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let missing: Vec<&String> = pointed.iter().filter(|id| !unique.contains(id)).collect();
    assert!(missing.is_empty(), "not described: {missing:?}");
    // No row needs to refer to a difference of the supervisor.
    let lonely: Vec<_> = unique.iter().filter(|id| !id.starts_with("OOP") && !pointed.contains(**id)).collect();
    assert!(lonely.is_empty(), "no rule and no section points at {lonely:?}");
}
