//! Observers see the instructions that they chose, and nobody else pays for them.

use super::*;
use crate::exec::observe::{Chosen, CtaObserver, Step};
use crate::launch::Limits;
use crate::word::Word;
use std::sync::atomic::AtomicU32;

const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);
const YIELD: Word = Word::new(0x7946, 0x000f_ea00_0380_0000);

/// LDS R0, [R0], and EXIT.
fn load(n: i64) -> Option<Word> {
    Some(if n == 0 { Word::new(0x0000_0000_0000_7984, 0x000e_2800_0000_0800) } else { EXIT })
}

fn launch() -> Launch {
    Launch {
        table: Arc::default(),
        code: 0,
        grid: [1; 3],
        first: [0; 3],
        block: [32, 1, 1],
        registers: 8,
        shared_bytes: 128,
        local_low: 0,
        local_high: 0,
        banks: [None; 8],
        shared_window: 0,
        local_window: 0,
        sm_count: 1,
        disabled_sms: 0,
        sequential: false,
        veid: 0,
        begun: 0,
        limits: Limits::default(),
    }
}

/// Looks at the first instruction.
#[derive(Default)]
struct Counts {
    steps: AtomicU32,
    /// The number of programs that it was asked about.
    programs: AtomicU32,
    /// What the clocks of the launch showed at its end.
    shown: AtomicU64,
}

impl Observer for Counts {
    fn choose(&self, _: &Image, _: &mut Fetch<'_>) -> Chosen {
        self.programs.fetch_add(1, Ordering::Relaxed);
        Chosen { which: vec![true], is_narrow: false, notes: Arc::new(7u8) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(self)
    }

    fn ends(&self, shown: u64) {
        self.shown.store(shown, Ordering::Relaxed);
    }
}

impl CtaObserver for &Counts {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        self.steps.fetch_add(1, Ordering::Relaxed);
        step.execute()
    }
}

#[test]
fn without_an_observer_a_launch_executes_the_program_as_everybody_does() {
    let (launch, counts, image) = (launch(), Counts::default(), decode::find(0, &mut load));
    let alone = fit(image.clone(), &launch, &[], &mut load);
    assert!(Arc::ptr_eq(&alone, &image), "there is no copy of it in which anybody looks");
    let looked_at = fit(image.clone(), &launch, &[&counts], &mut load);
    assert!(!Arc::ptr_eq(&looked_at, &image));
    assert_eq!((looked_at.notes::<u8>(), image.notes::<u8>()), (Some(&7), None));
    let handler = |image: &Image, at: usize| image.uops[at].run.full as usize;
    assert_ne!(handler(&looked_at, 0), handler(&image, 0));
    assert_eq!(handler(&looked_at, 1), handler(&image, 1), "what nobody chose stays as it is");
}

/// A launch of a program in memory.
#[cfg(not(miri))]
fn loaded(program: &[Word]) -> Launch {
    let (mut launch, mut table) = (launch(), tegra_mm::PageTable::default());
    let words: Vec<u8> = program.iter().flat_map(|word| word.0.to_le_bytes()).collect();
    let backing = Arc::new(tegra_mm::Backing::anonymous("observed", 4096).expect("memory"));
    assert!(backing.write(0, &words));
    table.insert(tegra_mm::Extent {
        va: 1 << 20,
        len: 4096,
        backing: Some(backing),
        writable: true,
        ..tegra_mm::Extent::default()
    });
    (launch.table, launch.code) = (Arc::new(table), 1 << 20);
    launch
}

/// Miri has no shared memory for the program.
#[cfg(not(miri))]
#[test]
fn every_observer_sees_an_instruction_that_it_chose_once() {
    let (first, second) = (Counts::default(), Counts::default());
    let image = fit(decode::find(0, &mut load), &launch(), &[&first, &second], &mut load);
    let launch = loaded(&[0, 1].map(|n| load(n).expect("it has two instructions")));
    run(&launch, &[&first, &second]).expect("no fault");
    let seen = [&first, &second].map(|counts| counts.steps.load(Ordering::Relaxed));
    assert_eq!((seen, image.len()), ([1, 1], 3), "two instructions and their end");
}

/// A program whose CTAs let each other run before they call code behind a pointer, which sleeps for 50 µs. `mark` is a number in it.
#[cfg(not(miri))]
fn sleeps_behind_a_pointer(mark: u64) -> Vec<Word> {
    let mov = |register: u64, x: u64| Word::new(x << 32 | register << 16 | 0x7802, 0x000f_e200_0000_0f00);
    let mut program = vec![mov(2, mark), mov(4, 160), mov(5, 0)];
    program.extend([YIELD; 64]);
    // CALL.REL.NOINC R4: to the tenth instruction after the next one.
    program.push(Word::new(0x0000_0000_0400_7344, 0x001f_ea00_03c0_0000));
    program.extend([EXIT; 10]);
    program.extend([Word::new(0x0000_c350_0000_795d, 0x000f_e200_0380_0000), EXIT]);
    program
}

#[cfg(not(miri))]
#[test]
fn all_ctas_of_a_launch_share_a_program_that_grows() {
    let (counts, mut launch) = (Counts::default(), loaded(&sleeps_behind_a_pointer(0x3333)));
    launch.grid = [4, 1, 1];
    run(&launch, &[&counts]).expect("no fault");
    assert_eq!(counts.steps.load(Ordering::Relaxed), 4);
    assert_eq!(
        counts.programs.load(Ordering::Relaxed),
        2,
        "the first program, and the one with the code behind the pointer"
    );
}

#[cfg(not(miri))]
#[test]
fn clocks_behind_a_pointer_count_for_the_launch() {
    let (counts, launch) = (Counts::default(), loaded(&sleeps_behind_a_pointer(0x4444)));
    run(&launch, &[&counts]).expect("no fault");
    let shown = counts.shown.load(Ordering::Relaxed);
    assert!(shown >= 25_000, "it slept for half of 50 us at least: {shown} ns");
}

#[cfg(not(miri))]
#[test]
fn the_next_launch_knows_what_a_cta_took_with_the_code_behind_a_pointer() {
    let program = sleeps_behind_a_pointer(0x5555);
    run(&loaded(&program), &[]).expect("no fault");
    let image = decode::find(0, &mut |n| {
        usize::try_from(n).ok().and_then(|n| program.get(n).copied()).or(Some(Word::default()))
    });
    assert_eq!(image.len(), 81, "it has the code behind the pointer, and an end");
    let weight = image.weight.load(Ordering::Relaxed);
    assert!(weight >= 70, "its only CTA executed 70 instructions: {weight}");
}
