//! Cubins, which are GPU machine code as NVRTC, ptxas and nvJitLink make it.
//!
//! [`Cubin::parse`] reads a file once into an image without an address, and [`Cubin::place`] makes the bytes for one
//! address. Kernels, variables and memory sizes are known before that, so that the caller can allocate memory first.

pub mod attributes;
pub mod functions;
pub mod kernel;
pub mod layout;
pub mod lines;
pub mod refused;
pub mod reloc;
pub mod table;

pub use functions::{Function, Outside};
pub use kernel::{Bank, Kernel, Parameter, Stack};
pub use lines::Line;

use crate::elf::{LoadError, Location, Object, Problem, RelocationTable, Symbol};
use goblin::elf::header::{EM_CUDA, ET_EXEC, ET_REL};
use layout::{Home, Layout};
use lines::Lines;
use reloc::{Address, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A variable of the module: `__device__` or `__constant__`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Offset in the image.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// A module that has been read and has no address yet.
#[derive(Debug)]
pub struct Cubin {
    image: Vec<u8>,
    memory: u64,
    kernels: Vec<Kernel>,
    variables: BTreeMap<String, Variable>,
    functions: Vec<Function>,
    lines: Lines,
    /// The functions that the file leaves to the loader.
    outside: BTreeSet<String>,
    patches: Vec<Patch>,
    /// The location of each section that has patches, for messages.
    sections: BTreeMap<usize, Location>,
    /// The name of each symbol that patches use, for messages.
    symbols: BTreeMap<usize, String>,
}

/// One relocation, resolved as far as possible without the image's address.
#[derive(Debug)]
struct Patch {
    offset: u64,
    kind: &'static Kind,
    value: Value,
    section: usize,
    symbol: usize,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// The value is relative to the image's address.
    Relative(i128),
    /// The value is an address already.
    Absolute(i128),
    /// Relative to the address of the code that the loader adds.
    Outside(i128),
}

const OBJECT: u8 = 1;
const WEAK: u8 = 2;
const SHN_ABS: usize = 0xfff1;
/// The address of an image is a multiple of this.
pub const BASE_ALIGN: u64 = 4096;

impl Cubin {
    /// Reads a cubin for a GPU of compute capability `sm` (87 on Orin).
    ///
    /// # Errors
    /// [`LoadError`] with the section and the file offset: the file is truncated or inconsistent, it is for another
    /// machine or GPU, it needs an undefined symbol, it has a relocation that cannot be applied, or an instruction of it
    /// works on textures or surfaces.
    pub fn parse(bytes: &[u8], sm: u32) -> Result<Cubin, LoadError> {
        Cubin::parse_with(bytes, sm, &Outside::NONE)
    }

    /// Reads a cubin that may leave functions to the loader. Its kernels get the registers and the stack that these functions need.
    ///
    /// # Errors
    /// As [`Cubin::parse`].
    pub fn parse_with(bytes: &[u8], sm: u32, brought: &Outside) -> Result<Cubin, LoadError> {
        let object = Object::parse(bytes)?;
        check_machine(&object, sm)?;
        refused::check(&object)?;
        let layout = layout::plan(&object)?;
        let mut kernels = kernel::read(&object, &layout)?;
        let image = build_image(&object, &layout);
        let (patches, outside) = Patches { object: &object, layout: &layout, image: &image, brought }.read()?;
        if !outside.is_empty() {
            kernels.iter_mut().for_each(|kernel| kernel.calls(brought));
        }
        let variables = variables(&object, &layout);
        let functions = functions::read(&object, &layout);
        let lines = Lines::read(&object, &layout);
        let sections = patches.iter().map(|p| (p.section, object.sections()[p.section].place(0))).collect();
        let symbols = patches.iter().map(|p| (p.symbol, object.symbols()[p.symbol].name.to_string())).collect();
        let memory = layout.memory;
        Ok(Cubin { image, memory, kernels, variables, functions, lines, outside, patches, sections, symbols })
    }

    /// The number of bytes of GPU memory that the module needs. It is a multiple of 4 KiB. It includes zeroed
    /// variables, and the bytes after the code that the instruction fetcher may read.
    pub fn memory_size(&self) -> u64 {
        self.memory
    }

    /// The kernels, in the order of the file.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// All functions, kernels among them, in the order of their addresses.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The line that the instruction at an offset of the image comes from. `None` if the cubin was compiled without lines.
    pub fn line(&self, offset: u64) -> Option<Line> {
        self.lines.at(offset)
    }

    /// All lines with the offsets of their instructions. Where several contain an offset, the last one counts.
    pub fn lines(&self) -> Vec<(Range<u64>, Line)> {
        self.lines.all()
    }

    /// The functions that it leaves to the loader.
    pub fn outside(&self) -> &BTreeSet<String> {
        &self.outside
    }

    /// The variable with this name.
    pub fn variable(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).copied()
    }

    /// The names of all variables.
    pub fn variables(&self) -> impl Iterator<Item = (&str, Variable)> {
        self.variables.iter().map(|(name, v)| (name.as_str(), *v))
    }

    /// Makes the bytes for GPU address `base`. The rest of [`Cubin::memory_size`] is zero.
    ///
    /// # Errors
    /// `base` is not a multiple of 4 KiB, or an address does not fit into its field.
    pub fn place(&self, base: u64) -> Result<Vec<u8>, LoadError> {
        self.place_with(base, 0)
    }

    /// The bytes to put at GPU address `base` if the code that the loader adds is at `brought`.
    ///
    /// # Errors
    /// As [`Cubin::place`].
    pub fn place_with(&self, base: u64, brought: u64) -> Result<Vec<u8>, LoadError> {
        let mut image = self.image.clone();
        self.relocate(base, brought, &mut image)?;
        Ok(image)
    }

    fn relocate(&self, base: u64, brought: u64, image: &mut [u8]) -> Result<(), LoadError> {
        if !base.is_multiple_of(BASE_ALIGN) {
            return Err(Location::file(0).error(Problem::Size { size: base, unit: BASE_ALIGN }));
        }
        for patch in &self.patches {
            let value = match patch.value {
                Value::Relative(offset) => i128::from(base) + offset,
                Value::Absolute(value) => value,
                Value::Outside(offset) => i128::from(brought) + offset,
            };
            let field = u64::try_from(value).ok().and_then(|v| patch.kind.encode(v));
            let field = field.ok_or_else(|| self.out_of_reach(patch, value))?;
            patch.kind.write(&mut image[patch.offset as usize..], field);
        }
        Ok(())
    }

    fn out_of_reach(&self, patch: &Patch, value: i128) -> LoadError {
        let symbol = self.symbols[&patch.symbol].clone();
        let wanted = "wanted an address the field can hold";
        self.sections[&patch.section].error(Problem::OutOfReach { relocation: patch.kind.name, symbol, value, wanted })
    }
}

