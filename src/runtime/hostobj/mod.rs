//! Host objects: what `cc -c` makes, loaded into executable memory and called.
//!
//! The object is self-contained or names the functions it needs from outside; those are reached through stubs, so
//! they may lie anywhere. Constructors and thread-local variables are refused.

pub mod image;
pub mod reloc;

pub use image::{Image, Machine};

use super::elf::{LoadError, Location, Problem};
use std::collections::BTreeMap;
use tegrarm_kmd::ExecMem;

/// A loaded object. Its code stays callable as long as this value lives.
#[derive(Debug)]
pub struct HostObject {
    memory: ExecMem,
    exports: BTreeMap<String, u64>,
}

impl HostObject {
    /// Loads a relocatable object of this CPU. `resolve` gives the addresses of symbols the object does not define
    /// (`|_| None` for a self-contained one).
    ///
    /// # Errors
    /// [`LoadError`] with section and file offset for a damaged file; all undefined symbols by name; the reason
    /// when the system refuses executable memory.
    pub fn load(bytes: &[u8], resolve: &dyn Fn(&str) -> Option<u64>) -> Result<HostObject, LoadError> {
        let nowhere = Location::file(0);
        let machine = Machine::HOST
            .ok_or_else(|| nowhere.error(Problem::Machine { found: 0, wanted: "a CPU whose objects can be loaded" }))?;
        let image = Image::parse(bytes, machine)?;
        let refused =
            |e: tegrarm_kmd::Errno| nowhere.error(Problem::Memory { size: image.size(), reason: e.desc().to_string() });
        let mut memory = ExecMem::new((image.size() as usize).max(1), image.reach()).map_err(refused)?;
        memory.write(0, &image.link(memory.addr() as u64, resolve)?).map_err(refused)?;
        memory.seal(image.code_size() as usize).map_err(refused)?;
        Ok(HostObject { memory, exports: image.exports() })
    }

    /// The address of a function or variable the object exports.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        self.exports.get(name).map(|offset| self.memory.addr() + *offset as usize)
    }

    /// All exported names.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.exports.keys().map(String::as_str)
    }
}
