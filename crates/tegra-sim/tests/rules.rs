//! The table of rules in `docs/simulator.md` and the tests hold each other: every rule has a test named by it, every such
//! test belongs to a rule that is listed, and every difference a rule points at is described.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn here(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn documentation() -> String {
    fs::read_to_string(here("../../docs/simulator.md")).unwrap()
}

/// Rows of the table that begins with `head`, by cell.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let table =
        text.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    table.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Names of the tests in the files whose names begin with one of `prefixes`.
fn tests(prefixes: &[&str]) -> BTreeSet<String> {
    let files = fs::read_dir(here("tests")).unwrap().map(|e| e.unwrap().path());
    let named = |p: &Path| prefixes.iter().any(|prefix| p.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let sources = files.filter(|p| p.is_file() && named(p)).map(|p| fs::read_to_string(p).unwrap());
    let names = |source: String| {
        source.lines().filter_map(|l| Some(l.strip_prefix("fn ")?.split('(').next()?.to_owned())).collect::<Vec<_>>()
    };
    sources.flat_map(names).collect()
}

#[test]
fn every_rule_has_a_test_and_every_test_a_rule() {
    let text = documentation();
    let rules: BTreeSet<String> = rows(&text, "| rule |").into_iter().map(|row| row[0].replace('.', "_")).collect();
    assert!(rules.len() > 45, "{rules:?}");
    let tests = tests(&["kernel_", "observed"]);
    // `rule_7_1_small…` belongs to 7.1 and not to 7, `rule_7_10_…` to 7.10: the longest rule that fits.
    let rule_of = |test: &str| {
        let rest = test.strip_prefix("rule_")?;
        rules.iter().filter(|rule| rest.starts_with(&format!("{rule}_"))).max_by_key(|rule| rule.len()).cloned()
    };
    let stray: Vec<&String> = tests.iter().filter(|t| t.starts_with("rule_") && rule_of(t).is_none()).collect();
    assert!(stray.is_empty(), "tests of rules that are not listed: {stray:?}");
    let tested: BTreeSet<String> = tests.iter().filter_map(|t| rule_of(t)).collect();
    // Needs a GPU that runs in time, not a kernel alone.
    let elsewhere = BTreeSet::from(["8_6".to_owned()]);
    let untested: Vec<&String> = rules.difference(&tested).filter(|rule| !elsewhere.contains(*rule)).collect();
    assert!(untested.is_empty(), "rules without a test: {untested:?}");
}

#[test]
fn the_fourteen_steps_of_map_buffer_ex_are_tested() {
    let names =
        tests(&["kernel_space"]).into_iter().filter(|t| t.starts_with("map_buffer_ex_rule")).collect::<Vec<_>>();
    let numbers = |name: &String| {
        let all: Vec<u32> = name.split('_').filter_map(|w| w.parse().ok()).collect();
        // "rules_5_to_7" names a range, "rules_2_and_3" two.
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
    for row in rows(&text, "| rule |") {
        for id in row[2].split(", ").filter(|id| !id.is_empty()) {
            assert!(unique.contains(&id.to_owned()), "rule {}: {id} is not described", row[0]);
        }
    }
}
