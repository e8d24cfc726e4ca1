//! What a cubin says about one kernel.

use super::attributes::{self, Attribute, id};
use super::functions::Outside;
use super::layout::{Home, Layout, bank};
use crate::elf::{LoadError, Object, Problem, Section, Symbol};
use std::collections::BTreeMap;

/// The number of bytes at the top of each thread's stack that the ABI keeps for itself.
pub const STACK_RESERVE: u32 = 0x240;
/// The stack of a kernel whose depth the compiler does not know, because it recurses. This is CUDA's own default.
pub const DEFAULT_STACK: u32 = 1024;
/// The shared memory that every block has in addition to its own.
pub const SHARED_RESERVE: u32 = 0x400;
/// The number of bytes before the parameters in the parameter bank.
pub const BANK_HEADER: u32 = 0x160;

const BANK_LIMIT: u64 = 0x1_0000;
const STACK_LIMIT: u32 = 1 << 24;
/// The limit of this memory. With the largest stack it still fits into the 2^24 bytes of a thread.
const SCRATCH_LIMIT: u64 = 1 << 20;
const FUNCTION: u8 = 2;
/// The bit of `st_other` that marks a kernel (NVIDIA's `STO_CUDA_ENTRY`).
const ENTRY: u8 = 0x10;
const UNBOUNDED: u32 = u32::MAX;

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Offset from the start of the parameters.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A constant bank that the kernel reads, in addition to the parameter bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// The bank's number, 1 to 7.
    pub number: u8,
    /// Offset in the image.
    pub offset: u64,
    /// Size in bytes.
    pub size: u32,
}

/// The stack that one thread needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The compiler gives this number of bytes.
    Bytes(u32),
    /// The depth is not known, because the kernel recurses.
    Unbounded,
}

/// A kernel with its code and the resources that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name, which may be mangled.
    pub name: String,
    /// The offset of the first instruction in the image.
    pub code: u64,
    /// The number of bytes of code, including padding.
    pub code_size: u64,
    /// The number of registers per thread.
    pub registers: u32,
    /// The number of barriers that a block uses.
    pub barriers: u32,
    /// The stack per thread, without the ABI's reserve.
    pub stack: Stack,
    /// The local memory of each thread that the code addresses from 0, in bytes. Code without a stack has its local
    /// memory there.
    pub scratch: u32,
    /// The static shared memory of a block in bytes.
    pub shared: u32,
    /// The offset of the first parameter in the parameter bank. By CUDA's ABI it is 0x160, and 0x1a80 if there are more than 4,352 bytes of
    /// parameters.
    pub parameter_offset: u32,
    /// The number of bytes of the parameters.
    pub parameter_size: u32,
    /// The parameters in their order.
    pub parameters: Vec<Parameter>,
    /// Constant banks 1 to 7.
    pub banks: Vec<Bank>,
    /// The number of threads of the largest block for which the code was compiled.
    pub max_threads: Option<u32>,
    /// The only block size with which the kernel may be launched.
    pub required_block: Option<[u32; 3]>,
}

impl Kernel {
    /// The local memory that one thread needs: its scratch memory, its stack and the ABI's reserve, rounded up to the
    /// GPU's unit.
    pub fn local_memory(&self) -> u32 {
        let stack = match self.stack {
            Stack::Bytes(bytes) => bytes,
            Stack::Unbounded => DEFAULT_STACK,
        };
        (self.low_memory() + stack + STACK_RESERVE).next_multiple_of(32)
    }

    /// The local memory of one thread that begins at address 0, rounded up to the GPU's unit. The rest ends at the top.
    pub fn low_memory(&self) -> u32 {
        self.scratch.next_multiple_of(16)
    }

    /// The shared memory that a block gets if it asks for `dynamic` bytes in addition to its own.
    pub fn shared_memory(&self, dynamic: u32) -> u64 {
        (u64::from(self.shared) + u64::from(dynamic)).next_multiple_of(128) + u64::from(SHARED_RESERVE)
    }

    /// Adds what functions of the loader need: they run with the kernel's registers and on its stack.
    pub fn calls(&mut self, brought: &Outside) {
        self.registers = self.registers.max(brought.registers());
        if let Stack::Bytes(bytes) = &mut self.stack {
            *bytes += brought.stack();
        }
    }

    /// The number of bytes of the parameter bank.
    pub fn parameter_bank(&self) -> u32 {
        self.parameter_offset + self.parameter_size
    }
}

/// Numbers that `.nv.info` gives for each function's symbol.
#[derive(Debug, Default)]
struct PerFunction {
    registers: BTreeMap<u32, u32>,
    min_stack: BTreeMap<u32, u32>,
    max_stack: BTreeMap<u32, u32>,
    frame: BTreeMap<u32, u32>,
}

