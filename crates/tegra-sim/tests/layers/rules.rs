//! The tables of `docs/layers.md`.

/// The crates that a crate may import.
#[derive(Debug, PartialEq, Eq)]
pub struct CrateRule {
    pub name: String,
    pub imports: Vec<String>,
    pub tests_import: Vec<String>,
}

/// The layers of a crate's modules, or of the modules of one of its modules.
#[derive(Debug, PartialEq, Eq)]
pub struct ModuleRule {
    pub name: String,
    /// The path of the module inside the crate. It is empty for the crate itself.
    pub inside: Vec<String>,
    /// The layers, with the lowest first.
    pub layers: Vec<Vec<String>>,
}

/// A crate, or a module of the same crate, that only some modules may import.
#[derive(Debug, PartialEq, Eq)]
pub struct OnlyRule {
    pub imported: String,
    pub name: String,
    pub by: Vec<String>,
}

/// All rules of the page.
#[derive(Debug, Default)]
pub struct Rules {
    pub crates: Vec<CrateRule>,
    pub modules: Vec<ModuleRule>,
    pub only: Vec<OnlyRule>,
}

impl Rules {
    /// Reads the tables. Each has its own heading in the page.
    pub fn read(page: &str) -> Rules {
        let crates = rows(page, "Crates").map(|[name, imports, tests]| CrateRule {
            name: one(&name),
            imports: names(&imports),
            tests_import: names(&tests),
        });
        let modules = rows(page, "Modules").map(|[place, layers]| {
            let place = one(&place);
            let mut path = place.split("::").map(str::to_owned);
            let name = path.next().unwrap_or_default();
            ModuleRule { name, inside: path.collect(), layers: layers.split('<').map(names).collect() }
        });
        let only = rows(page, "Who may import what").map(|[imported, name, by]| OnlyRule {
            imported: one(&imported),
            name: one(&name),
            by: names(&by),
        });
        Rules { crates: crates.collect(), modules: modules.collect(), only: only.collect() }
    }
}

/// The rows of the table under a heading, without the row of column names.
fn rows<'a, const N: usize>(page: &'a str, heading: &str) -> impl Iterator<Item = [String; N]> + use<'a, N> {
    let heading = format!("## {heading}");
    let section =
        page.lines().skip_while(move |line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    section.filter(|line| line.starts_with('|')).skip(2).map(|line| {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        cells
            .try_into()
            .unwrap_or_else(|cells: Vec<_>| panic!("a row has {} cells instead of {N}: {line}", cells.len()))
    })
}

/// The names in backquotes.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn one(cell: &str) -> String {
    names(cell).pop().unwrap_or_else(|| panic!("no name in the cell {cell:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let page = "\
            # Layers\n\n## Crates\n\ntext\n\n| crate | imports | tests |\n|---|---|---|\n| `a` | | |\n| `b` | `a` | `c`, `d` |\n\n\
            ## Modules\n\n| in | layers |\n|---|---|\n| `a::x` | `p`, `q` < `mod` |\n\n\
            ## Who may import what\n\n| crate | in | only by |\n|---|---|---|\n| `a` | `b` | `m` |\n";
        let rules = Rules::read(page);
        let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(rules.crates[0], CrateRule { name: "a".into(), imports: vec![], tests_import: vec![] });
        assert_eq!(rules.crates[1].imports, ["a"]);
        assert_eq!(rules.crates[1].tests_import, ["c", "d"]);
        let layers = vec![list(&["p", "q"]), list(&["mod"])];
        assert_eq!(rules.modules, [ModuleRule { name: "a".into(), inside: list(&["x"]), layers }]);
        assert_eq!(rules.only, [OnlyRule { imported: "a".into(), name: "b".into(), by: list(&["m"]) }]);
    }
}
