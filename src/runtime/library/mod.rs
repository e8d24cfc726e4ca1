//! The device library: functions that CUDA C++ expects from a driver. Modules are linked with their machine code.
//!
//! `make device-library` compiles `device.cu` to `device.cubin`. [`Installed`] is the code on one device, with the [`state`] that it uses:
//! the [`messages`] of `printf`, the heap of `malloc`, and the reason why a thread stopped its kernel ([`stop`]).

pub mod format;
pub mod heap;
pub mod installed;
pub mod messages;
pub mod sizes;
pub mod state;
pub mod stop;

pub use installed::Installed;
pub use sizes::Sizes;

use once_cell::race::OnceBox;
use tegrarm_images::cubin::{Cubin, Outside, Stack};

static IMAGE: &[u8] = include_bytes!("device.cubin");
/// The compute capability of the GPU that the code is for.
const CAPABILITY: u32 = 87;
/// The code's own name of CUDA's function `N` is `tegrarm_N`.
const PREFIX: &str = "tegrarm_";
/// The kernel that calls all functions. The linker computed for it what the largest of them needs: registers and stack.
const KEEPER: &str = "tegrarm_device_library";

/// The code as it is in the file, before it has an address.
pub struct Library {
    cubin: Cubin,
    functions: Outside,
}

static LIBRARY: OnceBox<Library> = OnceBox::new();
/// The functions for a GPU that the code does not run on.
static NOTHING: Outside = Outside::NONE;

impl Library {
    /// The device library that is a part of this library.
    pub fn carried() -> &'static Library {
        LIBRARY.get_or_init(|| Box::new(Library::read(IMAGE)))
    }

    /// The functions that a module for a GPU of this compute capability may leave to the loader.
    pub fn functions_for(capability: u32) -> &'static Outside {
        if capability == CAPABILITY { &Library::carried().functions } else { &NOTHING }
    }

    /// Reads the machine code that `packaging/device_library.py` made.
    ///
    /// # Panics
    /// If the file in the tree is broken. The tests notice this.
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

    /// The machine code.
    pub fn cubin(&self) -> &Cubin {
        &self.cubin
    }

    /// The functions, by the names that CUDA gives them.
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
