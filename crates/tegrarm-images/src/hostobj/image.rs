//! A host object that is laid out for memory, before it has an address.
//!
//! Code, read-only data, the table of addresses and the jump stubs come first and become executable. Writable data
//! follows on pages of its own.

use super::reloc::{self, Kind, Need};
use crate::elf::{LoadError, Location, Object, Problem, Section, Symbol, align_up};
use goblin::elf::header::{EM_AARCH64, EM_X86_64, ET_REL};
use goblin::elf::section_header::*;
use std::collections::{BTreeMap, BTreeSet};
use tegrarm_kmd::{Reach, page_size};

const STUB: u64 = 16;
const SLOT: u64 = 8;
const MAX_ALIGN: u64 = 4096;
/// The limit is far above the reach of branches and of 32-bit distances.
const MAX_IMAGE: u64 = 1 << 31;
const SHN_ABS: usize = 0xfff1;
const SHN_COMMON: usize = 0xfff2;
const WEAK: u8 = 2;
const FILE_OR_SECTION: [u8; 2] = [3, 4];

/// The CPU for which an object is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// AMD64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Machine {
    /// The CPU for which this library was built, if its objects can be loaded.
    pub const HOST: Option<Machine> = if cfg!(target_arch = "x86_64") {
        Some(Machine::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Machine::Aarch64)
    } else {
        None
    };

    fn number(self) -> (u16, &'static str) {
        match self {
            Machine::X86_64 => (EM_X86_64, "62 (x86-64)"),
            Machine::Aarch64 => (EM_AARCH64, "183 (AArch64)"),
        }
    }

    fn kinds(self) -> &'static [Kind] {
        match self {
            Machine::X86_64 => reloc::X86_64,
            Machine::Aarch64 => reloc::AARCH64,
        }
    }

    /// A jump to any address. The instruction loads the eight bytes after it.
    fn stub(self, target: u64) -> [u8; STUB as usize] {
        let jump: [u8; 8] = match self {
            Machine::X86_64 => [0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc], // jmp *2(%rip)
            Machine::Aarch64 => [0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6], // ldr x16, .+8; br x16
        };
        let mut stub = [0; STUB as usize];
        stub[..8].copy_from_slice(&jump);
        stub[8..].copy_from_slice(&target.to_le_bytes());
        stub
    }
}

/// One relocation that has been checked.
#[derive(Debug)]
struct Patch {
    section: usize,
    offset: u64,
    kind: &'static Kind,
    symbol: usize,
    addend: i64,
}

/// An object that has been read.
#[derive(Debug)]
pub struct Image<'a> {
    object: Object<'a>,
    machine: Machine,
    homes: Vec<Option<u64>>,
    patches: Vec<Patch>,
    slots: BTreeMap<usize, u64>,
    stubs: BTreeMap<usize, u64>,
    code: u64,
    initialised: u64,
    size: u64,
}

impl<'a> Image<'a> {
    /// Reads a relocatable object and lays it out.
    ///
    /// # Errors
    /// The file is damaged, for another CPU or not relocatable, or it uses something that cannot be loaded:
    /// thread-local variables, constructors, common symbols or unknown relocations.
    pub fn parse(bytes: &'a [u8], machine: Machine) -> Result<Image<'a>, LoadError> {
        let object = Object::parse(bytes)?;
        let (number, wanted) = machine.number();
        if object.machine() != number {
            return Err(Location::file(18).error(Problem::Machine { found: object.machine(), wanted }));
        }
        if object.kind() != ET_REL {
            let wanted = "1 (relocatable): compile with cc -c";
            return Err(Location::file(16).error(Problem::Kind { found: object.kind(), wanted }));
        }
        let loaded = object.sections().iter().map(is_loaded).collect::<Result<Vec<bool>, _>>()?;
        let patches = read_patches(&object, machine, &loaded)?;
        let (slots, stubs) = near_tables(&object, &patches);
        let homes = vec![None; object.sections().len()];
        let mut image = Image { object, machine, homes, patches, slots, stubs, code: 0, initialised: 0, size: 0 };
        image.lay_out(&loaded)?;
        Ok(image)
    }

    /// The number of bytes of memory that the object needs.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number of bytes at its start that become executable, a multiple of the page size.
    pub fn code_size(&self) -> u64 {
        self.code
    }

    /// The range of addresses in which the memory must be.
    pub fn reach(&self) -> Reach {
        if self.patches.iter().any(|p| p.kind.field.is_low()) { Reach::Low } else { Reach::Full }
    }

    /// The names and offsets of the symbols that other code may use.
    pub fn exports(&self) -> BTreeMap<String, u64> {
        let exported = |s: &Symbol<'_>| {
            let home = self.homes.get(s.section).copied().flatten()?;
            let inside = s.value <= self.object.sections()[s.section].header.sh_size;
            let named = s.binding() != 0 && !FILE_OR_SECTION.contains(&s.kind());
            (inside && named).then(|| (s.name.to_string(), home + s.value))
        };
        self.object.symbols().iter().filter_map(exported).collect()
    }

