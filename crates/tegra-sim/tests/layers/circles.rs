//! Finds circles of files: each file of a circle imports every other one, itself or through others of the circle.

use crate::imports::Import;
use crate::sources::{Crate, Place, Target, name_of};
use std::collections::{BTreeMap, BTreeSet};

/// How many files a circle has at most.
const MOST_FILES: usize = 10;

/// One sentence for each circle that is too large.
pub fn violations(crates: &[Crate]) -> Vec<String> {
    let large = |of| circles(of).into_iter().filter(|circle| circle.len() > MOST_FILES);
    crates.iter().flat_map(|of| large(of).map(|circle| described(of, &circle))).collect()
}

fn described(of: &Crate, circle: &BTreeSet<&Place>) -> String {
    let names: Vec<String> = circle.iter().map(|place| name_of(place)).collect();
    format!("{} has a circle of {} files: {}", of.name, names.len(), names.join(", "))
}

/// The circles of a crate that have more than one file.
fn circles(of: &Crate) -> Vec<BTreeSet<&Place>> {
    let imported = imported(of);
    let reached: BTreeMap<&Place, BTreeSet<&Place>> =
        imported.keys().map(|place| (*place, reached(place, &imported))).collect();
    let mut found: Vec<BTreeSet<&Place>> = vec![];
    for (place, others) in &reached {
        let circle: BTreeSet<&Place> = others.iter().copied().filter(|other| reached[other].contains(place)).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// The files of the crate that each of its files imports. A module that only passes on names of the modules inside of it
/// does not use them.
fn imported(of: &Crate) -> BTreeMap<&Place, BTreeSet<&Place>> {
    let target = |place: &Place, import: &Import| {
        let Some(Target::Module(target)) = of.resolve(place, import) else { return None };
        let (file, _) = of.files.get_key_value(&target)?;
        (!(import.passed_on && file.starts_with(place))).then_some(file)
    };
    let files = of.files.iter();
    files.map(|(place, imports)| (place, imports.iter().filter_map(|import| target(place, import)).collect())).collect()
}

/// The files to which the imports of a file lead, and theirs. A file that is in a circle is one of them itself.
fn reached<'a>(from: &Place, imported: &BTreeMap<&'a Place, BTreeSet<&'a Place>>) -> BTreeSet<&'a Place> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Place> = imported[from].iter().copied().collect();
    while let Some(place) = open.pop() {
        if found.insert(place) {
            open.extend(&imported[place]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a crate `it` of files `m00`, `m01` and so on. Each imports the next one, and the last imports the first.
    fn ring(files: usize) -> Vec<(Place, String)> {
        let ring = (0..files).map(|n| (vec![format!("m{n:02}")], format!("use crate::m{:02}::X;", (n + 1) % files)));
        ring.chain([(vec![], "mod m00; pub use m00::X;".to_owned())]).collect()
    }

    fn found(files: Vec<(Place, String)>) -> Vec<String> {
        violations(&[Crate { name: "it".to_owned(), ..Crate::default() }.with_files(files)])
    }

    #[test]
    fn a_circle_of_ten_is_small_enough() {
        assert_eq!(found(ring(10)), [""; 0]);
    }

    #[test]
    fn a_larger_one_is_not() {
        let names: Vec<String> = (0..11).map(|n| format!("m{n:02}")).collect();
        assert_eq!(found(ring(11)), [format!("it has a circle of 11 files: {}", names.join(", "))]);
    }

    #[test]
    fn two_circles_that_share_a_file_are_one() {
        let mut files = ring(10);
        files[3].1 += "use crate::more;";
        files.push((vec!["more".to_owned()], "fn f() { crate::m03::f() }".to_owned()));
        let found = found(files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("it has a circle of 11 files: m00, m01"), "{found:?}");
    }

    #[test]
    fn a_chain_without_an_end_is_no_circle() {
        let mut files = ring(30);
        files[29].1 = String::new();
        assert_eq!(found(files), [""; 0]);
    }

    #[test]
    fn an_import_of_a_test_closes_none() {
        let mut files = ring(30);
        files[29].1 = "#[cfg(test)] mod tests { use crate::m00::Y; }".to_owned();
        assert_eq!(found(files), [""; 0]);
    }

    #[test]
    fn a_name_that_a_module_passes_on_from_its_own_modules_closes_none() {
        let mut files = ring(30);
        files[29].1 = "use crate::Root;".to_owned();
        assert_eq!(found(files.clone()), [""; 0]);
        files[30].1 = "use m00::X;".to_owned();
        assert_eq!(found(files).len(), 1);
    }
}
