//! Compares the cubin loader with files of three compilers and with what an independent reader found in them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use tegrarm_images::cubin::{Cubin, Outside, Stack};
use tegrarm_images::elf::{Contents, Problem};

const BASE: u64 = 0xab_1234_5000;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(data()).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "cubin"));
    files.sort();
    assert!(files.len() >= 20, "test data is missing");
    files
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data().join(name)).unwrap()
}

fn expected(cubin: &Path) -> Value {
    let all: Value = serde_json::from_slice(&bytes("described.json")).unwrap();
    all[cubin.file_stem().unwrap().to_str().unwrap()].clone()
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap()
}

#[test]
fn kernels_are_what_the_other_reader_says() {
    for path in files() {
        let cubin = Cubin::parse(&std::fs::read(&path).unwrap(), 87).unwrap();
        let expected = expected(&path);
        let kernels = expected["kernels"].as_object().unwrap();
        assert_eq!(cubin.kernels().len(), kernels.len(), "{path:?}");
        for (name, want) in kernels {
            let kernel = cubin.kernel(name).unwrap();
            let at = format!("{name} in {path:?}");
            assert_eq!(kernel.code_size, number(&want["size"]), "{at}");
            assert_eq!(u64::from(kernel.registers), number(&want["registers"]), "{at}");
            assert_eq!(u64::from(kernel.shared), number(&want["shared"]), "{at}");
            assert_eq!(u64::from(kernel.parameter_offset), number(&want["parameter_offset"]), "{at}");
            assert_eq!(u64::from(kernel.parameter_size), number(&want["parameter_size"]), "{at}");
            let stack = match number(&want["min_stack"]) {
                0xffff_ffff => Stack::Unbounded,
                bytes => Stack::Bytes(bytes as u32),
            };
            assert_eq!(kernel.stack, stack, "{at}");
            let found: Vec<Value> =
                (kernel.parameters.iter().enumerate()).map(|(i, p)| serde_json::json!([i, p.offset, p.size])).collect();
            assert_eq!(Value::from(found), want["parameters"], "{at}");
            let mut banks: Vec<Value> = kernel.banks.iter().map(|b| serde_json::json!([b.number, b.size])).collect();
            banks.insert(0, serde_json::json!([0, kernel.parameter_bank()]));
            assert_eq!(Value::from(banks), want["banks"], "{at}");
            assert_eq!(kernel.code % 128, 0, "{at}");
            assert!(kernel.banks.iter().all(|b| b.offset % 256 == 0), "{at}");
            assert!(kernel.code + kernel.code_size + 4096 <= cubin.memory_size(), "{at}");
        }
    }
}

#[test]
fn launch_bounds_barriers_and_stack() {
    let vecadd = Cubin::parse(&bytes("vecadd.nvrtc.cubin"), 87).unwrap();
    assert_eq!(vecadd.kernel("scale").unwrap().max_threads, Some(128));
    assert_eq!(vecadd.kernel("vecadd").unwrap().max_threads, None);
    for route in ["nvrtc", "jit", "cuda13"] {
        let shared = Cubin::parse(&bytes(&format!("shared.{route}.cubin")), 87).unwrap();
        assert_eq!(shared.kernel("reduce").unwrap().barriers, 1, "{route}");
        assert_eq!(shared.kernel("reduce").unwrap().shared_memory(0), 0x800, "{route}");
        assert_eq!(shared.kernel("mixed").unwrap().shared_memory(1000), 0x400 + 1152, "{route}");
        let calls = Cubin::parse(&bytes(&format!("calls.{route}.cubin")), 87).unwrap();
        assert_eq!(calls.kernel("array").unwrap().local_memory(), 256 + 0x240, "{route}");
    }
    let jit = Cubin::parse(&bytes("calls.jit.cubin"), 87).unwrap();
    assert_eq!(jit.kernel("recursive").unwrap().local_memory(), 1024 + 0x240);
}