/// The sm number in `e_flags`: bits 7:0 up to ELF ABI version 7, and bits 15:8 from version 8 (CUDA 13) on.
fn architecture(object: &Object<'_>) -> u32 {
    let shift = if object.abi_version() >= 8 { 8 } else { 0 };
    object.flags() >> shift & 0xff
}

fn check_machine(object: &Object<'_>, sm: u32) -> Result<(), LoadError> {
    let problem = if object.machine() != EM_CUDA {
        Problem::Machine { found: object.machine(), wanted: "190 (NVIDIA CUDA)" }
    } else if let Some(refused) = functions::refused(&functions::wanted(object)) {
        // A linker would not help here, so the general message about linking is not used.
        refused
    } else if object.kind() == ET_REL {
        Problem::Kind { found: ET_REL, wanted: "2 (executable): link relocatable device code with nvJitLink first" }
    } else if object.kind() != ET_EXEC {
        Problem::Kind { found: object.kind(), wanted: "2 (executable)" }
    } else if architecture(object) != sm {
        Problem::Architecture { found: architecture(object), wanted: sm }
    } else {
        return Ok(());
    };
    Err(Location::file(16).error(problem))
}

fn build_image(object: &Object<'_>, layout: &Layout) -> Vec<u8> {
    let mut image = vec![0; layout.initialised as usize];
    for (section, home) in object.sections().iter().zip(&layout.homes) {
        let (Home::Image(start) | Home::Bank(start)) = *home else { continue };
        let data = object.data(section);
        if !data.is_empty() {
            image[start as usize..][..data.len()].copy_from_slice(data);
        }
    }
    image
}

fn variables(object: &Object<'_>, layout: &Layout) -> BTreeMap<String, Variable> {
    let placed = |s: &Symbol<'_>| {
        let section = object.sections().get(s.section)?;
        s.value.checked_add(s.size).filter(|&end| end <= section.header.sh_size)?;
        let (Home::Image(start) | Home::Bank(start)) = layout.homes[s.section] else { return None };
        Some((s.name.to_string(), Variable { offset: start + s.value, size: s.size }))
    };
    object.symbols().iter().filter(|s| s.kind() == OBJECT).filter_map(placed).collect()
}

