//! `.debug_line`: the line of the source that an instruction comes from. Cubins have it if they were compiled with `-lineinfo` or `-G`.

use super::layout::{Home, Layout};
use super::reloc;
use crate::elf::Object;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, EndianSlice, LineProgramHeader, LittleEndian};
use std::ops::Range;

const SECTION: &str = ".debug_line";
/// The section in which DWARF 5 keeps names of files.
const STRINGS: &str = ".debug_line_str";
const ADDRESS_BYTES: u8 = 8;

/// Copies of the sections, with the addresses of the image in them. They are decoded only when a line is looked up.
#[derive(Debug, Default)]
pub struct Lines {
    program: Vec<u8>,
    strings: Vec<u8>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name of the file as it was given to the compiler.
    pub file: String,
    /// The number of the line, from 1.
    pub line: u64,
}

impl Lines {
    /// Copies the sections. A section that cannot be understood is ignored, because lines are only shown to people.
    pub fn read(object: &Object<'_>, layout: &Layout) -> Lines {
        let find = |name| object.sections().iter().position(|s| s.name == name && !s.is_nobits());
        let Some(index) = find(SECTION) else { return Lines::default() };
        let data = |index: usize| object.data(&object.sections()[index]).to_vec();
        let mut program = data(index);
        for table in object.relocation_tables().unwrap_or_default().iter().filter(|t| t.target == index) {
            for entry in table.entries() {
                let symbol = object.symbols().get(entry.symbol);
                let Some(symbol) = symbol else { continue };
                let Some(Home::Image(start)) = layout.homes.get(symbol.section) else { continue };
                let (Ok(kind), Ok(at)) = (reloc::kind(entry.kind), usize::try_from(entry.offset)) else { continue };
                let Some(place) = at.checked_add(kind.bytes()).and_then(|end| program.get_mut(at..end)) else {
                    continue;
                };
                let address = (start + symbol.value).wrapping_add_signed(entry.addend.unwrap_or(0));
                if let Some(field) = kind.encode(address) {
                    kind.write(place, field);
                }
            }
        }
        Lines { program, strings: find(STRINGS).map(data).unwrap_or_default() }
    }

    /// The line that the instruction at an offset of the image comes from.
    pub fn at(&self, offset: u64) -> Option<Line> {
        let mut best = None;
        let has = |at: &Range<u64>| at.contains(&offset);
        // If a table is broken in the middle, the rows before that place are used.
        let _ = self.each_row(has, &mut |_, line| best = Some(line));
        best
    }

    /// All lines, each with the offsets of its instructions. Where several contain an offset, the last one counts.
    pub fn all(&self) -> Vec<(Range<u64>, Line)> {
        let mut all = Vec::new();
        let _ = self.each_row(|at| !at.is_empty(), &mut |at, line| all.push((at, line)));
        all
    }

    /// Calls `found` with a line for every part of the table whose offsets are wanted.
    fn each_row(
        &self,
        wanted: impl Fn(&Range<u64>) -> bool,
        found: &mut impl FnMut(Range<u64>, Line),
    ) -> gimli::Result<()> {
        let section = DebugLine::new(&self.program, LittleEndian);
        let mut at = DebugLineOffset(0);
        while at.0 < self.program.len() {
            let program = section.program(at, ADDRESS_BYTES, None, None)?;
            let header = program.header();
            at = DebugLineOffset(at.0 + header.format().initial_length_size() as usize + header.unit_length());
            let mut rows = program.rows();
            let mut before: Option<(u64, u64, u64)> = None;
            while let Some((header, row)) = rows.next_row()? {
                if let Some((start, file, line)) = before
                    && wanted(&(start..row.address()))
                    && let Some(file) = self.file(header, file)
                {
                    found(start..row.address(), Line { file, line });
                }
                let line = row.line().map_or(0, |line| line.get());
                before = (!row.end_sequence() && line > 0).then(|| (row.address(), row.file_index(), line));
            }
        }
        Ok(())
    }

    /// The name of a file, with its directory if it has one.
    fn file(&self, header: &LineProgramHeader<EndianSlice<'_, LittleEndian>>, index: u64) -> Option<String> {
        let file = header.file(index)?;
        let name = self.text(file.path_name())?;
        let directory = file.directory(header).and_then(|d| self.text(d)).filter(|d| !d.is_empty() && d != ".");
        Some(match directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        })
    }

    fn text(&self, value: AttributeValue<EndianSlice<'_, LittleEndian>>) -> Option<String> {
        let bytes = match value {
            AttributeValue::String(text) => text.slice(),
            AttributeValue::DebugLineStrRef(at) => {
                DebugLineStr::from(EndianSlice::new(&self.strings, LittleEndian)).get_str(at).ok()?.slice()
            }
            _ => return None,
        };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}
