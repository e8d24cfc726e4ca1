//! Every crate and every module keeps to its layer in `docs/layers.md`.

mod check;
mod circles;
mod imports;
mod rules;
mod sources;

use rules::Rules;
use std::path::Path;

#[test]
fn every_import_points_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/layers.md")).expect("the page of the layers");
    let (rules, crates) = (Rules::read(&page), sources::workspace(&root));
    assert!(rules.crates.len() > 5 && rules.modules.len() > 5 && rules.only.len() > 2, "the page has its tables");
    let files: usize = crates.iter().map(|c| c.files.len()).sum();
    assert!(files > 300, "only {files} source files were found");
    let found = check::violations(&crates, &rules);
    assert!(found.is_empty(), "docs/layers.md does not allow:\n{}", found.join("\n"));
}

/// Few files can only be understood together.
#[test]
fn no_circle_of_files_is_large() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = circles::violations(&sources::workspace(&root));
    assert!(found.is_empty(), "docs/layers.md allows ten files:\n{}", found.join("\n"));
}

/// The page must contain the rules for which the layout exists, so that an edit of the page cannot lose them.
#[test]
fn the_page_keeps_its_promises() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/layers.md")).expect("the page");
    let rules = Rules::read(&page);
    let reaches = |from: &str, to: &str| {
        let mut seen = vec![from.to_owned()];
        let mut at = 0;
        while at < seen.len() {
            let rule = rules.crates.iter().find(|rule| rule.name == seen[at]).expect("a row");
            let new: Vec<String> = rule.imports.iter().filter(|name| !seen.contains(name)).cloned().collect();
            seen.extend(new);
            at += 1;
        }
        seen.iter().any(|name| name == to)
    };
    for from in rules.crates.iter().map(|rule| &*rule.name).filter(|name| *name != "tegrarm") {
        assert!(!reaches(from, "tegrarm"), "{from} reaches the library");
    }
    for (from, to) in [
        ("tegra-kernel", "tegra-gpu"),
        ("tegra-kernel", "sm87"),
        ("tegra-gpu", "tegra-kernel"),
        ("sm87", "tegra-hw"),
        ("sm87", "tegra-kernel"),
        ("sm87", "sm87-check"),
        ("sm87", "sm87-model"),
        ("sm87-num", "sm87"),
        ("sm87-simd", "sm87"),
        ("sm87-native", "sm87"),
        ("sm87-native", "sm87-num"),
        ("sm87-check", "sm87-model"),
        ("sm87-model", "sm87-check"),
        ("tegra-mm", "tegrarm-kmd"),
    ] {
        assert!(!reaches(from, to), "{from} reaches {to}");
    }
    let backend = rules.only.iter().find(|rule| rule.imported == "tegra-sim").expect("a row");
    assert_eq!((&*backend.name, &backend.by[..]), ("tegrarm", &["backend".to_owned()][..]));
}
