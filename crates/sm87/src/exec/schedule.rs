//! How long a CTA and its warps run before others do: who may stop a CTA, and schedules of a grid that are not the usual one.
//!
//! Those have the CTAs in another order, the warps of a CTA in another order in each round, and shorter turns of both. A schedule follows from
//! its number alone, so that a launch can be repeated with it.

use super::env::Env;

/// The longest slice of a warp and the shortest turn of a CTA, as powers of two.
const SLICE: u64 = 14;
const TURN: (u64, u64) = (6, 14);

/// So many instructions are reported together at least. Between two barriers, a warp may execute only a few.
const REPORT: u64 = 1 << 10;

/// Reasons from outside the CTA to stop.
pub(crate) trait Supervisor {
    /// Called between slices, with the number of instructions issued since the last call. Short slices have one call together.
    fn poll(&self, issued: u64) -> Result<(), Interrupt>;
}

/// Why a CTA is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Another CTA of the grid failed.
    Other,
    /// `Limits::cancel` was set.
    Cancelled,
    /// `Limits::budget` is used up.
    Budget,
}

/// What the supervisor was told. It is asked once before anything is executed.
pub(super) struct Reports {
    /// The instructions that it knows of, and how many more are worth a report.
    reported: u64,
    least: u64,
}

impl Reports {
    /// Nothing is reported of what is executed after so many instructions.
    pub(super) fn new(reported: u64) -> Reports {
        Reports { reported, least: 0 }
    }

    /// The instructions that the supervisor does not know of.
    pub(super) fn left(&self, env: &Env<'_>) -> u64 {
        env.counts.stats.warp_instructions - self.reported
    }

    /// Tells the supervisor of the instructions that were executed, if they are enough.
    #[inline(always)]
    pub(super) fn report(&mut self, env: &Env<'_>, supervisor: &dyn Supervisor) -> Result<(), Interrupt> {
        let issued = self.left(env);
        if issued < self.least {
            return Ok(());
        }
        *self = Reports { reported: self.reported + issued, least: REPORT };
        supervisor.poll(issued)
    }
}

/// Numbers that follow from one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn(u64);

impl Drawn {
    /// The numbers that follow from a schedule and something that it decides about.
    pub(super) fn of(schedule: u64, about: u64) -> Drawn {
        Drawn(mixed(schedule ^ mixed(about)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// The instructions of a slice, which would have `usual` ones: often few, and sometimes many.
    pub(super) fn slice(&mut self, usual: u32) -> u32 {
        usual.min(1 << (self.next() % (SLICE + 1)))
    }

    /// The instructions of a turn of a CTA, which would have `usual` ones.
    pub(super) fn turn(&mut self, usual: u64) -> u64 {
        usual.min(1 << (TURN.0 + self.next() % (TURN.1 - TURN.0 + 1)))
    }
}

/// Spreads a number (the function of SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// An order of the numbers of a range, without a table of them: a Feistel network of four rounds over the next power of four.
/// A number that leads out of the range is led on until it is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    key: u64,
    first: u64,
    count: u64,
    /// The bits of one half.
    bits: u32,
}

impl Order {
    pub(super) fn of(key: u64, first: u64, end: u64) -> Order {
        let count = end.saturating_sub(first);
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        Order { key, first, count, bits }
    }

    /// Which number has the place `n`. Numbers outside of the range stay where they are.
    pub(super) fn at(&self, n: u64) -> u64 {
        let Some(mut place) = n.checked_sub(self.first).filter(|place| *place < self.count) else { return n };
        loop {
            place = self.led(place);
            if place < self.count {
                return self.first + place;
            }
        }
    }

    fn led(&self, place: u64) -> u64 {
        let mask = u64::MAX >> (u64::BITS - self.bits);
        let (mut left, mut right) = (place >> self.bits, place & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ mixed(self.key ^ mixed(right ^ round << 56)) & mask);
        }
        left << self.bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_each_number_once_and_follows_from_its_key() {
        for (first, end) in [(0, 1), (0, 2), (0, 5), (3, 20), (7, 7), (0, 256), (10, 1010)] {
            let order = |key| (first..end).map(|n| Order::of(key, first, end).at(n)).collect::<Vec<_>>();
            for key in 0..20 {
                let mut sorted = order(key);
                sorted.sort_unstable();
                assert_eq!(sorted, (first..end).collect::<Vec<_>>(), "{key}");
                assert_eq!(order(key), order(key));
            }
            let orders: std::collections::HashSet<_> = (0..40).map(order).collect();
            let all = [1, 1, 2][(end - first).min(2) as usize];
            assert!(
                orders.len() >= all && (end - first < 5 || orders.len() > 10),
                "{first} to {end}: {}",
                orders.len()
            );
        }
        assert_eq!(Order::of(1, 4, 8).at(3), 3);
        assert_eq!(Order::of(1, 4, 8).at(8), 8);
    }

    #[test]
    fn slices_are_short_and_long_and_never_empty() {
        let mut drawn = Drawn::of(1, 2);
        let slices: Vec<_> = (0..200).map(|_| drawn.slice(1 << 14)).collect();
        assert!(slices.contains(&1) && slices.contains(&(1 << 14)) && !slices.contains(&0));
        assert!((0..200).all(|_| drawn.slice(5) <= 5 && (64..=1 << 14).contains(&drawn.turn(1 << 20))));
        assert_ne!(Drawn::of(1, 2).next(), Drawn::of(1, 3).next());
        assert_ne!(Drawn::of(1, 2).next(), Drawn::of(2, 2).next());
    }
}
