//! The functions of a module, and the functions that the module leaves to the loader.

use super::layout::{Home, Layout};
use crate::elf::{Object, Problem, Symbol};
use std::collections::{BTreeMap, BTreeSet};

const FUNCTION: u8 = 2;

/// A function: a kernel, or code that kernels call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The mangled name.
    pub name: String,
    /// The offset of its first instruction in the image.
    pub offset: u64,
    /// The size of its code in bytes.
    pub size: u64,
}

/// All functions of a module, in the order of their addresses.
pub fn read(object: &Object<'_>, layout: &Layout) -> Vec<Function> {
    let placed = |symbol: &Symbol<'_>| {
        let section = object.sections().get(symbol.section)?;
        symbol.value.checked_add(symbol.size).filter(|&end| end <= section.header.sh_size)?;
        let Home::Image(start) = layout.homes[symbol.section] else { return None };
        Some(Function { name: symbol.name.to_string(), offset: start + symbol.value, size: symbol.size })
    };
    let mut found: Vec<_> = object.symbols().iter().filter(|s| s.kind() == FUNCTION).filter_map(placed).collect();
    found.sort_by_key(|function| (function.offset, std::cmp::Reverse(function.size)));
    found
}

/// Functions that the loader adds to a module. Their code is elsewhere in memory; kernels that call them need registers and stack.
#[derive(Debug)]
pub struct Outside {
    offsets: BTreeMap<String, u64>,
    registers: u32,
    stack: u32,
}

impl Outside {
    /// No functions.
    pub const NONE: Outside = Outside { offsets: BTreeMap::new(), registers: 0, stack: 0 };

    /// `offsets` has the functions by name, with the places of their code. The other numbers are what the largest of them needs.
    pub fn new(offsets: BTreeMap<String, u64>, registers: u32, stack: u32) -> Outside {
        Outside { offsets, registers, stack }
    }

    /// The offset of a function's code.
    pub fn offset(&self, name: &str) -> Option<u64> {
        self.offsets.get(name).copied()
    }

    /// The names of the functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.offsets.keys().map(String::as_str)
    }

    /// How many registers the code needs.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// How many bytes of stack the code needs.
    pub fn stack(&self) -> u32 {
        self.stack
    }
}

/// Functions that are not supported: the beginnings of their names, and the reason.
static REFUSED: &[(&[&str], &str)] = &[
    (
        &["cudaLaunchDevice", "cudaGetParameterBuffer", "__cudaCDP2", "cnp"],
        "dynamic parallelism (kernels that launch kernels) is not supported: launch the kernel from the CPU",
    ),
    (&["cudaCG"], "groups of several grids (multi_grid_group) are not supported: use the grid_group of each"),
];

/// The error for names that are not defined.
pub fn missing(names: BTreeSet<String>) -> Problem {
    refused(&names).unwrap_or_else(|| Problem::Undefined { names: names.into_iter().collect() })
}

/// The names of the functions that a file expects from elsewhere.
pub fn wanted(object: &Object<'_>) -> BTreeSet<String> {
    let nowhere = object.symbols().iter().filter(|s| s.section == 0 && s.kind() == FUNCTION);
    nowhere.map(|s| s.name.to_string()).collect()
}

/// The error if some of the names belong to something that is not supported. It does not matter whether they are defined.
pub fn refused(names: &BTreeSet<String>) -> Option<Problem> {
    REFUSED.iter().find_map(|(beginnings, what)| {
        let is_such = |name: &&String| beginnings.iter().any(|b| name.starts_with(b));
        let names: Vec<String> = names.iter().filter(is_such).cloned().collect();
        (!names.is_empty()).then_some(Problem::Refused { names, what })
    })
}
