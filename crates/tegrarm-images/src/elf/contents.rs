//! What a file is that is no ELF file. A wrong file is most often a known one: a source, PTX, or a file that is empty.

use std::fmt;

/// How many bytes are looked at.
const LOOK: usize = 64 << 10;
/// The first bytes of a fat binary, which holds several cubins.
const FAT: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
/// Words that only CUDA C++ has.
const CUDA_WORDS: [&str; 2] = ["__global__", "__device__"];

/// What the bytes look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// There are no bytes.
    Nothing,
    /// Text of the assembler PTX.
    Ptx,
    /// CUDA C++.
    Source,
    /// Another text.
    Text,
    /// Several cubins in one file.
    FatBinary,
    /// Bytes that say nothing.
    Other,
}

impl Contents {
    /// Looks at the first bytes of a file that is no ELF file.
    pub fn of(bytes: &[u8]) -> Contents {
        let head = &bytes[..bytes.len().min(LOOK)];
        if head.is_empty() {
            return Contents::Nothing;
        }
        if head.starts_with(&FAT) {
            return Contents::FatBinary;
        }
        match text(head) {
            Some(text) if line_begins(text, ".version") && line_begins(text, ".target") => Contents::Ptx,
            Some(text) if CUDA_WORDS.iter().any(|word| text.contains(word)) => Contents::Source,
            Some(_) => Contents::Text,
            None => Contents::Other,
        }
    }
}

/// The bytes as text, without a zero at the end, which PTX from a compiler has, and without a character that was cut off.
fn text(bytes: &[u8]) -> Option<&str> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let printable = |c: char| !c.is_control() || c.is_ascii_whitespace();
    text.chars().all(printable).then_some(text)
}

fn line_begins(text: &str, word: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(word))
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contents::Nothing => "the file is empty: a compiler that failed may have left it",
            Contents::Ptx => {
                "this is PTX, which no GPU executes: compile to machine code instead, with `--cubin --gpu-architecture=sm_87` or \
                 `tegrarm compile` without --ptx"
            }
            Contents::Source => "this is CUDA C++, which has to be compiled first: `tegrarm compile FILE` makes the machine code",
            Contents::Text => "this is text, not machine code",
            Contents::FatBinary => "this is a fat binary: `cuobjdump --extract-elf sm_87` takes the cubin out of it",
            Contents::Other => "not an ELF file: the first four bytes are not 7f 45 4c 46",
        })
    }
}
