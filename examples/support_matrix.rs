//! Prints the class and control tables as Markdown: `support_matrix` both, as a section of the README;
//! `support_matrix classes` and `support_matrix controls` one of them, `support_matrix nodes` what the device nodes answer,
//! as the page in `docs/`.

use tegrarm::files::escapes::{self, Args, ESCAPES, Gate};
use tegrarm::files::uvm::{self, CALLS};
use tegrarm::rm::classes::{CLASSES, Params, Support};
use tegrarm::rm::controls::CONTROLS;
use tegrarm::status;
use tegrarm_abi::rm::classes::CLASS_CONSTS;

fn main() {
    match std::env::args().nth(1).as_deref() {
        None => {
            println!("## Classes\n");
            classes();
            println!("\n## Controls\n\n{CONTROL_COLUMNS}");
            controls(|_| true);
        }
        Some("classes") => class_page(),
        Some("controls") => control_page(),
        Some("nodes") => node_page(),
        Some(other) => {
            eprintln!("{other}: none of `classes`, `controls`, `nodes`");
            std::process::exit(2);
        }
    }
}

const CONTROL_COLUMNS: &str = "| control | number | object | parameters, bytes | state |\n|---|---|---|---|---|";

fn class_page() {
    println!("# Classes\n");
    println!(
        "Made from the class table by `make docs`. What `rm_alloc` does with each class of desktop RM; a class that is"
    );
    println!(
        "not here is refused with `NV_ERR_INVALID_CLASS`. Several sizes of parameters are those of several driver"
    );
    println!("generations. Listed classes are the ones that class lists advertise.\n");
    println!("{}\n", tally(CLASSES.iter().map(|row| row.state)));
    classes();
}

fn control_page() {
    println!("# Controls\n");
    println!(
        "Made from the control table by `make docs`. What `rm_control` does with each control of desktop RM; a control"
    );
    println!(
        "that is not here is refused with `NV_ERR_NOT_SUPPORTED`. Several sizes of parameters are those of several driver"
    );
    println!("generations; 0 is none.\n");
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
        "Made from the tables of the file door by `make docs`: what `/dev/nvidiactl`, `/dev/nvidia0` and `/dev/nvidia-uvm` answer,"
    );
    println!(
        "as functions (`rm_open`, `rm_ioctl`) and under the preload library. Several sizes of arguments are those of several driver"
    );
    println!("generations. Every other number is `EINVAL`.\n");
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

/// Some calls are refused by errno, not in their structure.
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

fn tally(states: impl Iterator<Item = Support>) -> String {
    let [mut done, mut partial, mut accepted, mut refused] = [0; 4];
    for state in states {
        *match state {
            Support::Done => &mut done,
            Support::Partial => &mut partial,
            Support::Accepted => &mut accepted,
            Support::Refused(_) => &mut refused,
        } += 1;
    }
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
