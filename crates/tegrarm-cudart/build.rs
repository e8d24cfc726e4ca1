//! Makes the exported functions, the version scripts, and the tables of errors and of the device's properties.
//!
//! functions.tsv and numbers.tsv are facts of NVIDIA's headers and libraries (`make cuda-rows`). states.tsv is written by hand: it says of
//! each function whether it is done, done in part, or refused, which function of the driver answers it, and why it is not done.

#[path = "../tegrarm-cuda/tables.rs"]
mod tables;

use std::fmt::Write;
use std::path::Path;
use tables::{read, rows, state_of};

/// One row of states.tsv.
struct State<'a> {
    name: &'a str,
    state: &'a str,
    why: &'a str,
    driver: &'a str,
}

fn main() {
    let (functions, states, numbers) = (read("functions.tsv"), read("states.tsv"), read("numbers.tsv"));
    let out = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    let write = |name: &str, text: String| {
        let path = Path::new(&out).join(name);
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("writing {name}: {e}"));
        path.display().to_string()
    };
    write("exports.rs", exports(&functions, &states));
    write("numbers.rs", tables(&numbers));
    for major in ["12", "13"] {
        let script = write(&format!("libcudart.so.{major}.map"), version_script(&functions, major));
        let bin = format!("cargo:rustc-link-arg-bin=tegrarm_cudart{major}");
        // Cargo asks for a program at any address (-pie), which zig does not link together with -shared.
        println!(
            "{bin}=-no-pie\n{bin}=-shared\n{bin}=-Wl,-soname,libcudart.so.{major}\n{bin}=-Wl,--version-script={script}"
        );
    }
}

/// The symbols that a version of the library exports.
fn version_script(functions: &str, major: &str) -> String {
    let mut script = format!("libcudart.so.{major} {{\nglobal:\n");
    for row in rows(functions).filter(|row| row[1].split(' ').any(|one| one == major)) {
        writeln!(script, "    {};", row[0]).unwrap();
    }
    script + "local: *;\n};\n"
}

/// The names of errors, and where each property of a device is in cudaDeviceProp.
fn tables(numbers: &str) -> String {
    let (mut errors, mut properties, mut pairs) = (String::new(), String::new(), String::new());
    for row in rows(numbers) {
        match row[..] {
            ["error", name, number] => writeln!(errors, "    ({number}, c\"{name}\"),").unwrap(),
            ["property", name, old, new, bytes, attribute] => {
                let place = |text: &str| if text == "-" { "None".to_owned() } else { format!("Some({text})") };
                writeln!(
                    properties,
                    "    Property {{ name: {name:?}, places: [{}, {}], bytes: {bytes}, attribute: {} }},",
                    place(old),
                    place(new),
                    place(attribute)
                )
                .unwrap();
            }
            [name @ ("version" | "size"), old, new] => {
                let (constant, kind) = if name == "size" { ("SIZES", "usize") } else { ("VERSIONS", "i32") };
                writeln!(
                    pairs,
                    "/// The {name} in CUDA 12 and in CUDA 13.\npub const {constant}: [{kind}; 2] = [{old}, {new}];"
                )
                .unwrap();
            }
            _ => panic!("numbers.tsv: {row:?}"),
        }
    }
    format!(
        "{pairs}/// The names of errors.\npub static ERRORS: &[(u32, &std::ffi::CStr)] = &[\n{errors}];\n/// The properties of a device.\npub static PROPERTIES: &[Property] = &[\n{properties}];\n"
    )
}

