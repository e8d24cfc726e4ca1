//! Places the sections of a cubin in the memory image.
//!
//! Code comes first, then initialised data and constant banks, and then zeroed data, which has no bytes in the image.
//! The instruction fetcher reads ahead of the program counter, so that [`PREFETCH`] bytes after the last instruction
//! always belong to the image.

use crate::elf::{LoadError, Object, Problem, Section, align_up};
use goblin::elf::section_header::{SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS};

/// The number of bytes after the last instruction that must stay mapped.
pub const PREFETCH: u64 = 4096;

const CODE_ALIGN: u64 = 128;
/// The GPU reads constant banks in lines of this size.
const BANK_ALIGN: u64 = 256;
const PAGE: u64 = 4096;
/// The limit keeps the image within a small multiple of the file's size, whatever the file says.
const MAX_ALIGN: u64 = 4096;
/// The limit is below the GPU's addresses of 40 bits, and no real module is near it.
const MAX_IMAGE: u64 = 1 << 38;

/// The place of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The section is not loaded: debug data, attributes and symbol tables.
    None,
    /// The section is at this offset of the image.
    Image(u64),
    /// The section is a constant bank at this offset of the image. The addresses of its symbols are offsets in the
    /// bank.
    Bank(u64),
    /// The section is in the shared memory of each block.
    Shared,
    /// The section is the parameter bank, which is made for each launch.
    Parameters,
}

/// The places of all sections.
#[derive(Debug)]
pub struct Layout {
    /// The place of each section of the file.
    pub homes: Vec<Home>,
    /// The number of bytes that have contents.
    pub initialised: u64,
    /// The number of bytes of memory that the module needs, a multiple of 4 KiB.
    pub memory: u64,
}

/// The number N of a section named `.nv.constantN` or `.nv.constantN.kernel`, and the kernel.
pub fn bank(name: &str) -> Option<(u8, Option<&str>)> {
    let rest = name.strip_prefix(".nv.constant")?;
    let (number, kernel) = match rest.split_once('.') {
        Some((number, kernel)) => (number, Some(kernel)),
        None => (rest, None),
    };
    Some((number.parse().ok()?, kernel))
}

/// Plans the image.
///
/// # Errors
/// An alignment is not a power of two, or the image would be far larger than the file.
pub fn plan(object: &Object<'_>) -> Result<Layout, LoadError> {
    let mut homes: Vec<Home> = object.sections().iter().map(home).collect();
    let mut end = 0;
    let mut code_end = 0;
    let mut initialised = 0;
    for pass in [Pass::Code, Pass::Data, Pass::Zeroed] {
        for (section, home) in object.sections().iter().zip(&mut homes) {
            let align = match home {
                Home::Image(_) => natural_align(section)?,
                Home::Bank(_) => natural_align(section)?.max(BANK_ALIGN),
                _ => continue,
            };
            if Pass::of(section) != pass {
                continue;
            }
            let start = align_up(end, align);
            let stop = start.and_then(|s| s.checked_add(section.header.sh_size)).unwrap_or(u64::MAX);
            if stop > MAX_IMAGE {
                return Err(section.place(0).error(Problem::TooLarge { size: stop, limit: MAX_IMAGE }));
            }
            let start = start.unwrap_or(0);
            *home = if matches!(home, Home::Bank(_)) { Home::Bank(start) } else { Home::Image(start) };
            end = stop;
        }
        match pass {
            Pass::Code => (code_end, initialised) = (end, end),
            Pass::Data => initialised = end,
            Pass::Zeroed => {}
        }
    }
    let memory = align_up(end.max(code_end + PREFETCH), PAGE).unwrap_or(end);
    Ok(Layout { homes, initialised, memory })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Code,
    Data,
    Zeroed,
}

impl Pass {
    fn of(section: &Section<'_>) -> Pass {
        if section.is_nobits() {
            Pass::Zeroed
        } else if section.has(SHF_EXECINSTR) {
            Pass::Code
        } else {
            Pass::Data
        }
    }
}

fn home(section: &Section<'_>) -> Home {
    if !section.has(SHF_ALLOC) || !(section.is_nobits() || section.header.sh_type == SHT_PROGBITS) {
        return Home::None;
    }
    match bank(section.name) {
        Some((0, _)) => Home::Parameters,
        Some(_) => Home::Bank(0),
        None if section.name.starts_with(".nv.shared") => Home::Shared,
        None if section.name.starts_with(".nv.local.") => Home::None,
        None => Home::Image(0),
    }
}

fn natural_align(section: &Section<'_>) -> Result<u64, LoadError> {
    let align = section.header.sh_addralign.max(1);
    if !align.is_power_of_two() || align > MAX_ALIGN {
        return Err(section.place(0).error(Problem::Alignment { align }));
    }
    Ok(if section.has(SHF_EXECINSTR) { align.max(CODE_ALIGN) } else { align })
}
