//! A checked view of a 64-bit little-endian ELF file, which both loaders read before they interpret anything.
//!
//! goblin decodes the records. A loader of untrusted files needs more, and this view adds it: every range is checked
//! against the file, every error names the section and the offset, and no allocation is larger than the file that
//! causes it.

mod contents;
mod error;

pub use contents::Contents;
pub use error::{LoadError, Location, Problem};

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::reloc::RelocSection;
use goblin::elf::section_header::{SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SHT_SYMTAB};
use goblin::elf::sym::Symtab;
use goblin::elf::{Elf, Header, SectionHeader};

const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };
const SYMBOL_SIZE: u64 = 24;

/// One section, with its header and its name.
#[derive(Debug)]
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// The header as it is in the file.
    pub header: SectionHeader,
}

impl Section<'_> {
    /// Whether the section has memory of its own but no bytes in the file.
    pub fn is_nobits(&self) -> bool {
        self.header.sh_type == SHT_NOBITS
    }

    /// Whether all bits of `flags` are set in the header.
    pub fn has(&self, flags: u32) -> bool {
        self.header.sh_flags & u64::from(flags) == u64::from(flags)
    }

    /// A location in the section, for an error about it.
    pub fn place(&self, offset: u64) -> Location {
        Location::at(self.name, self.header.sh_offset.saturating_add(offset))
    }
}

/// One symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// The symbol's name. Symbols of sections may have none.
    pub name: &'a str,
    /// The index of its section. 0 means undefined, and 0xfff1 absolute.
    pub section: usize,
    /// The offset in that section.
    pub value: u64,
    /// The size in bytes.
    pub size: u64,
    /// The byte of type and binding.
    pub info: u8,
    /// The byte of visibility, in which NVIDIA marks kernels.
    pub other: u8,
}

impl Symbol<'_> {
    /// The type: 0 none, 1 object, 2 function, 3 section.
    pub fn kind(&self) -> u8 {
        self.info & 0xf
    }

    /// The binding: 0 local, 1 global, 2 weak.
    pub fn binding(&self) -> u8 {
        self.info >> 4
    }
}

/// One relocation entry.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// The offset in the section that it changes.
    pub offset: u64,
    /// The type of the relocation.
    pub kind: u32,
    /// The index of its symbol.
    pub symbol: usize,
    /// The number to add. It is `None` if the bytes that are changed contain the number (REL).
    pub addend: Option<i64>,
}

/// The relocations of one section.
#[derive(Debug)]
pub struct RelocationTable<'a> {
    /// The section that holds them.
    pub source: usize,
    /// The section they change.
    pub target: usize,
    bytes: &'a [u8],
    rela: bool,
}

/// An ELF file whose headers, section ranges, names and symbols have been checked.
#[derive(Debug)]
pub struct Object<'a> {
    bytes: &'a [u8],
    header: Header,
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol<'a>>,
}

