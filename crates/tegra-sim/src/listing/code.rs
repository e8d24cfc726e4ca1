//! Listings of machine code, from a cubin or from instruction words alone.

use super::DecodeError;
use goblin::elf::Elf;
use std::fmt::Write;

/// The number of bytes of an instruction.
const WORD: usize = 16;
/// The text that the names of sections with code begin with.
const TEXT: &str = ".text.";

/// The instructions of all kernels and functions of a cubin.
pub(super) fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    let elf = Elf::parse(bytes).map_err(|e| DecodeError(format!("not an ELF file: {e}")))?;
    let mut out = String::new();
    for section in &elf.section_headers {
        let Some(name) = elf.shdr_strtab.get_at(section.sh_name).and_then(|n| n.strip_prefix(TEXT)) else { continue };
        let code = section.file_range().and_then(|range| bytes.get(range));
        let code = code.ok_or_else(|| DecodeError(format!("section {TEXT}{name} lies outside of the file")))?;
        function(&mut out, name, code).expect("a string takes everything");
    }
    if out.is_empty() { Err(DecodeError(format!("no section {TEXT}*: no code"))) } else { Ok(out) }
}

/// Lists instruction words. The first of them is at address 0.
pub(super) fn raw(code: &[u8]) -> Result<String, DecodeError> {
    if !code.len().is_multiple_of(WORD) {
        return Err(DecodeError(format!("{} bytes are no whole number of 16-byte instructions", code.len())));
    }
    let mut out = String::new();
    instructions(&mut out, code).expect("a string takes everything");
    Ok(out)
}

fn function(out: &mut String, name: &str, code: &[u8]) -> std::fmt::Result {
    writeln!(out, "{name}:")?;
    instructions(out, code)
}

fn instructions(out: &mut String, code: &[u8]) -> std::fmt::Result {
    for (i, raw) in code.as_chunks::<WORD>().0.iter().enumerate() {
        let (pc, word) = (WORD * i, u128::from_le_bytes(*raw));
        let (lo, hi) = (word as u64, (word >> 64) as u64);
        let text = sm87::disassemble(lo, hi, pc as u64);
        writeln!(out, "  {pc:#06x}  {:<48} {lo:016x} {hi:016x}", text.as_deref().unwrap_or("unknown"))?;
    }
    Ok(())
}
