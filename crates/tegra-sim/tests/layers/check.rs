//! Finds imports that the layers do not allow.

use crate::rules::{ModuleRule, OnlyRule, Rules};
use crate::sources::{Crate, Target, name_of};
use std::collections::BTreeSet;

/// One sentence for each import that is not allowed.
pub fn violations(crates: &[Crate], rules: &Rules) -> Vec<String> {
    let mut found = manifests(crates, rules);
    for rule in &rules.modules {
        match crates.iter().find(|c| c.name == rule.name) {
            Some(of) => found.extend(modules(of, rule)),
            None => found.push(format!("there are layers for the modules of {}, which is no crate", rule.name)),
        }
    }
    for rule in &rules.only {
        match crates.iter().find(|c| c.name == rule.name) {
            Some(of) => found.extend(importers(of, rule)),
            None => found.push(format!("a row says who imports {} in {}, which is no crate", rule.imported, rule.name)),
        }
    }
    found
}

/// Checks that manifests and rows agree, and that each row names only crates in rows above it.
fn manifests(crates: &[Crate], rules: &Rules) -> Vec<String> {
    let mut found = vec![];
    let mut below: BTreeSet<&str> = BTreeSet::new();
    for rule in &rules.crates {
        let Some(of) = crates.iter().find(|c| c.name == rule.name) else {
            found.push(format!("{} has a row and is no crate", rule.name));
            continue;
        };
        let pairs = [("", &of.imports, &rule.imports), (" for its tests", &of.tests_import, &rule.tests_import)];
        for (what, are, may) in pairs {
            let may: BTreeSet<String> = may.iter().cloned().collect();
            found.extend(
                are.difference(&may).map(|name| format!("{} imports {name}{what}, which is not in its row", rule.name)),
            );
            found.extend(
                may.difference(are).map(|name| format!("{} does not import {name}{what}, as its row says", rule.name)),
            );
        }
        let upward = rule.imports.iter().filter(|name| !below.contains(name.as_str()));
        found.extend(upward.map(|name| format!("the row of {name} does not stand above that of {}", rule.name)));
        below.insert(&rule.name);
    }
    found.extend(crates.iter().filter(|c| !below.contains(&*c.name)).map(|c| format!("{} has no row", c.name)));
    found
}

/// Finds imports between the modules of one place that go to a higher layer.
fn modules(of: &Crate, rule: &ModuleRule) -> Vec<String> {
    let root = if rule.inside.is_empty() { "lib" } else { "mod" };
    // The module of the place to which a deeper module belongs.
    let child = |place: &[String]| {
        place.starts_with(&rule.inside).then(|| place.get(rule.inside.len()).map_or(root, String::as_str).to_owned())
    };
    let layer = |name: &str| rule.layers.iter().position(|layer| layer.iter().any(|module| module == name));
    let at = [std::slice::from_ref(&rule.name), &rule.inside[..]].concat().join("::");
    let present: BTreeSet<String> = of.files.keys().filter_map(|place| child(place)).collect();
    let named: Vec<&String> = rule.layers.iter().flatten().collect();
    let mut found: Vec<String> =
        present.iter().filter(|name| layer(name).is_none()).map(|name| format!("{at}::{name} has no layer")).collect();
    for (n, name) in named.iter().enumerate() {
        if !present.contains(*name) {
            found.push(format!("{at}::{name} has a layer and is no module"));
        }
        if named[..n].contains(name) {
            found.push(format!("{at}::{name} has two layers"));
        }
    }
    for (place, imports) in &of.files {
        let Some(from) = child(place) else { continue };
        // The root does not use the names that it only passes on.
        for import in imports.iter().filter(|import| !(from == root && import.passed_on)) {
            let Some(Target::Module(target)) = of.resolve(place, import) else { continue };
            let Some(to) = child(&target) else { continue };
            if layer(&to) > layer(&from) {
                found.push(format!(
                    "{at}: {} imports {}, and {to} is above {from}",
                    name_of(place),
                    import.path.join("::")
                ));
            }
        }
    }
    found
}

