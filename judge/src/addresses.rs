//! Compares the model's allocator of GPU addresses with the driver's, call by call.

use crate::calls::{Call, Range};
use crate::driver::{Allocator, Driver};
use crate::random::Random;
use tegra_mm::{Buddy, PageClass};

/// The calls of one range.
const CALLS: u64 = 200;
const PAGE: u64 = 4096;
/// What an entry of a page directory covers.
const DIRECTORY: u64 = 2 << 20;

/// A number below a power of two whose exponent is below `exponents`: more often a small one than a large one.
fn skewed(random: &mut Random, exponents: u64) -> u64 {
    let exponent = random.below(exponents);
    random.below(1 << exponent)
}

/// A range: small or large, at any page where there are no big pages.
fn range(random: &mut Random) -> Range {
    let big_pages = random.one_in(2);
    let unit = if big_pages { DIRECTORY } else { PAGE };
    let units = 1 + skewed(random, if big_pages { 16 } else { 24 });
    let start = unit * (1 + skewed(random, 12));
    Range { start, end: start + unit * units, big_pages }
}

/// A size in bytes, more often of few pages than of many. It need not be whole pages.
fn size(random: &mut Random, all: u64) -> u64 {
    let size = 1 + skewed(random, 1 + u64::from(all.max(2).ilog2()));
    if random.one_in(4) { size } else { size.next_multiple_of(PAGE) }
}

/// The next call. `live` are the addresses that are taken, and their sizes.
fn call(random: &mut Random, range: Range, live: &[(u64, u64)]) -> Call {
    let class = if range.big_pages && random.one_in(2) { PageClass::Big } else { PageClass::Small };
    let all = range.end - range.start;
    match random.below(10) {
        0..=2 if !live.is_empty() => Call::Give { address: random.pick(live).0 },
        3 => {
            // What is not taken can be given back, too. A page inside of what is taken has no caller in the driver, and its lists break.
            let address = range.start + random.below(all) / PAGE * PAGE;
            let inside = live.iter().find(|(start, size)| (*start..start + size).contains(&address));
            Call::Give { address: inside.map_or(address, |(start, _)| *start) }
        }
        4..=5 => {
            let unit = if class == PageClass::Big { 16 * PAGE } else { PAGE };
            let base = range.start + random.below(all) / unit * unit;
            let base = if random.one_in(16) { base + random.below(PAGE) } else { base };
            // The driver's callers ask for whole pages here. It stops with BUG() at less than one.
            Call::TakeFixed { base, size: size(random, all / 8 + PAGE).next_multiple_of(PAGE), class }
        }
        _ => Call::Take { size: size(random, all), class },
    }
}

/// Makes the call on the driver's allocator.
fn ask(driver: &mut Allocator<'_>, call: Call) -> u64 {
    let page_size = |class| if class == PageClass::Big { 16 * PAGE as u32 } else { PAGE as u32 };
    match call {
        Call::Take { size, class } => driver.take(size, page_size(class)),
        Call::TakeFixed { base, size, class } => driver.take_fixed(base, size, page_size(class)),
        Call::Give { address } => {
            driver.give(address);
            0
        }
    }
}

/// Plays the calls of a seed. Calls and the driver's answers go to `tell`. The result is the number of calls, and
/// what the model answered if that is another address.
pub fn play(driver: &Driver, seed: u64, tell: &mut dyn FnMut(String)) -> (usize, Option<u64>) {
    let mut random = Random(seed ^ 0xadd2);
    let range = range(&mut random);
    let mut theirs = driver.allocator(range.start, range.end - range.start, range.big_pages).expect("a range");
    let mut model = Buddy::new(range.start, range.end);
    tell(range.to_line());
    let mut live = Vec::new();
    for made in 1..=CALLS {
        let call = call(&mut random, range, &live);
        let (expected, answer) = (ask(&mut theirs, call), call.answer(&mut model));
        tell(format!("{} = {expected:x}", call.to_line()));
        if expected != answer {
            return (made as usize, Some(answer));
        }
        match call {
            Call::Give { address } => live.retain(|(other, _)| *other != address),
            Call::Take { size, .. } | Call::TakeFixed { size, .. } if expected != 0 => live.push((expected, size)),
            _ => {}
        }
    }
    (CALLS as usize, None)
}

/// Compares the calls of many seeds, and shows the first ones that differ. Returns how many calls were compared, and
/// how many seeds differ.
pub fn compare(driver: &Driver, seeds: std::ops::Range<u64>, shown: u64) -> (usize, u64) {
    let (mut calls, mut different) = (0, 0);
    for seed in seeds {
        let mut lines = Vec::new();
        let (made, answer) = play(driver, seed, &mut |line| lines.push(line));
        calls += made;
        if let Some(answer) = answer {
            different += 1;
            if different <= shown {
                println!("addresses {seed}:\n{}\nthe model says {answer:x}\n", lines.join("\n"));
            }
        }
    }
    (calls, different)
}
