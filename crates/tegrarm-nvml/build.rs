//! Makes the exported functions from the tables functions.tsv and states.tsv.
//!
//! functions.tsv has facts of NVIDIA's header (`make nvml-rows`). states.tsv is written by hand: it says of each function whether it is
//! done, done in part, or refused, which function of `src/answers` answers it, and why. A function without a state fails the build.

#[allow(dead_code, reason = "a row of NVML's states is for one function")]
#[path = "../tegrarm-cuda/tables.rs"]
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;
use tables::{read, rows};

/// Types of C whose values are pointers to something that only the library knows.
const HANDLES: [&str; 8] = [
    "nvmlDevice_t",
    "nvmlUnit_t",
    "nvmlEventSet_t",
    "nvmlSystemEventSet_t",
    "nvmlGpuInstance_t",
    "nvmlComputeInstance_t",
    "nvmlGpmSample_t",
    "nvmlVgpuMetadata_t",
];

/// The type of Rust for a parameter, and whether it is a pointer to memory of the caller.
fn rust(kind: &str) -> (&'static str, bool) {
    match kind.trim() {
        kind if kind.ends_with('*') => ("*mut c_void", true),
        kind if HANDLES.contains(&kind) => ("*mut c_void", false),
        "unsigned long long" => ("u64", false),
        "int" => ("i32", false),
        // Enumerations, and numbers that stand for a virtual GPU.
        _ => ("u32", false),
    }
}

fn main() {
    let (functions, states) = (read("functions.tsv"), read("states.tsv"));
    let mut states: BTreeMap<&str, Vec<&str>> = rows(&states).map(|row| (row[0], row[1..].to_vec())).collect();
    let (mut table, mut exports) = (String::new(), String::new());
    for (number, row) in rows(&functions).enumerate() {
        let [name, since, parameters] = row[..] else { panic!("functions.tsv: {row:?}") };
        let state = states.remove(name).unwrap_or_else(|| panic!("states.tsv does not say what {name} is"));
        let [state, answer, why] = state[..] else { panic!("states.tsv: {name}: {state:?}") };
        let variant = match state {
            "done" => "Done".to_owned(),
            "partly" => "Partly".to_owned(),
            "refused" => format!("Refused(abi::{answer})"),
            other => panic!("states.tsv: {name} is {other}"),
        };
        let why = if why == "-" { "" } else { why };
        let _ = writeln!(
            table,
            "    Function {{ name: {name:?}, since: {since}, parameters: {parameters:?}, state: State::{variant}, why: {why:?} }},"
        );
        // The only function that returns no result is written by hand.
        if name != "nvmlErrorString" {
            export(&mut exports, number, name, parameters, (state != "refused").then_some(answer));
        }
    }
    assert!(states.is_empty(), "states.tsv has functions that functions.tsv does not have: {:?}", states.keys());
    let text =
        format!("/// Every function, sorted by name.\npub static FUNCTIONS: &[Function] = &[\n{table}];\n\n{exports}");
    let out = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    std::fs::write(format!("{out}/exports.rs"), text).unwrap_or_else(|e| panic!("writing exports.rs: {e}"));
    // Programs look for this name. The file has another one, so that it never takes the place of a driver by accident.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
}

fn export(text: &mut String, number: usize, name: &str, parameters: &str, answer: Option<&str>) {
    let kinds: Vec<_> = parameters.split(',').map(str::trim).filter(|kind| !kind.is_empty()).collect();
    let declared: Vec<_> = kinds.iter().enumerate().map(|(at, kind)| format!("a{at}: {}", rust(kind).0)).collect();
    let body = match answer {
        Some(answer) => {
            let passed: Vec<_> = kinds
                .iter()
                .enumerate()
                .map(|(at, kind)| format!("a{at}{}", if rust(kind).1 { ".cast()" } else { "" }))
                .collect();
            format!(
                "// SAFETY: the caller passes what NVML's header asks for: pointers that are NULL or valid.\n    \
                 guard::call({number}, || unsafe {{ answers::{answer}({}) }})",
                passed.join(", ")
            )
        }
        None => {
            let device = if kinds.first() == Some(&"nvmlDevice_t") { "Some(a0)" } else { "None" };
            let unused: Vec<_> = (usize::from(device != "None")..kinds.len()).map(|at| format!("a{at}")).collect();
            let silence =
                if unused.is_empty() { String::new() } else { format!("let _ = ({},);\n    ", unused.join(", ")) };
            format!("{silence}guard::refuse({number}, {device})")
        }
    };
    let _ = writeln!(
        text,
        "/// Exported under the name that NVML's header has.\n///\n/// # Safety\n/// The pointers are NULL or valid, as NVML asks.\n\
         #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({}) -> u32 {{\n    {body}\n}}\n",
        declared.join(", ")
    );
}
