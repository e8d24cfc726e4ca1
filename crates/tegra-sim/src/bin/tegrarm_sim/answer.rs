//! The answers of the tools: results as JSON, and sentences about files of an unexpected kind.

use goblin::elf::header::EM_CUDA;
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
/// An error says that the bytes are empty, text, a fat binary, or machine code of something else than sm_87.
pub fn guess(bytes: &[u8]) -> Result<Kind, Box<dyn Error>> {
    match bytes {
        [] => Err("the file is empty".into()),
        [b'{', ..] => Err("this is text, perhaps a recording: `tegrarm-sim replay` reads those".into()),
        [0x50, 0xed, 0x55, 0xba, ..] => {
            Err("this is a fat binary: `cuobjdump --extract-elf sm_87` takes the cubin out of it".into())
        }
        [b'\x7f', b'E', b'L', b'F', ..] => foreign(bytes).map_or(Ok(Kind::Cubin), |what| Err(what.into())),
        _ if is_text(bytes) => {
            Err("this is text, such as CUDA C++ or PTX: `tegrarm compile FILE` makes machine code of CUDA C++".into())
        }
        _ => Ok(Kind::guess(bytes)),
    }
}

/// Whose machine code an ELF file has, if it is not sm_87's. A header that is cut off says nothing.
fn foreign(elf: &[u8]) -> Option<String> {
    let machine = u16::from_le_bytes(elf.get(18..20)?.try_into().ok()?);
    if machine != EM_CUDA {
        return Some(format!(
            "this ELF file has code for machine {machine} and not for a GPU of NVIDIA, which is {EM_CUDA}"
        ));
    }
    let flags = u32::from_le_bytes(elf.get(48..52)?.try_into().ok()?);
    // The number of the sm is in bits 7:0 up to ABI version 7, and in bits 15:8 from version 8 (CUDA 13) on.
    let sm = flags >> (if elf[8] >= 8 { 8 } else { 0 }) & 0xff;
    (sm != 87)
        .then(|| format!("this is machine code for sm_{sm} and not for sm_87; `--as cubin` prints it as if it were"))
}

/// Whether these bytes are text. Launch descriptors and pushbuffers have zeros.
fn is_text(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()))
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