/// The range of a section's bytes in the file, found through the section list of the other reader.
fn section_in_file(file: &[u8], name: &str) -> (usize, usize) {
    let word = |at: usize, n: usize| u64::from_le_bytes([&file[at..at + n], &[0; 8][n..]].concat().try_into().unwrap());
    let (start, count, names) = (word(0x28, 8) as usize, word(0x3c, 2) as usize, word(0x3e, 2) as usize);
    let names = word(start + names * 64 + 0x18, 8) as usize;
    let header = (0..count).map(|i| start + i * 64).find(|&h| {
        let at = names + word(h, 4) as usize;
        file[at..].starts_with(name.as_bytes()) && file[at + name.len()] == 0
    });
    let header = header.unwrap();
    (word(header + 0x18, 8) as usize, word(header + 0x20, 8) as usize)
}

/// The place of a symbol in the image. The symbol is a kernel, a variable, or a function whose code has no relocations.
fn locate(cubin: &Cubin, image: &[u8], file: &[u8], symbol: &str) -> Option<u64> {
    if let Some(kernel) = cubin.kernel(symbol) {
        return Some(kernel.code);
    }
    if let Some(variable) = cubin.variable(symbol) {
        return Some(variable.offset);
    }
    let (at, size) = section_in_file(file, &format!(".text.{symbol}"));
    let code = &file[at..at + size];
    image.windows(size).position(|w| w == code).map(|p| p as u64)
}

#[test]
fn relocations_hold_the_addresses() {
    let mut seen = std::collections::BTreeMap::<u64, usize>::new();
    for path in files() {
        let file = std::fs::read(&path).unwrap();
        let cubin = Cubin::parse(&file, 87).unwrap();
        let image = cubin.place(BASE).unwrap();
        for r in expected(&path)["relocations"].as_array().unwrap() {
            let (section, offset, kind) = (r[0].as_str().unwrap(), number(&r[1]), number(&r[2]));
            if section.starts_with(".text._Z") {
                continue; // The place of a function is not known here. The call to it in its kernel is checked instead.
            }
            let (symbol, addend) = (r[3].as_str().unwrap(), r[4].as_i64().unwrap());
            let place = match section {
                ".nv.global.init" => cubin.variables().filter(|(n, _)| !is_constant(n)).map(|(_, v)| v.offset).min(),
                ".nv.constant3" => cubin.kernels()[0].banks.iter().find(|b| b.number == 3).map(|b| b.offset),
                ".nv.constant4" => cubin.kernels()[0].banks.iter().find(|b| b.number == 4).map(|b| b.offset),
                text => cubin.kernel(text.strip_prefix(".text.").unwrap()).map(|k| k.code),
            };
            let at = (place.unwrap() + offset) as usize;
            let Some(target) = locate(&cubin, &image, &file, symbol) else { continue };
            let address = BASE + target + addend as u64;
            let tail = &image[at..image.len().min(at + 16)];
            let word = u128::from_le_bytes([tail, &[0; 16][tail.len()..]].concat().try_into().unwrap());
            let (found, want) = match kind {
                2 | 4 => (word as u64, address),
                56 => ((word >> 32) as u32 as u64, address & 0xffff_ffff),
                57 => ((word >> 32) as u32 as u64, address >> 32),
                58 => (((word >> 34) as u64 & ((1 << 47) - 1)) << 2, address),
                other => panic!("relocation {other} in {path:?}"),
            };
            assert_eq!(found, want, "{section}+{offset:#x} type {kind} {symbol} in {path:?}");
            *seen.entry(kind).or_default() += 1;
        }
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [2, 4, 56, 57, 58], "{seen:?}");
}

fn is_constant(name: &str) -> bool {
    ["weights", "offset", "indirection", "scratch"].contains(&name)
}

