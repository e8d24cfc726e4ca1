//! Reads from a cubin everything that a run needs: code, constants, and the sizes of everything else.

use goblin::elf::section_header::{SHT_REL, SHT_RELA, SectionHeader};
use goblin::elf::{Elf, Symtab};

/// Attribute numbers of `.nv.info` (NVIDIA's `EIATTR_*`).
mod attribute {
    /// The parameters in bank 0: symbol, 16-bit offset, 16-bit size.
    pub const PARAMETER_BANK: u8 = 0x0a;
    /// The stack of a function with everything that it calls: symbol, bytes.
    pub const MIN_STACK_SIZE: u8 = 0x12;
    /// A parameter: a dword, 16-bit ordinal, 16-bit offset, and the size in bits 31:18 of a dword.
    pub const PARAMETER: u8 = 0x17;
    /// A parameter of a kernel with more than 4,352 bytes of them: a dword, 16-bit ordinal, 16-bit offset, 16-bit size.
    pub const LARGE_PARAMETER: u8 = 0x45;
    /// The registers per thread: symbol, count.
    pub const REGISTERS: u8 = 0x2f;
}

/// The number of bytes in front of the parameters in bank 0, where the file does not say it.
const BANK_HEADER: usize = 0x160;

/// A kernel as a compiler made it.
pub struct Kernel {
    /// Its instructions.
    pub code: Vec<u8>,
    /// The registers per thread.
    pub registers: u32,
    /// The bytes of shared memory that the kernel itself declares.
    pub shared: u32,
    /// The bytes of stack per thread.
    pub stack: u32,
    /// The constant banks other than that of the parameters, with number and contents.
    pub banks: Vec<(usize, Vec<u8>)>,
    /// The size of bank 0.
    bank_size: usize,
    /// The offset of the parameters in bank 0.
    parameters_at: usize,
    /// The offset from there and the size of each parameter.
    parameters: Vec<(usize, usize)>,
}

impl Kernel {
    /// Finds a kernel by name.
    pub fn read(bytes: &[u8], name: &str) -> Result<Kernel, String> {
        let elf = Elf::parse(bytes).map_err(|why| format!("not an ELF file: {why}"))?;
        let file = File { elf: &elf, bytes };
        let code = file.contents(&format!(".text.{name}"))?.ok_or_else(|| file.unknown(name))?;
        file.refuse_relocations(name)?;
        let shared = file.section(&format!(".nv.shared.{name}")).map_or(0, |(_, section)| section.sh_size as u32);
        let module = file.contents(".nv.info")?.unwrap_or_default();
        let own = file.contents(&format!(".nv.info.{name}"))?.unwrap_or_default();
        let symbol = symbol(&elf.syms, &elf, name).ok_or(format!("{name} has no symbol"))?;
        let of_module = |wanted: u8| {
            let mut found = attributes(module).filter(|(id, data)| *id == wanted && dword(data, 0) == Some(symbol));
            found.next().and_then(|(_, data)| dword(data, 1))
        };
        let registers = of_module(attribute::REGISTERS).ok_or("the number of registers is missing")?;
        // All ones mean that the size is not known, because the function is recursive.
        let stack = of_module(attribute::MIN_STACK_SIZE).filter(|bytes| *bytes != u32::MAX).unwrap_or(1024);
        let banks = (1..8).filter_map(|n| Some((n, file.bank(n, name)?.to_vec()))).collect();
        let bank_size = file.bank(0, name).map_or(BANK_HEADER, <[u8]>::len);
        let parameters = parameters(own)?;
        let mut places = attributes(own).filter(|(id, _)| *id == attribute::PARAMETER_BANK);
        let place = places.next().and_then(|(_, data)| dword(data, 1));
        let parameters_at = place.map_or(BANK_HEADER, |packed| (packed & 0xffff) as usize);
        Ok(Kernel { code: code.to_vec(), registers, shared, stack, banks, bank_size, parameters_at, parameters })
    }

