//! Which registers are cleared for a new warp.

use super::super::image::Image;
use super::super::rows::{REGISTER, used};
use crate::isa;
use crate::word::Word;

const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);
/// MOV R7, 0xffffffff, and the same with the guard @P0.
const MOVE: Word = Word::new(0xffff_ffff_0007_7802, 0x000f_e400_0000_0f00);
const GUARDED: Word = Word::new(0xffff_ffff_0007_0802, 0x000f_e400_0000_0f00);
/// FADD R9, R7, R7, and FADD R7, R0, R0.
const ADD: Word = Word::new(0x0000_0007_0709_7221, 0x004f_ca00_0000_0000);
const ADD_ZEROTH: Word = Word::new(0x0000_0000_0007_7221, 0x004f_ca00_0000_0000);
/// ISETP.GT.U32.AND P0, PT, R4, 0x6, PT.
const COMPARE: Word = Word::new(0x0000_0006_0400_780c, 0x000f_e200_03f0_4070);
/// @P0 BRA, to the instruction after the next one.
const BRANCH: Word = Word::new(0x0000_0010_0000_0947, 0x000f_ea00_0380_0000);
/// CALL.REL.NOINC, to the next instruction.
const CALL: Word = Word::new(0x0000_0000_0000_7944, 0x000f_ea00_03c0_0000);
/// SHFL.DOWN PT, R9, R7, 0x9, 0x1f.
const SHUFFLE: Word = Word::new(0x0920_1f00_0709_7f89, 0x000f_6200_000e_0000);
/// S2R R7, SR_TID.X.
const THREAD: Word = Word::new(0x0000_0000_0007_7919, 0x000e_2400_0000_2100);

fn image(words: &[Word]) -> Image {
    Image::build(vec![0], &mut |n| usize::try_from(n).ok().and_then(|n| words.get(n).copied()))
}

/// The numbers of the registers that are cleared.
fn cleared(words: &[Word]) -> Vec<u16> {
    let image = image(words);
    image.cleared.iter().cloned().flatten().filter_map(|row| row.checked_sub(REGISTER as u16)).collect()
}

#[test]
fn registers_are_cleared_that_a_path_reads_before_it_writes_them() {
    for (words, want) in [
        (&[MOVE, ADD, EXIT][..], &[][..]),
        (&[ADD, MOVE, EXIT], &[7]),
        (&[GUARDED, ADD, EXIT], &[7]),
        (&[MOVE, GUARDED, ADD, EXIT], &[]),
        (&[COMPARE, BRANCH, MOVE, ADD, EXIT], &[4, 7]),
        (&[COMPARE, BRANCH, MOVE, EXIT], &[4]),
    ] {
        assert_eq!(cleared(words), want, "{words:?}");
    }
}

/// The bits in which other instructions have their destination are zero here, which is R0.
#[test]
fn a_comparison_overwrites_no_register() {
    assert_eq!(isa::lookup(COMPARE).map(|row| row.has_destination), Some(false));
    assert_eq!(cleared(&[COMPARE, ADD_ZEROTH, EXIT]), [0, 4]);
}

#[test]
fn what_other_lanes_read_is_always_cleared() {
    assert_eq!(isa::lookup(SHUFFLE).map(|row| row.name), Some("SHFL"));
    assert_eq!(cleared(&[MOVE, SHUFFLE, EXIT]), [7]);
}

#[test]
fn unknown_code_may_read_everything() {
    assert_eq!(cleared(&[MOVE, CALL, ADD, EXIT]), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
    assert_eq!(cleared(&[MOVE, ADD]), [0, 1, 2, 3, 4, 5, 6, 8], "nothing is known behind the end");
}

#[test]
fn observed_programs_and_those_with_few_registers_clear_what_is_there() {
    let image = image(&[ADD, EXIT]);
    let few = image.limited(8, super::super::uop::Handlers::all(|_, _, _, _| super::super::uop::Flow::Next));
    assert_eq!(few.cleared, std::slice::from_ref(&(REGISTER as u16 + 7..REGISTER as u16 + 8)));
    let few = image.limited(4, super::super::uop::Handlers::all(|_, _, _, _| super::super::uop::Flow::Next));
    assert!(few.cleared.is_empty());
    let all: Vec<usize> =
        super::super::live::all(image.uniform, image.registers).into_iter().flatten().map(usize::from).collect();
    assert!(all.into_iter().eq(used(image.uniform, image.registers)));
}

#[test]
fn warps_begin_alike_until_they_ask_who_they_are() {
    let image = image(&[MOVE, COMPARE, BRANCH, ADD, THREAD, SHUFFLE, EXIT]);
    let alike: Vec<bool> = (0..image.len()).map(|at| image.is_alike(at)).collect();
    assert_eq!(alike, [true, true, true, true, false, false, false, false], "the last one is the program's end");
}