impl<'a> Object<'a> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// It is not a 64-bit little-endian ELF file, a range lies outside of it, or sections share bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Object<'a>, LoadError> {
        let header = file_header(bytes)?;
        let sections = section_headers(bytes, &header)?;
        let sections = name_sections(bytes, &header, sections)?;
        check_ranges(bytes, &sections)?;
        let mut object = Object { bytes, header, sections, symbols: Vec::new() };
        object.symbols = object.read_symbols()?;
        Ok(object)
    }

    /// `e_machine`.
    pub fn machine(&self) -> u16 {
        self.header.e_machine
    }

    /// `e_type`.
    pub fn kind(&self) -> u16 {
        self.header.e_type
    }

    /// `e_flags`.
    pub fn flags(&self) -> u32 {
        self.header.e_flags
    }

    /// The ABI version byte of `e_ident`.
    pub fn abi_version(&self) -> u8 {
        self.header.e_ident[8]
    }

    /// All sections, the null section first.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// All symbols, with the null symbol first. There are none without a symbol table.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.symbols
    }

    /// The bytes of a section in the file. NOBITS sections have none.
    pub fn data(&self, section: &Section<'_>) -> &'a [u8] {
        file_range(self.bytes, section).unwrap_or(&[])
    }

    /// All relocation sections whose target is a section of the file.
    ///
    /// # Errors
    /// One of them names a section that does not exist, or its length is not a multiple of its entry size.
    pub fn relocation_tables(&self) -> Result<Vec<RelocationTable<'a>>, LoadError> {
        let of_kind = |s: &&Section<'_>| matches!(s.header.sh_type, SHT_REL | SHT_RELA);
        (0..self.sections.len())
            .filter(|&i| of_kind(&&self.sections[i]) && self.sections[i].header.sh_info != 0)
            .map(|source| self.relocation_table(source))
            .collect()
    }

    fn relocation_table(&self, source: usize) -> Result<RelocationTable<'a>, LoadError> {
        let section = &self.sections[source];
        let (rela, entry) = if section.header.sh_type == SHT_RELA { (true, 24) } else { (false, 16) };
        let target = section.header.sh_info as usize;
        if target >= self.sections.len() {
            return Err(section.place(0).error(Problem::Index { what: "section", index: target as u64 }));
        }
        let bytes = self.data(section);
        if !bytes.len().is_multiple_of(entry) {
            return Err(section.place(0).error(Problem::Size { size: bytes.len() as u64, unit: entry as u64 }));
        }
        Ok(RelocationTable { source, target, bytes, rela })
    }

    fn read_symbols(&self) -> Result<Vec<Symbol<'a>>, LoadError> {
        let Some(table) = self.sections.iter().find(|s| s.header.sh_type == SHT_SYMTAB) else { return Ok(Vec::new()) };
        let bytes = self.data(table);
        if !(bytes.len() as u64).is_multiple_of(SYMBOL_SIZE) {
            return Err(table.place(0).error(Problem::Size { size: bytes.len() as u64, unit: SYMBOL_SIZE }));
        }
        let link = table.header.sh_link as usize;
        let names = self.sections.get(link);
        let names =
            names.ok_or_else(|| table.place(0).error(Problem::Index { what: "string table", index: link as u64 }))?;
        let mut strings = Strings::new(self.data(names), self.bytes.len());
        let count = bytes.len() / SYMBOL_SIZE as usize;
        let symbols = Symtab::parse(bytes, 0, count, CTX).map_err(|_| table.place(0).error(Problem::Record))?;
        symbols
            .iter()
            .map(|s| {
                let nameless = || names.place(s.st_name as u64).error(Problem::Name);
                Ok(Symbol {
                    name: strings.at(s.st_name as u64).ok_or_else(nameless)?,
                    section: s.st_shndx,
                    value: s.st_value,
                    size: s.st_size,
                    info: s.st_info,
                    other: s.st_other,
                })
            })
            .collect()
    }
}

impl RelocationTable<'_> {
    /// The entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = Relocation> + '_ {
        let parsed = RelocSection::parse(self.bytes, 0, self.bytes.len(), self.rela, CTX).unwrap_or_default();
        (0..parsed.len()).filter_map(move |i| parsed.get(i)).map(|r| Relocation {
            offset: r.r_offset,
            kind: r.r_type,
            symbol: r.r_sym,
            addend: r.r_addend,
        })
    }
}

fn file_header(bytes: &[u8]) -> Result<Header, LoadError> {
    let start = Location::file(0);
    if bytes.get(..4) != Some(b"\x7fELF") {
        return Err(start.error(Problem::NotElf(Contents::of(bytes))));
    }
    if bytes.len() < 64 {
        return Err(start.error(Problem::Truncated { needed: 64, available: bytes.len() as u64 }));
    }
    if bytes[4..6] != [2, 1] {
        return Err(Location::file(4).error(Problem::Format { class: bytes[4], data: bytes[5] }));
    }
    Elf::parse_header(bytes).map_err(|_| start.error(Problem::Record))
}

