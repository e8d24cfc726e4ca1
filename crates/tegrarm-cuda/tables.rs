//! What the build scripts of our stand-ins for NVIDIA's libraries share: they make exported functions from tables of facts and of states.

/// Reads a table beside the build script, which runs again when the table changes.
pub fn read(name: &str) -> String {
    println!("cargo:rerun-if-changed={name}");
    std::fs::read_to_string(name).unwrap_or_else(|e| panic!("reading {name}: {e}"))
}

/// The cells of each row. Lines that begin with `#` are comments.
pub fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| line.split('\t').collect())
}

/// A function's name without the ending that chooses the default stream of each thread.
pub fn plain(symbol: &str) -> &str {
    symbol.trim_end_matches("_ptsz").trim_end_matches("_ptds")
}

/// The row of states.tsv for a symbol: that of the symbol itself, or the longest that ends with `*` and begins as it does.
pub fn state_of<'a, S>(states: &'a [S], name: impl Fn(&S) -> &str, symbol: &str) -> &'a S {
    let symbol = plain(symbol);
    let family = |state: &&S| name(state).strip_suffix('*').is_some_and(|start| symbol.starts_with(start));
    let exact = states.iter().find(|state| name(state) == symbol);
    exact
        .or_else(|| states.iter().filter(family).max_by_key(|state| name(state).len()))
        .unwrap_or_else(|| panic!("states.tsv does not say what becomes of {symbol}"))
}
