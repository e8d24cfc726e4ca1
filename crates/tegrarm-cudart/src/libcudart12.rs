//! libcudart.so.12: the exported functions are those of the crate's library, and this says which version they answer for.
#![no_main]
#![allow(unsafe_code)]

/// The version of the library.
// SAFETY: no other symbol of this library has this name, and the version script hides it.
#[unsafe(no_mangle)]
pub static tegrarm_cudart_major: u32 = 12;

/// Keeps every exported function: the linker takes only what something names.
#[used]
static KEPT: &[tegrarm_cudart::Function] = tegrarm_cudart::FUNCTIONS;