fn section_headers(bytes: &[u8], header: &Header) -> Result<Vec<SectionHeader>, LoadError> {
    let place = Location::file(header.e_shoff);
    let (count, size) = (u64::from(header.e_shnum), u64::from(header.e_shentsize));
    if count == 0 {
        return Err(place.error(Problem::NoSections));
    }
    if size != 64 {
        return Err(place.error(Problem::Size { size, unit: 64 }));
    }
    let (needed, available) = (count * size, (bytes.len() as u64).saturating_sub(header.e_shoff));
    if needed > available {
        return Err(place.error(Problem::Truncated { needed, available }));
    }
    SectionHeader::parse(bytes, header.e_shoff as usize, count as usize, CTX).map_err(|_| place.error(Problem::Record))
}

fn name_sections<'a>(
    bytes: &'a [u8],
    header: &Header,
    headers: Vec<SectionHeader>,
) -> Result<Vec<Section<'a>>, LoadError> {
    let index = usize::from(header.e_shstrndx);
    let place = Location::file(header.e_shoff);
    let table = headers
        .get(index)
        .ok_or_else(|| place.error(Problem::Index { what: "section name table", index: index as u64 }))?;
    let (start, size) = (table.sh_offset, table.sh_size);
    let strings = file_range(bytes, &Section { name: "", header: table.clone() });
    let strings = strings.ok_or_else(|| {
        let available = (bytes.len() as u64).saturating_sub(start);
        Location::file(start).error(Problem::Truncated { needed: size, available })
    })?;
    let mut strings = Strings::new(strings, bytes.len());
    headers
        .into_iter()
        .map(|header| {
            let at = header.sh_name as u64;
            let name = strings.at(at).ok_or_else(|| Location::file(start.saturating_add(at)).error(Problem::Name));
            Ok(Section { name: name?, header })
        })
        .collect()
}

/// Checks that every section lies in the file, and that all together are no longer than the file. So a file cannot make
/// a loader copy the same bytes many times.
fn check_ranges(bytes: &[u8], sections: &[Section<'_>]) -> Result<(), LoadError> {
    let mut total = 0u64;
    for section in sections.iter().filter(|s| !s.is_nobits() && s.header.sh_type != SHT_NULL) {
        let (start, size) = (section.header.sh_offset, section.header.sh_size);
        if file_range(bytes, section).is_none() {
            let available = (bytes.len() as u64).saturating_sub(start);
            return Err(section.place(0).error(Problem::Truncated { needed: size, available }));
        }
        total += size;
        if total > bytes.len() as u64 {
            return Err(section.place(0).error(Problem::Overlap { total, file: bytes.len() as u64 }));
        }
    }
    Ok(())
}

fn file_range<'a>(bytes: &'a [u8], section: &Section<'_>) -> Option<&'a [u8]> {
    if section.is_nobits() || section.header.sh_type == SHT_NULL {
        return Some(&[]);
    }
    let start = usize::try_from(section.header.sh_offset).ok()?;
    let size = usize::try_from(section.header.sh_size).ok()?;
    bytes.get(start..start.checked_add(size)?)
}

/// A string table. All names that are taken from it together may be no longer than a few times the file. Entries can
/// share bytes, and otherwise a file of thousands of symbols with one long name would cost its reader unlimited time.
struct Strings<'a> {
    bytes: &'a [u8],
    budget: usize,
}

impl<'a> Strings<'a> {
    fn new(bytes: &'a [u8], file: usize) -> Strings<'a> {
        Strings { bytes, budget: file.saturating_mul(8) }
    }

    fn at(&mut self, offset: u64) -> Option<&'a str> {
        if offset == 0 && self.bytes.is_empty() {
            return Some("");
        }
        let tail = self.bytes.get(usize::try_from(offset).ok()?..)?;
        let end = tail.iter().take(self.budget).position(|&b| b == 0)?;
        self.budget -= end;
        str::from_utf8(&tail[..end]).ok()
    }
}

/// Rounds `value` up to a multiple of `unit`, which is a power of two and at least 1.
pub(crate) fn align_up(value: u64, unit: u64) -> Option<u64> {
    Some(value.checked_add(unit - 1)? & !(unit - 1))
}
