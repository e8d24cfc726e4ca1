//! Modules know only those below them, and only the instruction set has opcodes as numbers. The test reads the source.

use crate::isa::ROWS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module, with the modules that it may know.
const LAYERS: [(&str, &[&str]); 7] = [
    ("word", &[]),
    ("num", &[]),
    ("fault", &[]),
    ("launch", &[]),
    ("isa", &["word"]),
    ("disasm", &["word", "num", "isa"]),
    ("exec", &["word", "num", "isa", "fault", "launch"]),
];

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The path below `src` and the text without comments of every source file that belongs to a layer.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rust = files(&src).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let name = path.strip_prefix(&src).unwrap().with_extension("");
        (name.to_str().unwrap().replace('\\', "/"), code.collect::<Vec<_>>().join("\n"))
    };
    rust.map(read).filter(|(name, _)| name != "lib" && !name.starts_with("tests/")).collect()
}

/// The words that follow `before` in `text`.
fn following<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    let word = |rest: &'a str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    text.match_indices(before).map(move |(at, _)| word(&text[at + before.len()..]))
}

#[test]
fn every_module_knows_only_those_below() {
    for (i, (module, below)) in LAYERS.iter().enumerate() {
        let earlier: BTreeSet<_> = LAYERS[..i].iter().map(|(name, _)| *name).collect();
        assert!(below.iter().all(|name| earlier.contains(name)), "{module} and something below it know each other");
    }
    let sources = sources();
    assert!(sources.len() > 60, "{} files", sources.len());
    for (name, text) in &sources {
        let module = name.split('/').next().unwrap();
        let (_, below) = LAYERS.iter().find(|(m, _)| *m == module).unwrap_or_else(|| panic!("{module} has no layer"));
        for used in following(text, "crate::") {
            assert!(used == module || below.contains(&used), "{name} uses crate::{used:?}");
        }
        // No file leaves its module through its parents.
        let depth = name.trim_end_matches("/mod").split('/').count() + usize::from(text.contains("mod tests {"));
        assert!(!text.contains(&"super::".repeat(depth)), "{name} reaches the root of the crate");
    }
}

#[test]
fn opcodes_are_numbers_in_the_instruction_set_alone() {
    let numbers: BTreeSet<u16> = ROWS.iter().flat_map(|row| row.opcodes().chain([row.base])).collect();
    for (name, text) in sources().iter().filter(|(name, _)| name.starts_with("disasm/") || name.starts_with("exec/")) {
        for digits in following(text, "0x").filter(|digits| digits.len() == 3) {
            let number = u16::from_str_radix(digits, 16).unwrap_or(0);
            assert!(!numbers.contains(&number), "{name}: 0x{digits} is an opcode");
        }
        assert!(!text.contains(".base()"), "{name} asks for an opcode");
        // One file may name the opcode of an instruction that cannot be executed.
        let asked = text.matches(".opcode()").count();
        let named = text.matches("word:?}: {why}\", word.opcode())").count();
        assert_eq!(asked, named, "{name} asks for an opcode");
    }
}