    /// Bank 0 with these parameters. Its header is still zero.
    pub fn parameter_bank(&self, values: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let mut bank = vec![0; self.bank_size];
        if values.len() != self.parameters.len() {
            return Err(format!("the kernel takes {} parameters, not {}", self.parameters.len(), values.len()));
        }
        for (i, (value, &(offset, size))) in values.iter().zip(&self.parameters).enumerate() {
            if value.len() != size {
                return Err(format!("parameter {i} has {size} bytes, not {}", value.len()));
            }
            let place = bank.get_mut(self.parameters_at + offset..self.parameters_at + offset + size);
            place.ok_or(format!("parameter {i} lies outside of bank 0"))?.copy_from_slice(value);
        }
        Ok(bank)
    }
}

struct File<'a> {
    elf: &'a Elf<'a>,
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    fn name(&self, section: &SectionHeader) -> &'a str {
        self.elf.shdr_strtab.get_at(section.sh_name).unwrap_or_default()
    }

    fn section(&self, name: &str) -> Option<(usize, &'a SectionHeader)> {
        self.elf.section_headers.iter().enumerate().find(|(_, section)| self.name(section) == name)
    }

    fn contents(&self, name: &str) -> Result<Option<&'a [u8]>, String> {
        let Some((_, section)) = self.section(name) else { return Ok(None) };
        let range = section.file_range().ok_or(format!("section {name} has no contents"))?;
        self.bytes.get(range).map(Some).ok_or(format!("section {name} lies outside of the file"))
    }

    /// The contents of a constant bank of the kernel or of the module.
    fn bank(&self, n: usize, kernel: &str) -> Option<&'a [u8]> {
        let of = |name: String| self.contents(&name).ok().flatten();
        of(format!(".nv.constant{n}.{kernel}")).or_else(|| of(format!(".nv.constant{n}")))
    }

    fn unknown(&self, name: &str) -> String {
        let names = self.elf.section_headers.iter().filter_map(|section| self.name(section).strip_prefix(".text."));
        format!("no kernel {name}; there is {}", names.collect::<Vec<_>>().join(", "))
    }

    /// Refuses a kernel with addresses that a loader would have to fill in, because this example does not do that.
    fn refuse_relocations(&self, kernel: &str) -> Result<(), String> {
        for section in self.elf.section_headers.iter().filter(|s| matches!(s.sh_type, SHT_REL | SHT_RELA)) {
            let target = self.elf.section_headers.get(section.sh_info as usize).map_or("", |s| self.name(s));
            if target == format!(".text.{kernel}") || target.starts_with(".nv.constant") {
                return Err(format!("{target} has relocations, which this example does not do"));
            }
        }
        Ok(())
    }
}

fn symbol(symbols: &Symtab<'_>, elf: &Elf<'_>, name: &str) -> Option<u32> {
    symbols.iter().position(|s| s.is_function() && elf.strtab.get_at(s.st_name) == Some(name)).map(|i| i as u32)
}

fn dword(data: &[u8], index: usize) -> Option<u32> {
    data.get(4 * index..4 * index + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
}

/// The entries of a `.nv.info`. Each has a byte that says whether data follow, the attribute, and the length of the
/// data.
fn attributes(mut section: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [format, id, low, high, rest @ ..] = section else { return None };
        let length = if *format == 4 { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let (data, behind) = rest.split_at_checked(length)?;
        section = behind;
        Some((*id, data))
    })
}

/// The offsets and sizes of the parameters, in their order.
fn parameters(section: &[u8]) -> Result<Vec<(usize, usize)>, String> {
    let mut found = Vec::new();
    let is_parameter = |id: u8| matches!(id, attribute::PARAMETER | attribute::LARGE_PARAMETER);
    for (id, data) in attributes(section).filter(|(id, _)| is_parameter(*id)) {
        let (Some(place), Some(size)) = (dword(data, 1), dword(data, 2)) else {
            return Err("a parameter's description is too short".to_owned());
        };
        let size = if id == attribute::PARAMETER { size >> 18 } else { size & 0xffff };
        found.push((place & 0xffff, (place >> 16) as usize, size as usize));
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, offset, size)| (offset, size)).collect())
}
