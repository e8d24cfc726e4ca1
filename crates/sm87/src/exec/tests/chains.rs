//! Which loads of a program are in one chain, and which of them are executed together.

use super::*;

const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);
/// IADD3 R2, P0, R2, 0x1000, RZ
const ADVANCE: Word = Word::new(0x0000_1000_0202_7810, 0x002f_e200_07f1_e0ff);
/// IADD3 R52, R52, 0x1, RZ
const COUNT: Word = Word::new(0x0000_0001_3434_7810, 0x000f_e200_07ff_e0ff);

/// LDG.E R`d`, [R2.64+`offset`], with other bits.
fn load(d: u64, offset: i64, low: u64, high: u64) -> Word {
    let offset = (offset as u64 & 0xff_ffff) << 40;
    Word::new((0x0000_0004_0200_7981 | d << 16 | offset) ^ low, 0x0000_a800_0c1e_1900 ^ high)
}

fn plain(d: u64, offset: i64) -> Word {
    load(d, offset, 0, 0)
}

/// For each instruction, how far it is from the first load of its chain, and how many are executed together.
fn links(program: &[Word]) -> Vec<(u16, u8)> {
    let image = Image::build(vec![0], &mut |n| program.get(n as usize).copied());
    let uops = &image.uops[..program.len()];
    uops.iter().zip(&image.runs).map(|(u, run)| (u.aux, run.loading)).collect()
}

#[test]
fn loads_of_one_register_are_a_chain_until_it_is_written() {
    let found = links(&[plain(5, -8), plain(4, -4), COUNT, plain(7, 0), ADVANCE, plain(8, 4), plain(9, 8), EXIT]);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [0, 1, 0, 3, 0, 0, 1, 0]);
}

#[test]
fn a_load_of_the_address_register_ends_its_chain() {
    for d in [2, 3] {
        assert_eq!(links(&[plain(d, 0), plain(8, 4), plain(9, 8), EXIT])[1..3], [(0, 2), (1, 1)], "R{d}");
    }
}

#[test]
fn words_that_follow_each_other_are_loaded_together() {
    let found = links(&[plain(5, -8), plain(4, -4), plain(9, 0), plain(6, 8), plain(7, 12), EXIT]);
    assert_eq!(found, [(0, 3), (1, 2), (2, 1), (3, 2), (4, 1), (0, 0)]);
}

#[test]
fn guarded_and_ordered_loads_and_other_sizes_are_not() {
    // @P0, STRONG.GPU, and LDG.E.64.
    for (low, high) in [(0x7000, 0), (0, 7 << 13), (0, 0x200)] {
        let odd = load(10, 4, low, high);
        let found = links(&[plain(5, 0), odd, plain(6, 8), EXIT]);
        assert_eq!((found[0], found[1].0, found[2]), ((0, 1), 0, (2, 1)), "{odd:?}");
    }
}
