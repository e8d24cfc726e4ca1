//! Prints the tables of classes, controls and device nodes as Markdown. Without an argument it prints the counts for
//! the README. With `classes`, `controls` or `nodes` it prints that page of `docs/`.

use tegrarm::files::escapes::{self, Args, ESCAPES, Gate};
use tegrarm::files::uvm::{self, CALLS};
use tegrarm::rm::classes::{CLASSES, Params, Support};
use tegrarm::rm::controls::CONTROLS;
use tegrarm::status;
use tegrarm_abi::rm::classes::CLASS_CONSTS;

fn main() {
    match std::env::args().nth(1).as_deref() {
        None => counts(),
        Some("classes") => class_page(),
        Some("controls") => control_page(),
        Some("nodes") => node_page(),
        Some(other) => {
            eprintln!("{other}: none of `classes`, `controls`, `nodes`");
            std::process::exit(2);
        }
    }
}

/// Prints how many rows of each table are done, and where the table is.
fn counts() {
    let [mut classes, mut controls, mut escapes, mut uvm] = [Tally::default(); 4];
    CLASSES.iter().for_each(|row| classes.add(row.state));
    CONTROLS.iter().for_each(|row| controls.add(row.state));
    ESCAPES.iter().for_each(|row| escapes.add(row.state));
    CALLS.iter().for_each(|row| uvm.add(row.state));
    println!(
        "| of desktop RM | done | partly done | accepted without effect | refused | table |\n|---|---|---|---|---|---|"
    );
    for (what, Tally { done, partial, accepted, refused }, table) in [
        ("classes", classes, "classes.md"),
        ("controls", controls, "controls.md"),
        ("ioctls of `/dev/nvidiactl` and `/dev/nvidia0`", escapes, "nodes.md#escapes"),
        ("ioctls of `/dev/nvidia-uvm`", uvm, "nodes.md#uvm-calls"),
    ] {
        println!("| {what} | {done} | {partial} | {accepted} | {refused} | [docs/{table}](docs/{table}) |");
    }
    println!(
        "\nEvery row that is not done gives its reason. What is in no table is refused with the status or errno that RM gives."
    );
}

const CONTROL_COLUMNS: &str = "| control | number | object | parameters, bytes | state |\n|---|---|---|---|---|";

fn class_page() {
    println!("# Classes\n");
    println!(
        "This page is made from the class table by `make docs`. It says what `rm_alloc` does with each class of desktop RM. A class that is"
    );
    println!(
        "not here is refused with `NV_ERR_INVALID_CLASS`. Where a row has several sizes, they are those of several driver"
    );
    println!(
        "generations. The column `listed` says whether the class is in the class list that a client can ask for.\n"
    );
    println!("{}\n", tally(CLASSES.iter().map(|row| row.state)));
    classes();
}

fn control_page() {
    println!("# Controls\n");
    println!(
        "This page is made from the control table by `make docs`. It says what `rm_control` does with each control of desktop RM. A control"
    );
    println!(
        "that is not here is refused with `NV_ERR_NOT_SUPPORTED`. Where a row has several sizes, they are those of several driver"
    );
    println!("generations. A size of 0 means that the control has no parameters.\n");
    println!("{}", tally(CONTROLS.iter().map(|row| row.state)));
    let mut interfaces: Vec<u32> = CONTROLS.iter().map(|row| row.cmd >> 16).collect();
    interfaces.dedup();
    for interface in interfaces {
        let class = CLASS_CONSTS.iter().find(|c| c.value == i128::from(interface));
        let name = class.map_or_else(String::new, |c| format!(" ({})", c.name));
        println!("\n## Interface {interface:#06x}{name}\n\n{CONTROL_COLUMNS}");
        controls(|cmd| cmd >> 16 == interface);
    }
}

