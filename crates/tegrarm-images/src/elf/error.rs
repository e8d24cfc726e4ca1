//! Errors of object files: why a file cannot be loaded, and the location of the reason.

use super::contents::Contents;
use std::fmt;
use thiserror::Error;

/// A location in an object file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    section: Option<Box<str>>,
    offset: u64,
}

impl Location {
    /// A location outside of any section.
    pub fn file(offset: u64) -> Location {
        Location { section: None, offset }
    }

    /// A location in a section, by its offset in the file.
    pub fn at(section: &str, offset: u64) -> Location {
        Location { section: Some(section.into()), offset }
    }

    /// Makes the error of this location.
    pub fn error(&self, problem: Problem) -> LoadError {
        LoadError { place: self.clone(), problem }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.section {
            Some(name) => write!(f, "section '{}', file offset {:#x}", name.escape_debug(), self.offset),
            None => write!(f, "file offset {:#x}", self.offset),
        }
    }
}

/// Why an object file was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}: {problem}")]
pub struct LoadError {
    place: Location,
    problem: Problem,
}

impl LoadError {
    /// The location of the reason.
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// The problem at that location.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// The problems that an object file can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message of each variant is its documentation")]
pub enum Problem {
    #[error("{0}")]
    NotElf(Contents),
    #[error("ELF class {class}, data encoding {data}: only 64-bit little-endian files (2, 1) can be loaded")]
    Format { class: u8, data: u8 },
    #[error("ELF type {found}, wanted {wanted}")]
    Kind { found: u16, wanted: &'static str },
    #[error("code for ELF machine {found}, wanted {wanted}")]
    Machine { found: u16, wanted: &'static str },
    #[error("code for sm_{found}; this GPU runs sm_{wanted} only: compile with --gpu-architecture=sm_{wanted}")]
    Architecture { found: u32, wanted: u32 },
    #[error("the file has no section headers")]
    NoSections,
    #[error("{needed} bytes needed, {available} available: the file is truncated")]
    Truncated { needed: u64, available: u64 },
    #[error("the sections up to here claim {total} bytes of a {file}-byte file: sections overlap")]
    Overlap { total: u64, file: u64 },
    #[error("a size of {size} bytes is not a multiple of {unit}")]
    Size { size: u64, unit: u64 },
    #[error("an alignment of {align} is not a power of two up to 4096")]
    Alignment { align: u64 },
    #[error("a record cannot be decoded")]
    Record,
    #[error("a name lies outside its string table, does not end, is not UTF-8, or the names are too long together")]
    Name,
    #[error("{what} {index} does not exist")]
    Index { what: &'static str, index: u64 },
    #[error("{what} appears twice")]
    Twice { what: String },
    #[error("the memory image would have {size} bytes, more than {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("attribute {attribute:#04x} holds {found} bytes, wanted {wanted}")]
    Attribute { attribute: u8, found: usize, wanted: usize },
    #[error("attribute {attribute:#04x} has format {found}, wanted {wanted}")]
    AttributeFormat { attribute: u8, found: u8, wanted: u8 },
    #[error("attribute {attribute:#04x} (EIATTR_{name}) is not supported: {why}")]
    RefusedAttribute { attribute: u8, name: &'static str, why: &'static str },
    #[error(
        "attribute {attribute:#04x} is unknown: compilers up to CUDA 13.5 do not write it, so it is not known what the code needs; \
         compile with CUDA 13.5 or older, or use a newer libtegrarm"
    )]
    UnknownAttribute { attribute: u8 },
    #[error("{what} {value} is out of range (at most {limit})")]
    Limit { what: &'static str, value: u64, limit: u64 },
    #[error("kernel '{kernel}' has no {what}")]
    Missing { kernel: String, what: &'static str },
    #[error("relocation type {kind}{name}, which cannot be applied{why}")]
    Relocation { kind: u32, name: &'static str, why: &'static str },
    #[error("a relocation against '{symbol}', which has no address: it is {what}")]
    Unplaced { symbol: String, what: &'static str },
    #[error("relocation {relocation} against '{symbol}': {value:#x} does not fit ({wanted})")]
    OutOfReach { relocation: &'static str, symbol: String, value: i128, wanted: &'static str },
    #[error(
        "'{function}' has the instruction {instruction} at offset {offset:#x}, for a texture or a surface; this library has no \
         texture objects: read the array through a pointer instead"
    )]
    Image { function: String, instruction: &'static str, offset: u64 },
    #[error(
        "the code launches kernels itself (CUDA's dynamic parallelism), and '{symbol}', a part of NVIDIA's driver, is not here: launch \
         the kernels from the CPU, or record them as a graph"
    )]
    LaunchesKernels { symbol: String },
    #[error("undefined: {}", .names.join(", "))]
    Undefined { names: Vec<String> },
    #[error("{}: {what}", .names.join(", "))]
    Refused { names: Vec<String>, what: &'static str },
    #[error("memory for {size} bytes of code: {reason}")]
    Memory { size: u64, reason: String },
}
