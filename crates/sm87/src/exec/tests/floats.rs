//! Runs of FFMA and FADD against one instruction after another.

use super::*;
use crate::exec::image::Image;
use crate::exec::rows::{Dst, Row, rows_per_warp};
use crate::exec::tests::float;
use crate::word::Word;
use proptest::prelude::*;
use sm87_num::f32::{self as num, Mode};

/// The registers of the programs. They are few, so that instructions read and write what others have written.
const REGISTERS: usize = 6;

/// The registers of an instruction: its destination and three sources.
type Instruction = [u64; 4];

fn multiply([d, a, b, c]: Instruction) -> Word {
    Word::new(0x7223 | d << 16 | a << 24 | b << 32, 0x050f_e200_0000_0000 | c)
}

fn sum([d, a, b, _]: Instruction) -> Word {
    Word::new(0x7221 | d << 16 | a << 24 | b << 32, 0x000f_e200_0000_0000)
}

/// The runs of a program, which ends after these instructions.
fn runs(program: &[Word]) -> Vec<Run> {
    let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
    let image = Image::build(vec![0], &mut |n| program.get(n as usize).copied().or((n < 64).then_some(exit)));
    image.runs[..program.len()].to_vec()
}

type File = [[u32; 32]; REGISTERS];

/// What a run makes of the registers of a warp.
fn executed(body: unsafe fn(*mut u32, *const Run, usize, u32), runs: &[Run], registers: &File, exec: u32) -> File {
    let mut rows = vec![Row::ZERO; rows_per_warp(REGISTERS as u32)];
    let at = Dst::reg(0).offset() / 32;
    for (row, words) in rows[at..].iter_mut().zip(registers) {
        row.0 = *words;
    }
    // SAFETY: the file has the rows of all registers of these instructions.
    unsafe { body(rows.as_mut_ptr().cast(), runs.as_ptr(), runs.len(), exec) };
    std::array::from_fn(|n| rows[at + n].0)
}

/// What the instructions make of them one after another.
fn expected(program: &[Instruction], registers: &File, exec: u32, f: impl Fn(u32, u32, u32) -> u32) -> File {
    let mut file = *registers;
    for &[d, a, b, c] in program {
        for lane in (0..32).filter(|lane| exec >> lane & 1 != 0) {
            let [x, y, z] = [a, b, c].map(|n| file.get(n as usize).map_or(0, |row| row[lane]));
            if let Some(row) = file.get_mut(d as usize) {
                row[lane] = f(x, y, z);
            }
        }
    }
    file
}

fn instruction() -> impl Strategy<Value = Instruction> {
    // R255 is RZ.
    let register = || prop_oneof![9 => 0..REGISTERS as u64, 1 => Just(255)];
    [register(), register(), register(), register()]
}

fn file() -> impl Strategy<Value = File> {
    let word = prop_oneof![float(), 0x3f00_0000..0x4080_0000u32];
    prop::collection::vec(word, 32 * REGISTERS)
        .prop_map(|words| std::array::from_fn(|n| std::array::from_fn(|lane| words[32 * n + lane])))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn products_are_those_of_one_instruction_after_another(
        program in prop::collection::vec(instruction(), 1..24), before in file(),
    ) {
        let runs = runs(&program.iter().copied().map(multiply).collect::<Vec<_>>());
        prop_assert_eq!(usize::from(runs[0].multiplying), program.len());
        let want = expected(&program, &before, u32::MAX, |x, y, z| num::fma(x, y, z, Mode::default(), false));
        prop_assert_eq!(executed(multiplied::<u32>, &runs, &before, u32::MAX), want);
        #[cfg(target_arch = "x86_64")]
        if super::super::host::avx2() {
            let body = multiplied::<super::super::avx2::Avx2>;
            prop_assert_eq!(executed(body, &runs, &before, u32::MAX), want);
        }
    }

    #[test]
    fn sums_are_those_of_one_instruction_after_another(
        program in prop::collection::vec(instruction(), 1..24), before in file(), exec in prop::sample::select(vec![0xffff, 0xffff_0000, u32::MAX]),
    ) {
        let runs = runs(&program.iter().copied().map(sum).collect::<Vec<_>>());
        prop_assert_eq!(usize::from(runs[0].adding), program.len());
        let want = expected(&program, &before, exec, |x, y, _| num::add(x, y, Mode::default()));
        prop_assert_eq!(executed(added::<u32>, &runs, &before, exec), want);
        #[cfg(target_arch = "x86_64")]
        if super::super::host::avx2() {
            prop_assert_eq!(executed(added::<super::super::avx2::Avx2>, &runs, &before, exec), want);
        }
    }
}

#[test]
fn products_share_a_factor_until_one_of_them_writes_it() {
    let program = [[3, 0, 1, 3], [4, 0, 2, 4], [0, 0, 1, 5], [3, 0, 1, 3], [4, 1, 2, 4], [5, 1, 2, 5]].map(multiply);
    assert_eq!(
        runs(&program).iter().map(|run| run.shares).collect::<Vec<_>>(),
        [true, true, false, false, true, false]
    );
}
