//! Observers see the instructions that they chose, and nobody else pays for them.

use super::*;
use crate::exec::observe::{Chosen, CtaObserver, Step};
use crate::launch::Limits;
use std::sync::atomic::AtomicU32;

/// LDS R0, [R0], and EXIT.
fn load(n: i64) -> Option<Word> {
    let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
    Some(if n == 0 { Word::new(0x0000_0000_0000_7984, 0x000e_2800_0000_0800) } else { exit })
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
struct Counts(AtomicU32);

impl Observer for Counts {
    fn choose(&self, _: &Image, _: &mut Fetch<'_>) -> Chosen {
        Chosen { which: vec![true], notes: Arc::new(7u8) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(self)
    }

    fn ends(&self, _: u64) {}
}

impl CtaObserver for &Counts {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        self.0.fetch_add(1, Ordering::Relaxed);
        step.execute()
    }
}

#[test]
fn without_an_observer_a_launch_executes_the_program_as_everybody_does() {
    let (launch, counts, image) = (launch(), Counts::default(), image::find(&mut load));
    let alone = fit(image.clone(), &launch, &[], &mut load);
    assert!(Arc::ptr_eq(&alone, &image), "there is no copy of it in which anybody looks");
    let looked_at = fit(image.clone(), &launch, &[&counts], &mut load);
    assert!(!Arc::ptr_eq(&looked_at, &image));
    assert_eq!((looked_at.notes::<u8>(), image.notes::<u8>()), (Some(&7), None));
    let handler = |image: &Image, at: usize| image.uops[at].run.full as usize;
    assert_ne!(handler(&looked_at, 0), handler(&image, 0));
    assert_eq!(handler(&looked_at, 1), handler(&image, 1), "what nobody chose stays as it is");
}

/// Miri has no shared memory for the program.
#[cfg(not(miri))]
#[test]
fn every_observer_sees_an_instruction_that_it_chose_once() {
    let (first, second) = (Counts::default(), Counts::default());
    let image = fit(image::find(&mut load), &launch(), &[&first, &second], &mut load);
    let (mut launch, mut table) = (launch(), tegra_mm::PageTable::default());
    let words: Vec<u8> = (0..2).flat_map(|n| load(n).map(|word| word.0.to_le_bytes()).into_iter().flatten()).collect();
    let backing = Arc::new(tegra_mm::Backing::anonymous("observed", 4096).expect("memory"));
    assert!(backing.write(0, &words));
    table.insert(tegra_mm::Extent { va: 1 << 20, len: 4096, backing: Some(backing), offset: 0, writable: true });
    (launch.table, launch.code) = (Arc::new(table), 1 << 20);
    run(&launch, &[&first, &second]).expect("no fault");
    let seen = [&first, &second].map(|counts| counts.0.load(Ordering::Relaxed));
    assert_eq!((seen, image.len()), ([1, 1], 2));
}
