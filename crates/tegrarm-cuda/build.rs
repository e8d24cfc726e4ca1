//! Makes the exported functions and the numbers from the tables functions.tsv, states.tsv and numbers.tsv.
//!
//! functions.tsv and numbers.tsv are facts of NVIDIA's headers (`make cuda-rows`). states.tsv is written by hand: it says of each function
//! whether it is done, done in part, or refused, and why. A function without a state fails the build.

mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tables::{read, rows, state_of};

/// One row of functions.tsv.
struct Function<'a> {
    symbol: &'a str,
    function: &'a str,
    since: &'a str,
    last: &'a str,
    arguments: Vec<&'a str>,
}

/// One row of states.tsv.
struct State<'a> {
    name: &'a str,
    state: &'a str,
    why: &'a str,
}

fn main() {
    let (functions, states, numbers) = (read("functions.tsv"), read("states.tsv"), read("numbers.tsv"));
    let out = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    let write = |name: &str, text: String| {
        std::fs::write(Path::new(&out).join(name), text).unwrap_or_else(|e| panic!("writing {name}: {e}"));
    };
    write("numbers.rs", number_items(&numbers));
    write("exports.rs", exports(&functions, &states));
    // Programs look for this name. The file has another one, so that it never takes the place of a driver by accident.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}

/// A constant for each number, and the names of the results.
fn number_items(text: &str) -> String {
    let (mut items, mut names) = (String::new(), String::new());
    let mut seen = BTreeMap::new();
    for row in rows(text) {
        let [enumeration, name, number] = row[..] else { panic!("numbers.tsv: {row:?}") };
        let number: i64 = number.parse().unwrap_or_else(|e| panic!("{name}: {e}"));
        writeln!(items, "/// {enumeration}\npub const {name}: u32 = {};", number as u32).unwrap();
        if enumeration == "CUresult" && seen.insert(number, name).is_none() {
            writeln!(names, "    ({number}, c\"{name}\"),").unwrap();
        }
    }
    format!("{items}/// The names of all results.\npub static RESULTS: &[(u32, &std::ffi::CStr)] = &[\n{names}];\n")
}

fn exports(functions: &str, states: &str) -> String {
    let states: Vec<State> =
        rows(states).map(|row| State { name: row[0], state: row[1], why: row.get(2).copied().unwrap_or("") }).collect();
    let functions: Vec<Function> = rows(functions)
        .map(|row| Function {
            symbol: row[0],
            function: row[1],
            since: row[2],
            last: row[3],
            arguments: row[4].split(", ").filter(|argument| !argument.is_empty()).collect(),
        })
        .collect();
    for state in &states {
        let used = functions.iter().any(|f| std::ptr::eq(state_of(&states, |s| s.name, f.symbol), state));
        assert!(used, "states.tsv: no function needs the row {}", state.name);
    }
    let (mut items, mut table) = (String::new(), String::new());
    for (index, function) in functions.iter().enumerate() {
        let state = state_of(&states, |s| s.name, function.symbol);
        export(&mut items, index, function, state);
        let last = if function.last == "-" { "u32::MAX" } else { function.last };
        writeln!(
            table,
            "    Function {{ symbol: {:?}, name: {:?}, since: {}, last: {last}, address: {} as *const () }},",
            function.symbol, function.function, function.since, function.symbol
        )
        .unwrap();
    }
    format!(
        "{items}/// One row for each exported function.\npub static FUNCTIONS: &[Function] = &[\n{table}];\n/// Whether the refusal of a function was said.\nstatic REFUSED: [AtomicBool; FUNCTIONS.len()] = [const {{ AtomicBool::new(false) }}; FUNCTIONS.len()];\n"
    )
}

/// The exported function: the arguments become values that the handler can use safely.
fn export(items: &mut String, index: usize, function: &Function, state: &State) {
    let types: Vec<&str> =
        function.arguments.iter().map(|argument| argument.split_once(": ").expect("a name and a type").1).collect();
    let parameters: Vec<String> =
        types.iter().enumerate().map(|(at, kind)| format!("a{at}: {}", foreign(kind))).collect();
    let plain = tables::plain(function.symbol);
    let per_thread = plain != function.symbol;
    let handler = match state.why.strip_prefix("as ") {
        Some(other) if state.state == "done" => other,
        _ => plain,
    };
    let body = match state.state {
        "refused" => format!("guard::refuse({:?}, {:?}, &REFUSED[{index}])", function.symbol, state.why),
        "done" | "partly" => {
            let values: Vec<String> = types.iter().enumerate().map(|(at, kind)| value(at, kind)).collect();
            let frame = if AT_ANY_TIME.contains(&plain) { "call_at_any_time" } else { "call" };
            let call = format!(
                "guard::{frame}({:?}, {per_thread}, || rows::{handler}({}))",
                function.symbol,
                values.join(", ")
            );
            if function.symbol == LAUNCH { launch(&call) } else { call }
        }
        other => panic!("{}: the state {other}", state.name),
    };
    let unused =
        if state.state == "refused" { "#[expect(unused_variables, reason = \"it is refused\")]\n" } else { "" };
    let unused = if types.is_empty() { "" } else { unused };
    writeln!(
        items,
        "/// A function of CUDA's driver.\n///\n/// # Safety\n/// Its pointers are as NVIDIA's documentation asks of the caller.\n{unused}#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {}({}) -> u32 {{\n    {body}\n}}",
        function.symbol,
        parameters.join(", ")
    )
    .unwrap();
}

/// The functions that a program may call before cuInit.
const AT_ANY_TIME: [&str; 7] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
];

