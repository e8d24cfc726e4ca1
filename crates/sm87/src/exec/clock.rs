//! Time as programs see it. It passes with the instructions that a CTA issues, and while the CTA sleeps. It does not
//! depend on the machine that the engine runs on, so that a program finds the same times in every run.

/// The frequency of the GPU's clock in megahertz.
const MHZ: u64 = 1300;
/// The cycles that reading a clock takes, in addition to the cycle in which the instruction is issued.
const LOOK: u64 = 32;
/// The most nanoseconds that NANOSLEEP sleeps.
const LONGEST: u32 = 1_000_000;

/// The clock of the SM that a CTA is on, as the CTA sees it. It counts a cycle for each instruction, and the cycles
/// that passed for other reasons.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The difference between the clock and the CTA's count of instructions. It wraps around.
    offset: u64,
    /// Whether a warp of the CTA has executed NANOSLEEP.
    pub slept: bool,
}

impl Clock {
    /// Makes a clock that shows `cycles` now, after `issued` instructions.
    pub(crate) fn new(cycles: u64, issued: u64) -> Clock {
        Clock { offset: cycles.wrapping_sub(issued), slept: false }
    }

    /// What the clock shows after `issued` instructions.
    pub(crate) fn at(self, issued: u64) -> u64 {
        self.offset.wrapping_add(issued)
    }

    /// Lets `cycles` pass.
    pub(crate) fn pass(&mut self, cycles: u64) {
        self.offset = self.offset.wrapping_add(cycles);
    }

    /// Accounts for a program that reads the clock.
    pub(crate) fn look(&mut self) {
        self.pass(LOOK);
    }
}

/// Converts cycles to nanoseconds, in the steps of the GPU's timer.
pub(crate) fn nanoseconds(cycles: u64) -> u64 {
    (u128::from(cycles) * 1000 / u128::from(MHZ)) as u64 & !0x1f
}

/// The cycles that a sleep of `ns` nanoseconds takes. PTX allows up to twice as long. The timer shows at most one step
/// less than has passed.
pub(crate) fn sleep(ns: u32) -> u64 {
    let ns = u64::from(ns.min(LONGEST));
    (ns + ns / 4) * MHZ / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_at_least_what_was_asked_and_less_than_twice() {
        for ns in [0, 1, 20, 63, 100, 1000, 999_999, 1_000_000, u32::MAX] {
            let asked = u64::from(ns.min(1_000_000));
            let cycles = sleep(ns);
            assert!(cycles >= asked && cycles <= 2 * asked * MHZ / 1000, "{ns}: {cycles} cycles");
        }
        assert_eq!(nanoseconds(1300), 992);
    }

    #[test]
    fn clocks_pass_with_instructions_and_otherwise() {
        let mut clock = Clock::new(1000, 5_000_000);
        assert_eq!(clock.at(5_000_001), 1001);
        clock.pass(10);
        clock.look();
        assert_eq!(clock.at(5_000_001), 1011 + LOOK);
    }
}
