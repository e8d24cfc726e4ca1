//! Host objects, which `cc -c` makes. They are loaded into executable memory and called.
//!
//! An object is self-contained, or it names the functions that it needs from outside. Those are called through stubs,
//! so that they may be at any address. Constructors and thread-local variables are refused.

pub mod image;
pub mod reloc;

pub use image::{Image, Machine};

use crate::elf::{LoadError, Location, Problem};
use std::collections::BTreeMap;
use tegrarm_kmd::ExecMem;

/// A loaded object. Its code can be called for as long as this value exists.
#[derive(Debug)]
pub struct HostObject {
    memory: ExecMem,
    exports: BTreeMap<String, u64>,
}

impl HostObject {
    /// Loads a relocatable object of this CPU. `resolve` gives the addresses of symbols that the object does not define
    /// (`|_| None` for a self-contained object).
    ///
    /// # Errors
    /// [`LoadError`] with the section and the file offset for a damaged file, all undefined symbols by name, or the
    /// reason if the system refuses executable memory.
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

    /// The address of a function or variable that the object exports.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        self.exports.get(name).map(|offset| self.memory.addr() + *offset as usize)
    }

    /// All exported names.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.exports.keys().map(String::as_str)
    }
}
