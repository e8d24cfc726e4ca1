//! libcudart.so.12 and libcudart.so.13 on libcuda.so.1: CUDA's runtime interface, which programs with `<<<...>>>` are linked with.
//!
//! It calls only the public functions of the driver's interface ([`calls`] finds them by name). The build script makes the exports from tables
//! (functions.tsv, states.tsv): an export gives its arguments to a function of the driver, or to the function with its name in `rows`, or it
//! is refused with a reason. The two libraries have the same code: each says its version in `tegrarm_cudart_major`.
#![allow(non_snake_case, reason = "the functions have the names of CUDA's runtime")]

#[macro_use]
mod calls;
mod arrays;
mod device;
mod images;
mod memory;
mod nodes;

/// One exported function.
pub struct Function {
    /// The name that is exported.
    pub symbol: &'static str,
    /// Why it is not done, or done in part.
    pub why: &'static str,
    /// Where it is.
    pub address: *const (),
}

#[allow(unsafe_code)]
// SAFETY: the addresses are those of functions, which never change.
unsafe impl Sync for Function {}

pub use exports::FUNCTIONS;

mod exports {
    #![allow(unsafe_code, clippy::too_many_arguments)]
    use crate::{Function, calls, rows};
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

mod rows {
    //! The functions that the build script names.
    pub use crate::arrays::rows::*;
    pub use crate::device::rows::*;
    pub use crate::images::rows::*;
    pub use crate::memory::rows::*;
    pub use crate::nodes::rows::*;
}

mod numbers {
    //! Numbers of NVIDIA's headers.
    use crate::device::Property;
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}
