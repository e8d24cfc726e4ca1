//! Gives the shared library its soname. 0 until the C interface is promised to stay.
//!
//! The symbols have no version nodes: rustc links every cdylib with a version script of its own, which is anonymous. GNU ld
//! refuses a second script beside it, and LLD ignores it. What holds the interface still is `make abi-check`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtegrarm.so.0");
}