struct Patches<'r, 'a> {
    object: &'r Object<'a>,
    layout: &'r Layout,
    image: &'r [u8],
    brought: &'r Outside,
}

impl Patches<'_, '_> {
    fn read(&self) -> Result<(Vec<Patch>, BTreeSet<String>), LoadError> {
        let mut patches = Vec::new();
        let mut undefined = BTreeSet::new();
        for table in self.object.relocation_tables()? {
            let (Home::Image(start) | Home::Bank(start)) = self.layout.homes[table.target] else { continue };
            self.read_table(&table, start, &mut patches, &mut undefined)?;
        }
        if !undefined.is_empty() {
            return Err(Location::file(0).error(functions::missing(undefined)));
        }
        let outside = |p: &Patch| matches!(p.value, Value::Outside(_)).then(|| self.object.symbols()[p.symbol].name);
        let outside = patches.iter().filter_map(outside).map(str::to_string).collect();
        Ok((patches, outside))
    }

    fn read_table(
        &self,
        table: &RelocationTable<'_>,
        start: u64,
        patches: &mut Vec<Patch>,
        undefined: &mut BTreeSet<String>,
    ) -> Result<(), LoadError> {
        let source = &self.object.sections()[table.source];
        let target = &self.object.sections()[table.target];
        for entry in table.entries().filter(|e| e.kind != 0) {
            let place = target.place(entry.offset);
            let kind = reloc::kind(entry.kind).map_err(|p| place.error(p))?;
            let end = entry.offset.checked_add(kind.bytes() as u64);
            if target.is_nobits() || end.is_none_or(|end| end > target.header.sh_size) {
                let index = entry.offset;
                return Err(source.place(0).error(Problem::Index { what: "relocated offset", index }));
            }
            let symbol =
                self.object.symbols().get(entry.symbol).ok_or_else(|| {
                    source.place(0).error(Problem::Index { what: "symbol", index: entry.symbol as u64 })
                })?;
            let offset = start + entry.offset;
            if entry.addend.is_none() && !kind.is_clear(&self.image[offset as usize..]) {
                let why = ": it would add to a field that is not zero";
                return Err(place.error(Problem::Relocation { kind: entry.kind, name: kind.name, why }));
            }
            let Some(value) = self.value(symbol, kind).map_err(|p| place.error(p))? else {
                refused::check_symbol(symbol.name, target, entry.offset)?;
                undefined.insert(symbol.name.to_string());
                continue;
            };
            let value = value.plus(entry.addend.unwrap_or(0));
            patches.push(Patch { offset, kind, value, section: table.target, symbol: entry.symbol });
        }
        Ok(())
    }

    /// The value of a symbol for a relocation of this kind. It is `None` if the symbol is undefined.
    fn value(&self, symbol: &Symbol<'_>, kind: &Kind) -> Result<Option<Value>, Problem> {
        let own = i128::from(symbol.value);
        let unplaced = |what| Err(Problem::Unplaced { symbol: symbol.name.to_string(), what });
        if symbol.section == SHN_ABS {
            return Ok(Some(Value::Absolute(own)));
        }
        if symbol.section == 0 {
            if let Some(offset) = self.brought.offset(symbol.name) {
                return Ok(Some(Value::Outside(i128::from(offset))));
            }
            return Ok((symbol.binding() == WEAK).then_some(Value::Absolute(0)));
        }
        let home = self.layout.homes.get(symbol.section).copied().unwrap_or(Home::None);
        match (home, kind.address) {
            (Home::Image(start), _) | (Home::Bank(start), Address::Generic) => {
                Ok(Some(Value::Relative(i128::from(start) + own)))
            }
            (Home::Bank(_) | Home::Shared | Home::Parameters, Address::Space) => Ok(Some(Value::Absolute(own))),
            (Home::Shared, Address::Generic) => unplaced("in shared memory, which each block has at its own place"),
            (Home::Parameters, Address::Generic) => unplaced("a parameter"),
            (Home::None, _) => unplaced("in a section that is not loaded"),
        }
    }
}

impl Value {
    fn plus(self, addend: i64) -> Value {
        match self {
            Value::Relative(v) => Value::Relative(v + i128::from(addend)),
            Value::Absolute(v) => Value::Absolute(v + i128::from(addend)),
            Value::Outside(v) => Value::Outside(v + i128::from(addend)),
        }
    }
}