    /// Makes the bytes for address `base`. The rest of [`Image::size`] is zero. `resolve` gives the addresses of
    /// symbols that the object does not define.
    ///
    /// # Errors
    /// Symbols stay undefined (all of them are named), or an address does not fit into its field.
    pub fn link(&self, base: u64, resolve: &dyn Fn(&str) -> Option<u64>) -> Result<Vec<u8>, LoadError> {
        let addresses = self.addresses(base, resolve)?;
        let mut bytes = vec![0; self.initialised as usize];
        for (section, home) in self.object.sections().iter().zip(&self.homes) {
            let (Some(home), data) = (*home, self.object.data(section)) else { continue };
            if !data.is_empty() {
                bytes[home as usize..][..data.len()].copy_from_slice(data);
            }
        }
        for (symbol, at) in &self.slots {
            bytes[*at as usize..][..SLOT as usize].copy_from_slice(&addresses[symbol].to_le_bytes());
        }
        for (symbol, at) in &self.stubs {
            bytes[*at as usize..][..STUB as usize].copy_from_slice(&self.machine.stub(addresses[symbol]));
        }
        for patch in &self.patches {
            self.apply(patch, base, &addresses, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn apply(
        &self,
        patch: &Patch,
        base: u64,
        addresses: &BTreeMap<usize, u64>,
        bytes: &mut [u8],
    ) -> Result<(), LoadError> {
        let near = |table: &BTreeMap<usize, u64>| table.get(&patch.symbol).map(|at| base.wrapping_add(*at));
        let symbol = match patch.kind.need {
            Need::Slot => near(&self.slots),
            Need::Target => near(&self.stubs),
            Need::Address => None,
        };
        let target = symbol.unwrap_or(addresses[&patch.symbol]).wrapping_add_signed(patch.addend);
        let at = self.homes[patch.section].unwrap_or(0) + patch.offset;
        patch.kind.field.write(&mut bytes[at as usize..], target, base.wrapping_add(at)).map_err(|value| {
            let (relocation, wanted) = (patch.kind.name, patch.kind.field.wanted());
            let symbol = name_of(&self.object, patch.symbol);
            let place = self.object.sections()[patch.section].place(patch.offset);
            place.error(Problem::OutOfReach { relocation, symbol, value, wanted })
        })
    }

    /// The address of every symbol that a relocation uses.
    fn addresses(&self, base: u64, resolve: &dyn Fn(&str) -> Option<u64>) -> Result<BTreeMap<usize, u64>, LoadError> {
        let mut addresses = BTreeMap::new();
        let mut undefined = BTreeSet::new();
        for index in self.patches.iter().map(|p| p.symbol) {
            if addresses.contains_key(&index) {
                continue;
            }
            let symbol = &self.object.symbols()[index];
            let address = match (symbol.section, self.homes.get(symbol.section).copied().flatten()) {
                (SHN_ABS, _) => symbol.value,
                (_, Some(home)) => base.wrapping_add(home).wrapping_add(symbol.value),
                _ if symbol.name.is_empty() => 0,
                _ => match resolve(symbol.name) {
                    Some(address) => address,
                    None if symbol.binding() == WEAK => 0,
                    None => {
                        undefined.insert(symbol.name.to_string());
                        continue;
                    }
                },
            };
            addresses.insert(index, address);
        }
        if undefined.is_empty() {
            return Ok(addresses);
        }
        Err(Location::file(0).error(Problem::Undefined { names: undefined.into_iter().collect() }))
    }

    fn lay_out(&mut self, loaded: &[bool]) -> Result<(), LoadError> {
        let writable = |s: &Section<'_>| s.has(SHF_WRITE);
        let mut end = self.place(loaded, 0, &|s| !writable(s) && !s.is_nobits())?;
        for at in self.slots.values_mut() {
            end = align_up(end, SLOT).unwrap_or(end);
            *at = end;
            end += SLOT;
        }
        for at in self.stubs.values_mut() {
            end = align_up(end, STUB).unwrap_or(end);
            *at = end;
            end += STUB;
        }
        let page = page_size() as u64;
        self.code = align_up(end, page).unwrap_or(end);
        self.initialised = self.place(loaded, self.code, &|s| writable(s) && !s.is_nobits())?;
        let end = self.place(loaded, self.initialised, &|s| s.is_nobits())?;
        self.size = align_up(end, page).unwrap_or(end);
        Ok(())
    }

    fn place(&mut self, loaded: &[bool], start: u64, wanted: &dyn Fn(&Section<'_>) -> bool) -> Result<u64, LoadError> {
        let mut end = start;
        for (i, section) in self.object.sections().iter().enumerate() {
            if !loaded[i] || !wanted(section) {
                continue;
            }
            let align = section.header.sh_addralign.max(1);
            if !align.is_power_of_two() || align > MAX_ALIGN {
                return Err(section.place(0).error(Problem::Alignment { align }));
            }
            let at = align_up(end, align).unwrap_or(u64::MAX);
            end = at.saturating_add(section.header.sh_size);
            if end > MAX_IMAGE {
                return Err(section.place(0).error(Problem::TooLarge { size: end, limit: MAX_IMAGE }));
            }
            self.homes[i] = Some(at);
        }
        Ok(end)
    }
}

/// The symbols that need a slot, and the external ones that need a stub. Their places are decided later.
fn near_tables(object: &Object<'_>, patches: &[Patch]) -> (BTreeMap<usize, u64>, BTreeMap<usize, u64>) {
    let (mut slots, mut stubs) = (BTreeMap::new(), BTreeMap::new());
    for patch in patches {
        match patch.kind.need {
            Need::Slot => _ = slots.insert(patch.symbol, 0),
            Need::Target if object.symbols()[patch.symbol].section == 0 => _ = stubs.insert(patch.symbol, 0),
            _ => {}
        }
    }
    (slots, stubs)
}

fn read_patches(object: &Object<'_>, machine: Machine, loaded: &[bool]) -> Result<Vec<Patch>, LoadError> {
    let mut patches = Vec::new();
    for table in object.relocation_tables()? {
        if !loaded[table.target] {
            continue;
        }
        let section = &object.sections()[table.target];
        for entry in table.entries().filter(|e| e.kind != 0) {
            let place = section.place(entry.offset);
            let kind = machine.kinds().iter().find(|k| k.number == entry.kind).ok_or_else(|| {
                let why = ": compile with -fPIC, without thread-local variables";
                place.error(Problem::Relocation { kind: entry.kind, name: "", why })
            })?;
            let end = entry.offset.checked_add(kind.field.bytes() as u64);
            if section.is_nobits() || end.is_none_or(|end| end > section.header.sh_size) {
                return Err(place.error(Problem::Index { what: "relocated offset", index: entry.offset }));
            }
            let addend = entry.addend.ok_or_else(|| {
                let why = ": this CPU's objects carry their addends in RELA sections";
                place.error(Problem::Relocation { kind: entry.kind, name: kind.name, why })
            })?;
            check_symbol(object, entry.symbol, loaded).map_err(|p| place.error(p))?;
            patches.push(Patch { section: table.target, offset: entry.offset, kind, symbol: entry.symbol, addend });
        }
    }
    Ok(patches)
}

fn check_symbol(object: &Object<'_>, index: usize, loaded: &[bool]) -> Result<(), Problem> {
    let symbol = object.symbols().get(index);
    let symbol = symbol.ok_or(Problem::Index { what: "symbol", index: index as u64 })?;
    let what = match symbol.section {
        0 | SHN_ABS => return Ok(()),
        SHN_COMMON => "a common symbol: compile with -fno-common",
        n if loaded.get(n) == Some(&true) => return Ok(()),
        _ => "in a section that is not loaded",
    };
    Err(Problem::Unplaced { symbol: name_of(object, index), what })
}

fn name_of(object: &Object<'_>, symbol: usize) -> String {
    let s = &object.symbols()[symbol];
    let section = object.sections().get(s.section).map_or("", |s| s.name);
    if s.name.is_empty() { section.to_string() } else { s.name.to_string() }
}

/// Whether the section is part of the program. Unwinding tables and notes are not needed to run it.
fn is_loaded(section: &Section<'_>) -> Result<bool, LoadError> {
    if !section.has(SHF_ALLOC) || section.name == ".eh_frame" || section.name.starts_with(".note") {
        return Ok(false);
    }
    let refuse = |what| {
        let problem = Problem::Unplaced { symbol: section.name.to_string(), what };
        Err(section.place(0).error(problem))
    };
    match section.header.sh_type {
        _ if section.has(SHF_TLS) => refuse("thread-local data, which a loaded object cannot have"),
        SHT_INIT_ARRAY | SHT_FINI_ARRAY | SHT_PREINIT_ARRAY => refuse("a list of constructors, which would not run"),
        SHT_PROGBITS | SHT_NOBITS => Ok(true),
        _ => Ok(false),
    }
}
