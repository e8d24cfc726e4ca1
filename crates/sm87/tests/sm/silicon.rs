//! Compares the results of a real GPU with those of the engine. The forms of `python/suite/silicon` were recorded on
//! the GPU that each file names, and compiled for sm_87. Every bit must be the same. Tensor cores are compared in
//! [`super::tensor`], because those of the recorded GPU are of another generation.
//!
//! `TEGRARM_TEST_SILICON=DIRECTORY` compares with another recording, for example a longer one.

use crate::support::{Arg, Gpu, Kernel};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The threads per block of every kernel (`ptx.py`).
const BLOCK: usize = 64;

/// A column of a recording: its form, and its value for each item.
pub struct Column {
    pub form: String,
    width: usize,
    pub values: Vec<u64>,
}

/// The recording of a family.
pub struct Recording {
    pub items: usize,
    /// The words of input per item.
    pub words: usize,
    pub input: Vec<u32>,
    pub columns: Vec<Column>,
}

/// A file of the directory that the tester named if it is there, and else of ours.
fn file(name: &str) -> Vec<u8> {
    let usual = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sm/silicon");
    let given = std::env::var_os("TEGRARM_TEST_SILICON").map(PathBuf::from);
    // Another recording needs other code only if it has another number of items.
    let own = given.filter(|d| d.join(name).exists());
    std::fs::read(own.unwrap_or(usual).join(name)).unwrap()
}

/// The bytes of a family's recording in a file of recordings: behind a line with the name and the length.
fn section<'a>(mut all: &'a [u8], family: &str) -> Option<&'a [u8]> {
    while let Some(end) = all.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&all[..end]).expect("a line before each recording");
        let [_, name, size] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("what is {line:?}?") };
        let (found, rest) = all[end + 1..].split_at(size.parse().expect("a length"));
        if name == family {
            return Some(found);
        }
        all = rest;
    }
    None
}

/// The machine code of a family, which is a section of the file with the code of all of them.
fn code(family: &str) -> Kernel {
    let all = String::from_utf8(file("code.hex")).unwrap();
    let begin = format!("# {family} of python/suite/silicon");
    let section = all.split_inclusive('\n').skip_while(|line| !line.starts_with(&begin)).skip(1);
    Kernel::parse(&section.take_while(|line| !line.starts_with("# ")).collect::<String>())
}

impl Recording {
    fn parse(file: &[u8]) -> Self {
        let end = file.windows(2).position(|w| w == b"\n\n").expect("an empty line after the header");
        let header = std::str::from_utf8(&file[..end]).unwrap();
        let data = miniz_oxide::inflate::decompress_to_vec_zlib(&file[end + 2..]).expect("zlib data");
        let (mut items, mut words, mut columns) = (0, 0, Vec::new());
        for line in header.lines().filter(|l| !l.starts_with('#')) {
            let (key, rest) = line.split_once(' ').unwrap();
            match key {
                "items" => items = rest.parse().unwrap(),
                "words" => words = rest.parse().unwrap(),
                "column" => {
                    let (width, form) = rest.split_once(' ').unwrap();
                    columns.push((width.parse().unwrap(), form.to_owned()));
                }
                _ => panic!("what is {line:?}?"),
            }
        }
        let mut rest = &data[..];
        // A column has the lowest bytes of all items first, then all next bytes, and so on.
        let mut take = |width: usize| -> Vec<u64> {
            let (bytes, after) = rest.split_at(width * items);
            rest = after;
            let value = |i: usize| (0..width).fold(0, |v, k| v | u64::from(bytes[k * items + i]) << (8 * k));
            (0..items).map(value).collect()
        };
        let operands: Vec<_> = (0..words).map(|_| take(4)).collect();
        let input = (0..items).flat_map(|i| operands.iter().map(move |o| o[i] as u32)).collect();
        let columns = columns.into_iter().map(|(width, form)| Column { form, width, values: take(width) }).collect();
        Self { items, words, input, columns }
    }
}

/// The recording of a family, and the engine's values for its columns.
pub fn both(family: &str) -> (Recording, Vec<Vec<u64>>) {
    let kernel = code(family);
    let all = file("recordings.bin");
    let recording = Recording::parse(section(&all, family).unwrap_or_else(|| panic!("{family} was not recorded")));
    let items = recording.items;
    let size: usize = recording.columns.iter().map(|c| c.width * items).sum();
    let mut gpu = Gpu::default();
    let (out, input) = (gpu.alloc(size), gpu.upload(&recording.input));
    let args = [Arg::Ptr(&out), Arg::Ptr(&input)];
    gpu.run(&kernel, [(items / BLOCK) as u32, 1, 1], [BLOCK as u32, 1, 1], &args).unwrap();
    let bytes = out.read::<u8>(size);
    let mut rest = &bytes[..];
    let mut column = |width: usize| -> Vec<u64> {
        let (values, after) = rest.split_at(width * items);
        rest = after;
        values.chunks_exact(width).map(|b| b.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))).collect()
    };
    let got = recording.columns.iter().map(|c| column(c.width)).collect();
    (recording, got)
}

fn compare(family: &str) {
    let (recording, engine) = both(family);
    let Recording { items, words, .. } = recording;
    let mut report = String::new();
    for (Column { form, values, .. }, got) in recording.columns.iter().zip(&engine) {
        let wrong: Vec<_> = (0..items).filter(|&i| got[i] != values[i]).collect();
        if !wrong.is_empty() {
            writeln!(report, "{form}: {} of {items} differ", wrong.len()).unwrap();
        }
        for &i in wrong.iter().take(4) {
            let from = &recording.input[i * words..][..words];
            writeln!(report, "    {:#x} should be {:#x}, from {from:x?}", got[i], values[i]).unwrap();
        }
    }
    assert!(report.is_empty(), "{family}:\n{report}");
}

macro_rules! families {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            compare(stringify!($name));
        }
    )*};
}

families! {
    single single_division single_compare double double_division half brain
    approximate approximate_half approximate_double
    from_single from_double from_half from_integer integer long video warp
    atomic_global atomic_shared atomic_long atomic_single atomic_double atomic_half memory
    matrix_double matrix_bytes matrix_nibbles matrix_moves
}
