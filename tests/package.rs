//! The shared library as a file: its exports, its name and the libraries that it needs.

use goblin::elf::{Elf, sym};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The path of the library. Cargo puts it beside the tests or one directory up.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let places = test.ancestors().skip(1).take(2).map(|dir| dir.join("libtegrarm.so"));
    places.into_iter().find(|path| path.exists()).expect("the shared library beside the tests")
}

/// The functions that the header declares.
fn documented() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tegrarm.h");
    let header = std::fs::read_to_string(path).unwrap();
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/', '#']));
    let words = code.flat_map(|line| line.split('(').next().filter(|start| start.len() < line.len()));
    let names = words.filter_map(|start| start.rsplit([' ', '*']).next());
    names.filter(|name| name.starts_with("rm_") || name.starts_with("tegrarm_")).map(str::to_owned).collect()
}

#[test]
fn only_the_documented_functions_are_exported() {
    let bytes = std::fs::read(library()).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let defined = elf.dynsyms.iter().filter(|s| !s.is_import() && s.st_bind() != sym::STB_LOCAL);
    let exported: BTreeSet<String> = defined.map(|s| elf.dynstrtab.get_at(s.st_name).unwrap().to_owned()).collect();
    let mut documented = documented();
    assert!(documented.len() > 40, "{documented:?}");
    // NVTX's header asks for it by this name. No program calls it.
    documented.insert("InitializeInjectionNvtx2".to_owned());
    assert_eq!(exported, documented);
}

#[test]
fn the_name_carries_the_interfaces_version_and_nothing_unusual_is_needed() {
    let bytes = std::fs::read(library()).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.soname, Some("libtegrarm.so.0"));
    let usual = ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
    assert!(elf.libraries.iter().all(|name| usual.contains(name)), "{:?}", elf.libraries);
    assert!(elf.rpaths.is_empty() && elf.runpaths.is_empty());
}
