//! The crates of the workspace, from their manifests and their source files.

use crate::imports::{self, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The place of a module in its crate. It is empty for the root.
pub type Place = Vec<String>;

/// A package.
#[derive(Debug, Default)]
pub struct Crate {
    pub name: String,
    /// The packages of the workspace with which the crate is built.
    pub imports: BTreeSet<String>,
    /// The packages of the workspace with which only its tests and examples are built.
    pub tests_import: BTreeSet<String>,
    /// The paths that each of its files names.
    pub files: BTreeMap<Place, Vec<Import>>,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The module of the same crate that defines the name.
    Module(Place),
    /// A path of another crate, whose first name is that of the crate in code.
    Crate(Vec<String>),
}

impl Crate {
    /// Reads the texts of the crate's files, each with its place. Files of modules that exist only for tests are left
    /// out.
    pub fn with_files(mut self, texts: impl IntoIterator<Item = (Place, String)>) -> Crate {
        let files: BTreeMap<Place, imports::File> =
            texts.into_iter().map(|(place, text)| (place, imports::read(&text))).collect();
        let of_tests: Vec<Place> = files
            .iter()
            .flat_map(|(place, file)| {
                file.test_modules.iter().map(move |m| [&place[..], std::slice::from_ref(m)].concat())
            })
            .collect();
        let kept = files.into_iter().filter(|(place, _)| !of_tests.iter().any(|test| place.starts_with(test)));
        self.files = kept.map(|(place, file)| (place, file.imports)).collect();
        self
    }

    /// Whether a module has this place. A module that has no file but a folder of children counts too.
    fn is_module(&self, place: &[String]) -> bool {
        // The places that begin with this one follow it in the map's order.
        self.files.range(place.to_vec()..).next().is_some_and(|(known, _)| known.starts_with(place))
    }

    /// Finds what an import in the file at `from` leads to. The result is `None` for a path of `std`, or of names that
    /// are no modules.
    pub fn resolve(&self, from: &[String], import: &Import) -> Option<Target> {
        self.follow(from, import, 8)
    }

    fn follow(&self, from: &[String], import: &Import, names_left: u32) -> Option<Target> {
        let here = [from, &import.inside[..]].concat();
        let (first, rest) = import.path.split_first()?;
        let path = match first.as_str() {
            // A program beside the library has its own root, and names the library as other crates do.
            "crate" | "self" | "super" if from.first().is_some_and(|first| first == "bin") => return None,
            "crate" => rest.to_vec(),
            "self" => [&here[..], rest].concat(),
            "super" => {
                let ups = import.path.iter().take_while(|name| *name == "super").count();
                [&here[..here.len().checked_sub(ups)?], &import.path[ups..]].concat()
            }
            own if own == self.name.replace('-', "_") => rest.to_vec(),
            child if self.is_module(&[&here[..], &[child.to_owned()]].concat()) => {
                [&here[..], &import.path[..]].concat()
            }
            _ => return Some(Target::Crate(import.path.clone())),
        };
        let depth = (0..=path.len()).rev().find(|n| self.is_module(&path[..*n]))?;
        let place = path[..depth].to_vec();
        match path.get(depth).filter(|_| names_left > 0).and_then(|name| self.passed_on(&place, name)) {
            Some(import) => self.follow(&place, import, names_left - 1),
            None => Some(Target::Module(place)),
        }
    }

    /// The import by which the module at `place` passes `name` on, if the module does not define the name.
    fn passed_on(&self, place: &[String], name: &str) -> Option<&Import> {
        let mut imports = self.files.get(place)?.iter().filter(|import| import.passed_on && import.inside.is_empty());
        imports.find(|import| import.path.last().is_some_and(|last| last == name) && import.path != ["self", name])
    }
}

/// The name of a place in a message.
pub fn name_of(place: &[String]) -> String {
    if place.is_empty() { "the root".to_owned() } else { place.join("::") }
}

/// All packages of the workspace whose root is `root`.
pub fn workspace(root: &Path) -> Vec<Crate> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(cargo).args(args).current_dir(root).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    packages.iter().map(|package| of_package(package, &ours)).collect()
}

fn of_package(package: &serde_json::Value, ours: &BTreeSet<&str>) -> Crate {
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let mut found = Crate { name: text(&package["name"]), ..Crate::default() };
    for dependency in package["dependencies"].as_array().expect("dependencies") {
        let name = text(&dependency["name"]);
        if ours.contains(&*name) {
            let for_tests = dependency["kind"] == "dev";
            if for_tests { &mut found.tests_import } else { &mut found.imports }.insert(name);
        }
    }
    // Tests may ask for more features of a crate with which the crate itself is built.
    found.tests_import = found.tests_import.difference(&found.imports).cloned().collect();
    let manifest = text(&package["manifest_path"]);
    let src = Path::new(&manifest).parent().expect("a folder").join("src");
    let mut texts = vec![];
    collect(&src, &mut vec![], &mut texts);
    found.with_files(texts)
}

/// The Rust files below a folder, by the place that their names give them.
fn collect(folder: &Path, place: &mut Place, texts: &mut Vec<(Place, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if entry.path().is_dir() {
            place.push(name);
            collect(&entry.path(), place, texts);
            place.pop();
        } else if let Some(module) = name.strip_suffix(".rs") {
            let root = (place.is_empty() && module == "lib") || module == "mod";
            let own = if root { None } else { Some(module.to_owned()) };
            let text = std::fs::read_to_string(entry.path()).expect("a source file");
            texts.push((place.iter().cloned().chain(own).collect(), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Makes a crate `it` whose root passes the name `Thing` of module `a` on. It has a module for tests.
    fn sample() -> Crate {
        let files = [
            ("", "mod a; mod b; #[cfg(test)] mod testing; pub use a::Thing; use b::Other;"),
            ("a", ""),
            ("b", "mod c;"),
            ("b::c", ""),
            ("testing", "use crate::a::X;"),
            ("bin::main", ""),
        ];
        let texts = files.map(|(at, text)| (place(at), text.to_owned()));
        Crate { name: "it".to_owned(), ..Crate::default() }.with_files(texts)
    }

    fn resolved(from: &str, text: &str) -> Option<Target> {
        sample().resolve(&place(from), &imports::read(text).imports[0])
    }

    #[test]
    fn paths_lead_to_the_module_that_defines_what_is_meant() {
        let module = |path| Some(Target::Module(place(path)));
        assert_eq!(resolved("b::c", "use super::super::a::X;"), module("a"));
        assert_eq!(resolved("b::c", "use super::Y;"), module("b"));
        assert_eq!(resolved("b", "use c::Z;"), module("b::c"));
        assert_eq!(resolved("b", "mod tests { use super::c::Z; }"), module("b::c"));
        assert_eq!(resolved("b", "use crate::Thing;"), module("a"), "passed on by the root");
        assert_eq!(resolved("b", "use crate::Root;"), module(""));
        assert_eq!(resolved("b", "use other_crate::a::X;"), Some(Target::Crate(place("other_crate::a::X"))));
    }

    #[test]
    fn a_program_names_the_library_as_others_do() {
        assert_eq!(resolved("bin::main", "use it::b::Other;"), Some(Target::Module(place("b"))));
        assert_eq!(resolved("bin::main", "use super::strace;"), None);
    }

    #[test]
    fn modules_for_tests_are_left_out() {
        assert!(!sample().files.contains_key(&place("testing")));
    }
}