/// Reads all kernels of a module, in the order of their symbols.
///
/// # Errors
/// A kernel's own records are missing, contradict each other or lie outside the file.
pub fn read(object: &Object<'_>, layout: &Layout) -> Result<Vec<Kernel>, LoadError> {
    let by_name: BTreeMap<&str, usize> = object.sections().iter().enumerate().map(|(i, s)| (s.name, i)).collect();
    let module = module_attributes(object, &by_name)?;
    let banks = bank_sections(object, layout);
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (index, symbol) in object.symbols().iter().enumerate() {
        if symbol.kind() != FUNCTION || symbol.other & ENTRY == 0 || symbol.section == 0 {
            continue;
        }
        let reader = Reader { object, layout, by_name: &by_name, banks: &banks, module: &module };
        let kernel = reader.kernel(index as u32, symbol)?;
        if !seen.insert(symbol.name) {
            let place = object.sections()[symbol.section].place(symbol.value);
            return Err(place.error(Problem::Twice { what: format!("kernel '{}'", symbol.name) }));
        }
        kernels.push(kernel);
    }
    Ok(kernels)
}

fn module_attributes(object: &Object<'_>, by_name: &BTreeMap<&str, usize>) -> Result<PerFunction, LoadError> {
    let mut found = PerFunction::default();
    let Some(section) = by_name.get(".nv.info").map(|&i| &object.sections()[i]) else { return Ok(found) };
    for a in attributes::read(section, object.data(section))? {
        let table = match a.id {
            id::REGCOUNT => &mut found.registers,
            id::MIN_STACK_SIZE => &mut found.min_stack,
            id::MAX_STACK_SIZE => &mut found.max_stack,
            id::FRAME_SIZE => &mut found.frame,
            _ => continue,
        };
        table.insert(a.dword(section, 0)?, a.dword(section, 1)?);
    }
    Ok(found)
}

/// The sections of constant banks by the kernel that they belong to. Those of `None` belong to all kernels. A module has as many sections
/// of banks as kernels, so they are looked for once, not for each kernel.
type BankSections<'a> = BTreeMap<Option<&'a str>, Vec<BankSection>>;

/// A section with a constant bank that has at least one byte.
struct BankSection {
    number: u8,
    /// The section's index.
    section: usize,
    /// Offset in the image.
    offset: u64,
}

fn bank_sections<'a>(object: &Object<'a>, layout: &Layout) -> BankSections<'a> {
    let mut found = BankSections::new();
    for (section, (header, home)) in object.sections().iter().zip(&layout.homes).enumerate() {
        let (Home::Bank(offset), Some((number, owner))) = (*home, bank(header.name)) else { continue };
        if header.header.sh_size != 0 {
            found.entry(owner).or_default().push(BankSection { number, section, offset });
        }
    }
    found
}

