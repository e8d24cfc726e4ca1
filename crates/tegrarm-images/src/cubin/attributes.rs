//! `.nv.info`: what the compiler says about a module and its kernels.
//!
//! A section is a sequence of entries. An entry has a format and an attribute of one byte each, and a 16-bit value or
//! length. For format 4 that many bytes follow. `.nv.info` describes any function by its symbol's index, and
//! `.nv.info.NAME` describes only the kernel NAME.

use super::table::{self, Treatment};
use crate::elf::{LoadError, Problem, Section};

/// The numbers of the attributes (NVIDIA's `EIATTR_*`) that the loader uses.
pub mod id {
    /// Largest block: three dwords (`__launch_bounds__`).
    pub const MAX_THREADS: u8 = 0x05;
    /// Parameter bank: symbol, 16-bit offset, 16-bit size.
    pub const PARAM_CBANK: u8 = 0x0a;
    /// The only block size allowed: three dwords (`.reqntid`).
    pub const REQNTID: u8 = 0x10;
    /// Stack frame of one function: symbol, bytes.
    pub const FRAME_SIZE: u8 = 0x11;
    /// Stack that a kernel needs with everything it calls: symbol, bytes. The bytes are all ones if the kernel
    /// recurses.
    pub const MIN_STACK_SIZE: u8 = 0x12;
    /// One parameter: a dword, 16-bit ordinal, 16-bit offset, flags with the size in bits 31:18.
    pub const KPARAM_INFO: u8 = 0x17;
    /// Largest stack over all call paths: symbol, bytes.
    pub const MAX_STACK_SIZE: u8 = 0x23;
    /// Registers per thread: symbol, count.
    pub const REGCOUNT: u8 = 0x2f;
    /// One parameter of a kernel with more than 4,352 bytes of them: a dword, 16-bit ordinal, 16-bit offset, 16-bit size, and 16 bits that
    /// are 0. CUDA 12.1 and later have it, because the size of [`KPARAM_INFO`] has 14 bits.
    pub const KPARAM_INFO_V2: u8 = 0x45;
    /// Barriers that a block uses (CUDA 13). Earlier compilers use bits 26:20 of the code section's flags.
    pub const NUM_BARRIERS: u8 = 0x4c;
}

/// One entry of a section.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// The number of the attribute.
    pub id: u8,
    /// The 16-bit value of formats 1 to 3, and the length of format 4.
    pub value: u16,
    /// The bytes of format 4.
    pub data: &'a [u8],
    /// The offset at which the entry starts in its section.
    pub offset: u64,
}

impl Attribute<'_> {
    /// Dword `index` of the data.
    ///
    /// # Errors
    /// The data is shorter.
    pub fn dword(&self, section: &Section<'_>, index: usize) -> Result<u32, LoadError> {
        let bytes = self.data.get(4 * index..4 * index + 4);
        let bytes = bytes.and_then(|b| b.try_into().ok()).ok_or_else(|| {
            let problem = Problem::Attribute { attribute: self.id, found: self.data.len(), wanted: 4 * index + 4 };
            section.place(self.offset).error(problem)
        })?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Three dwords: the threads of a block in x, y and z.
    ///
    /// # Errors
    /// The data is shorter.
    pub fn block(&self, section: &Section<'_>) -> Result<[u32; 3], LoadError> {
        Ok([self.dword(section, 0)?, self.dword(section, 1)?, self.dword(section, 2)?])
    }
}

const HEADER: usize = 4;
const FORMAT_BYTES: u8 = 4;

/// Checks that the attribute is known, that it has its format, and that it asks for nothing that a kernel cannot have here.
fn check(format: u8, attribute: u8) -> Result<(), Problem> {
    let row = table::find(attribute).ok_or(Problem::UnknownAttribute { attribute })?;
    if let Treatment::Refused(why) = row.treatment {
        return Err(Problem::RefusedAttribute { attribute, name: row.name, why });
    }
    match row.format.number() {
        Some(wanted) if wanted != format => Err(Problem::AttributeFormat { attribute, found: format, wanted }),
        _ => Ok(()),
    }
}

/// Reads the entries of one section.
///
/// # Errors
/// An entry goes past the section's end or has an unknown format. An attribute is unknown, has another format than its own, or asks for
/// something that this library does not have.
pub fn read<'a>(section: &Section<'_>, data: &'a [u8]) -> Result<Vec<Attribute<'a>>, LoadError> {
    // Most entries have a header and a few dwords.
    let mut found = Vec::with_capacity(data.len() / 8);
    let mut at = 0;
    while at < data.len() {
        let place = || section.place(at as u64);
        let short = |needed: usize| {
            place().error(Problem::Truncated { needed: needed as u64, available: (data.len() - at) as u64 })
        };
        let header = data.get(at..at + HEADER).ok_or_else(|| short(HEADER))?;
        let (format, id, value) = (header[0], header[1], u16::from_le_bytes([header[2], header[3]]));
        if !(1..=FORMAT_BYTES).contains(&format) {
            return Err(place().error(Problem::Limit { what: "attribute format", value: format.into(), limit: 4 }));
        }
        check(format, id).map_err(|problem| place().error(problem))?;
        let length = if format == FORMAT_BYTES { usize::from(value) } else { 0 };
        let body = data.get(at + HEADER..at + HEADER + length).ok_or_else(|| short(HEADER + length))?;
        found.push(Attribute { id, value, data: body, offset: at as u64 });
        at += HEADER + length;
    }
    Ok(found)
}
