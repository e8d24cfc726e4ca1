//! Gives the shared library its soname. 0 until the C interface is promised to stay.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtegrarm.so.0");
}