struct Reader<'r, 'a> {
    object: &'r Object<'a>,
    layout: &'r Layout,
    by_name: &'r BTreeMap<&'a str, usize>,
    banks: &'r BankSections<'a>,
    module: &'r PerFunction,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn section(&self, name: &str) -> Option<&'r Section<'a>> {
        self.by_name.get(name).map(|&i| &self.object.sections()[i])
    }

    fn kernel(&self, index: u32, symbol: &Symbol<'_>) -> Result<Kernel, LoadError> {
        let name = symbol.name;
        let missing = |what| Problem::Missing { kernel: name.to_string(), what };
        let nowhere = crate::elf::Location::file(0);
        let text = self.object.sections().get(symbol.section).ok_or_else(|| nowhere.error(missing("code section")))?;
        let Home::Image(start) = self.layout.homes[symbol.section] else {
            return Err(text.place(0).error(missing("code that is loaded")));
        };
        let end = symbol.value.checked_add(symbol.size).filter(|&end| end <= text.header.sh_size);
        if end.is_none() || text.is_nobits() {
            return Err(text.place(symbol.value).error(missing("code inside its section")));
        }
        let size = |prefix| self.section(&format!("{prefix}.{name}")).map_or(0, |s| s.header.sh_size);
        let (shared, scratch) = (size(".nv.shared"), size(".nv.local"));
        let mut kernel = Kernel {
            name: name.to_string(),
            code: start + symbol.value,
            code_size: symbol.size,
            registers: self.registers(index, text)?,
            barriers: (text.header.sh_flags >> 20) as u32 & 0x7f,
            stack: self.stack(index, text)?,
            scratch: limited("scratch memory", scratch, SCRATCH_LIMIT, text)? as u32,
            shared: limited("static shared memory", shared, 0x4_0000, text)? as u32,
            parameter_offset: BANK_HEADER,
            parameter_size: 0,
            parameters: Vec::new(),
            banks: self.banks(name)?,
            max_threads: None,
            required_block: None,
        };
        if let Some(info) = self.section(&format!(".nv.info.{name}")) {
            self.kernel_attributes(&mut kernel, info)?;
        }
        Ok(kernel)
    }

    fn registers(&self, index: u32, text: &Section<'_>) -> Result<u32, LoadError> {
        let told = self.module.registers.get(&index).copied().unwrap_or(0);
        let count = told.max(text.header.sh_info >> 24);
        Ok(limited("register count", count.into(), 255, text)? as u32)
    }

    fn stack(&self, index: u32, text: &Section<'_>) -> Result<Stack, LoadError> {
        let of = |table: &BTreeMap<u32, u32>| table.get(&index).copied().unwrap_or(0);
        if of(&self.module.min_stack) == UNBOUNDED {
            return Ok(Stack::Unbounded);
        }
        let m = &self.module;
        let most = of(&m.min_stack).max(of(&m.max_stack)).max(of(&m.frame));
        let limit = u64::from(STACK_LIMIT - STACK_RESERVE - 32) - SCRATCH_LIMIT;
        Ok(Stack::Bytes(limited("stack size", most.into(), limit, text)? as u32))
    }

    fn banks(&self, kernel: &str) -> Result<Vec<Bank>, LoadError> {
        let mut found: Vec<&BankSection> =
            [None, Some(kernel)].iter().filter_map(|owner| self.banks.get(owner)).flatten().collect();
        found.sort_by_key(|bank| bank.section);
        let mut banks: Vec<Bank> = Vec::new();
        for &BankSection { number, section, offset } in found {
            let section = &self.object.sections()[section];
            limited("constant bank", number.into(), 7, section)?;
            let size = limited("constant bank size", section.header.sh_size, BANK_LIMIT, section)? as u32;
            if banks.iter().any(|b| b.number == number) {
                let what = format!("constant bank {number} of kernel '{kernel}'");
                return Err(section.place(0).error(Problem::Twice { what }));
            }
            banks.push(Bank { number, offset, size });
        }
        banks.sort_by_key(|b| b.number);
        Ok(banks)
    }

    fn kernel_attributes(&self, kernel: &mut Kernel, info: &Section<'_>) -> Result<(), LoadError> {
        let mut parameters: Vec<(u32, Parameter)> = Vec::new();
        for a in attributes::read(info, self.object.data(info))? {
            match a.id {
                id::PARAM_CBANK => {
                    let packed = a.dword(info, 1)?;
                    (kernel.parameter_offset, kernel.parameter_size) = (packed & 0xffff, packed >> 16);
                }
                id::KPARAM_INFO => parameters.push(parameter(&a, info)?),
                id::KPARAM_INFO_V2 => parameters.push(large_parameter(&a, info)?),
                id::MAX_THREADS => kernel.max_threads = Some(threads(a.block(info)?)),
                id::REQNTID => kernel.required_block = Some(a.block(info)?),
                id::NUM_BARRIERS => kernel.barriers = kernel.barriers.max((a.value & 0x7f).into()),
                _ => {}
            }
        }
        limited("barrier count", kernel.barriers.into(), 16, info)?;
        limited("parameter bank size", kernel.parameter_bank().into(), BANK_LIMIT, info)?;
        kernel.parameters = in_order(parameters, kernel.parameter_size, info)?;
        Ok(())
    }
}

fn parameter(a: &Attribute<'_>, info: &Section<'_>) -> Result<(u32, Parameter), LoadError> {
    let (place, flags) = (a.dword(info, 1)?, a.dword(info, 2)?);
    Ok((place & 0xffff, Parameter { offset: place >> 16, size: flags >> 18 }))
}

fn large_parameter(a: &Attribute<'_>, info: &Section<'_>) -> Result<(u32, Parameter), LoadError> {
    let (place, size) = (a.dword(info, 1)?, a.dword(info, 2)?);
    Ok((place & 0xffff, Parameter { offset: place >> 16, size: size & 0xffff }))
}

fn threads(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n.max(1)))
}

/// Puts the parameters in the order of their ordinals. None may be missing or occur twice, and all must lie inside the
/// bank.
fn in_order(mut found: Vec<(u32, Parameter)>, size: u32, info: &Section<'_>) -> Result<Vec<Parameter>, LoadError> {
    found.sort_by_key(|(ordinal, _)| *ordinal);
    for (index, (ordinal, p)) in found.iter().enumerate() {
        if *ordinal as usize != index {
            return Err(info.place(0).error(Problem::Index { what: "parameter", index: index as u64 }));
        }
        limited("end of a parameter", u64::from(p.offset) + u64::from(p.size), size.into(), info)?;
    }
    Ok(found.into_iter().map(|(_, p)| p).collect())
}

fn limited(what: &'static str, value: u64, limit: u64, section: &Section<'_>) -> Result<u64, LoadError> {
    if value <= limit { Ok(value) } else { Err(section.place(0).error(Problem::Limit { what, value, limit })) }
}
