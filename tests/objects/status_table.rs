//! `docs/statuses.md` agrees with the source and with the tests: a status that it calls answered is answered and has a
//! test that provokes it, and a status that it says never happens is not in the source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tegrarm_abi::rm::status::STATUS_CONSTS;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

struct Row {
    number: i128,
    when: String,
    /// The file and the function of the test.
    test: Option<(String, String)>,
}

fn table() -> BTreeMap<String, Row> {
    let page = read("docs/statuses.md");
    let rows = page.lines().filter(|line| line.starts_with("| NV_"));
    let rows = rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, number, when, shown] = cells[..] else { panic!("four columns: {line}") };
        let number = number.strip_prefix("0x").and_then(|hex| i128::from_str_radix(hex, 16).ok()).expect(line);
        let words: Vec<&str> = shown.split('`').collect();
        let test = (!shown.is_empty()).then(|| (words[1].to_owned(), words[3].to_owned()));
        (name.to_owned(), Row { number, when: when.to_owned(), test })
    });
    rows.collect()
}

fn sources(under: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(under).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The names of statuses in a text.
fn statuses(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with("NV_ERR_") || w.starts_with("NV_WARN_"))
}

/// The body of a function, which ends at the next line that ends a block at its indentation.
fn function<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.find(&format!(" {name}("))?;
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let indent: String = text[line..].chars().take_while(|c| *c == ' ').collect();
    let end = text[at..].find(&format!("\n{indent}}}\n"))?;
    Some(&text[line..at + end])
}

/// Whether a test fails if nothing answers the status. Integration tests claim the status, and the claim is checked
/// when they run (`crate::common::shows`). Unit tests compare the status, and C programs pass it to the macro that compares.
fn shows(file: &str, body: &str, status: &str) -> bool {
    let statements = || body.split(';');
    match file {
        _ if file.starts_with("ctests/") => body.contains(&format!("REFUSED({status}, ")),
        _ if file.starts_with("tests/") => {
            let claims =
                statements().filter_map(|s| s.split_once("= shows(&[").or(s.split_once("= crate::common::shows(&[")));
            claims.flat_map(|(_, claimed)| statuses(claimed)).any(|claimed| claimed == status)
        }
        _ => {
            let compared = statements().filter_map(|s| s.split_once("assert_eq!("));
            compared.flat_map(|(_, compared)| statuses(compared)).any(|compared| compared == status)
        }
    }
}

#[test]
fn a_word_in_a_test_shows_nothing() {
    for (file, body) in [
        ("tests/a.rs", "// NV_ERR_GENERIC\n let x = NV_ERR_GENERIC; assert_ne!(status(r), NV_ERR_GENERIC);"),
        ("ctests/a.c", "/* NV_ERR_GENERIC */ CHECK(f());"),
        ("src/a.rs", "fail!(NV_ERR_GENERIC); assert_ne!(x, NV_ERR_GENERIC);"),
    ] {
        assert!(!shows(file, body, "NV_ERR_GENERIC"), "{file}");
    }
    assert!(shows("tests/a.rs", "let _shown = shows(&[NV_ERR_TIMEOUT, NV_ERR_GENERIC]);", "NV_ERR_GENERIC"));
    assert!(shows("ctests/a.c", "REFUSED(NV_ERR_GENERIC, f());", "NV_ERR_GENERIC"));
    assert!(shows("src/a.rs", "x(); assert_eq!(status(x), NV_ERR_GENERIC);", "NV_ERR_GENERIC"));
}

/// The code of a source file without comments and tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().expect("a first part");
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn numbers_are_upstreams() {
    let table = table();
    assert!(table.len() > 40);
    for (name, row) in &table {
        let known = STATUS_CONSTS.iter().find(|c| c.name == name.as_str());
        assert_eq!(known.map(|c| c.value), Some(row.number), "{name}");
    }
}

#[test]
fn each_status_has_a_test_that_provokes_it_or_a_reason() {
    for (name, row) in table() {
        let never = row.when.starts_with("never: ");
        assert_eq!(never, row.test.is_none(), "{name}: either a test or a reason");
        let Some((file, test)) = row.test else {
            assert!(row.when.len() > "never: ".len() + 20, "{name}: why?");
            continue;
        };
        let text = read(&file);
        let body = function(&text, &test).unwrap_or_else(|| panic!("{name}: {file} has no {test}"));
        assert!(name == "NV_OK" || shows(&file, body, &name), "{name}: {test} in {file} does not hold itself to it");
    }
}

#[test]
fn the_source_answers_what_the_page_says_and_nothing_else() {
    let table = table();
    let mut files = Vec::new();
    for folder in ["src", "crates/tegrarm-rm/src", "crates/tegrarm-images/src"] {
        sources(&root().join(folder), &mut files);
    }
    let mut answered = std::collections::BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        for status in statuses(&code(&text)) {
            let row = table.get(status).unwrap_or_else(|| panic!("{}: {status} has no row", file.display()));
            assert!(row.test.is_some(), "{}: {status} is answered, the page says never", file.display());
            answered.insert(status.to_owned());
        }
    }
    for (name, row) in table {
        assert!(name == "NV_OK" || row.test.is_none() || answered.contains(&name), "{name} is answered nowhere");
    }
}

/// Every attack of `docs/isolation.md` is run: the test that its row names is in the tree.
#[test]
fn each_attack_has_its_test() {
    let mut files = Vec::new();
    for directory in ["tests", "crates/tegra-sim/tests"] {
        sources(&root().join(directory), &mut files);
    }
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).expect("a source file")).collect();
    let page = read("docs/isolation.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| a ")).collect();
    assert!(rows.len() > 15);
    for row in rows {
        let test = row.trim_end_matches(" |").rsplit("| ").next().expect("a last column").trim_matches('`');
        assert!(text.contains(&format!("fn {test}(")), "{row}: there is no such test");
    }
}
