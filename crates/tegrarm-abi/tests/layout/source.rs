//! Scans the text of the crate's own source for declarations, and checks that each goes through the macros.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names that are declared inside the macros, and everything that breaks the rules.
#[derive(Debug, Default)]
pub struct Declared {
    pub structs: BTreeSet<String>,
    pub ioctls: BTreeSet<String>,
    pub consts: BTreeSet<String>,
    pub bits: BTreeSet<String>,
    pub complaints: Vec<String>,
}

/// Scans every file of `src` except `layout.rs`, which defines the macros.
pub fn scan() -> Declared {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let registry = std::fs::read_to_string(src.join("registry.rs")).expect("registry.rs");
    let mut out = Declared::default();
    for path in files(&src).into_iter().filter(|p| !p.ends_with("src/layout.rs")) {
        let text = std::fs::read_to_string(&path).expect("a source file");
        let name = path.strip_prefix(&src).expect("below src").display().to_string();
        file(&name, &text, &registry, &mut out);
    }
    out
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory").map(|e| e.expect("an entry").path()) {
        match entry.is_dir() {
            true => out.extend(files(&entry)),
            false => out.push(entry),
        }
    }
    out
}

/// The macros start at the left margin and end with `}` there, because rustfmt formats them so.
fn file(name: &str, text: &str, registry: &str, out: &mut Declared) {
    let mut inside = None;
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{name}:{}: {}", number + 1, line.trim());
        match inside {
            None => {
                inside = line.strip_suffix("! {").filter(|m| m.starts_with("abi_"));
                if line.contains("repr(C)") || line.starts_with("pub struct") || line.starts_with("pub const") {
                    out.complaints.push(format!("{} is outside of the macros", at()));
                }
            }
            Some(_) if line == "}" => inside = None,
            Some(kind) => {
                if let Some(reg) = line.trim().strip_prefix("pub static ").and_then(|l| l.split(':').next()) {
                    if !registry.contains(&format!("::{reg},")) {
                        out.complaints.push(format!("{} is not listed in registry.rs", at()));
                    }
                } else if !declaration(kind, line, out) {
                    out.complaints.push(format!("{} is not understood", at()));
                }
            }
        }
    }
}

/// Notes what one line inside a macro declares. The result is false if the line is not a known declaration.
fn declaration(kind: &str, line: &str, out: &mut Declared) -> bool {
    let line = line.trim();
    if line.is_empty() || line.starts_with("//") || line.starts_with("#[") {
        return true;
    }
    if kind == "abi_structs" {
        if let Some(name) = line.strip_prefix("pub struct ").and_then(|l| l.strip_suffix(" {")) {
            out.structs.insert(name.into());
        }
        return line == "}" || line.ends_with(',') || line.starts_with("pub struct ");
    }
    let Some((name, _)) = line.split_once(':') else { return false };
    let list = match kind {
        "abi_ioctls" => &mut out.ioctls,
        "abi_consts" => &mut out.consts,
        "abi_bits" => &mut out.bits,
        _ => return false,
    };
    list.insert(name.into())
}

mod tests {
    use super::*;

    fn of(text: &str) -> Declared {
        let mut out = Declared::default();
        file("x.rs", text, "crate::x::KNOWN,", &mut out);
        out
    }

    #[test]
    fn strays_are_noticed() {
        let good = of("abi_consts! {\n    /// Doc.\n    pub static KNOWN: Abi::R36;\n\n    A: u32 = 1;\n}\n");
        assert!(good.complaints.is_empty(), "{:?}", good.complaints);
        assert_eq!(good.consts.into_iter().collect::<Vec<_>>(), ["A"]);
        for bad in [
            "pub const A: u32 = 1;\n",
            "#[repr(C)]\n",
            "pub struct A {\n",
            "abi_consts! {\n    pub static UNKNOWN: Abi::R36;\n}\n",
            "abi_consts! {\n    pub static KNOWN: Abi::R36;\n    A: u32 = 1;\n    A: u32 = 1;\n}\n",
            "abi_numbers! {\n    A: u32 = 1;\n}\n",
        ] {
            assert!(!of(bad).complaints.is_empty(), "unnoticed: {bad}");
        }
    }
}
