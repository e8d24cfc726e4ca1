//! Recordings that somebody has edited are performed and replayed: a sample of what the fuzz target `recording` does for ten minutes.
#![allow(unsafe_code)]

mod edits;
mod tour;

use edits::Input;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm_kmd::{Kmd, Recorded, Replayed, perform, perform_all};

/// The recordings that are edited for each release, unless `TEGRARM_TEST_RECORDINGS` says another number.
const RECORDINGS: u64 = 10;
/// The longest list of edits, in bytes.
const LONGEST: u64 = 400;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn board(l4t: L4t) -> Arc<SimKmd> {
    let config = SimConfig::new(Chip::AgxOrin).on(l4t);
    Arc::new(SimKmd::new(SimConfig { mem_total: 64 << 20, step: true, ..config }))
}

/// Numbers that are the same in every run (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn edited_recordings_do_no_harm() {
    let count = std::env::var("TEGRARM_TEST_RECORDINGS").map_or(RECORDINGS, |text| text.parse().unwrap());
    for (seed, l4t) in [L4t::R36, L4t::R35, L4t::R35_4, L4t::R39].into_iter().enumerate() {
        let (sink, first) = (Sink::default(), board(l4t));
        let places = tour::places(&first);
        tour::run(Arc::new(Recorded::new(first, sink.clone()).unwrap()), &places);
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(lines.len() > 100, "{} lines", lines.len());
        let mut numbers = Numbers(seed as u64 + 1);
        for number in 0..count {
            let bytes: Vec<u8> = (0..numbers.next() % LONGEST).map(|_| numbers.next() as u8).collect();
            let text = edits::edited(&lines, &mut Input(&bytes));
            let before = tour::open_fds();
            let performer = board(l4t);
            let all = number % 2 == 0;
            let known = match all {
                true => perform_all(text.as_bytes(), performer.clone(), |_, _| {}).is_ok(),
                false => perform(text.as_bytes(), performer.clone()).is_ok(),
            };
            assert_eq!(performer.kernel().open_files(), 0, "{l4t:?} {number}: nothing stays open");
            drop(performer);
            if let Ok(replay) = Replayed::new(text.as_bytes()) {
                let replay: Arc<dyn Kmd> = Arc::new(if all { replay.ignoring_inputs() } else { replay });
                tour::run(replay, &places);
            }
            assert_eq!(tour::open_fds(), before, "{l4t:?} {number}: every descriptor is closed ({known})");
        }
    }
}