fn node_page() {
    println!("# Device nodes\n");
    println!(
        "This page is made from the tables of the file door by `make docs`. It says what `/dev/nvidiactl`, `/dev/nvidia0` and `/dev/nvidia-uvm` answer,"
    );
    println!(
        "as functions (`rm_open`, `rm_ioctl`) and under the preload library. Where a row has several sizes, they are those of several driver"
    );
    println!("generations. Every other number fails with `EINVAL`.\n");
    println!("## Escapes\n\n{}\n", tally(ESCAPES.iter().map(|row| row.state)));
    println!("| escape | number | node | argument, bytes | state |\n|---|---|---|---|---|");
    for row in ESCAPES {
        let node = match row.gate {
            Gate::Control => "nvidiactl",
            Gate::Gpu => "nvidia0",
            Gate::Any => "either",
        };
        let args = match row.args {
            Args::Sizes(list) => sizes(&list.iter().map(|(size, _)| *size).collect::<Vec<_>>()),
            Args::Items(item) => format!("any number of {item}"),
            Args::ItemsAndRest(item) => format!("any number of {item}, and a rest"),
            Args::Any => "any".to_owned(),
        };
        let state = node_state(row.state, row.why, matches!(row.answer, escapes::Answer::Einval));
        println!("| {} | {:#04x} | {node} | {args} | {state} |", row.name, row.nr);
    }
    println!("\n## UVM calls\n\n{}\n", tally(CALLS.iter().map(|row| row.state)));
    println!("| call | number | argument, bytes | state |\n|---|---|---|---|");
    for row in CALLS {
        let state = node_state(row.state, row.why, matches!(row.answer, uvm::Answer::Einval));
        println!("| {} | {:#x} | {} | {state} |", row.name, row.nr, row.size);
    }
}

/// Some calls are refused by errno and not in their structure.
fn node_state(of: Support, why: &str, errno: bool) -> String {
    if errno { format!("refused with EINVAL: {why}") } else { state(of, why) }
}

fn classes() {
    println!("| class | number | parents | parameters, bytes | listed | state |\n|---|---|---|---|---|---|");
    for row in CLASSES {
        let params = match row.params {
            Params::None => "none".to_owned(),
            Params::Optional(s) => format!("{}, optional", sizes(s)),
            Params::Required(s) => sizes(s),
        };
        let listed = if row.listed { "yes" } else { "" };
        let state = state(row.state, row.why);
        println!("| {} | {:#06x} | {} | {params} | {listed} | {state} |", row.name, row.number, row.parents.words());
    }
}

fn controls(wanted: impl Fn(u32) -> bool) {
    for row in CONTROLS.iter().filter(|row| wanted(row.cmd)) {
        let (objects, state) = (row.objects.words(), state(row.state, row.why));
        println!("| {} | {:#010x} | {objects} | {} | {state} |", row.name, row.cmd, sizes(row.sizes));
    }
}

/// The number of rows of a table in each state.
#[derive(Clone, Copy, Default)]
struct Tally {
    done: usize,
    partial: usize,
    accepted: usize,
    refused: usize,
}

impl Tally {
    fn add(&mut self, state: Support) {
        *match state {
            Support::Done => &mut self.done,
            Support::Partial => &mut self.partial,
            Support::Accepted => &mut self.accepted,
            Support::Refused(_) => &mut self.refused,
        } += 1;
    }
}

fn tally(states: impl Iterator<Item = Support>) -> String {
    let mut tally = Tally::default();
    states.for_each(|state| tally.add(state));
    let Tally { done, partial, accepted, refused } = tally;
    format!("{done} done, {partial} partial, {accepted} accepted without effect, {refused} refused; each says why.")
}

fn sizes(sizes: &[usize]) -> String {
    let list: Vec<_> = sizes.iter().map(usize::to_string).collect();
    list.join("/")
}

fn state(state: Support, why: &str) -> String {
    let word = match state {
        Support::Done => "done".to_owned(),
        Support::Partial => "partial".to_owned(),
        Support::Accepted => "accepted".to_owned(),
        Support::Refused(code) => format!("refused with {}", status::name(code)),
    };
    if why.is_empty() { word } else { format!("{word}: {why}") }
}