#[test]
fn only_relocated_fields_change() {
    for path in files() {
        let cubin = Cubin::parse(&std::fs::read(&path).unwrap(), 87).unwrap();
        let (a, b) = (cubin.place(0).unwrap(), cubin.place(0x1000).unwrap());
        let different = a.iter().zip(&b).filter(|(x, y)| x != y).count();
        let relocations = expected(&path)["relocations"].as_array().unwrap().len();
        assert!(different <= 2 * relocations, "{path:?}: {different} bytes for {relocations} relocations");
    }
}

#[test]
fn zeroed_variables_take_memory_but_no_bytes() {
    let cubin = Cubin::parse(&bytes("constants.nvrtc.cubin"), 87).unwrap();
    let scratch = cubin.variable("scratch").unwrap();
    assert_eq!(scratch.size, 128);
    assert!(scratch.offset >= cubin.place(0).unwrap().len() as u64);
    assert!(scratch.offset + scratch.size <= cubin.memory_size());
}

/// The second instruction of a kernel is replaced by one that works on an image.
#[test]
fn textures_and_surfaces_are_refused_by_name() {
    for (opcode, name) in
        [(0x361u16, "TEX"), (0x364, "TLD4"), (0x370, "TXQ"), (0x99a, "SULD"), (0x99e, "SUST"), (0x3a0, "SURED")]
    {
        let mut file = bytes("vecadd.nvrtc.cubin");
        let (at, _) = section_in_file(&file, ".text.vecadd");
        let guard = file[at + 17] & 0xf0;
        file[at + 16..at + 18].copy_from_slice(&(opcode | u16::from(guard) << 8).to_le_bytes());
        let error = Cubin::parse(&file, 87).unwrap_err();
        let function = "vecadd".to_string();
        assert_eq!(*error.problem(), Problem::Image { function, instruction: name, offset: 16 });
        assert!(error.to_string().contains(&format!("'vecadd' has the instruction {name} at offset 0x10")), "{error}");
    }
}

fn problem(bytes: &[u8], sm: u32) -> Problem {
    Cubin::parse(bytes, sm).unwrap_err().problem().clone()
}

#[test]
fn wrong_files_are_named() {
    let good = bytes("vecadd.nvrtc.cubin");
    assert_eq!(problem(&good, 86), Problem::Architecture { found: 87, wanted: 86 });
    assert_eq!(problem(&bytes("vecadd.cuda13.cubin"), 80), Problem::Architecture { found: 87, wanted: 80 });
    assert_eq!(problem(b"\x7fELG", 87), Problem::NotElf(Contents::Other));
    let edited = |at: usize, value: u8| {
        let mut copy = good.clone();
        copy[at] = value;
        copy
    };
    assert_eq!(problem(&edited(4, 1), 87), Problem::Format { class: 1, data: 1 });
    assert!(matches!(problem(&edited(18, 62), 87), Problem::Machine { found: 62, .. }));
    assert!(problem(&edited(16, 1), 87).to_string().contains("nvJitLink"));
    let text = Cubin::parse(&good[..good.len() / 2], 87).unwrap_err().to_string();
    assert!(text.contains("offset") && text.contains("truncated"), "{text}");
}

