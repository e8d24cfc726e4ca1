//! When the DRAM has given a CTA what it reads, if the CTA has its SM's share of the bandwidth alone.
//!
//! Warps are executed one after another, so that their accesses do not come in the order of their times. The bandwidth is therefore
//! kept as windows of time of which each has so many bytes left.

use std::collections::VecDeque;

/// The cycles of a window.
const WINDOW: u64 = 64;
/// The windows that are remembered. Warps of one CTA are seldom so far apart; an access before the first of them counts in that one.
const WINDOWS: usize = 1 << 14;
/// Parts of a byte, because a share of a cycle is a few bytes.
const PARTS: u64 = 1 << 10;

/// The bandwidth of one CTA.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// The parts of a byte that a window has in all.
    room: u64,
    /// The window at the front.
    first: u64,
    /// What is left of each window.
    left: VecDeque<u64>,
}

impl Traffic {
    /// Nothing was read yet. `bytes` come in `cycles`.
    pub(super) fn new(bytes: u64, cycles: u64) -> Traffic {
        let room = u128::from(bytes) * u128::from(PARTS * WINDOW) / u128::from(cycles.max(1));
        Traffic { room: u64::try_from(room).unwrap_or(u64::MAX).max(1), ..Traffic::default() }
    }

    /// Begins another CTA.
    pub(super) fn clear(&mut self) {
        self.first = 0;
        self.left.clear();
    }

    /// Reads `bytes` from the cycle `at` on. Returns for how many cycles they come.
    pub(super) fn read(&mut self, at: u64, bytes: u64) -> u64 {
        let mut parts = bytes.saturating_mul(PARTS);
        self.forget();
        let mut index = (at / WINDOW).saturating_sub(self.first) as usize;
        while parts > 0 {
            if index > self.left.len() + WINDOWS {
                // Nobody has read for long: what lies before is not asked for any more.
                self.first += index as u64;
                (index, self.left) = (0, VecDeque::new());
            }
            while self.left.len() <= index {
                self.left.push_back(self.room);
            }
            let taken = parts.min(self.left[index]);
            self.left[index] -= taken;
            parts -= taken;
            if parts == 0 {
                let used = self.room - self.left[index];
                // The host divides 64 bits much faster than 128.
                let wide = || (u128::from(used) * u128::from(WINDOW) / u128::from(self.room)) as u64;
                let inside = used.checked_mul(WINDOW).map_or_else(wide, |parts| parts / self.room);
                let done = (self.first + index as u64) * WINDOW + inside;
                return done.saturating_sub(at);
            }
            index += 1;
        }
        0
    }

    /// Drops windows at the front that are full, or that are too many.
    fn forget(&mut self) {
        while self.left.len() > WINDOWS || self.left.front() == Some(&0) {
            self.left.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_take_their_turns_whatever_their_order() {
        let mut traffic = Traffic::new(8, 1);
        assert_eq!(traffic.read(0, 512), 64);
        assert_eq!(traffic.read(0, 512), 128);
        assert_eq!(traffic.read(640, 80), 10, "nobody else reads then");
        assert_eq!(traffic.read(0, 512), 192, "the gap before is used");
        assert_eq!(traffic.read(1 << 40, 8), 1);
        assert_eq!(traffic.read(1 << 40, 0), 0);
        traffic.clear();
        assert_eq!(traffic.read(0, 4096), 512);
    }

    #[test]
    fn a_share_can_be_less_than_a_byte_of_a_cycle() {
        let mut traffic = Traffic::new(1, 4);
        assert_eq!(traffic.read(0, 32), 128);
        assert_eq!(traffic.read(0, 32), 256);
    }
}
