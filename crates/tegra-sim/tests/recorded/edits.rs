//! Edits of the lines of a recording. An edited recording is still one, so that its calls are made and answered; of random text, nearly
//! nothing is.

use serde_json::{Value, json};

/// The most edits of a recording.
const EDITS: usize = 40;
/// The longest field that an edit makes, in bytes.
const LONGEST: usize = 1 << 20;
/// Sizes at which something changes.
const SIZES: [usize; 16] = [0, 1, 2, 3, 4, 7, 8, 16, 24, 64, 328, 4095, 4096, 4097, 65536, LONGEST];
/// Numbers that have a meaning in some field.
const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    4,
    8,
    48,
    255,
    256,
    1000,
    4095,
    4096,
    0x1_0000,
    0x10_0000,
    0x4000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0xff_0000_0000,
    1 << 63,
    u64::MAX,
];

/// The recording `lines` with the edits that the input asks for.
pub fn edited(lines: &[String], input: &mut Input<'_>) -> String {
    let mut lines = lines.to_vec();
    for _ in 0..EDITS {
        if input.0.is_empty() || lines.len() < 2 {
            break;
        }
        // The first line is the header.
        let any = |input: &mut Input<'_>, lines: &[String]| {
            1 + usize::from(u16::from_le_bytes(input.bytes())) % (lines.len() - 1)
        };
        let at = any(input, &lines);
        match input.byte() % 16 {
            0 => drop(lines.remove(at)),
            1 => {
                let other = any(input, &lines);
                lines.insert(at, lines[other].clone());
            }
            2 => {
                let other = any(input, &lines);
                lines.swap(at, other);
            }
            how => {
                let other = any(input, &lines);
                let mut line: Value = serde_json::from_str(&lines[at]).expect("a line of our own");
                edit(&mut line, &serde_json::from_str(&lines[other]).expect("a line of our own"), how, input);
                lines[at] = line.to_string();
            }
        }
    }
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Changes one line. `other` is another line, of which something may be taken.
fn edit(line: &mut Value, other: &Value, how: u8, input: &mut Input<'_>) {
    match how {
        3 => line["on"] = other["on"].clone(),
        4 => (line["node"], line["request"]) = (other["node"].clone(), other["request"].clone()),
        5 => match input.byte() % 2 {
            0 => line["ret"] = number(input).into(),
            _ => line["err"] = other.get("err").cloned().unwrap_or_else(|| "EINVAL".into()),
        },
        6 => line["in"] = json!({ "value": number(input) }),
        7 => (line["in"], line["out"]) = (other["in"].clone(), other["out"].clone()),
        8 => {
            let key = *input.pick(&["len", "offset"]);
            line[key] = number(input).into();
        }
        9 => {
            line["place"] = (*input.pick(&["anywhere", "if-free", "replace"])).into();
            line["at"] = format!("{:#x}", number(input)).into();
        }
        10 => {
            let place = if line["ret"].is_object() { "/ret/size" } else { "/made/0/size" };
            if let Some(size) = line.pointer_mut(place) {
                *size = number(input).into();
            }
        }
        11 => {
            let (part, at) = (*input.pick(&["in", "out"]), number(input) % 64);
            line[part]["fds"] = json!({ at.to_string(): other["on"].as_str().unwrap_or("dmabuf#1") });
        }
        12 => {
            if let Some(run) = line["runs"].as_array_mut().and_then(|runs| runs.first_mut()) {
                run["offset"] = number(input).into();
                run["bytes"] = "ee".repeat(*input.pick(&SIZES)).into();
            }
        }
        _ => {
            let mut fields = Vec::new();
            find_bytes(line, &mut fields);
            if !fields.is_empty() {
                let chosen = usize::from(input.byte()) % fields.len();
                let field = fields.swap_remove(chosen);
                *field = changed(field.as_str().unwrap_or_default(), how == 13, input).into();
            }
        }
    }
}

/// The strings of hexadecimal digits in a value.
fn find_bytes<'v>(value: &'v mut Value, found: &mut Vec<&'v mut Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| find_bytes(item, found)),
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                match key == "bytes" {
                    true => found.push(inner),
                    false => find_bytes(inner, found),
                }
            }
        }
        _ => {}
    }
}

/// Hexadecimal digits with another length, or with another number in one place.
fn changed(digits: &str, resize: bool, input: &mut Input<'_>) -> String {
    if resize {
        let len = 2 * *input.pick(&SIZES);
        return digits.chars().chain("e".repeat(len).chars()).take(len).collect();
    }
    let width = 2 * *input.pick(&[1, 2, 4, 8]);
    let at = 2 * usize::from(u16::from_le_bytes(input.bytes()));
    let number: String = number(input).to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let at = at % digits.len().max(2);
    let end = (at + width).min(digits.len());
    if at >= end { number } else { format!("{}{}{}", &digits[..at], &number[..end - at], &digits[end..]) }
}

fn number(input: &mut Input<'_>) -> u64 {
    match input.byte() % 3 {
        0 => u64::from_le_bytes(input.bytes()),
        1 => u64::from(input.byte()),
        _ => *input.pick(&NUMBERS),
    }
}

/// An input that is read piece by piece. After its end it gives zeros.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    pub fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let n = N.min(self.0.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        out
    }

    /// One of `choices`.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(u16::from_le_bytes(self.bytes())) % choices.len()]
    }
}
