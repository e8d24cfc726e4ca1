//! Listings of bytes: pushbuffers as methods with fields, launch descriptors with their fields, and machine code as
//! instructions.
//!
//! They are for people and tools. The simulator itself does not use them.

mod class;
mod code;
mod pushbuffer;
mod qmd;

use std::fmt;
use std::str::FromStr;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::qmd::{QMD_MAJOR_VERSION, QMD_VERSION};

/// The number of bytes of a launch descriptor.
const QMD_BYTES: usize = 256;

/// The kind of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The words that a GPFIFO entry points to.
    Pushbuffer,
    /// A launch descriptor, version 3.0.
    Qmd,
    /// An ELF file with sm_87 code.
    Cubin,
    /// Instructions of sm_87 without a file around them.
    Code,
}

const KINDS: [(&str, Kind); 4] =
    [("pushbuffer", Kind::Pushbuffer), ("qmd", Kind::Qmd), ("cubin", Kind::Cubin), ("code", Kind::Code)];

impl Kind {
    /// The name of the kind.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("unknown", |(name, _)| name)
    }

    /// Guesses the kind of `bytes`: an ELF file, 256 bytes that name the version of a descriptor, or words of a
    /// pushbuffer.
    pub fn guess(bytes: &[u8]) -> Kind {
        if bytes.starts_with(b"\x7fELF") {
            return Kind::Cubin;
        }
        let version = |bits: Bits| bits.of_words(&words(bytes));
        if bytes.len() == QMD_BYTES && (version(QMD_MAJOR_VERSION), version(QMD_VERSION)) == (3, 0) {
            return Kind::Qmd;
        }
        Kind::Pushbuffer
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| format!("{name:?} is none of pushbuffer, qmd, cubin, code"))
    }
}

/// The reason why bytes cannot be of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Lists `bytes` as text, with one line for each word, field or instruction.
///
/// # Errors
/// The bytes have the wrong length for their kind, or they are no ELF file with code.
pub fn text(kind: Kind, bytes: &[u8]) -> Result<String, DecodeError> {
    match kind {
        Kind::Pushbuffer if !bytes.len().is_multiple_of(4) => {
            Err(DecodeError(format!("{} bytes are no whole number of 32-bit words", bytes.len())))
        }
        Kind::Pushbuffer => Ok(pushbuffer::text(&words(bytes))),
        Kind::Qmd if bytes.len() != QMD_BYTES => {
            Err(DecodeError(format!("a launch descriptor has {QMD_BYTES} bytes, not {}", bytes.len())))
        }
        Kind::Qmd => Ok(qmd::text(&words(bytes))),
        Kind::Cubin => code::text(bytes),
        Kind::Code => code::raw(bytes),
    }
}

/// The little-endian words of some bytes. Bytes at the end that do not fill a word are left out.
fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
