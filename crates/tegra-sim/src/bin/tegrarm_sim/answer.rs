//! The answers of the tools: results as JSON, and sentences about files of an unexpected kind.

use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tegra_sim::listing::Kind;
use tegrarm_kmd::{Performed, PerformedAll};

/// The result of a replay as JSON.
pub fn replay(outcome: &Performed) -> Value {
    let same = outcome.difference.is_none();
    json!({"same": same, "made": outcome.made, "left_out": outcome.left_out, "difference": outcome.difference})
}

/// The result of a replay of all calls as JSON.
pub fn replay_all(outcome: &PerformedAll) -> Value {
    let same = outcome.differences.is_empty();
    let one = |d: &tegrarm_kmd::Difference| json!({"line": d.line, "call": d.call, "fields": d.fields});
    let differences: Vec<_> = outcome.differences.iter().map(one).collect();
    json!({"same": same, "made": outcome.made, "left_out": outcome.left_out, "differences": differences})
}

/// The same in words: a line for each call, and below it a line for each field.
pub fn all_in_words(outcome: &PerformedAll) -> String {
    let PerformedAll { made, left_out, differences } = outcome;
    let mut text = format!("{made} calls, {} ended differently; {left_out} left out", differences.len());
    for difference in differences {
        text += &format!("\nline {}: {}", difference.line, difference.call);
        for field in &difference.fields {
            text += &format!("\n    {field}");
        }
    }
    text
}

/// An error as JSON: what is wrong with a file, and the exit status.
pub fn error(file: &Path, why: &dyn Error, status: u8) -> String {
    format!("{}\n", json!({"error": format!("{}: {why}", file.display()), "status": status}))
}

/// A listing as JSON.
pub fn decode(kind: Kind, text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    format!("{}\n", json!({"kind": kind.name(), "lines": lines}))
}

/// Guesses the kind of bytes for which the user named none.
///
/// # Errors
/// An error says that the bytes are empty, or that they are a recording, which is text.
pub fn guess(bytes: &[u8]) -> Result<Kind, Box<dyn Error>> {
    match bytes {
        [] => Err("the file is empty".into()),
        [b'{', ..] => Err("this is text, perhaps a recording: `tegrarm-sim replay` reads those".into()),
        _ => Ok(Kind::guess(bytes)),
    }
}

/// Opens a recording for reading.
///
/// # Errors
/// An error says that the file cannot be opened, that it is empty, or that it is another kind of file that the tools
/// know.
pub fn recording(path: &Path) -> Result<BufReader<File>, Box<dyn Error>> {
    let mut file = BufReader::new(File::open(path)?);
    let what = match file.fill_buf()? {
        [] => "the file is empty",
        [b'\x7f', b'E', b'L', b'F', ..] => "this is an ELF file, which `tegrarm-sim decode` prints",
        [b'[', ..] => "this is a timeline or another list, not a recording",
        [b'{', ..] => return Ok(file),
        _ => "this is no recording",
    };
    Err(format!("{what}; TEGRARM_RECORD=FILE makes a recording").into())
}