/// Finds modules that import something that only other modules may import.
fn importers(of: &Crate, rule: &OnlyRule) -> Vec<String> {
    let own = rule.imported.strip_prefix(&format!("{}::", rule.name));
    // Another crate, or a module of it.
    let other: Vec<String> = rule.imported.replace('-', "_").split("::").map(str::to_owned).collect();
    let is_meant = |target: Target| match (own, target) {
        (Some(own), Target::Module(place)) => place.first().is_some_and(|first| first == own),
        (None, Target::Crate(path)) => path.starts_with(&other),
        _ => false,
    };
    let mut found = vec![];
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for (place, imports) in &of.files {
        let module = place.first().map_or("lib", String::as_str);
        if own == Some(module) {
            continue;
        }
        // The root may pass on names of all modules.
        let is_crate = other.len() == 1;
        let used_here = imports.iter().filter(|import| is_crate || !(place.is_empty() && import.passed_on));
        if used_here.filter_map(|import| of.resolve(place, import)).any(is_meant) {
            used.insert(module);
            if !rule.by.iter().any(|allowed| allowed == module) {
                found.push(format!(
                    "{}: {} imports {}, which only others may",
                    rule.name,
                    name_of(place),
                    rule.imported
                ));
            }
        }
    }
    let idle = rule.by.iter().filter(|module| !used.contains(module.as_str()));
    found.extend(
        idle.map(|module| format!("{}: {module} does not import {}, as its row says", rule.name, rule.imported)),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
## Crates

| crate | imports | tests |
|---|---|---|
| `low` | | |
| `high` | `low` | |

## Modules

| in | layers |
|---|---|
| `high` | `base` < `left`, `right` < `lib` |

## Who may import what

| imported | in | only by |
|---|---|---|
| `low` | `high` | `base` |
";

    const FILES: [(&str, &str); 4] = [
        ("", "mod base; mod left; mod right; pub use right::Right; use left::Left;"),
        ("base", "use low::Thing;"),
        ("left", "use super::base::Base; use super::right::Right;"),
        ("right", "use crate::left::Left;"),
    ];

    /// Makes the crates of [`PAGE`], with the text of one file and one manifest changed.
    fn crates(changed: (&str, &str), low_imports: &[&str]) -> Vec<Crate> {
        let files = FILES.map(|(at, text)| (at, if at == changed.0 { changed.1 } else { text }));
        let added = FILES.iter().all(|(at, _)| *at != changed.0).then_some(changed);
        let texts = files.into_iter().chain(added).map(|(at, text)| {
            (at.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(), text.to_owned())
        });
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let low = Crate { name: "low".to_owned(), imports: names(low_imports), ..Crate::default() };
        let high = Crate { name: "high".to_owned(), imports: names(&["low"]), ..Crate::default() };
        vec![low, high.with_files(texts)]
    }

    fn found(at: &str, text: &str) -> Vec<String> {
        violations(&crates((at, text), &[]), &Rules::read(PAGE))
    }

    #[test]
    fn what_is_allowed_is_not_reported() {
        assert_eq!(found(FILES[1].0, FILES[1].1), [""; 0]);
    }

    #[test]
    fn an_import_upward_is() {
        let expected = ["high: base imports super::left::Left, and left is above base"];
        assert_eq!(found("base", "use low::Thing; use super::left::Left;"), expected);
    }

    #[test]
    fn an_import_upward_in_the_midst_of_code_is() {
        let text = "use low::Thing; fn f() { g!(crate::left::Left) }";
        assert_eq!(found("base", text), ["high: base imports crate::left::Left, and left is above base"]);
    }

    #[test]
    fn a_name_that_the_root_passes_on_does_not_hide_its_module() {
        let expected = ["high: base imports crate::Right, and right is above base"];
        assert_eq!(found("base", "use low::Thing; use crate::Right;"), expected);
    }

    #[test]
    fn an_import_of_the_root_from_below_is() {
        let expected = ["high: left imports super::Root, and lib is above left"];
        assert_eq!(found("left", "use super::Root;"), expected);
    }

    #[test]
    fn a_circle_through_a_deeper_file_is() {
        let expected = ["high: base::deep imports crate::right::Right, and right is above base"];
        assert_eq!(found("base::deep", "use crate::right::Right;"), expected);
    }

    #[test]
    fn a_module_without_a_layer_is() {
        assert_eq!(found("new", ""), ["high::new has no layer"]);
    }

    #[test]
    fn a_crate_in_the_wrong_module_is() {
        assert_eq!(found("left", "use low::Thing;"), ["high: left imports low, which only others may"]);
        assert_eq!(found("base", ""), ["high: base does not import low, as its row says"]);
    }

    #[test]
    fn a_module_of_another_crate_in_the_wrong_module_is() {
        let page = PAGE.to_owned() + "| `low::deep` | `high` | `left` |\n";
        let found = |at, text| violations(&crates((at, text), &[]), &Rules::read(&page));
        let expected = "high: right imports low::deep, which only others may";
        let crate_alone = "high: right imports low, which only others may";
        let idle = "high: left does not import low::deep, as its row says";
        assert_eq!(found("right", "use low::deep::Thing;"), [crate_alone, expected, idle]);
        assert_eq!(found("right", "use low::shallow::Thing;"), [crate_alone, idle], "another module");
        let through_root = violations(
            &[
                Crate { name: "low".to_owned(), ..Crate::default() },
                Crate { name: "high".to_owned(), imports: ["low".to_owned()].into(), ..Crate::default() }.with_files(
                    [("", "mod base; pub use low::deep;"), ("base", "use crate::deep::Thing;")].map(|(at, text)| {
                        (at.split("::").filter(|n| !n.is_empty()).map(str::to_owned).collect(), text.to_owned())
                    }),
                ),
            ],
            &Rules { only: Rules::read(&page).only, ..Rules::default() },
        );
        assert!(
            through_root.contains(&"high: base imports low::deep, which only others may".to_owned()),
            "{through_root:?}"
        );
    }

    #[test]
    fn a_module_in_the_wrong_module_is() {
        let page = PAGE.to_owned() + "| `high::right` | `high` | `left` |\n";
        let found = |at, text| violations(&crates((at, text), &[]), &Rules::read(&page));
        assert_eq!(found(FILES[1].0, FILES[1].1), [""; 0], "the root only passes it on");
        let expected = ["high: the root imports high::right, which only others may"];
        assert_eq!(found("", "use right::Right;"), expected);
    }

    #[test]
    fn a_dependency_that_points_up_is() {
        let crates = crates(FILES[1], &["high"]);
        let found = violations(&crates, &Rules::read(PAGE));
        assert_eq!(found, ["low imports high, which is not in its row"]);
        let allowed = PAGE.replace("| `low` | | |", "| `low` | `high` | |");
        assert_eq!(violations(&crates, &Rules::read(&allowed)), ["the row of high does not stand above that of low"]);
    }

    #[test]
    fn a_row_of_nothing_is() {
        let more = PAGE
            .replace("| `high` | `low` | |", "| `high` | `low` | |\n| `gone` | | |")
            .replace("`left`, ", "`left`, `lost`, ");
        let found = violations(&crates(FILES[1], &[]), &Rules::read(&more));
        assert_eq!(found, ["gone has a row and is no crate", "high::lost has a layer and is no module"]);
    }

    #[test]
    fn a_crate_without_a_row_is() {
        let mut crates = crates(FILES[1], &[]);
        crates.push(Crate { name: "new".to_owned(), ..Crate::default() });
        assert_eq!(violations(&crates, &Rules::read(PAGE)), ["new has no row"]);
    }
}