/// What people pass instead of a cubin: each gets the sentence that helps.
#[test]
fn what_is_no_elf_file_is_told_apart() {
    let ptx = b"//\n.version 8.5\n.target sm_87\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
    let cases: [(&[u8], Contents, &str); 9] = [
        (b"", Contents::Nothing, "the file is empty"),
        (ptx, Contents::Ptx, "this is PTX"),
        (&[ptx, &b"\0"[..]].concat(), Contents::Ptx, "without --ptx"),
        (b"#include <x.h>\n__global__ void k() {}\n", Contents::Source, "`tegrarm compile FILE`"),
        ("/* \u{fc}ber */ __device__ int x;".as_bytes(), Contents::Source, "CUDA C++"),
        (b"kernel.cubin", Contents::Text, "this is text"),
        (&[0x50, 0xed, 0x55, 0xba, 1, 0], Contents::FatBinary, "cuobjdump"),
        (b"\x7fELG", Contents::Other, "7f 45 4c 46"),
        (b"PK\x03\x04", Contents::Other, "not an ELF file"),
    ];
    for (bytes, contents, words) in cases {
        assert_eq!(problem(bytes, 87), Problem::NotElf(contents));
        let said = Cubin::parse(bytes, 87).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    // A character that the look at the first 64 KiB cuts off does not make a text something else.
    let long = format!("__global__{}\u{20ac}\u{20ac}", " ".repeat((64 << 10) - 11));
    assert_eq!(problem(long.as_bytes(), 87), Problem::NotElf(Contents::Source));
}

#[test]
fn every_attribute_is_read_or_needs_nothing_or_is_refused_by_name() {
    use tegrarm_images::cubin::table::{ROWS, Treatment, find};
    let good = bytes("vecadd.nvrtc.cubin");
    // SW_WAR comes first: format 4 with four bytes. The loader does not use it.
    let (at, _) = section_in_file(&good, ".nv.info.vecadd");
    assert_eq!(good[at..at + 4], [4, 0x36, 4, 0]);
    assert!(ROWS.windows(2).all(|pair| pair[0].number < pair[1].number));
    for attribute in 0..=u8::MAX {
        let mut file = good.clone();
        file[at + 1] = attribute;
        let loaded = Cubin::parse(&file, 87).map(|_| ()).map_err(|e| e.problem().clone());
        let Some(row) = find(attribute) else {
            assert_eq!(loaded, Err(Problem::UnknownAttribute { attribute }));
            continue;
        };
        let name = row.name;
        match (row.treatment, row.format.number()) {
            (Treatment::Refused(why), _) => {
                assert_eq!(loaded, Err(Problem::RefusedAttribute { attribute, name, why }));
                assert!(Cubin::parse(&file, 87).unwrap_err().to_string().contains(&format!("EIATTR_{name}")));
            }
            (_, Some(wanted)) if wanted != 4 => {
                assert_eq!(loaded, Err(Problem::AttributeFormat { attribute, found: 4, wanted }));
            }
            (Treatment::Idle(_), _) => assert_eq!(loaded, Ok(()), "{name}"),
            (Treatment::Read, _) => {}
        }
    }
}

#[test]
fn an_undefined_function_is_named() {
    let text = Cubin::parse(&without_division(b"__cuda_sm20_div_u64"), 87).unwrap_err().to_string();
    assert!(text.contains("undefined: __cuda_sm20_div_u64"), "{text}");
}

#[test]
fn a_kernel_that_launches_kernels_is_refused_by_name() {
    let text = Cubin::parse(&without_division(b"__cuda_syscall_cnpv"), 87).unwrap_err().to_string();
    assert!(text.contains("launches kernels itself (CUDA's dynamic parallelism), and '__cuda_syscall_cnpv'"), "{text}");
}

/// Makes the routine of a division undefined, by setting the index of its symbol's section to 0, and gives it another name.
fn without_division(name: &[u8; 19]) -> Vec<u8> {
    let mut file = bytes("divide.jit.cubin");
    let (symbols, size) = section_in_file(&file, ".symtab");
    let (names, _) = section_in_file(&file, ".strtab");
    for s in (symbols..symbols + size).step_by(24) {
        let at = names + u32::from_le_bytes(file[s..s + 4].try_into().unwrap()) as usize;
        if file[at..].starts_with(b"__cuda_sm20_div_u64\0") {
            file[at..at + name.len()].copy_from_slice(name);
            file[s + 6..s + 8].fill(0);
            file[s + 4] = 0x12;
        }
    }
    file
}

#[test]
fn functions_of_the_driver_are_brought_or_named() {
    let file = bytes("driver/functions.cubin");
    let text = Cubin::parse(&file, 87).unwrap_err().to_string();
    assert!(text.contains("undefined: __assertfail, free, malloc, vprintf"), "{text}");
    let names = ["__assertfail", "free", "malloc", "vprintf", "another"];
    let offsets = names.iter().zip((0..).step_by(0x100)).map(|(name, at)| (name.to_string(), at)).collect();
    let cubin = Cubin::parse_with(&file, 87, &Outside::new(offsets, 77, 1000)).unwrap();
    assert_eq!(cubin.outside().iter().collect::<Vec<_>>(), names[..4].iter().collect::<Vec<_>>());
    assert!(cubin.kernels().iter().all(|k| k.registers == 77 && matches!(k.stack, Stack::Bytes(1000..))));
    // Each address of a function is the base plus the function's offset. No other bytes depend on the base.
    let image = |base| cubin.place_with(BASE, base).unwrap();
    let (one, two) = (image(0x10_0000_0000), image(0x20_0000_0000));
    let words =
        |image: &[u8]| image.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>();
    let changed: Vec<_> = words(&one).into_iter().zip(words(&two)).filter(|(a, b)| a != b).collect();
    assert!(changed.len() >= 4, "{changed:x?}");
    assert!(
        changed.iter().all(|(a, b)| b - a == 0x10_0000_0000 && names.len() as u64 * 0x100 > a & 0xffff),
        "{changed:x?}"
    );
}

#[test]
fn placement_needs_a_page_and_a_reachable_address() {
    let cubin = Cubin::parse(&bytes("divide.jit.cubin"), 87).unwrap();
    assert!(cubin.place(128).is_err());
    let text = cubin.place(1 << 50).unwrap_err().to_string();
    assert!(text.contains("R_CUDA_ABS47_34") && text.contains("__cuda_sm20_div"), "{text}");
}

/// Uses every function that a caller can use on what was parsed.
fn use_all(cubin: &Cubin) {
    assert!(cubin.memory_size() >= 4096);
    for k in cubin.kernels() {
        let _ = (k.local_memory(), k.shared_memory(u32::MAX), k.parameter_bank());
    }
    let _ = cubin.place(BASE);
}

#[test]
fn every_truncation_is_an_error() {
    let file = bytes("vecadd.nvrtc.cubin");
    let headers = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(file[0x3c..0x3e].try_into().unwrap()));
    for length in 0..file.len() {
        match Cubin::parse(&file[..length], 87) {
            Ok(cubin) => {
                assert!(length >= headers + 64 * count, "a file of {length} bytes loads");
                use_all(&cubin);
            }
            Err(e) => assert!(e.to_string().contains("offset"), "{e}"),
        }
    }
}

mod mutated {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_panics(
            which in 0usize..20,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        ) {
            let mut file = std::fs::read(&files()[which]).unwrap();
            for (at, value) in &edits {
                let at = at.index(file.len());
                file[at] = *value;
            }
            if let Ok(cubin) = Cubin::parse(&file, 87) {
                use_all(&cubin);
            }
        }

        /// The same with edits in important places: the file header, section headers, symbols, relocations and
        /// attributes.
        #[test]
        fn hostile_headers_never_panic(
            which in 0usize..20,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..4, any::<u64>()), 1..6),
        ) {
            let mut file = std::fs::read(&files()[which]).unwrap();
            let headers = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap()) as usize;
            let text = section_in_file(&file, ".debug_frame").0;
            let records = [0..64, headers..file.len() - 8, 64..text, headers..headers + 64 * 8];
            for (at, area, value) in &edits {
                let area = records[*area].clone();
                let at = (area.start + at.index(area.len())) & !3;
                let small = if value % 3 == 0 { value % 70_000 } else { *value };
                file[at..at + 4].copy_from_slice(&(small as u32).to_le_bytes());
            }
            if let Ok(cubin) = Cubin::parse(&file, 87) {
                use_all(&cubin);
            }
        }
    }
}