/// The function that has a short way.
const LAUNCH: &str = "cuLaunchKernel";

/// The body of the launch: the short way, and otherwise the call. The call is a function of its own, which takes its arguments from
/// memory, so that the short way saves no registers for it.
fn launch(call: &str) -> String {
    format!(
        "let asked = Asked {{
        sizes: tegrarm_launch_sizes {{ grid_dim: [a1, a2, a3], block_dim: [a4, a5, a6], shared_mem_bytes: a7 }},
        function: a0,
        stream: a8,
        params: a9,
        extra: a10,
    }};
    // SAFETY: the pointers are as NVIDIA's documentation asks of the caller.
    if unsafe {{ crate::stack::launch(&asked) }} {{
        return 0;
    }}
    #[cold]
    #[inline(never)]
    fn whole(asked: &Asked) -> u32 {{
        let Asked {{ sizes, function: a0, stream: a8, params: a9, extra: a10 }} = *asked;
        let tegrarm_launch_sizes {{ grid_dim: [a1, a2, a3], block_dim: [a4, a5, a6], shared_mem_bytes: a7 }} = sizes;
        {call}
    }}
    whole(&asked)"
    )
}

/// The type as it crosses the C interface.
fn foreign(kind: &str) -> String {
    match kind {
        "Handle" | "Callback" => "usize".to_owned(),
        "Bytes64" | "Location" => format!("crate::pointers::{kind}"),
        _ => match kind.strip_prefix("*mut ") {
            Some(target) => format!("*mut {}", target_type(target)),
            None => kind.to_owned(),
        },
    }
}

fn target_type(target: &str) -> &str {
    if target.starts_with("*mut") || target == "Handle" || target == "Callback" { "usize" } else { target }
}

/// The argument as the handler takes it.
fn value(at: usize, kind: &str) -> String {
    if kind.starts_with("*mut ") {
        // The generated code needs this line, because the check of `unsafe` asks for a reason at each block.
        format!(
            "\n        // SAFETY: the pointer is NULL or as the function's description in NVIDIA's documentation asks of its caller.\n        unsafe {{ Ptr::new(a{at}) }}"
        )
    } else {
        format!("a{at}")
    }
}
