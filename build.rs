//! Gives the shared library its soname. The number in it stays 0 until the C interface is promised to stay as it is.
//!
//! The symbols have no version nodes: rustc links every cdylib with a version script of its own, which is anonymous.
//! GNU ld refuses a second script beside it, and LLD ignores a second one. `make abi-check` finds changes of the
//! interface instead.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtegrarm.so.0");
}
