//! What the tools say: outcomes as JSON, and sentences about files that are something else.

use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tegra_sim::listing::Kind;
use tegrarm_kmd::Performed;

/// How a replay went, for programs.
pub fn replay(outcome: &Performed) -> Value {
    let same = outcome.difference.is_none();
    json!({"same": same, "made": outcome.made, "left_out": outcome.left_out, "difference": outcome.difference})
}

/// A listing, for programs.
pub fn decode(kind: Kind, text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    format!("{}\n", json!({"kind": kind.name(), "lines": lines}))
}

/// What bytes are that nobody named.
///
/// # Errors
/// When they are empty, or a recording, which is text.
pub fn guess(bytes: &[u8]) -> Result<Kind, Box<dyn Error>> {
    match bytes {
        [] => Err("the file is empty".into()),
        [b'{', ..] => Err("this is text, perhaps a recording: `tegrarm-sim replay` reads those".into()),
        _ => Ok(Kind::guess(bytes)),
    }
}

/// A recording to read.
///
/// # Errors
/// When it cannot be opened, is empty, or begins like something else that we know.
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
