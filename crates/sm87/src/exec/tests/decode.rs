//! The cache of programs, runs of instructions, and chains of loads.

use super::*;
use crate::exec::runs::Step;

/// An EXIT. No two programs of these tests have the same first words.
fn exits(program: u64) -> impl FnMut(i64) -> Option<Word> {
    move |n| Some(if n == 1 { Word::new(program, 0) } else { Word::new(0x794d, 0x000f_ea00_0380_0000) })
}

#[test]
fn an_extended_image_takes_the_place_of_the_one_it_extends() {
    let code = &mut exits(0x9_1111_0000);
    let mut image = find(0, code);
    for root in 1..100 {
        image = extend(&image, 16 * root, 0, code).expect("within reach");
    }
    let key = key(code);
    let known = cache().lock().images.get(&key).cloned().unwrap_or_default();
    assert!(known.len() == 1 && Arc::ptr_eq(&known[0], &image), "{known:?}");
    assert!(Arc::ptr_eq(&find(0, code), &image), "and serves the program from now on");
}

#[test]
fn ctas_that_extend_an_image_at_once_get_the_same_one() {
    let code = &mut exits(0x9_2222_0000);
    let first = find(0, code);
    let one = extend(&first, 160, 0, code).expect("within reach");
    assert!(
        Arc::ptr_eq(&one, &extend(&first, 160, 0, code).expect("within reach")),
        "the second finds that of the first"
    );
    let two = extend(&one, 320, 0, code).expect("within reach");
    // Another launch has got there in the other order.
    let other = extend(&extend(&first, 320, 0, code).expect("within reach"), 160, 0, code).expect("within reach");
    assert!(Arc::ptr_eq(&two, &other));
    assert!(Arc::ptr_eq(&find(0, code), &two), "the next launch begins with the largest");
}

#[test]
fn the_cache_counts_what_it_keeps() {
    let mut cache = Cache::new(1000);
    let image = |last: i64| Image::build(0, vec![0, last], &mut exits(0));
    cache.keep(1, image(9));
    cache.keep(2, image(19));
    assert_eq!(cache.instructions, 11 + 21, "with the end of each");
    cache.replace(2, &image(9));
    assert_eq!(cache.instructions, 32, "that program has no such image");
    cache.replace(1, &image(9));
    assert_eq!(cache.instructions, 21);
    for program in 3..20 {
        cache.keep(program, image(200));
        let kept: usize = cache.images.values().flatten().map(|i| i.words.len()).sum();
        assert!(cache.instructions == kept && kept <= 1000, "{kept}");
    }
}

#[test]
fn a_program_has_a_most_of_instructions() {
    // MOV without an end.
    let code = &mut |_: i64| Some(Word::new(0x9333_0000_0007_7802, 0x000f_e400_0000_0f00));
    let image = find(0, &mut |n| (n < 8).then(|| code(n)).flatten());
    assert_eq!(image.len(), 10, "eight words, one that is not there, and the end");
    assert!(extend(&image, 9, 0, &mut |n| (n < 1 << 20).then(|| code(n)).flatten()).is_none());
}

#[test]
fn code_that_is_no_longer_there_keeps_its_place() {
    let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
    let nop = Word::new(0x7918, 0x000f_c000_0000_0000);
    let first = Image::build(0, vec![0], &mut |n| (n >= 0).then_some(if n == 20 { exit } else { nop }));
    let then = extend(&first, 1 << 30, 0, &mut |n| (n == 0 || n == 1 << 30).then_some(exit)).expect("few instructions");
    assert!(then.places.cover(&first.places) && then.words[20].is_none() && then.row(then.entry).is_some());
}

/// FFMA R24, R20, R16, R24, with another guard if it has a bit set in `guard`.
fn multiply(guard: u64) -> Word {
    Word::new(0x0000_0010_1418_7223 ^ guard, 0x050f_e200_0000_0018)
}

/// For each instruction of a program, the run that begins there.
fn lengths(image: &Image) -> Vec<(u8, u8)> {
    image.runs.iter().map(|run| (run.straight, run.multiplying)).collect()
}

