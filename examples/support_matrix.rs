//! Prints the class and control tables as Markdown, for README and docs.

use tegrarm::rm::classes::{CLASSES, Params, State};
use tegrarm::rm::controls::CONTROLS;
use tegrarm::status;

fn main() {
    println!(
        "## Classes\n\n| class | number | parents | parameters, bytes | listed | state |\n|---|---|---|---|---|---|"
    );
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
    println!("\n## Controls\n\n| control | number | object | parameters, bytes | state |\n|---|---|---|---|---|");
    for row in CONTROLS {
        let objects: Vec<_> = row.objects.iter().map(|t| t.word()).collect();
        let (objects, state) = (objects.join(", "), state(row.state, row.why));
        println!("| {} | {:#010x} | {objects} | {} | {state} |", row.name, row.cmd, sizes(row.sizes));
    }
}

fn sizes(sizes: &[usize]) -> String {
    let list: Vec<_> = sizes.iter().map(usize::to_string).collect();
    list.join("/")
}

fn state(state: State, why: &str) -> String {
    let word = match state {
        State::Done => "done".to_owned(),
        State::Partial => "partial".to_owned(),
        State::Accepted => "accepted".to_owned(),
        State::Refused(code) => format!("refused with {}", status::name(code)),
    };
    if why.is_empty() { word } else { format!("{word}: {why}") }
}
