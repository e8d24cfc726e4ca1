//! What the runtime refuses in machine code: instructions on textures and surfaces, for which it has no objects, and kernels that launch
//! kernels.
//!
//! A texture or surface instruction takes its image from a table of headers that a driver fills. Here no such table exists, neither on
//! a board nor on a simulated GPU, and the instruction would fault when it runs. The module is refused when it is loaded, with the
//! name of the function and of the instruction.

use crate::elf::{LoadError, Location, Object, Problem, Section};
use goblin::elf::section_header::SHF_EXECINSTR;

/// The size of an instruction in bytes. Its low nine bits are the opcode.
const WORD: usize = 16;
const OPCODE: u16 = 0x1ff;

/// The opcodes of sm_80 to sm_87 that read or write images.
const IMAGES: &[(u16, &str)] = &[
    (0x160, "TEX"),
    (0x161, "TEX"),
    (0x163, "TLD4"),
    (0x164, "TLD4"),
    (0x166, "TLD"),
    (0x167, "TLD"),
    (0x169, "TMML"),
    (0x16a, "TMML"),
    (0x16c, "TXD"),
    (0x16d, "TXD"),
    (0x16f, "TXQ"),
    (0x170, "TXQ"),
    (0x199, "SULD"),
    (0x19a, "SULD"),
    (0x19c, "SUST"),
    (0x19d, "SUST"),
    (0x19e, "SUST"),
    (0x1a0, "SURED"),
];

/// The beginning of the symbol that TXQ and SUQ of PTX need. Its value would be the size of an image's header.
const HEADER_SIZES: &str = ".nv.unified.";

/// The beginning of the functions of NVIDIA's driver that a kernel calls through libcudadevrt to launch another one.
const LAUNCHES: &str = "__cuda_syscall_cnp";

/// Checks the name of an undefined symbol that a relocation uses.
///
/// # Errors
/// The symbol is the size of an image's header, so the function asks for a property of an image.
pub fn check_symbol(name: &str, target: &Section<'_>, offset: u64) -> Result<(), LoadError> {
    if !name.starts_with(HEADER_SIZES) {
        return Ok(());
    }
    let function = target.name.strip_prefix(".text.").unwrap_or(target.name).to_string();
    Err(target.place(offset).error(Problem::Image { function, instruction: "TXQ or SUQ", offset }))
}

/// Checks the code of a file.
///
/// # Errors
/// A function that launches kernels is linked to it, or the first instruction that works on an image.
pub fn check(object: &Object<'_>) -> Result<(), LoadError> {
    if let Some(launches) = object.symbols().iter().find(|s| s.section == 0 && s.name.starts_with(LAUNCHES)) {
        return Err(Location::file(0).error(Problem::LaunchesKernels { symbol: launches.name.to_string() }));
    }
    for section in object.sections().iter().filter(|s| s.has(SHF_EXECINSTR)) {
        let function = section.name.strip_prefix(".text.").unwrap_or(section.name);
        for (at, word) in object.data(section).chunks_exact(WORD).enumerate() {
            let opcode = u16::from_le_bytes([word[0], word[1]]) & OPCODE;
            if let Some((_, instruction)) = IMAGES.iter().find(|(number, _)| *number == opcode) {
                let offset = (at * WORD) as u64;
                let function = function.to_string();
                return Err(section.place(offset).error(Problem::Image { function, instruction, offset }));
            }
        }
    }
    Ok(())
}