fn exports(functions: &str, states: &str) -> String {
    let states: Vec<State> = rows(states)
        .map(|row| {
            let at = |index: usize| row.get(index).copied().unwrap_or("");
            State { name: row[0], state: row[1], why: at(2), driver: at(3) }
        })
        .collect();
    let functions: Vec<Vec<&str>> = rows(functions).collect();
    for state in &states {
        let used = functions.iter().any(|row| std::ptr::eq(state_of(&states, |s| s.name, row[0]), state));
        assert!(used || state.name.ends_with("@12"), "states.tsv: no function needs the row {}", state.name);
    }
    let (mut items, mut table) = (String::new(), String::new());
    for (index, row) in functions.iter().enumerate() {
        let (symbol, state) = (row[0], state_of(&states, |s| s.name, row[0]));
        if state.driver != "own" {
            let old = row.get(3).map(|arguments| {
                (
                    *arguments,
                    states.iter().find(|s| s.name.strip_suffix("@12") == Some(symbol.trim_end_matches("_ptsz"))),
                )
            });
            export(&mut items, index, symbol, row.get(2).copied().unwrap_or(""), state, old);
        }
        let path = if state.driver == "own" { "crate::images::exports::" } else { "" };
        writeln!(
            table,
            "    Function {{ symbol: {symbol:?}, why: {:?}, address: {path}{symbol} as *const () }},",
            state.why
        )
        .unwrap();
    }
    format!("{items}/// One row for each exported function.\npub static FUNCTIONS: &[Function] = &[\n{table}];\n")
}

/// What answers a call: a refusal, the driver's function with the same arguments, or the row with the function's name.
fn body(index: usize, plain: &str, per_thread: bool, state: &State, names: &[String]) -> String {
    let list = names.join(", ");
    match (state.state, state.driver) {
        ("refused", _) => format!("calls::refuse({index})"),
        ("done" | "partly", "" | "-") => format!("calls::run({index}, {per_thread}, || rows::{plain}([{list}]))"),
        ("done" | "partly", "value") => format!("calls::run({index}, {per_thread}, || rows::{plain}({list}))"),
        ("done" | "partly", "state") => format!("calls::bare({index}, || rows::{plain}([{list}]))"),
        ("done" | "partly", driver) => format!("calls::run({index}, {per_thread}, || cu!({driver:?}, {list}))"),
        (other, _) => panic!("{plain}: the state {other}"),
    }
}

fn export(
    items: &mut String,
    index: usize,
    symbol: &str,
    arguments: &str,
    state: &State,
    old: Option<(&str, Option<&State>)>,
) {
    let plain = tables::plain(symbol);
    let per_thread = plain != symbol;
    let types = |text: &str| -> Vec<String> {
        text.split(", ").filter_map(|one| one.split_once(": ")).map(|(_, kind)| kind.to_owned()).collect()
    };
    let (mut kinds, mut old_names) = (types(arguments), Vec::new());
    let names = |count: usize| -> Vec<String> { (0..count).map(|at| format!("a{at}")).collect() };
    let new_names = names(kinds.len());
    if let Some((text, _)) = old {
        let before = types(text);
        old_names = names(before.len());
        if before.len() > kinds.len() {
            kinds = before;
        }
    }
    // Numbers, pointers and handles are passed in the same way. Structures are not.
    let parameters: Vec<String> = kinds
        .iter()
        .enumerate()
        .map(|(at, kind)| match kind.as_str() {
            "Extent" | "PitchedPtr" | "Dim3" => format!("a{at}: calls::{kind}"),
            _ => format!("a{at}: usize"),
        })
        .collect();
    let parameters = if state.state == "refused" && old.is_none() { String::new() } else { parameters.join(", ") };
    let mut text = body(index, plain, per_thread, state, &new_names);
    if let Some((_, Some(before))) = old {
        text = format!(
            "if calls::major() == 12 {{ {} }} else {{ {text} }}",
            body(index, &format!("{plain}_12"), per_thread, before, &old_names)
        );
    }
    writeln!(
        items,
        "/// A function of CUDA's runtime.\n///\n/// # Safety\n/// Its pointers are as NVIDIA's documentation asks of the caller.\n#[allow(unused_variables, reason = \"a refused function reads nothing\")]\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({parameters}) -> u32 {{\n    {text}\n}}"
    )
    .unwrap();
}
