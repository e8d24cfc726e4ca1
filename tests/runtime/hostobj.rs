//! The loader of host objects: objects of a C compiler are loaded and called.
#![allow(unsafe_code)]

use std::path::Path;
use tegrarm_images::elf::{Contents, Problem};
use tegrarm_images::hostobj::{HostObject, Image, Machine};

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostobj").join(name)).unwrap()
}

fn host_file(mode: &str) -> Vec<u8> {
    bytes(&format!("kernels.{}.{mode}.o", std::env::consts::ARCH))
}

extern "C" fn outside(x: f64) -> f64 {
    x * 10.0
}

fn resolve(name: &str) -> Option<u64> {
    (name == "outside").then_some(outside as *const () as u64)
}

/// The function pointer to an exported symbol.
macro_rules! function {
    ($object:expr, $name:literal, $t:ty) => {{
        let address = $object.symbol($name).expect($name);
        // SAFETY: the object was compiled from kernels.c, where the function has this signature, and the object
        // outlives the call.
        unsafe { std::mem::transmute::<usize, $t>(address) }
    }};
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn compiled_functions_run() {
    for mode in ["pic", "nopic"] {
        let object = HostObject::load(&host_file(mode), &resolve).unwrap();
        assert_eq!(function!(object, "scaled", extern "C" fn(i32) -> f32)(321), 12_345_999.0, "{mode}");
        let input = [1.0f32, 2.0, 4.0, 8.0, 16.0];
        let weigh = function!(object, "weigh", extern "C" fn(*const f32, i32) -> f32);
        assert_eq!(weigh(input.as_ptr(), 5), 0.5 + 3.0 + 10.0 + 28.0 + 8.0, "{mode}");
        let count = function!(object, "count", extern "C" fn() -> i32);
        assert_eq!((count(), count(), count()), (40, 41, 42), "{mode}");
        let count_shared = function!(object, "count_shared", extern "C" fn(i32) -> i32);
        assert_eq!((count_shared(3), count_shared(-1)), (10, 9), "{mode}");
        let remember = function!(object, "remember", extern "C" fn(i32, i64) -> i64);
        assert_eq!((remember(5, 77), remember(5, 0), remember(4, 1)), (0, 77, 0), "{mode}");
        let call = function!(object, "call", extern "C" fn(i32, i32) -> i32);
        assert_eq!((call(0, 5), call(1, 5)), (20, 25), "{mode}");
        let letter = function!(object, "first_letter", extern "C" fn(i32) -> i32);
        assert_eq!([letter(0), letter(1), letter(2)], [b'z', b'o', b't'].map(i32::from), "{mode}");
        assert_eq!(function!(object, "widths", extern "C" fn() -> u64)(), 4 + 501, "{mode}");
        #[repr(C, align(16))]
        struct Wide([u8; 16]);
        let mut out = Wide([0; 16]);
        function!(object, "wide", extern "C" fn(*mut Wide))(&mut out);
        assert_eq!(out.0, std::array::from_fn(|i| i as u8 + 1), "{mode}");
        assert_eq!(function!(object, "call_outside", extern "C" fn(f64) -> f64)(4.0), 41.0, "{mode}");
        let choose = function!(object, "choose", extern "C" fn(i32) -> i32);
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|i| choose(i)), [17, 43, 4, -4, 12, 99, -1], "{mode}");
        assert!(object.symbol("twice").is_none(), "a static function is not exported");
        assert!(object.symbols().any(|s| s == "shared_counter"), "{mode}");
    }
}

#[test]
fn loads_do_not_share_data() {
    let (a, b) = (
        HostObject::load(&host_file("pic"), &resolve).unwrap(),
        HostObject::load(&host_file("pic"), &resolve).unwrap(),
    );
    let first = function!(a, "count", extern "C" fn() -> i32);
    let second = function!(b, "count", extern "C" fn() -> i32);
    assert_eq!((first(), first(), second()), (40, 41, 40));
}

#[test]
fn undefined_symbols_are_named() {
    let text = HostObject::load(&host_file("pic"), &|_| None).unwrap_err().to_string();
    assert!(text.contains("undefined: outside"), "{text}");
}

/// The loader writes the same bytes as GNU ld for the same object at the same addresses.
#[test]
fn aarch64_links_as_the_linker_does() {
    let file = bytes("kernels.aarch64.nopic.o");
    let image = Image::parse(&file, Machine::Aarch64).unwrap();
    let linked = image.link(0x10000, &|name| (name == "outside").then_some(0x1122_3344_5566_7788)).unwrap();
    let want = bytes("kernels.aarch64.nopic.bin");
    let code = want.len().min(linked.len());
    assert!(code > 0x250, "the reference covers the code and constants");
    assert_eq!(linked[..code], want[..code]);
    // The stub for `outside` comes behind the code: LDR x16, .+8; BR x16; address.
    let stub = code.next_multiple_of(16);
    assert_eq!(linked[stub..stub + 8], [0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6]);
    assert_eq!(linked[stub + 8..stub + 16], 0x1122_3344_5566_7788u64.to_le_bytes());
}

#[test]
fn wrong_files_are_named() {
    let problem = |b: &[u8], m| Image::parse(b, m).unwrap_err().problem().clone();
    let arm = bytes("kernels.aarch64.pic.o");
    assert!(matches!(problem(&arm, Machine::X86_64), Problem::Machine { found: 183, .. }));
    let mut executable = arm.clone();
    executable[16] = 2;
    assert!(matches!(problem(&executable, Machine::Aarch64), Problem::Kind { found: 2, .. }));
    assert_eq!(problem(b"MZ", Machine::X86_64), Problem::NotElf(Contents::Text));
}

#[test]
fn low_addresses_that_do_not_fit_are_explained() {
    let file = bytes("kernels.x86_64.nopic.o");
    let image = Image::parse(&file, Machine::X86_64).unwrap();
    let text = image.link(0x7fff_0000_0000, &|_| Some(0)).unwrap_err().to_string();
    assert!(text.contains("R_X86_64_32S") && text.contains("-fPIC") && text.contains(".text"), "{text}");
}

const ALL: [(&str, Machine); 4] = [
    ("kernels.x86_64.pic.o", Machine::X86_64),
    ("kernels.x86_64.nopic.o", Machine::X86_64),
    ("kernels.aarch64.pic.o", Machine::Aarch64),
    ("kernels.aarch64.nopic.o", Machine::Aarch64),
];

fn use_all(file: &[u8], machine: Machine) -> bool {
    let Ok(image) = Image::parse(file, machine) else { return false };
    let _ = (image.exports(), image.reach(), image.code_size());
    let _ = image.link(0x4000_0000, &|_| Some(0x1234));
    true
}

#[test]
fn every_truncation_is_an_error() {
    for (name, machine) in ALL {
        let file = bytes(name);
        assert!(use_all(&file, machine), "{name}");
        assert!((0..file.len()).all(|n| !use_all(&file[..n], machine)), "{name}");
    }
}

#[test]
fn references_from_what_is_not_loaded_do_not_count() {
    let file = bytes("unloaded_code.o");
    let image = Image::parse(&file, Machine::Aarch64).unwrap();
    assert!(image.link(0x10000, &|_| None).is_ok(), "nothing loaded needs `outside`");
}

mod mutated {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_panics(
            which in 0usize..4,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        ) {
            let mut file = bytes(ALL[which].0);
            for (at, value) in &edits {
                let at = at.index(file.len());
                file[at] = *value;
            }
            use_all(&file, ALL[which].1);
        }
    }
}
