//! The device library: what CUDA C++ expects of a driver, as machine code that modules are linked with.
//!
//! `device.cu` is the source, `device.cubin` is what `make device-library` makes of it, and [`Installed`] is the code on one device,
//! with the [`state`] that it works on: [`messages`] of `printf`, the heap of `malloc`, and why a thread gave up ([`stop`]).

pub mod format;
pub mod heap;
pub mod installed;
pub mod messages;
pub mod sizes;
pub mod state;
pub mod stop;

pub use installed::Installed;
pub use sizes::Sizes;

use super::cubin::{Cubin, Outside, Stack};
use once_cell::sync::Lazy;

static IMAGE: &[u8] = include_bytes!("device.cubin");
/// The GPU that the code is for.
const CAPABILITY: u32 = 87;
/// A function `N` of CUDA is `tegrarm_N` there.
const PREFIX: &str = "tegrarm_";
/// The kernel that keeps the functions; its registers and its stack are what the largest of them needs.
const KEEPER: &str = "tegrarm_device_library";

/// The code, before it lies anywhere.
pub struct Library {
    cubin: Cubin,
    functions: Outside,
}

static LIBRARY: Lazy<Library> = Lazy::new(|| Library::read(IMAGE));
/// For a GPU that there is no code for.
static NOTHING: Outside = Outside::NONE;

impl Library {
    /// The one that the library carries.
    pub fn carried() -> &'static Library {
        &LIBRARY
    }

    /// The functions that a module for a GPU of this compute capability may leave to the loader.
    pub fn functions_for(capability: u32) -> &'static Outside {
        if capability == CAPABILITY { &LIBRARY.functions } else { &NOTHING }
    }

    /// Reads machine code that `packaging/device_library.py` made.
    ///
    /// # Panics
    /// When it is none: the file in the tree is broken, and the tests see it.
    fn read(image: &[u8]) -> Library {
        let cubin = Cubin::parse(image, CAPABILITY).unwrap_or_else(|e| panic!("the device library: {e}"));
        let keeper = cubin.kernel(KEEPER).unwrap_or_else(|| panic!("the device library has no {KEEPER}"));
        let Stack::Bytes(stack) = keeper.stack else { panic!("the device library needs a stack without a bound") };
        let functions = cubin.functions().iter().filter(|function| function.name != KEEPER);
        // The linker adds `$` and a number to the names of functions that the compiler knows.
        let plain = |name: &str| name.split('$').next()?.strip_prefix(PREFIX).map(str::to_string);
        let named = functions.filter_map(|f| Some((plain(&f.name)?, f.offset)));
        let functions = Outside::new(named.collect(), keeper.registers, stack);
        Library { cubin, functions }
    }

    /// Its code.
    pub fn cubin(&self) -> &Cubin {
        &self.cubin
    }

    /// Its functions, by CUDA's names.
    pub fn functions(&self) -> &Outside {
        &self.functions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_compilers_leave_to_a_driver() {
        let library = Library::carried();
        let names: Vec<&str> = library.functions().names().collect();
        assert_eq!(names, ["__assertfail", "__cuda_syscall_aligned_malloc", "free", "malloc", "vprintf"]);
        assert!((24..=32).contains(&library.functions().registers()), "{}", library.functions().registers());
        assert!((64..=256).contains(&library.functions().stack()), "{}", library.functions().stack());
        assert!(library.cubin().outside().is_empty() && library.cubin().variables().next().is_none());
        assert_eq!(Library::functions_for(86).names().count(), 0, "there is no code for another GPU");
    }
}