#[test]
fn runs_end_where_something_else_begins() {
    let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
    let mov = Word::new(0x0000_0005_0002_7202, 0x000f_e200_0000_0f00);
    let program = [multiply(0), multiply(0), mov, multiply(0), multiply(1 << 12), multiply(0), exit];
    let image = Image::build(0, vec![0], &mut |n| program.get(n as usize).copied());
    let found = lengths(&image);
    assert_eq!(found[..7], [(6, 2), (5, 1), (4, 0), (3, 1), (2, 0), (1, 1), (0, 0)]);
    assert!(found[7..].iter().all(|&run| run == (0, 0)), "nothing is known behind the end");
    let few = image.limited(16, Handlers::all(refuse));
    assert_eq!(
        lengths(&few)[..7],
        [(6, 0), (5, 0), (4, 0), (3, 0), (2, 0), (1, 0), (0, 0)],
        "FFMA has too many registers, so that its other handler is called for each"
    );
    assert!(few.runs[..6].iter().zip(&few.uops).all(|(run, u)| (run.step == Step::Simple) == u.guard.is_always_true()));
    assert_eq!(lengths(&image.limited(32, Handlers::all(refuse))), found);
}

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
    let image = Image::build(0, vec![0], &mut |n| program.get(n as usize).copied());
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
fn ordered_loads_and_other_sizes_are_not() {
    // STRONG.GPU, and LDG.E.64.
    for high in [7 << 13, 0x200] {
        let odd = load(10, 4, 0, high);
        let found = links(&[plain(5, 0), odd, plain(6, 8), EXIT]);
        assert_eq!((found[0], found[1].0, found[2]), ((0, 1), 0, (2, 1)), "{odd:?}");
    }
}

#[test]
fn guarded_loads_are_of_the_chain_but_executed_by_themselves() {
    let guarded = |d, offset| load(d, offset, 0x7000, 0); // @P0
    let found = links(&[plain(5, 0), guarded(10, 4), guarded(11, 8), plain(6, 12), EXIT]);
    assert_eq!(found[..4], [(0, 1), (1, 0), (2, 0), (3, 1)]);
}

#[test]
fn calls_of_absolute_addresses_lead_to_code_that_is_known() {
    const CODE: u64 = 0x4_0000_0000;
    // CALL.ABS to the eighth instruction, NOP seven times, RET.ABS.NODEC R20.
    let call = Word::new((CODE + 8 * 16) << 32 | 0x7943, (CODE + 8 * 16) >> 32 | 0x000f_ea00_03c0_0000);
    let (nop, back) = (Word::new(0x7918, 0x000f_c000_0000_0000), Word::new(0x1400_7950, 0x000f_ea00_03e0_0000));
    let word = |n: i64| Some([call, nop, back][(n > 0) as usize + (n > 7) as usize]);
    let fetch = &mut |n: i64| if (0..9).contains(&n) { word(n) } else { None };
    let image = find(CODE, fetch);
    assert_eq!((image.jumps_to(0), image.name(8), image.ordered), (Some(8), "RET", false));
    assert!(image.targets().contains(&8), "control enters there");
    let elsewhere = find(CODE + 16, fetch);
    assert_eq!(elsewhere.jumps_to(0), Some(7), "the address is the same, and the kernel lies behind where it was");
    assert!(Arc::ptr_eq(&find(CODE, fetch), &image) && Arc::ptr_eq(&find(CODE + 16, fetch), &elsewhere));
    let larger = extend(&elsewhere, 3, CODE + 16, fetch).expect("within reach");
    assert!(Arc::ptr_eq(&find(CODE, fetch), &image) && Arc::ptr_eq(&find(CODE + 16, fetch), &larger));
    assert_eq!(find(CODE + 8, fetch).jumps_to(0), None, "there is no instruction at that distance");
}

/// Such code would need registers that the kernel's threads do not have, so that nothing of it would be translated.
#[test]
fn code_between_a_kernel_and_a_function_with_an_absolute_address_is_left_out() {
    const CODE: u64 = 0x5_0000_0000;
    let call = Word::new((CODE + 100 * 16) << 32 | 0x7943, (CODE + 100 * 16) >> 32 | 0x000f_ea00_03c0_0000);
    let (exit, back) = (Word::new(0x794d, 0x000f_ea00_0380_0000), Word::new(0x1400_7950, 0x000f_ea00_03e0_0000));
    // FADD R200, R200, R200 belongs to another kernel.
    let other = Word::new(0x0000_00c8_c8c8_7221, 0x004f_ca00_0000_0000);
    let image = find(CODE, &mut |n| {
        Some(if n == 0 {
            call
        } else if n == 1 {
            exit
        } else if n == 100 {
            back
        } else {
            other
        })
    });
    assert_eq!((image.len(), image.registers, image.jumps_to(0)), (2 + 1 + 1 + 1, 22, Some(3)));
}
